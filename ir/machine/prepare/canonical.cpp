// Determined by assembling equivalent spellings and comparing the code: see canonical.h.
#include "ir/machine/prepare/canonical.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/prepare/sections.h"

#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

class Rewriter {
public:
  Rewriter(Function& function, uint32_t compute_capability, DefinitionsBetweenSteps& definitions)
      : function_(function), definitions_(definitions), in_section_(instructions_in_sections(function)),
        chooses_extremes_(has(compute_capability, MachineFact::minimum_of_select)),
        joins_summands_(heuristic(compute_capability, Heuristic::joined_summands) > 0) {}

  bool run() {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (!is_marked(in_section_, id) && !function_.instructions[id].guard)
          changed_ |= scale_once(id) || join_multiply_add(id) || (chooses_extremes_ && choose_extreme(id));
    if (changed_) definitions_.forget();
    return changed_;
  }

private:
  // Of the original, whose definitions remain valid. Products that have become shifts read the same values.
  const ValueDefinitions& values() { return definitions_.of(function_); }

  // Turns a product with a power of two into a shift.
  bool shift_by_power(InstructionId id) {
    if (!is_product(id)) return false;
    const std::span<const Operand> operands = function_.operands_of(id);
    if (!operands[1].is(OperandKind::value) || !operands[2].is(OperandKind::integer)) return false;
    const auto factor = static_cast<uint32_t>(operands[2].immediate);
    if (factor < 2 || !std::has_single_bit(factor)) return false;
    const std::vector<Operand> shifted{operands[0], operands[1], Operand::integer(std::countr_zero(factor))};
    function_.instructions[id].form = known_form("shl.b32");
    function_.set_operands(id, shifted);
    return true;
  }

  // Products with powers of two become shifts; factors that follow each other become one, literal summands likewise.
  bool scale_once(InstructionId id) {
    const bool shifts = shift_by_power(id);
    return join_factors(id) || (joins_summands_ && join_summands(id)) || shifts;
  }

  struct Factor {
    uint32_t number = 0;
    bool shifts = false;
  };

  // The literal by which a 32-bit product, multiply-add or shift multiplies its first operand.
  std::optional<Factor> factor_of(InstructionId id) const {
    if (function_.instructions[id].kind != InstructionKind::real) return std::nullopt;
    const Form& form = function_.form_of(id);
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    const bool shifts = form.opcode == Opcode::shl,
               multiplies = form.opcode == Opcode::mul || form.opcode == Opcode::mad;
    if (!(shifts || multiplies) || bit_width(form.type()) != 32 || is_float(form.type()) || form.has(Modifier::sat) ||
        form.carry_out || (multiplies && !form.has(Modifier::lo)) || !operands[1].is(OperandKind::value) ||
        !operands[2].is(OperandKind::integer))
      return std::nullopt;
    const auto number = static_cast<uint32_t>(operands[2].immediate);
    if (!shifts) return Factor{number, false};
    return number < 32 ? std::optional(Factor{1U << number, true}) : std::nullopt;
  }

  // (a * k) * m: a * (k * m), if a * k has no other reader. ptxas does not combine a shift with a product that reads
  // it.
  bool join_factors(InstructionId id) {
    const std::optional<Factor> outer = factor_of(id);
    if (!outer) return false;
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    const InstructionId from = values().definition(operands[1].as_value());
    if (!from || function_.instructions[from].guard || is_marked(in_section_, from) ||
        values().only_reader(operands[1].as_value()) != id ||
        function_.instructions[from].block != function_.instructions[id].block ||
        function_.is_opcode(from, Opcode::mad))
      return false;
    const std::optional<Factor> inner = factor_of(from);
    if (!inner || (inner->shifts && !outer->shifts)) return false;
    const uint64_t both = uint64_t{inner->number} * outer->number;
    if (both >> 31) return false;
    std::vector<Operand> joined(operands.begin(), operands.end());
    joined[1] = std::as_const(function_).operands_of(from)[1];
    const bool shifts = outer->shifts && inner->shifts;
    joined[2] = Operand::integer(shifts ? std::countr_zero(both) : static_cast<int64_t>(both));
    if (outer->shifts && !shifts) function_.instructions[id].form = known_form("mul.lo.u32");
    function_.set_operands(id, joined);
    return true;
  }

  struct LiteralSum {
    Operand term;
    int64_t summand = 0;
  };

  std::optional<int64_t> literal_of(const Operand& operand) {
    if (operand.is(OperandKind::integer)) return operand.immediate;
    if (!operand.is(OperandKind::value)) return std::nullopt;
    const InstructionId from = values().definition(operand.as_value());
    if (!from || !function_.is_opcode(from, Opcode::mov) || function_.instructions[from].guard) return std::nullopt;
    const std::span<const Operand> moved = std::as_const(function_).operands_of(from);
    return moved.size() == 2 && moved[1].is(OperandKind::integer) ? std::optional(moved[1].immediate) : std::nullopt;
  }

  // A sum in 64 bits of a register and a literal.
  std::optional<LiteralSum> literal_sum_of(InstructionId id) {
    if (!function_.is_opcode(id, Opcode::add) || function_.instructions[id].guard || is_marked(in_section_, id))
      return std::nullopt;
    const Form& form = function_.form_of(id);
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    if (is_float(form.type()) || bit_width(form.type()) != 64 || form.carry_out || operands.size() != 3)
      return std::nullopt;
    for (size_t index : {2, 1})
      if (const std::optional<int64_t> literal = literal_of(operands[index]);
          literal && operands[3 - index].is(OperandKind::value))
        return LiteralSum{operands[3 - index], *literal};
    return std::nullopt;
  }

  // (a + k) + m: a + (k + m), so that accesses add the literal themselves.
  bool join_summands(InstructionId id) {
    const std::optional<LiteralSum> outer = literal_sum_of(id);
    if (!outer) return false;
    const InstructionId from = values().definition(outer->term.as_value());
    if (!from) return false;
    const std::optional<LiteralSum> inner = literal_sum_of(from);
    if (!inner) return false;
    constexpr int64_t longest = 1 << 23; // literals of accesses
    const int64_t sum = inner->summand + outer->summand;
    if (std::abs(inner->summand) >= longest || std::abs(outer->summand) >= longest || std::abs(sum) >= longest)
      return false;
    const std::vector<Operand> joined{std::as_const(function_).operands_of(id)[0], inner->term, Operand::integer(sum)};
    function_.set_operands(id, joined);
    return true;
  }

  // Joins a product that only one sum reads to a multiply-add, before common subexpressions are searched.
  bool join_multiply_add(InstructionId id) {
    if (!function_.is_opcode(id, Opcode::add)) return false;
    const Form& sum = function_.form_of(id);
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    if (is_float(sum.type()) || bit_width(sum.type()) != 32 || sum.has(Modifier::sat) || sum.carry_out ||
        operands.size() != 3)
      return false;
    for (size_t index : {1, 2}) {
      if (!operands[index].is(OperandKind::value)) continue;
      const ValueId product = operands[index].as_value();
      const InstructionId from = values().definition(product);
      if (!from || values().only_reader(product) != id || !is_product(from) ||
          function_.instructions[from].block != function_.instructions[id].block)
        continue;
      const std::span<const Operand> factors = function_.operands_of(from);
      const std::vector<Operand> joined{operands[0], factors[1], factors[2], operands[3 - index]};
      function_.instructions[id].form = known_form("mad.lo." + std::string(spelling(sum.type())));
      function_.set_operands(id, joined);
      function_.remove(from);
      return true;
    }
    return false;
  }

  bool is_product(InstructionId id) const {
    if (!function_.is_opcode(id, Opcode::mul) || function_.instructions[id].guard || is_marked(in_section_, id))
      return false;
    const Form& form = function_.form_of(id);
    return form.has(Modifier::lo) && bit_width(form.type()) == 32 && function_.operands_of(id).size() == 3;
  }

  static bool is_same(const Operand& a, const Operand& b) {
    return a.kind == b.kind && a.id == b.id && a.immediate == b.immediate && a.selector == b.selector;
  }

  // Turns a compare and a selection of its operands into a minimum or maximum. The compare stays for other readers.
  bool choose_extreme(InstructionId id) {
    if (!function_.is_opcode(id, Opcode::selp) || bit_width(function_.form_of(id).type()) != 32) return false;
    const std::vector<Operand> choice(function_.operands_of(id).begin(), function_.operands_of(id).end());
    if (choice.size() != 4 || !choice[3].is(OperandKind::value) || choice[3].has(OperandFlag::negated)) return false;
    const InstructionId compare = values().definition(choice[3].as_value());
    if (!compare || !function_.is_opcode(compare, Opcode::setp) || function_.instructions[compare].guard ||
        function_.instructions[compare].block != function_.instructions[id].block || is_marked(in_section_, compare))
      return false;
    const Form& test = function_.form_of(compare);
    const std::span<const Operand> compared = function_.operands_of(compare);
    if (test.definitions != 1 || compared.size() != 3 || is_float(test.type()) || bit_width(test.type()) != 32)
      return false;
    const bool straight = is_same(compared[1], choice[1]) && is_same(compared[2], choice[2]);
    const bool crossed = is_same(compared[1], choice[2]) && is_same(compared[2], choice[1]);
    const bool less =
        test.has(Modifier::lt) || test.has(Modifier::le) || test.has(Modifier::lo) || test.has(Modifier::ls);
    const bool greater =
        test.has(Modifier::gt) || test.has(Modifier::ge) || test.has(Modifier::hi) || test.has(Modifier::hs);
    if (!(straight || crossed) || !(less || greater)) return false;
    const bool is_unsigned = !is_signed(test.type()) || test.has(Modifier::lo) || test.has(Modifier::ls) ||
                             test.has(Modifier::hi) || test.has(Modifier::hs);
    const std::string_view name = less == straight ? "min." : "max.";
    const bool only = values().only_reader(choice[3].as_value()) == id;
    std::vector<Operand> operands{choice[0], compared[1], compared[2]};
    function_.instructions[id].form = known_form(std::string(name) + (is_unsigned ? "u32" : "s32"));
    function_.set_operands(id, operands);
    if (only) function_.remove(compare);
    return true;
  }

  Function& function_;
  DefinitionsBetweenSteps& definitions_;
  std::vector<bool> in_section_;
  bool chooses_extremes_, joins_summands_;
  bool changed_ = false;
};

} // namespace

bool make_canonical(Function& function, uint32_t compute_capability, DefinitionsBetweenSteps& definitions) {
  return function.is_ssa && !function.affine_stream && Rewriter(function, compute_capability, definitions).run();
}

} // namespace ptxrewrite::ir
