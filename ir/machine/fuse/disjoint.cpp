// Determined by assembling ors of shifted, masked and loaded bytes: ptxas 13.0 generates LEA where it would for a sum.
#include "ir/machine/fuse/disjoint.h"

#include "ir/machine/prepare/known_bits.h"

namespace ptxrewrite::ir {

namespace {

constexpr int longest_chain = 8; // of definitions; beyond it, all bits count as possibly set

KnownBits bits_of(const LoweringContext& context, const Operand& operand, int depth);

// A load of 8 or 16 bits leaves zeros above them, unless they are signed.
KnownBits loaded_bits(const Form& form) {
  const unsigned width = bit_width(form.type());
  if (form.vector_width != 1 || is_signed(form.type()) || width >= 32) return {};
  return KnownBits::below(uint64_t(1) << width);
}

KnownBits bits_of(const LoweringContext& context, ValueId value, int depth) {
  const InstructionId id = context.values.definition(value);
  const Form* form = id ? context.form(id) : nullptr;
  if (!form || depth == 0 || context.function.instructions[id].guard) return {};
  if (form->kind == InstructionClass::load) return loaded_bits(*form);
  std::vector<KnownBits> sources;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    if (operand->is_group()) return {};
    sources.push_back(bits_of(context, *operand, depth - 1));
  }
  return known_result(*form, sources);
}

KnownBits bits_of(const LoweringContext& context, const Operand& operand, int depth) {
  if (operand.is(OperandKind::integer)) return KnownBits::literal(static_cast<uint64_t>(operand.immediate));
  return operand.is(OperandKind::value) ? bits_of(context, operand.as_value(), depth) : KnownBits{};
}

} // namespace

bool is_sum_by_or(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  if (!form || form->opcode != Opcode::or_ || form->type() != ScalarType::b32) return false;
  const Operand *a = context.source(id, 0), *b = context.source(id, 1);
  if (!a || !b) return false;
  const uint64_t common =
      bits_of(context, *a, longest_chain).may_be_one & bits_of(context, *b, longest_chain).may_be_one;
  return static_cast<uint32_t>(common) == 0;
}

} // namespace ptxrewrite::ir
