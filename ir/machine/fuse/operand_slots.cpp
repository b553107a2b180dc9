// Determined by assembling instructions with literals and parameters as each of their operands, alone and several per
// block.
#include "ir/machine/fuse/operand_slots.h"

#include "ir/forms/composite.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/fuse/constant_ranges.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <map>
#include <set>

namespace ptxrewrite::ir {

namespace {

std::string_view slots_of(const LoweringContext& context, const Form& form) {
  return row_of(expansion_of(form, context.capability, false).principal).slots;
}

char slot(std::string_view slots, size_t place) {
  return slots.empty() ? 'r' : slots[std::min(place, slots.size() - 1)];
}

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

// The literal, directly or through moves to registers; nullptr if it is not a literal.
const Operand* literal_behind(const LoweringContext& context, const Operand* operand) {
  for (int step = 0; operand && step < 4; ++step) {
    if (operand->is_constant()) return operand;
    InstructionId definition = context.definition(operand);
    if (!definition || !context.function.is_opcode(definition, Opcode::mov)) return nullptr;
    operand = context.source(definition, 0);
  }
  return nullptr;
}

class OperandSlots {
public:
  explicit OperandSlots(LoweringContext& context) : context_(context) {}

  void weigh() {
    context_.for_each_needed([&](InstructionId id) {
      const Form& form = *context_.form(id);
      if (context_.absorbed[id.index()])
        find_wide_factor(id, form);
      else if (form.type() == ScalarType::f64)
        weigh_long_literals(id, form);
      else if (bit_width(form.type()) == 32 && !form.has(Modifier::wide))
        weigh_words(id, form);
    });
    weigh_wide_factors();
  }

private:
  // ---- 32-bit operands: moved once in a block and the blocks that it dominates

  void weigh_words(InstructionId id, const Form& form) {
    const InstructionCost& at = context_.costs[id.index()];
    if (at.weight == 0 && at.uniform == 0) return;
    const std::string_view slots = slots_of_operands(form);
    if (slots.empty() || adds_one_to_shared(context_, id)) return;
    list_operands(id);
    const Operand *constant = nullptr, *yielding = nullptr; // the last one in a 'c' slot, and one in a 'p' slot
    for (size_t place = 0; place < operands_.size(); ++place) {
      const Operand& operand = operands_[place];
      if (!needs_place(operand)) continue;
      const char taken = slot(slots, place);
      if (at.weight == 0 && (taken != 'r' || !context_.is_literal(&operand))) continue; // loaded there
      switch (taken) {
      case 'r':
        move(id, operand);
        break;
      case 'c':
        if (constant) move(id, *constant);
        constant = &operand;
        break;
      case 'p':
        yielding = &operand;
        break;
      default:
        break;
      }
    }
    if (yielding && constant) move(id, *yielding, 2);
  }

  // Empty if the slots are not those of the PTX operands: several opcodes, or a hardware form, whose instructions are
  // as the paper has them.
  std::string_view slots_of_operands(const Form& form) const {
    const Expansion& expansion = expansion_of(form, context_.capability, false);
    if (form.kind == InstructionClass::extension) return {};
    if (form.opcode != Opcode::mad && !expansion.is_of_one_opcode) return {};
    return row_of(expansion.principal).slots;
  }

  bool needs_place(const Operand& operand) const {
    if (!is_constant(context_, operand)) return false;
    if (!operand.is(OperandKind::value)) return true;
    return context_.costs[context_.values.definition(operand.as_value()).index()].weight == 0;
  }

  // Of the machine instruction: of a sum that has absorbed a product, the factors and the addend.
  void list_operands(InstructionId id) {
    operands_.clear();
    if (context_.function.is_opcode(id, Opcode::add))
      for (size_t i : {0, 1}) {
        const InstructionId product = context_.definition(context_.source(id, i));
        const Operand* other = context_.source(id, 1 - i);
        if (!product || !other || !context_.absorbed[product.index()] ||
            !context_.function.is_opcode(product, Opcode::mul) || context_.form(product)->has(Modifier::wide))
          continue;
        list_factors(product);
        operands_.push_back(*other);
        return;
      }
    const bool multiplies = context_.function.is_opcode(id, Opcode::mad);
    if (multiplies) list_factors(id);
    for (size_t i = multiplies ? 2 : 0; const Operand* operand = context_.source(id, i); ++i)
      operands_.push_back(*operand);
  }

  // Without powers of two: the shift amount of LEA is not an operand.
  void list_factors(InstructionId id) {
    const bool may_shift = !is_float(context_.form(id)->type());
    for (size_t i : {0, 1})
      if (const Operand* factor = context_.source(id, i); factor && !(may_shift && is_power_of_two(*factor)))
        operands_.push_back(*factor);
  }
  static bool is_power_of_two(const Operand& operand) {
    return operand.is(OperandKind::integer) && operand.immediate > 0 &&
           (operand.immediate & (operand.immediate - 1)) == 0;
  }

  void move(InstructionId id, const Operand& operand, uint16_t times = 1) {
    const BlockId block = context_.function.instructions[id].block;
    const std::pair constant{operand.is(OperandKind::value) ? operand.as_value() : ValueId(), operand.immediate};
    if (moved_[constant].add(context_.dominators, block)) charge(id, times);
  }

  // Blocks of which none dominates another one.
  class Places {
  public:
    // Returns false if one of the blocks dominates the block.
    bool add(const DominatorTree& dominators, BlockId block) {
      // Blocks that a block dominates follow it in pre-order, before all others.
      const auto behind = blocks_.upper_bound(dominators.preorder(block));
      if (behind != blocks_.begin() && dominators.dominates(std::prev(behind)->second, block)) return false;
      auto last = behind;
      while (last != blocks_.end() && dominators.dominates(block, last->second))
        ++last;
      blocks_.erase(behind, last);
      blocks_.emplace(dominators.preorder(block), block);
      return true;
    }

  private:
    std::map<uint32_t, BlockId> blocks_; // by their place in the pre-order of the dominator tree
  };

  // On the datapath of the reader.
  void charge(InstructionId id, uint16_t times) {
    context_.move_constant(id, times);
    InstructionCost& at = context_.costs[id.index()];
    if (at.weight == times && at.uniform > 0) at = {0, static_cast<uint16_t>(at.uniform + times), at.pipe};
  }

  // ---- Double precision

  // Before 9.0 a literal whose low word is not zero is in a constant bank; from then on the slot takes the high word
  // alone, and the literal is moved into two registers, once per block.
  void weigh_long_literals(InstructionId id, const Form& form) {
    if (!has(context_.capability, MachineFact::loaded_parameters) || form.opcode == Opcode::mov) return;
    if (!has_constant_slot(context_, form)) return;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      const Operand* found = literal_behind(context_, operand);
      if (!found || (found->immediate & UINT32_MAX) == 0) continue;
      if (long_literals_.insert({context_.function.instructions[id].block, found->immediate}).second)
        context_.costs[id.index()].weight += 2;
    }
  }

  // ---- Wide multiply-adds

  // The blocks that need a factor in a register, with the first such reader.
  using Readers = std::map<BlockId, InstructionId>;

  // If the addend of a wide multiply-add is a parameter, a literal factor has no slot.
  void find_wide_factor(InstructionId id, const Form& form) {
    if (form.opcode != Opcode::mul || !form.has(Modifier::wide)) return;
    if (has(context_.capability, MachineFact::loaded_parameters)) return;
    const Operand* factor = context_.source(id, 1);
    if (!context_.is_literal(factor)) return;
    for (InstructionId reader : context_.values.readers(context_.result(id))) {
      bool parameter = false;
      for (size_t i : {0, 1}) {
        const Operand* operand = context_.source(reader, i);
        parameter |= operand && operand->is(OperandKind::value) &&
                     context_.source_of(operand->as_value()) == ValueSource::constant_bank;
      }
      if (parameter)
        wide_factors_[factor->is_constant() ? factor->immediate : -1].try_emplace(
            context_.function.instructions[reader].block, reader);
    }
  }

  void weigh_wide_factors() {
    if (wide_factors_.empty()) return;
    const ConstantRanges ranges(context_);
    for (const auto& [factor, places] : wide_factors_) {
      const std::set<BlockId> behind =
          places_behind(context_, places, [&](BlockId from, BlockId to) { return ranges.keeps(from, to); });
      for (const auto& [block, reader] : places)
        if (!behind.contains(block)) charge(reader, 1);
    }
  }

  LoweringContext& context_;
  std::vector<Operand> operands_;                       // of one instruction
  std::map<std::pair<ValueId, int64_t>, Places> moved_; // by constant: blocks with a move
  std::set<std::pair<BlockId, int64_t>> long_literals_; // moved into registers so far
  std::map<int64_t, Readers> wide_factors_;             // by factor
};

} // namespace

bool has_constant_slot(const LoweringContext& context, const Form& form) {
  if (form.kind == InstructionClass::extension) return is_composite(form); // composite-hpca13 §3.3
  if (form.kind == InstructionClass::video_scalar || form.kind == InstructionClass::video_simd) return false;
  if (form.kind == InstructionClass::store)
    return false; // an argument: its constant is moved to the place of the argument
  const std::string_view slots = slots_of(context, form);
  return slots.find_first_of("cp") != std::string_view::npos;
}

bool slot_takes(const LoweringContext& context, InstructionId reader, ValueId value, ValueSource source) {
  const Form& form = *context.form(reader);
  const std::string_view slots = slots_of(context, form);
  bool encoded = false, other = false, last = false; // where the value is, and whether it is the last constant
  for (size_t i = 0; const Operand* operand = context.source(reader, i); ++i) {
    const bool is_value = operand->is(OperandKind::value) && operand->as_value() == value;
    const bool in_word = source == ValueSource::literal && slot(slots, i) == 'i';
    (in_word ? encoded : other) |= is_value;
    if (operand->is(OperandKind::value) && context.source_of(operand->as_value()) != ValueSource::computed)
      last = is_value;
    if (operand->is_constant() && operand->immediate != 0) last = false; // zero has its own register
  }
  return other || !encoded ? has_constant_slot(context, form) && last : true;
}

size_t constants_among(const LoweringContext& context, std::span<const Operand> operands) {
  return static_cast<size_t>(
      std::ranges::count_if(operands, [&](const Operand& operand) { return is_constant(context, operand); }));
}

void weigh_operand_slots(LoweringContext& context) {
  if (context.capability < first_generation_end) return;
  OperandSlots(context).weigh();
}

} // namespace ptxrewrite::ir
