// Found from the comparisons onwards; a number that is read as such by a single other instruction stays one: see
// conditions.h.
#include "ir/machine/prepare/conditions.h"

#include "ir/machine/prepare/sections.h"
#include "ir/machine/prepare/value_flow.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

class Conditions {
public:
  explicit Conditions(Function& function)
      : function_(function), values_(function), in_section_(instructions_in_sections(function)) {}

  bool run() {
    find();
    drop_read_as_numbers();
    if (numbers_.empty()) return false;
    for (BlockId block : function_.layout)
      for (InstructionId id = function_.blocks[block].first, next; id; id = next) {
        next = function_.instructions[id].next;
        rewrite(id);
      }
    for (const auto& [value, number] : numbers_)
      function_.values[value].type = ScalarType::pred;
    return true;
  }

private:
  // The number that stands for true, if the value is such a condition.
  std::optional<int64_t> number_of(const Operand& operand) const {
    if (!operand.is(OperandKind::value) || operand.has(OperandFlag::negated)) return std::nullopt;
    const auto found = numbers_.find(operand.as_value());
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

  bool is_plain(InstructionId id, size_t operands) const {
    const Instruction& instruction = function_.instructions[id];
    return instruction.kind == InstructionKind::real && !instruction.guard && !is_marked(in_section_, id) &&
           function_.operands_of(id).size() == operands;
  }

  // A comparison of two numbers without a further condition.
  bool is_comparison(InstructionId id) const {
    if (!is_plain(id, 3) || !function_.is_opcode(id, Opcode::set)) return false;
    const Form& form = function_.form_of(id);
    return !is_float(form.type()) && bit_width(form.type()) == 32 && !form.has(Modifier::ftz) &&
           !comparison_of(form).empty();
  }

  // The number for true that the instruction makes of conditions.
  std::optional<int64_t> combined(InstructionId id) const {
    if (!is_plain(id, 2) && !is_plain(id, 3)) return std::nullopt;
    const Form& form = function_.form_of(id);
    if (is_float(form.type()) || bit_width(form.type()) != 32) return std::nullopt;
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    const std::optional<int64_t> first = number_of(operands[1]);
    if (!first) return std::nullopt;
    if (form.opcode == Opcode::neg) return -*first;
    if (form.opcode != Opcode::and_ && form.opcode != Opcode::or_) return std::nullopt;
    const std::optional<int64_t> second = number_of(operands[2]);
    if (!second) return std::nullopt;
    return form.opcode == Opcode::and_ ? *first & *second : *first | *second;
  }

  void find() {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        const std::optional<int64_t> number = is_comparison(id) ? std::optional<int64_t>(-1) : combined(id);
        if (!number) continue;
        const Operand& result = std::as_const(function_).operands_of(id)[0];
        if (result.is(OperandKind::value) && !values_.merges(result.as_value()))
          numbers_.emplace(result.as_value(), *number);
      }
  }

  bool is_zero(const Operand& operand) const {
    if (operand.is(OperandKind::integer)) return operand.immediate == 0;
    if (!operand.is(OperandKind::value)) return false;
    const InstructionId id = values_.definition(operand.as_value());
    return id && function_.is_opcode(id, Opcode::mov) && is_plain(id, 2) &&
           std::as_const(function_).operands_of(id)[1] == Operand::integer(0);
  }

  // A test of the condition, or a selection by its sign.
  bool is_test(InstructionId id, ValueId value) const {
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    const Form& form = function_.form_of(id);
    if (form.opcode == Opcode::setp)
      return is_plain(id, 3) && form.definitions == 1 && (form.has(Modifier::eq) || form.has(Modifier::ne)) &&
             operands[1].is(OperandKind::value) && operands[1].as_value() == value && is_zero(operands[2]);
    return form.opcode == Opcode::slct && is_plain(id, 4) && form.type(1) == ScalarType::s32 &&
           operands[3].is(OperandKind::value) && operands[3].as_value() == value && operands[1] != operands[3] &&
           operands[2] != operands[3] && numbers_.at(value) < 0;
  }

  bool is_condition(InstructionId id) const {
    const Operand& result = std::as_const(function_).operands_of(id)[0];
    return result.is(OperandKind::value) && numbers_.contains(result.as_value());
  }

  // Negations may make the number that is read.
  bool is_read_as_condition(ValueId value) const {
    for (InstructionId reader : values_.readers(value)) {
      if (function_.instructions[reader].kind != InstructionKind::real || function_.instructions[reader].guard)
        return false;
      const bool makes_number = function_.is_opcode(reader, Opcode::neg) && is_plain(reader, 2);
      if (!makes_number && !is_test(reader, value) && !is_condition(reader)) return false;
    }
    return true;
  }

  // If one is dropped, those that it is made of and those that are made of it are examined again.
  void drop_read_as_numbers() {
    std::vector<ValueId> work;
    for (const auto& [value, number] : numbers_)
      work.push_back(value);
    while (!work.empty()) {
      const ValueId value = work.back();
      work.pop_back();
      if (!numbers_.contains(value)) continue;
      const InstructionId id = values_.definition(value);
      if (is_read_as_condition(value) && (is_comparison(id) || combined(id))) continue;
      numbers_.erase(value);
      for_each_use(function_, id, [&](ValueId operand) { work.push_back(operand); });
      for (InstructionId reader : values_.readers(value))
        for_each_definition(function_, reader, [&](ValueId made) { work.push_back(made); });
    }
  }

  void become(InstructionId id, std::string_view mnemonic, std::vector<Operand> operands) {
    function_.instructions[id].form = known_form(mnemonic);
    function_.set_operands(id, operands);
  }

  // The condition itself instead of its negations, which are removed.
  Operand without_negation(const Operand& operand) const {
    const auto found = negated_.find(operand.as_value());
    return found == negated_.end() ? operand : found->second;
  }

  void rewrite(InstructionId id) {
    if (function_.instructions[id].kind != InstructionKind::real) return;
    const std::span<const Operand> read = std::as_const(function_).operands_of(id);
    const std::vector<Operand> operands(read.begin(), read.end());
    const Form& form = function_.form_of(id);
    if (operands.size() < 2) return;
    const bool makes_condition = operands[0].is(OperandKind::value) && numbers_.contains(operands[0].as_value());
    if (makes_condition) {
      if (form.opcode == Opcode::set) {
        become(id, "setp." + std::string(comparison_of(form)) + "." + std::string(spelling(form.type(1))), operands);
      } else if (form.opcode == Opcode::neg) {
        negated_.emplace(operands[0].as_value(), without_negation(operands[1]));
        function_.remove(id);
      } else {
        become(id, form.opcode == Opcode::and_ ? "and.pred" : "or.pred",
               {operands[0], without_negation(operands[1]), without_negation(operands[2])});
      }
      return;
    }
    if (form.opcode == Opcode::neg) {
      if (const std::optional<int64_t> number = number_of(operands[1]))
        become(id, "selp.b32",
               {operands[0], Operand::integer(-*number), Operand::integer(0), without_negation(operands[1])});
    } else if (form.opcode == Opcode::setp && number_of(operands[1])) {
      become(id, form.has(Modifier::eq) ? "not.pred" : "mov.pred", {operands[0], without_negation(operands[1])});
    } else if (form.opcode == Opcode::slct && operands.size() == 4 && number_of(operands[3])) {
      become(id, "selp." + std::string(spelling(form.type())),
             {operands[0], operands[2], operands[1], without_negation(operands[3])});
    }
  }

  static std::string_view comparison_of(const Form& form) {
    constexpr std::pair<Modifier, std::string_view> names[] = {
        {Modifier::eq, "eq"},   {Modifier::ne, "ne"},   {Modifier::lt, "lt"},   {Modifier::le, "le"},
        {Modifier::gt, "gt"},   {Modifier::ge, "ge"},   {Modifier::lo, "lo"},   {Modifier::ls, "ls"},
        {Modifier::hi, "hi"},   {Modifier::hs, "hs"},   {Modifier::equ, "equ"}, {Modifier::neu, "neu"},
        {Modifier::ltu, "ltu"}, {Modifier::leu, "leu"}, {Modifier::gtu, "gtu"}, {Modifier::geu, "geu"}};
    for (const auto& [modifier, name] : names)
      if (form.has(modifier)) return name;
    return {};
  }

  Function& function_;
  ValueFlow values_;
  std::vector<bool> in_section_;
  std::map<ValueId, int64_t> numbers_; // conditions, with the number that stands for true
  std::map<ValueId, Operand> negated_; // what those that are removed negate
};

} // namespace

bool make_predicates(Function& function) {
  if (!function.is_ssa || function.affine_stream) return false;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real && function.is_opcode(id, Opcode::set))
        return Conditions(function).run();
  return false;
}

} // namespace ptxrewrite::ir
