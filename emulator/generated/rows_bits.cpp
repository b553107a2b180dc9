// Rows of the instructions that count, find and move bits.
#include "emulator/generated/rows.h"

namespace ptxrewrite::emulator::generated {
namespace {

template <unsigned bits> Value as_word(Ir& ir, Value a) {
  return bits == 32 ? a : ir.trunc(a, 32);
}
template <unsigned bits> Value ones(Ir& ir, const Operands& x) {
  return as_word<bits>(ir, ir.intrinsic("llvm.ctpop", {ir.integers(bits)}, {x.a}));
}
template <unsigned bits> Value leading_zeros(Ir& ir, const Operands& x) {
  return as_word<bits>(ir, ir.intrinsic("llvm.ctlz", {ir.integers(bits)}, {x.a, ir.scalar_constant(1, 0)}));
}
template <unsigned bits> Value reversed(Ir& ir, const Operands& x) {
  return ir.intrinsic("llvm.bitreverse", {ir.integers(bits)}, {x.a});
}

// shf: the amount is clamped to 32 or taken modulo 32.
template <bool wraps> Value funnel_amount(Ir& ir, Value amount) {
  if (wraps) return ir.bit_and(amount, ir.constant(32, 31));
  return ir.select(ir.icmp(LLVMIntULT, amount, ir.constant(32, 32)), amount, ir.constant(32, 32));
}
Value joined(Ir& ir, Value low, Value high) {
  return ir.bit_or(ir.shl(ir.zext(high, 64), ir.constant(64, 32)), ir.zext(low, 64));
}
template <bool wraps> Value funnel_left(Ir& ir, const Operands& x) {
  const Value shifted = ir.shl(joined(ir, x.a, x.b), ir.zext(funnel_amount<wraps>(ir, x.c), 64));
  return ir.trunc(ir.lshr(shifted, ir.constant(64, 32)), 32);
}
template <bool wraps> Value funnel_right(Ir& ir, const Operands& x) {
  return ir.trunc(ir.lshr(joined(ir, x.a, x.b), ir.zext(funnel_amount<wraps>(ir, x.c), 64)), 32);
}

// `length` bits of a, starting at `position`: semantics::bfe for 32 bits.
template <bool is_signed> Value field(Ir& ir, const Operands& x) {
  const auto number = [&](uint64_t value) { return ir.constant(32, value); };
  const Value position = ir.bit_and(x.b, number(0xff)), length = ir.bit_and(x.c, number(0xff));
  const Value inside = ir.icmp(LLVMIntULT, position, number(32));
  Value moved;
  if (is_signed)
    moved = ir.ashr(x.a, ir.select(inside, position, number(31)));
  else
    moved = ir.select(inside, ir.lshr(x.a, ir.bit_and(position, number(31))), number(0));
  const Value unused =
      ir.bit_and(ir.select(ir.icmp(LLVMIntULT, length, number(32)), ir.sub(number(32), length), number(0)), number(31));
  const Value left = ir.shl(moved, unused);
  const Value extended = is_signed ? ir.ashr(left, unused) : ir.lshr(left, unused);
  return ir.select(ir.icmp(LLVMIntEQ, length, number(0)), number(0), extended);
}
Value inserted_field(Ir& ir, const Operands& x) {
  const auto number = [&](uint64_t value) { return ir.constant(32, value); };
  const Value position = ir.bit_and(x.c, number(0xff)), length = ir.bit_and(x.d, number(0xff));
  const Value ones_of_length = ir.sub(ir.shl(number(1), ir.bit_and(length, number(31))), number(1));
  const Value field_ones = ir.select(ir.icmp(LLVMIntULT, length, number(32)), ones_of_length, number(~0u));
  const Value shift = ir.bit_and(position, number(31));
  const Value mask = ir.select(ir.icmp(LLVMIntULT, position, number(32)), ir.shl(field_ones, shift), number(0));
  return ir.bit_or(ir.bit_and(x.b, ir.bit_not(mask)), ir.bit_and(ir.shl(x.a, shift), mask));
}

// Bytes of b:a selected by the nibbles of the selector: semantics::prmt.
Value permuted(Ir& ir, const Operands& x) {
  const Value bytes = joined(ir, x.a, x.b);
  Value result = ir.constant(32, 0);
  for (unsigned i = 0; i < 4; ++i) {
    const Value nibble = ir.bit_and(ir.lshr(x.c, ir.constant(32, 4 * i)), ir.constant(32, 0xf));
    const Value distance = ir.shl(ir.bit_and(nibble, ir.constant(32, 7)), ir.constant(32, 3));
    const Value byte = ir.bit_and(ir.trunc(ir.lshr(bytes, ir.zext(distance, 64)), 32), ir.constant(32, 0xff));
    const Value sign = ir.bit_and(ir.sub(ir.constant(32, 0), ir.lshr(byte, ir.constant(32, 7))), ir.constant(32, 0xff));
    const Value takes_sign = ir.icmp(LLVMIntNE, ir.bit_and(nibble, ir.constant(32, 8)), ir.constant(32, 0));
    result = ir.bit_or(result, ir.shl(ir.select(takes_sign, sign, byte), ir.constant(32, 8 * i)));
  }
  return result;
}

} // namespace

#define ROW(pattern, ...) table.row(pattern, [](Ir& ir, const Operands& x) { return __VA_ARGS__(ir, x); })

void add_bit_rows(RowTable& table) {
  ROW("popc.b32", ones<32>);
  ROW("popc.b64", ones<64>);
  ROW("clz.b32", leading_zeros<32>);
  ROW("clz.b64", leading_zeros<64>);
  ROW("brev.b32", reversed<32>);
  ROW("brev.b64", reversed<64>);
  ROW("shf.l.clamp.b32", funnel_left<false>);
  ROW("shf.l.wrap.b32", funnel_left<true>);
  ROW("shf.r.clamp.b32", funnel_right<false>);
  ROW("shf.r.wrap.b32", funnel_right<true>);
  ROW("bfe.u32", field<false>);
  ROW("bfe.s32", field<true>);
  ROW("bfi.b32", inserted_field);
  ROW("prmt.b32", permuted);
}

} // namespace ptxrewrite::emulator::generated
