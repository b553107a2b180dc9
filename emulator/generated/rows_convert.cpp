// Rows of conversions: between integers, and between integers and floats to nearest or toward zero.
#include "emulator/generated/rows.h"

#include <algorithm>

namespace ptxrewrite::emulator::generated {
namespace {

template <unsigned from, unsigned to, bool is_signed> Value resized(Ir& ir, const Operands& x) {
  if (from == to) return x.a;
  if (from > to) return ir.trunc(x.a, to);
  return is_signed ? ir.sext(x.a, to) : ir.zext(x.a, to);
}

template <unsigned from, bool is_signed, unsigned to> Value number_of(Ir& ir, const Operands& x) {
  return ir.to_bits(is_signed ? ir.llvm.BuildSIToFP(ir.builder, x.a, ir.floats(to), "")
                              : ir.llvm.BuildUIToFP(ir.builder, x.a, ir.floats(to), ""),
                    to);
}
// Clamps; NaN gives zero.
template <bool is_signed, bool to_nearest> Value integer_of_f32(Ir& ir, const Operands& x) {
  Value number = ir.to_float(x.a, 32);
  if (to_nearest) number = ir.intrinsic("llvm.rint", {ir.floats(32)}, {number});
  return ir.intrinsic(is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {ir.integers(32), ir.floats(32)}, {number});
}
Value f64_of_f32(Ir& ir, const Operands& x) {
  const Value wide = ir.to_bits(ir.llvm.BuildFPExt(ir.builder, ir.to_float(x.a, 32), ir.floats(64), ""), 64);
  const Value number = ir.to_float(wide, 64);
  return ir.select(ir.fcmp(LLVMRealUNO, number, number), ir.bit_or(wide, ir.constant(64, 0x0008000000000000)), wide);
}
Value f32_of_f64(Ir& ir, const Operands& x) {
  const Value narrow = ir.to_bits(ir.llvm.BuildFPTrunc(ir.builder, ir.to_float(x.a, 64), ir.floats(32), ""), 32);
  const Value number = ir.to_float(narrow, 32);
  return ir.select(ir.fcmp(LLVMRealUNO, number, number), ir.bit_or(narrow, ir.constant(32, 0x00400000)), narrow);
}

#define ROW(pattern, ...) table.row(pattern, [](Ir& ir, const Operands& x) { return __VA_ARGS__(ir, x); });
#define TO(word, to)                                                                                                   \
  ROW("cvt." word ".u8", resized<8, to, false>)                                                                        \
  ROW("cvt." word ".u16", resized<16, to, false>)                                                                      \
  ROW("cvt." word ".u32", resized<32, to, false>)                                                                      \
  ROW("cvt." word ".u64", resized<64, to, false>)                                                                      \
  ROW("cvt." word ".s8", resized<8, to, true>)                                                                         \
  ROW("cvt." word ".s16", resized<16, to, true>)                                                                       \
  ROW("cvt." word ".s32", resized<32, to, true>)                                                                       \
  ROW("cvt." word ".s64", resized<64, to, true>)

void add_integer_widths(RowTable& table) {
  TO("u8", 8)
  TO("u16", 16)
  TO("u32", 32)
  TO("u64", 64)
  TO("s8", 8)
  TO("s16", 16)
  TO("s32", 32)
  TO("s64", 64)
}

#define FROM(type, bits, is_signed)                                                                                    \
  ROW("cvt.rn[.ftz].f32" type, number_of<bits, is_signed, 32>)                                                         \
  ROW("cvt.rn.f64" type, number_of<bits, is_signed, 64>)

} // namespace

void add_conversion_rows(RowTable& table) {
  add_integer_widths(table);
  FROM(".u8", 8, false)
  FROM(".u16", 16, false)
  FROM(".u32", 32, false)
  FROM(".u64", 64, false)
  FROM(".s8", 8, true)
  FROM(".s16", 16, true)
  FROM(".s32", 32, true)
  FROM(".s64", 64, true)
  ROW("cvt.rzi[.ftz][.sat].s32.f32", integer_of_f32<true, false>)
  ROW("cvt.rzi[.ftz][.sat].u32.f32", integer_of_f32<false, false>)
  ROW("cvt.rni[.ftz][.sat].s32.f32", integer_of_f32<true, true>)
  ROW("cvt.rni[.ftz][.sat].u32.f32", integer_of_f32<false, true>)
  ROW("cvt.f64.f32", f64_of_f32)
  ROW("cvt.rn.f32.f64", f32_of_f64)
}

} // namespace ptxrewrite::emulator::generated
