// Instruction counts for machines of compute capability 1.x; see first_generation.h. 64-bit sequences use the carry and
// the 32-bit shifter; bit counts are the usual sequences of shifts, masks and sums.
#include "ir/machine/prepare/first_generation.h"

#include "ir/forms/composite.h"
#include "ir/machine/prepare/rule_helpers.h"
#include "ir/machine/prepare/simple_steps.h"

namespace ptxrewrite::ir {

namespace {

bool is_64_bit_integer(ScalarType type) {
  return type == ScalarType::u64 || type == ScalarType::s64 || type == ScalarType::b64;
}

// True if the low half of the result depends only on the low halves of the 64-bit sources.
bool low_from_low(const Form& form) {
  if (form.carry_out || form.effects.reads_carry || form.has(Modifier::hi)) return false;
  switch (form.opcode) {
  case Opcode::add:
  case Opcode::sub:
  case Opcode::mul:
  case Opcode::mad:
  case Opcode::neg:
  case Opcode::and_:
  case Opcode::or_:
  case Opcode::xor_:
  case Opcode::not_:
  case Opcode::shl:
  case Opcode::mov:
  case Opcode::cvta:
  case Opcode::selp:
    return is_64_bit_integer(form.type());
  case Opcode::cvt: // to as many bits or fewer
    return form.modifiers.size() == 2 && bit_width(form.type(0)) <= 64 && !is_float(form.type(0)) &&
           !is_float(form.type(1));
  default:
    return is_composite(form);
  }
}

// Finds the registers whose high halves are needed, by propagation from instructions that use them.
class HighHalves {
public:
  explicit HighHalves(const Function& function)
      : function_(function), needed_(function.values.size()), givers_(function.values.size()) {}

  std::vector<bool> run() {
    for (BlockId block : function_.layout) {
      for (EdgeId edge : function_.successors(block))
        follow_edge(edge);
      for (InstructionId id : function_.instructions_in(block))
        look_at(id);
    }
    while (!work_.empty()) {
      ValueId value = work_.back();
      work_.pop_back();
      for (ValueId giver : givers_[value.index()])
        need(giver);
    }
    return std::move(needed_);
  }

private:
  void need(ValueId value) {
    if (needed_[value.index()]) return;
    needed_[value.index()] = true;
    work_.push_back(value);
  }
  void follow_edge(EdgeId edge) {
    std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
    std::span<const ValueId> given = function_.arguments(edge);
    for (size_t i = 0; i < parameters.size() && i < given.size(); ++i)
      givers_[parameters[i].index()].push_back(given[i]);
  }

  void look_at(InstructionId id) {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real)
      return for_each_use(function_, id, [&](ValueId value) { need(value); });
    const Form& form = function_.form_of(id);
    std::span<const Operand> operands = function_.operands_of(id);
    ValueId result;
    if (form.definitions == 1 && operands[0].is(OperandKind::value) && !operands[0].selector)
      result = operands[0].as_value();
    for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
      bool address = operands[i].is(OperandKind::address) && is_memory(form);
      bool hands_on = !operands[i].is_group() && result && low_from_low(form);
      for (size_t j = i; j < next_sibling(operands, i); ++j) {
        if (!operands[j].is(OperandKind::value) || operands[j].is_definition() || address) continue;
        if (hands_on)
          givers_[result.index()].push_back(operands[j].as_value());
        else
          need(operands[j].as_value());
      }
    }
  }

  const Function& function_;
  std::vector<bool> needed_;
  std::vector<std::vector<ValueId>> givers_; // by ValueId: operands whose high half its own high half needs
  std::vector<ValueId> work_;
};

std::optional<uint16_t> weight_of_64_bits(const Form& form, std::span<const Operand> sources, bool low_half) {
  bool literal_amount = sources.size() == 2 && sources[1].is(OperandKind::integer);
  switch (form.opcode) {
  case Opcode::add:
  case Opcode::sub:
  case Opcode::and_:
  case Opcode::or_:
  case Opcode::xor_:
  case Opcode::not_:
  case Opcode::neg:
  case Opcode::selp:
    return low_half ? 1 : 2;
  case Opcode::addc:
  case Opcode::subc:
    return 2;
  case Opcode::shl:
    if (low_half) return 1;
    return literal_amount ? (sources[1].immediate >= 32 ? 1 : 4) : 9;
  case Opcode::shr:
    if (literal_amount && sources[1].immediate >= 32) return form.type() == ScalarType::s64 && !low_half ? 2 : 1;
    return literal_amount ? (low_half ? 3 : 4) : (low_half ? 6 : 9);
  case Opcode::mul:
    return form.has(Modifier::hi) ? 12 : low_half ? 1 : 6;
  case Opcode::mad:
    return form.has(Modifier::hi) ? 14 : low_half ? 1 : 8;
  case Opcode::setp:
  case Opcode::set:
    return 3;
  case Opcode::min:
  case Opcode::max:
    return 5;
  case Opcode::abs:
    return 4;
  default:
    return std::nullopt;
  }
}

std::optional<uint16_t> weight_of_32_bits(const Form& form, bool low_half) {
  switch (form.opcode) {
  case Opcode::mul:
    return form.has(Modifier::wide) && !low_half ? 2 : 1;
  case Opcode::mad:
    return form.has(Modifier::wide) && !low_half ? 4 : 1;
  case Opcode::mul24: // the native multiplication; its upper bits take one more
  case Opcode::mad24:
    return form.has(Modifier::hi) ? 2 : 1;
  case Opcode::shf: // the amount is only known at run time: its complement, two shifts, and an or
    return 5;
  case Opcode::prmt:
  case Opcode::popc:
    return 12;
  case Opcode::brev:
    return 13;
  case Opcode::clz:
  case Opcode::bfind:
    return 6;
  case Opcode::lop3:
    return 1; // without steps: a move of an input
  case Opcode::dp4a:
    return 20; // eight byte extractions, four multiply-adds
  case Opcode::dp2a:
    return 10;
  case Opcode::add:
  case Opcode::sub:
  case Opcode::abs:
  case Opcode::min:
  case Opcode::max:
    return form.has(Modifier::sat) ? std::optional<uint16_t>() : 1;
  default:
    return std::nullopt;
  }
}

} // namespace

std::vector<bool> low_halves(const Function& function) {
  std::vector<bool> low = HighHalves(function).run();
  for (ValueId value : function.values.ids())
    low[value.index()] = !low[value.index()] && is_64_bit_integer(function.values[value].type) &&
                         function.values[value].vector_width == 1;
  return low;
}

std::optional<uint16_t> first_generation_weight(const Form& form, std::span<const Operand> sources, bool low_half) {
  if (is_composite(form)) return 1;
  if (std::vector<SimpleStep> steps = simple_steps(form, sources); !steps.empty())
    return static_cast<uint16_t>(steps.size());
  if (form.opcode == Opcode::cvt && !is_float(form.type(0)) && !is_float(form.type(1))) {
    // Between 64 and 32 bits the low half is reused; the high half is the sign, or zero.
    if (bit_width(form.type(1)) == 64) return bit_width(form.type(0)) >= 32 ? 0 : 1;
    if (bit_width(form.type(0)) == 64 && bit_width(form.type(1)) == 32) return low_half ? 0 : 1;
    return 1;
  }
  if (is_64_bit_integer(form.type())) return weight_of_64_bits(form, sources, low_half);
  if (is_float(form.type()) || form.type() == ScalarType::pred) return std::nullopt;
  unsigned bits = bit_width(form.type());
  if (bits == 16 && form.effects.pure()) return 1; // half registers
  return bits == 32 ? weight_of_32_bits(form, low_half) : std::nullopt;
}

} // namespace ptxrewrite::ir
