// Rows of f32 and f64 arithmetic, rounded to nearest even. Each is the formula of emulator/semantics/float.h;
// operations with other roundings are called.
#include "emulator/generated/rows.h"

namespace ptxrewrite::emulator::generated {

Value canonical_f32(Ir& ir, Value bits) {
  const Value number = ir.to_float(bits, 32);
  return ir.select(ir.fcmp(LLVMRealUNO, number, number), ir.constant(32, 0x7fffffff), bits);
}

namespace {

constexpr uint64_t sign_bit = 0x80000000, least_normal = 0x00800000;

Value f32(Ir& ir, Value bits) {
  return ir.to_float(bits, 32);
}
Value f32_constant(Ir& ir, uint32_t bits) {
  return f32(ir, ir.constant(32, bits));
}
// Subnormal numbers become zeros with their sign.
Value flushed(Ir& ir, Value bits) {
  const Value magnitude = ir.bit_and(bits, ir.constant(32, sign_bit - 1));
  return ir.select(ir.icmp(LLVMIntULT, magnitude, ir.constant(32, least_normal)),
                   ir.bit_and(bits, ir.constant(32, sign_bit)), bits);
}
template <bool flush> Value operand(Ir& ir, Value bits) {
  return f32(ir, flush ? flushed(ir, bits) : bits);
}
// Clamps to [+0, 1]; NaN and -0 become +0.
Value saturated(Ir& ir, Value bits) {
  const Value number = f32(ir, bits), zero = f32_constant(ir, 0), one = f32_constant(ir, 0x3f800000);
  const Value positive = ir.select(ir.fcmp(LLVMRealOGT, number, zero), number, zero);
  return ir.to_bits(ir.select(ir.fcmp(LLVMRealOLT, positive, one), positive, one), 32);
}
template <bool saturate> Value finished(Ir& ir, Value number) {
  const Value bits = ir.to_bits(number, 32);
  return saturate ? saturated(ir, bits) : bits;
}
// Flushes `number` to a zero of its sign if it is tiny, which is tested on `scaled`, 2^64 times as large.
Value flushed_if_tiny(Ir& ir, Value number, Value scaled) {
  const Value limit = f32_constant(ir, 0x20800000), minus_limit = f32_constant(ir, 0xa0800000); // 2^-62
  const Value tiny = ir.bit_and(ir.fcmp(LLVMRealOLT, scaled, limit), ir.fcmp(LLVMRealOGT, scaled, minus_limit));
  const Value bits = ir.to_bits(number, 32);
  return f32(ir, ir.select(tiny, ir.bit_and(bits, ir.constant(32, sign_bit)), bits));
}
Value scaled_up(Ir& ir, Value number) {
  return ir.fmul(number, f32_constant(ir, 0x5f800000)); // 2^64
}
Value fused(Ir& ir, Value a, Value b, Value c, unsigned bits) {
  return ir.intrinsic("llvm.fma", {ir.floats(bits)}, {a, b, c});
}

template <bool flush, bool saturate> Value sum_f32(Ir& ir, const Operands& x) {
  const Value sum = ir.fadd(operand<flush>(ir, x.a), operand<flush>(ir, x.b));
  return finished<saturate>(ir, flush ? f32(ir, flushed(ir, ir.to_bits(sum, 32))) : sum);
}
template <bool flush, bool saturate> Value difference_f32(Ir& ir, const Operands& x) {
  const Value difference = ir.fsub(operand<flush>(ir, x.a), operand<flush>(ir, x.b));
  return finished<saturate>(ir, flush ? f32(ir, flushed(ir, ir.to_bits(difference, 32))) : difference);
}
template <bool flush, bool saturate> Value product_f32(Ir& ir, const Operands& x) {
  const Value a = operand<flush>(ir, x.a), b = operand<flush>(ir, x.b);
  const Value product = ir.fmul(a, b);
  if (!flush) return finished<saturate>(ir, product);
  return finished<saturate>(ir, flushed_if_tiny(ir, product, ir.fmul(scaled_up(ir, a), b)));
}
template <bool flush, bool saturate> Value fma_f32(Ir& ir, const Operands& x) {
  const Value a = operand<flush>(ir, x.a), b = operand<flush>(ir, x.b), c = operand<flush>(ir, x.c);
  const Value result = fused(ir, a, b, c, 32);
  if (!flush) return finished<saturate>(ir, result);
  const Value scaled = fused(ir, scaled_up(ir, a), b, scaled_up(ir, c), 32);
  return finished<saturate>(ir, flushed_if_tiny(ir, result, scaled));
}

Value quotient_f32(Ir& ir, const Operands& x) {
  return ir.to_bits(ir.fdiv(f32(ir, x.a), f32(ir, x.b)), 32);
}
Value reciprocal_f32(Ir& ir, const Operands& x) {
  return ir.to_bits(ir.fdiv(f32_constant(ir, 0x3f800000), f32(ir, x.a)), 32);
}
Value root_f32(Ir& ir, const Operands& x) {
  return ir.to_bits(ir.intrinsic("llvm.sqrt", {ir.floats(32)}, {f32(ir, x.a)}), 32);
}

// --- f64: the result is the first NaN operand, made quiet ---

constexpr uint64_t quiet_f64 = 0x0008000000000000, default_nan = 0xfff8000000000000;

Value is_nan_f64(Ir& ir, Value bits) {
  const Value number = ir.to_float(bits, 64);
  return ir.fcmp(LLVMRealUNO, number, number);
}
// For an invalid operation on numbers, the default NaN, whatever the host's result.
Value with_nan_of(Ir& ir, Value number, std::initializer_list<Value> operands) {
  Value result = ir.to_bits(number, 64);
  result = ir.select(ir.fcmp(LLVMRealUNO, number, number), ir.constant(64, default_nan), result);
  for (auto operand = std::rbegin(operands); operand != std::rend(operands); ++operand)
    result = ir.select(is_nan_f64(ir, *operand), ir.bit_or(*operand, ir.constant(64, quiet_f64)), result);
  return result;
}
Value f64(Ir& ir, Value bits) {
  return ir.to_float(bits, 64);
}
Value sum_f64(Ir& ir, const Operands& x) {
  return with_nan_of(ir, ir.fadd(f64(ir, x.a), f64(ir, x.b)), {x.a, x.b});
}
Value difference_f64(Ir& ir, const Operands& x) {
  return with_nan_of(ir, ir.fsub(f64(ir, x.a), f64(ir, x.b)), {x.a, x.b});
}
Value product_f64(Ir& ir, const Operands& x) {
  return with_nan_of(ir, ir.fmul(f64(ir, x.a), f64(ir, x.b)), {x.a, x.b});
}
Value fma_f64(Ir& ir, const Operands& x) {
  return with_nan_of(ir, fused(ir, f64(ir, x.a), f64(ir, x.b), f64(ir, x.c), 64), {x.a, x.b, x.c});
}
Value quotient_f64(Ir& ir, const Operands& x) {
  return with_nan_of(ir, ir.fdiv(f64(ir, x.a), f64(ir, x.b)), {x.a, x.b});
}
Value root_f64(Ir& ir, const Operands& x) {
  return with_nan_of(ir, ir.intrinsic("llvm.sqrt", {ir.floats(64)}, {f64(ir, x.a)}), {x.a});
}

// --- signs, minimum and maximum ---

template <unsigned bits> Value quieted(Ir& ir, Value a) {
  const Value number = ir.to_float(a, bits);
  return ir.select(ir.fcmp(LLVMRealUNO, number, number),
                   ir.bit_or(a, ir.constant(bits, bits == 32 ? 0x00400000 : quiet_f64)), a);
}
template <unsigned bits> Value without_sign(Ir& ir, const Operands& x) {
  return ir.bit_and(quieted<bits>(ir, x.a), ir.constant(bits, ~(uint64_t(1) << (bits - 1))));
}
template <unsigned bits> Value with_other_sign(Ir& ir, const Operands& x) {
  return ir.bit_xor(quieted<bits>(ir, x.a), ir.constant(bits, uint64_t(1) << (bits - 1)));
}

template <bool is_maximum, bool flush> Value extreme_f32(Ir& ir, const Operands& x) {
  const Value a = flush ? flushed(ir, x.a) : x.a, b = flush ? flushed(ir, x.b) : x.b;
  const Value first = f32(ir, a), second = f32(ir, b);
  const Value is_first = ir.fcmp(is_maximum ? LLVMRealOGT : LLVMRealOLT, first, second);
  const Value equal = is_maximum ? ir.bit_and(a, b) : ir.bit_or(a, b); // equal numbers, including zeros
  Value chosen = ir.select(is_first, a, b);
  chosen = ir.select(ir.fcmp(LLVMRealOEQ, first, second), equal, chosen);
  return ir.select(ir.fcmp(LLVMRealUNO, second, second), a, chosen);
}

#define ROW(pattern, traits, ...)                                                                                      \
  table.row(                                                                                                           \
      pattern, [](Ir& ir, const Operands& x) { return __VA_ARGS__(ir, x); }, traits)
#define F32_ROWS(word, nearest, function)                                                                              \
  ROW(word nearest ".f32", takes_open_nans | leaves_open_nans, function<false, false>);                                \
  ROW(word nearest ".ftz.f32", takes_open_nans | leaves_open_nans, function<true, false>);                             \
  ROW(word nearest ".sat.f32", takes_open_nans, function<false, true>);                                                \
  ROW(word nearest ".sat.ftz.f32", takes_open_nans, function<true, true>);

} // namespace

void add_float_rows(RowTable& table) {
  F32_ROWS("add", "[.rn]", sum_f32)
  F32_ROWS("sub", "[.rn]", difference_f32)
  F32_ROWS("mul", "[.rn]", product_f32)
  F32_ROWS("fma", ".rn", fma_f32)
  F32_ROWS("mad", ".rn", fma_f32)
  ROW("mad[.ftz].f32", takes_open_nans | leaves_open_nans, fma_f32<true, false>);
  ROW("div.rn.f32", takes_open_nans | leaves_open_nans, quotient_f32);
  ROW("rcp.rn.f32", takes_open_nans | leaves_open_nans, reciprocal_f32);
  ROW("sqrt.rn.f32", takes_open_nans | leaves_open_nans, root_f32);
  ROW("add[.rn].f64", 0, sum_f64);
  ROW("sub[.rn].f64", 0, difference_f64);
  ROW("mul[.rn].f64", 0, product_f64);
  ROW("fma.rn.f64", 0, fma_f64);
  ROW("mad[.rn].f64", 0, fma_f64);
  ROW("div[.rn].f64", 0, quotient_f64);
  ROW("sqrt[.rn].f64", 0, root_f64);
  ROW("abs.f32", 0, without_sign<32>);
  ROW("abs.f64", 0, without_sign<64>);
  ROW("neg.f32", 0, with_other_sign<32>);
  ROW("neg.f64", 0, with_other_sign<64>);
  ROW("min.f32", takes_open_nans | leaves_open_nans | of_two, extreme_f32<false, false>);
  ROW("max.f32", takes_open_nans | leaves_open_nans | of_two, extreme_f32<true, false>);
  ROW("min.ftz.f32", takes_open_nans | leaves_open_nans | of_two, extreme_f32<false, true>);
  ROW("max.ftz.f32", takes_open_nans | leaves_open_nans | of_two, extreme_f32<true, true>);
}

} // namespace ptxrewrite::emulator::generated
