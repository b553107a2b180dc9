// Rows of integer arithmetic, and of logic and shifts.
#include "emulator/generated/rows.h"

namespace ptxrewrite::emulator::generated {
namespace {

Value sum(Ir& ir, const Operands& x) {
  return ir.add(x.a, x.b);
}
Value difference(Ir& ir, const Operands& x) {
  return ir.sub(x.a, x.b);
}
Value product(Ir& ir, const Operands& x) {
  return ir.mul(x.a, x.b);
}
Value product_and_sum(Ir& ir, const Operands& x) {
  return ir.add(ir.mul(x.a, x.b), x.c);
}
template <unsigned bits, bool is_signed> Value extended(Ir& ir, Value a) {
  return is_signed ? ir.sext(a, bits) : ir.zext(a, bits);
}
template <unsigned bits, bool is_signed> Value wide_product(Ir& ir, const Operands& x) {
  return ir.mul(extended<2 * bits, is_signed>(ir, x.a), extended<2 * bits, is_signed>(ir, x.b));
}
template <unsigned bits, bool is_signed> Value wide_product_and_sum(Ir& ir, const Operands& x) {
  return ir.add(wide_product<bits, is_signed>(ir, x), x.c);
}
template <unsigned bits, bool is_signed> Value high_product(Ir& ir, const Operands& x) {
  return ir.trunc(ir.lshr(wide_product<bits, is_signed>(ir, x), ir.constant(2 * bits, bits)), bits);
}
template <unsigned bits, bool is_signed> Value high_product_and_sum(Ir& ir, const Operands& x) {
  return ir.add(high_product<bits, is_signed>(ir, x), x.c);
}
template <unsigned bits> Value negated(Ir& ir, const Operands& x) {
  return ir.sub(ir.constant(bits, 0), x.a);
}
template <unsigned bits> Value magnitude(Ir& ir, const Operands& x) {
  return ir.select(ir.icmp(LLVMIntSLT, x.a, ir.constant(bits, 0)), ir.sub(ir.constant(bits, 0), x.a), x.a);
}
template <LLVMIntPredicate chooses_a> Value chosen(Ir& ir, const Operands& x) {
  return ir.select(ir.icmp(chooses_a, x.a, x.b), x.a, x.b);
}
template <LLVMIntPredicate less> Value distance_and_sum(Ir& ir, const Operands& x) {
  return ir.add(x.c, ir.select(ir.icmp(less, x.a, x.b), ir.sub(x.b, x.a), ir.sub(x.a, x.b)));
}

// a / b toward zero by f64, as semantics::quotient; f64 represents every 32-bit number exactly.
template <bool is_signed> Value quotient(Ir& ir, Value a, Value b) {
  const auto to_double = [&](Value x) {
    return is_signed ? ir.llvm.BuildSIToFP(ir.builder, x, ir.floats(64), "")
                     : ir.llvm.BuildUIToFP(ir.builder, x, ir.floats(64), "");
  };
  const Value exact = ir.fdiv(to_double(a), to_double(b));
  // Both fit into 64-bit integers, whose low halves wrap.
  return ir.trunc(ir.llvm.BuildFPToSI(ir.builder, exact, ir.integers(64), ""), 32);
}
template <bool is_signed, bool remainder> Value divided(Ir& ir, const Operands& x) {
  const Value by_zero = ir.icmp(LLVMIntEQ, x.b, ir.constant(32, 0));
  const Value result = quotient<is_signed>(ir, x.a, ir.select(by_zero, ir.constant(32, 1), x.b));
  const Value wanted = remainder ? ir.sub(x.a, ir.mul(result, x.b)) : result;
  return ir.select(by_zero, ir.constant(32, ~0u), wanted);
}

template <unsigned bits> Value shifted_left(Ir& ir, const Operands& x) {
  const Value amount = bits == 32 ? x.b : bits < 32 ? ir.trunc(x.b, bits) : ir.zext(x.b, bits);
  const Value shifted = ir.shl(x.a, ir.bit_and(amount, ir.constant(bits, bits - 1)));
  return ir.select(ir.icmp(LLVMIntULT, x.b, ir.constant(32, bits)), shifted, ir.constant(bits, 0));
}
template <unsigned bits> Value shifted_right(Ir& ir, const Operands& x) {
  const Value amount = bits == 32 ? x.b : bits < 32 ? ir.trunc(x.b, bits) : ir.zext(x.b, bits);
  const Value shifted = ir.lshr(x.a, ir.bit_and(amount, ir.constant(bits, bits - 1)));
  return ir.select(ir.icmp(LLVMIntULT, x.b, ir.constant(32, bits)), shifted, ir.constant(bits, 0));
}
template <unsigned bits> Value shifted_right_signed(Ir& ir, const Operands& x) {
  const Value clamped = ir.select(ir.icmp(LLVMIntULT, x.b, ir.constant(32, bits)), x.b, ir.constant(32, bits - 1));
  return ir.ashr(x.a, bits == 32 ? clamped : bits < 32 ? ir.trunc(clamped, bits) : ir.zext(clamped, bits));
}

#define ROW(pattern, ...) table.row(pattern, [](Ir& ir, const Operands& x) { return __VA_ARGS__(ir, x); })
#define TRAIT_ROW(pattern, traits, ...)                                                                                \
  table.row(                                                                                                           \
      pattern, [](Ir& ir, const Operands& x) { return __VA_ARGS__(ir, x); }, traits)

void add_sums(RowTable& table) {
  TRAIT_ROW("add.{u16|s16}", is_sum, sum);
  TRAIT_ROW("add.{u32|s32}", is_sum, sum);
  TRAIT_ROW("add.{u64|s64}", is_sum, sum);
  TRAIT_ROW("sub.{u16|s16}", is_difference, difference);
  TRAIT_ROW("sub.{u32|s32}", is_difference, difference);
  TRAIT_ROW("sub.{u64|s64}", is_difference, difference);
  ROW("neg.s16", negated<16>);
  ROW("neg.s32", negated<32>);
  ROW("neg.s64", negated<64>);
  ROW("abs.s16", magnitude<16>);
  ROW("abs.s32", magnitude<32>);
  ROW("abs.s64", magnitude<64>);
  ROW("sad.u32", distance_and_sum<LLVMIntULT>);
  ROW("sad.s32", distance_and_sum<LLVMIntSLT>);
}

void add_products(RowTable& table) {
  ROW("mul.lo.{u16|s16}", product);
  TRAIT_ROW("mul.lo.{u32|s32}", is_scaling, product);
  TRAIT_ROW("mul.lo.{u64|s64}", is_scaling, product);
  ROW("mul.hi.u16", high_product<16, false>);
  ROW("mul.hi.u32", high_product<32, false>);
  ROW("mul.hi.s16", high_product<16, true>);
  ROW("mul.hi.s32", high_product<32, true>);
  ROW("mul.wide.u16", wide_product<16, false>);
  ROW("mul.wide.u32", wide_product<32, false>);
  ROW("mul.wide.s16", wide_product<16, true>);
  ROW("mul.wide.s32", wide_product<32, true>);
  ROW("mad.lo.{u16|s16}", product_and_sum);
  ROW("mad.lo.{u32|s32}", product_and_sum);
  ROW("mad.lo.{u64|s64}", product_and_sum);
  ROW("mad.hi.u32", high_product_and_sum<32, false>);
  ROW("mad.hi.s32", high_product_and_sum<32, true>);
  ROW("mad.wide.u16", wide_product_and_sum<16, false>);
  ROW("mad.wide.u32", wide_product_and_sum<32, false>);
  ROW("mad.wide.s16", wide_product_and_sum<16, true>);
  ROW("mad.wide.s32", wide_product_and_sum<32, true>);
  ROW("div.u32", divided<false, false>);
  ROW("div.s32", divided<true, false>);
  ROW("rem.u32", divided<false, true>);
  ROW("rem.s32", divided<true, true>);
}

void add_extremes(RowTable& table) {
  ROW("min.u16", chosen<LLVMIntULT>);
  ROW("min.u32", chosen<LLVMIntULT>);
  ROW("min.u64", chosen<LLVMIntULT>);
  ROW("min.s16", chosen<LLVMIntSLT>);
  ROW("min.s32", chosen<LLVMIntSLT>);
  ROW("min.s64", chosen<LLVMIntSLT>);
  ROW("max.u16", chosen<LLVMIntUGT>);
  ROW("max.u32", chosen<LLVMIntUGT>);
  ROW("max.u64", chosen<LLVMIntUGT>);
  ROW("max.s16", chosen<LLVMIntSGT>);
  ROW("max.s32", chosen<LLVMIntSGT>);
  ROW("max.s64", chosen<LLVMIntSGT>);
}

template <unsigned bits> Value is_zero(Ir& ir, const Operands& x) {
  return ir.zext(ir.icmp(LLVMIntEQ, x.a, ir.constant(bits, 0)), bits);
}
Value both(Ir& ir, const Operands& x) {
  return ir.bit_and(x.a, x.b);
}
Value either(Ir& ir, const Operands& x) {
  return ir.bit_or(x.a, x.b);
}
Value differing(Ir& ir, const Operands& x) {
  return ir.bit_xor(x.a, x.b);
}
Value inverted(Ir& ir, const Operands& x) {
  return ir.bit_not(x.a);
}

void add_logic(RowTable& table) {
  for (const char* pattern : {"and.b16", "and.b32", "and.b64"})
    ROW(pattern, both);
  for (const char* pattern : {"or.b16", "or.b32", "or.b64"})
    ROW(pattern, either);
  for (const char* pattern : {"xor.b16", "xor.b32", "xor.b64"})
    ROW(pattern, differing);
  for (const char* pattern : {"not.b16", "not.b32", "not.b64"})
    ROW(pattern, inverted);
  ROW("cnot.b16", is_zero<16>);
  ROW("cnot.b32", is_zero<32>);
  ROW("cnot.b64", is_zero<64>);
}

void add_shifts(RowTable& table) {
  ROW("shl.b16", shifted_left<16>);
  TRAIT_ROW("shl.b32", is_scaling, shifted_left<32>);
  TRAIT_ROW("shl.b64", is_scaling, shifted_left<64>);
  ROW("shr.{b16|u16}", shifted_right<16>);
  ROW("shr.{b32|u32}", shifted_right<32>);
  ROW("shr.{b64|u64}", shifted_right<64>);
  ROW("shr.s16", shifted_right_signed<16>);
  ROW("shr.s32", shifted_right_signed<32>);
  ROW("shr.s64", shifted_right_signed<64>);
}

} // namespace

void add_integer_rows(RowTable& table) {
  add_sums(table);
  add_products(table);
  add_extremes(table);
  add_logic(table);
  add_shifts(table);
}

} // namespace ptxrewrite::emulator::generated
