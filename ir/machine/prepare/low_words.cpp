// Determined by assembling 64-bit computations whose results are converted to 32 bits, or address local memory, which
// has 32-bit addresses: see low_words.h.
#include "ir/machine/prepare/low_words.h"

#include "ir/machine/prepare/sections.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

class LowWords {
public:
  explicit LowWords(Function& function)
      : function_(function), in_section_(instructions_in_sections(function)), low_(function.values.size()),
        passed_(function.values.size()), same_(function.values.size()) {
    for (ValueId value : function.values.ids())
      low_[value.index()] = is_long(value);
  }

  bool run() {
    while (has_low() && mark_all()) {
    }
    if (!has_low()) return false;
    for (BlockId block : function_.layout) {
      for (ValueId parameter : function_.parameters(block))
        if (is_low(parameter)) function_.values[parameter].type = ScalarType::b32;
      for (InstructionId id : function_.instructions_in(block))
        if (!is_marked(in_section_, id)) shorten(id);
    }
    if (changed_) replace_values();
    return changed_;
  }

private:
  bool is_long(ValueId value) const {
    const Value& row = function_.values[value];
    return bit_width(row.type) == 64 && !is_float(row.type) && row.register_class == RegisterClass::general &&
           row.vector_width == 1;
  }
  bool is_low(ValueId value) const { return low_[value.index()]; }
  bool has_low() const { return std::ranges::find(low_, true) != low_.end(); }

  // --- needed high words ---

  // Returns true if this has to be told to the definition, which the pass has seen before.
  bool mark(ValueId value) {
    if (!low_[value.index()]) return false;
    low_[value.index()] = false;
    return passed_[value.index()];
  }

  // One pass in reverse text order; returns true if it has to be repeated.
  bool mark_all() {
    bool changed = false;
    for (auto block = function_.layout.rbegin(); block != function_.layout.rend(); ++block) {
      for (EdgeId edge : function_.successors(*block)) {
        const std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
        const std::span<const ValueId> arguments = function_.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), arguments.size()); ++i) {
          if (!is_low(parameters[i])) changed |= mark(arguments[i]);
          passed_[parameters[i].index()] = true;
        }
      }
      for (InstructionId id = function_.blocks[*block].last; id; id = function_.instructions[id].previous)
        changed |= mark_operands(id);
    }
    return changed;
  }

  bool mark_operands(InstructionId id) {
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    bool changed = false, reads_low = false;
    for (const Operand& operand : operands) {
      if (!operand.is(OperandKind::value)) continue;
      const ValueId value = operand.as_value();
      if (operand.is_definition())
        passed_[value.index()] = true;
      else
        reads_low |= is_low(value);
    }
    if (!reads_low) return false;
    const bool has_form = function_.instructions[id].kind == InstructionKind::real && !is_marked(in_section_, id);
    if (has_form && needs_low_words(id)) return false;
    for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
      // For an access, applies only to the address.
      if (has_form && operands[i].is(OperandKind::address) && has_short_address(id)) continue;
      for (size_t part = i; part < next_sibling(operands, i); ++part)
        if (operands[part].is(OperandKind::value) && !operands[part].is_definition())
          changed |= mark(operands[part].as_value());
    }
    return changed;
  }

  bool has_short_address(InstructionId id) const {
    const Form& form = function_.form_of(id);
    return (form.opcode == Opcode::ld || form.opcode == Opcode::st) &&
           (form.space == StateSpace::local || is_shared(form.space));
  }

  // True if the needed part of the result depends only on the low words of the operands.
  bool needs_low_words(InstructionId id) const {
    const Form& form = function_.form_of(id);
    if (form.opcode == Opcode::cvt)
      return !is_float(form.type(0)) && bit_width(form.type(0)) <= 32 && !form.has(Modifier::sat);
    return keeps_words_apart(id) && is_low(function_.operands_of(id)[0].as_value());
  }

  // True if no bits of the operands' high words reach the low word of the result.
  bool keeps_words_apart(InstructionId id) const {
    const Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    if (form.definitions != 1 || form.carry_out || form.has(Modifier::sat) || !operands[0].is(OperandKind::value) ||
        is_float(form.type()) || !is_long(operands[0].as_value()))
      return false;
    switch (form.opcode) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::not_:
    case Opcode::neg:
    case Opcode::selp:
      return bit_width(form.type()) == 64;
    case Opcode::mul:
    case Opcode::mad:
      return (form.has(Modifier::wide) && bit_width(form.type()) == 32) ||
             (form.has(Modifier::lo) && bit_width(form.type()) == 64);
    case Opcode::shl:
      return bit_width(form.type()) == 64 && operands[2].is(OperandKind::integer) && operands[2].immediate < 32;
    case Opcode::mov:
      return operands.size() == 2;
    default:
      return false;
    }
  }

  // --- rewriting ---

  void shorten(InstructionId id) {
    if (function_.instructions[id].kind != InstructionKind::real) return;
    if (function_.is_opcode(id, Opcode::cvt)) return shorten_conversion(id);
    if (!keeps_words_apart(id)) return;
    const ValueId result = function_.operands_of(id)[0].as_value();
    if (!is_low(result)) return;
    const Form& form = function_.form_of(id);
    std::string name(spelling(form.opcode));
    if (form.opcode == Opcode::mul || form.opcode == Opcode::mad) name += ".lo";
    const bool bits = form.kind == InstructionClass::logic || form.opcode == Opcode::shl ||
                      form.opcode == Opcode::mov || form.opcode == Opcode::selp;
    function_.instructions[id].form = known_form(name + (bits ? ".b32" : ".s32"));
    function_.values[result].type = ScalarType::b32;
    for (Operand& operand : function_.operands_of(id))
      if (operand.is(OperandKind::integer)) operand.immediate = static_cast<int32_t>(operand.immediate);
    changed_ = true;
  }

  // Conversions between 32 and 64 bits keep the low word.
  void shorten_conversion(InstructionId id) {
    const Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    if (function_.instructions[id].guard || is_float(form.type(0)) || is_float(form.type(1)) || operands.size() != 2 ||
        !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value) ||
        operands[1].selector != no_selector)
      return;
    const ValueId result = operands[0].as_value(), source = operands[1].as_value();
    const bool widens = bit_width(form.type(0)) == 64 && bit_width(form.type(1)) == 32 && is_low(result);
    const bool narrows = bit_width(form.type(0)) == 32 && bit_width(form.type(1)) == 64 && is_low(source) &&
                         bit_width(function_.values[source].type) == 32;
    if (!widens && !narrows) return;
    same_[result.index()] = source;
    function_.remove(id);
    changed_ = true;
  }

  ValueId known_as(ValueId value) const {
    while (same_[value.index()])
      value = same_[value.index()];
    return value;
  }

  void replace_values() {
    for (BlockId block : function_.layout) {
      for (EdgeId edge : function_.successors(block))
        for (ValueId& argument : function_.arguments(edge))
          argument = known_as(argument);
      for (InstructionId id : function_.instructions_in(block)) {
        if (ValueId& guard = function_.instructions[id].guard) guard = known_as(guard);
        for (Operand& operand : function_.operands_of(id))
          if (operand.is(OperandKind::value) && !operand.is_definition())
            operand.id = known_as(operand.as_value()).index();
      }
    }
  }

  Function& function_;
  std::vector<bool> in_section_;
  std::vector<uint8_t> low_;    // by ValueId: has 64 bits, and the high word is not needed
  std::vector<uint8_t> passed_; // by ValueId: a pass has seen its definition, or an edge to it
  std::vector<ValueId> same_;
  bool changed_ = false;
};

// False if the high words of all values are needed: there is no reader of low words alone, and each value has a reader.
// Of the readers that pass the need of their result on, none is the last one, as chains without edges end.
bool may_have_low_words(const Function& function, const ValueDefinitions& definitions) {
  const auto is_long = [&](ValueId value) {
    return bit_width(function.values[value].type) == 64 && !is_float(function.values[value].type);
  };
  const auto is_unread = [&](ValueId value) { return is_long(value) && definitions.reader_count(value) == 0; };
  const auto reads_long = [&](InstructionId id) {
    return std::ranges::any_of(function.operands_of(id), [&](const Operand& operand) {
      return operand.is(OperandKind::value) && !operand.is_definition() && is_long(operand.as_value());
    });
  };
  for (ValueId value : function.values.ids())
    if (definitions.definition(value) && is_unread(value)) return true;
  for (BlockId block : function.layout) {
    if (std::ranges::any_of(function.parameters(block), is_unread)) return true;
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const Form& form = function.form_of(id);
      const bool may_read_low =
          form.opcode == Opcode::cvt || ((form.opcode == Opcode::ld || form.opcode == Opcode::st) &&
                                         (form.space == StateSpace::local || is_shared(form.space)));
      if (may_read_low && reads_long(id)) return true;
    }
  }
  return false;
}

} // namespace

bool shorten_to_low_words(Function& function) {
  return function.is_ssa && !function.affine_stream && LowWords(function).run();
}

bool shorten_to_low_words(Function& function, DefinitionsBetweenSteps& definitions) {
  return function.is_ssa && !function.affine_stream && may_have_low_words(function, definitions.of(function)) &&
         LowWords(function).run();
}

} // namespace ptxrewrite::ir
