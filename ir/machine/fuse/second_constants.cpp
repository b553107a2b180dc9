// Determined by assembling instructions with literals and parameters as each of their operands, alone and several per
// block: see second_constants.h. Sums and logic then take two instructions instead of one of three inputs; other
// instructions move the constant that ptxas 13.0 does not encode.
#include "ir/machine/fuse/second_constants.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/first_generation.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::ir {

namespace {

bool is_zero(const Operand& operand) {
  return operand.is_constant() && operand.immediate == 0;
}

bool is_constant(const LoweringContext& context, const Operand& operand) {
  if (operand.is_constant()) return !is_zero(operand);
  if (!operand.is(OperandKind::value)) return false;
  const ValueSource source = context.source_of(operand.as_value());
  if (source == ValueSource::computed) return false;
  if (source == ValueSource::constant_bank) return !has(context.capability, MachineFact::loaded_parameters);
  const InstructionId id = context.values.definition(operand.as_value());
  const Operand* literal = id ? context.source(id, 0) : nullptr;
  return !literal || !(is_zero(*literal) || literal->is(OperandKind::symbol)); // the accesses add an address
}

class SecondConstants {
public:
  explicit SecondConstants(LoweringContext& context) : context_(context) {}

  void weigh(InstructionId id) {
    InstructionCost& at = context_.costs[id.index()];
    if ((at.weight == 0 && at.uniform == 0) || context_.absorbed[id.index()]) return;
    const Form& form = *context_.form(id);
    if (bit_width(form.type()) != 32 || form.has(Modifier::wide)) return;
    if (at.weight == 0) return weigh_uniform(id, at);
    if (form.opcode == Opcode::prmt) return weigh_permutation(id);
    std::vector<Operand> operands = operands_of(id, form);
    std::erase_if(operands, [&](const Operand& operand) { return !needs_place(operand); });
    const bool shifted = form.opcode == Opcode::shl || form.opcode == Opcode::shr; // its slot is for the amount
    const size_t places = shifted ? 0 : 1;
    for (size_t i = 0; i + places < operands.size(); ++i)
      move(id, operands[i]);
  }

private:
  bool needs_place(const Operand& operand) const {
    if (!is_constant(context_, operand)) return false;
    if (!operand.is(OperandKind::value)) return true;
    return context_.costs[context_.values.definition(operand.as_value()).index()].weight == 0;
  }

  // In the order in which they are moved.
  std::vector<Operand> operands_of(InstructionId id, const Form& form) const {
    switch (form.opcode) {
    case Opcode::mad:
    case Opcode::fma: {
      std::vector<Operand> factors = factors_of(id);
      if (const Operand* addend = context_.source(id, 2)) factors.push_back(*addend);
      return factors;
    }
    case Opcode::add: // a product that is subtracted has a factor in a register anyway
      return operands_of_sum(id, is_float(form.type()));
    case Opcode::mul:
      return is_float(form.type()) ? first(id, 2) : std::vector<Operand>();
    case Opcode::selp:
      return first(id, 2);
    case Opcode::lop3:
      return first(id, 3);
    case Opcode::shl:
    case Opcode::shr:
      return context_.last_is_literal(id) ? std::vector<Operand>() : first(id, 1);
    default:
      return {};
    }
  }

  std::vector<Operand> first(InstructionId id, size_t count) const {
    std::vector<Operand> operands;
    for (size_t i = 0; i < count; ++i)
      if (const Operand* operand = context_.source(id, i)) operands.push_back(*operand);
    return operands;
  }

  // Without powers of two: the shift amount of LEA is not an operand.
  std::vector<Operand> factors_of(InstructionId id) const {
    std::vector<Operand> factors = first(id, 2);
    if (!is_float(context_.form(id)->type()))
      std::erase_if(factors, [](const Operand& factor) {
        return factor.is(OperandKind::integer) && factor.immediate > 0 &&
               (factor.immediate & (factor.immediate - 1)) == 0;
      });
    return factors;
  }

  // The factors of a product that the sum has absorbed, and the addend.
  std::vector<Operand> operands_of_sum(InstructionId id, bool floating) const {
    for (size_t i : {0, 1}) {
      const InstructionId product = context_.definition(context_.source(id, i));
      const Operand* other = context_.source(id, 1 - i);
      if (!product || !other || !context_.absorbed[product.index()] ||
          !context_.function.is_opcode(product, Opcode::mul) || context_.form(product)->has(Modifier::wide))
        continue;
      std::vector<Operand> operands = factors_of(product);
      operands.push_back(*other);
      return operands;
    }
    return floating ? first(id, 2) : std::vector<Operand>();
  }

  // On the uniform datapath, too, only the shift amount of a shift can be a constant.
  void weigh_uniform(InstructionId id, InstructionCost& at) {
    const Operand* shifted = context_.source(id, 0);
    const bool is_shift = context_.function.is_opcode(id, Opcode::shl) || context_.function.is_opcode(id, Opcode::shr);
    if (!is_shift || !shifted || context_.last_is_literal(id)) return;
    if (context_.is_literal(shifted) && needs_place(*shifted)) at.uniform += moves(id, *shifted);
  }

  // The selector is encoded in the instruction word, or is in a register if there is another constant; besides it, only
  // the second operand can be a constant.
  void weigh_permutation(InstructionId id) {
    const std::vector<Operand> operands = first(id, 3);
    if (operands.size() != 3 || !needs_place(operands[2])) return;
    if (needs_place(operands[0])) move(id, operands[0]);
    if (needs_place(operands[1])) move(id, operands[2], 2);
  }

  void move(InstructionId id, const Operand& operand, uint16_t times = 1) {
    context_.move_constant(id, static_cast<uint16_t>(times * moves(id, operand)));
  }

  // 0 if the constant has been moved before in a dominating block, otherwise 1.
  uint16_t moves(InstructionId id, const Operand& operand) {
    const BlockId block = context_.function.instructions[id].block;
    auto& places = moved_[{operand.is(OperandKind::value) ? operand.as_value() : ValueId(), operand.immediate}];
    if (std::ranges::any_of(places, [&](BlockId place) { return context_.dominators.dominates(place, block); }))
      return 0;
    places.push_back(block);
    return 1;
  }

  LoweringContext& context_;
  std::map<std::pair<ValueId, int64_t>, std::vector<BlockId>> moved_; // by constant: blocks with a move
};

} // namespace

size_t constants_among(const LoweringContext& context, std::span<const Operand> operands) {
  return static_cast<size_t>(
      std::ranges::count_if(operands, [&](const Operand& operand) { return is_constant(context, operand); }));
}

void weigh_second_constants(LoweringContext& context) {
  if (context.capability < first_generation_end) return;
  SecondConstants constants(context);
  context.for_each_needed([&](InstructionId id) { constants.weigh(id); });
}

} // namespace ptxrewrite::ir
