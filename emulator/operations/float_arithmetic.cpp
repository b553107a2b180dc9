// Rows of f32 and f64 arithmetic: add sub mul fma mad div rcp sqrt in all roundings, abs neg copysign testp, of f32x2,
// and mixed precision add sub fma.
//
// Every combination of rounding, .ftz and .sat of f32 has its own function. Forms without a rounding or .approx, which
// only PTX 1.3 and older have, follow the manual: approximations with .ftz for f32 (approximate.cpp), and fma with .ftz
// for mad.f32, as it is compiled for later machines.
#include "emulator/core/operation.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/float.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;
using enum Rounding;

// `word` is the mnemonic, `nearest` the word for rounding to nearest: ".rn", or "[.rn]" if it is optional.
#define ROUNDINGS(function, word, nearest, flush, rest)                                                                \
  table.row<&function<FloatMode<nearest_even, flush>>>(word nearest rest);                                             \
  table.row<&function<FloatMode<toward_zero, flush>>>(word ".rz" rest);                                                \
  table.row<&function<FloatMode<down, flush>>>(word ".rm" rest);                                                       \
  table.row<&function<FloatMode<up, flush>>>(word ".rp" rest);
#define SATURATED_ROUNDINGS(function, word, nearest, flush, rest)                                                      \
  table.row<&function<FloatMode<nearest_even, flush, true>>>(word nearest ".sat" rest);                                \
  table.row<&function<FloatMode<toward_zero, flush, true>>>(word ".rz.sat" rest);                                      \
  table.row<&function<FloatMode<down, flush, true>>>(word ".rm.sat" rest);                                             \
  table.row<&function<FloatMode<up, flush, true>>>(word ".rp.sat" rest);
#define F32_ROWS(function, word, nearest)                                                                              \
  ROUNDINGS(function, word, nearest, false, ".f32")                                                                    \
  ROUNDINGS(function, word, nearest, true, ".ftz.f32")                                                                 \
  SATURATED_ROUNDINGS(function, word, nearest, false, ".f32")                                                          \
  SATURATED_ROUNDINGS(function, word, nearest, true, ".ftz.f32")

void add_f32(OperationTable& table) {
  F32_ROWS(semantics::add_f32, "add", "[.rn]")
  F32_ROWS(semantics::sub_f32, "sub", "[.rn]")
  F32_ROWS(semantics::mul_f32, "mul", "[.rn]")
  F32_ROWS(semantics::fma_f32, "fma", ".rn")
  F32_ROWS(semantics::fma_f32, "mad", ".rn")
  table.row<&semantics::fma_f32<FloatMode<nearest_even, true>>>("mad[.ftz].f32");
  table.row<&semantics::fma_f32<FloatMode<nearest_even, true, true>>>("mad.sat[.ftz].f32");
}

void add_f32_quotients_and_roots(OperationTable& table) {
  ROUNDINGS(div_f32, "div", ".rn", false, ".f32")
  ROUNDINGS(div_f32, "div", ".rn", true, ".ftz.f32")
  ROUNDINGS(rcp_f32, "rcp", ".rn", false, ".f32")
  ROUNDINGS(rcp_f32, "rcp", ".rn", true, ".ftz.f32")
  ROUNDINGS(sqrt_f32, "sqrt", ".rn", false, ".f32")
  ROUNDINGS(sqrt_f32, "sqrt", ".rn", true, ".ftz.f32")
}

#define F64_ROWS(function, word, nearest)                                                                              \
  table.row<&function<nearest_even>>(word nearest ".f64");                                                             \
  table.row<&function<toward_zero>>(word ".rz.f64");                                                                   \
  table.row<&function<down>>(word ".rm.f64");                                                                          \
  table.row<&function<up>>(word ".rp.f64");

template <bool Flush> double rcp_by_flags(double a, Flags flags) {
  return by_rounding(flags, [&]<Rounding mode>() { return rcp_f64<mode, Flush>(a); });
}

void add_f64(OperationTable& table) {
  F64_ROWS(semantics::add_f64, "add", "[.rn]")
  F64_ROWS(semantics::sub_f64, "sub", "[.rn]")
  F64_ROWS(semantics::mul_f64, "mul", "[.rn]")
  F64_ROWS(semantics::fma_f64, "fma", ".rn")
  F64_ROWS(semantics::fma_f64, "mad", "[.rn]")
  F64_ROWS(div_f64, "div", "[.rn]")
  F64_ROWS(sqrt_f64, "sqrt", "[.rn]")
  table.row<&rcp_f64<>>("rcp.rn.f64");
  table.row<&rcp_by_flags<false>>("rcp{.rz|.rm|.rp}.f64");
  table.row<&rcp_by_flags<true>>("rcp{.rn|.rz|.rm|.rp}.ftz.f64");
}

// f32x2, with the directed rounding taken from the flags.
template <class Operation> constexpr Float32x2 directed_pair(Flags flags, Operation operation) {
  return by_rounding(flags, [&]<Rounding mode>() {
    return flags.has(flag_ftz) ? operation.template operator()<FloatMode<mode, true>>()
                               : operation.template operator()<FloatMode<mode>>();
  });
}
#define PAIR_ROWS(function, each, word, nearest)                                                                       \
  table.row<each<&function<FloatMode<>>, float>>(word nearest ".f32x2");                                               \
  table.row<each<&function<FloatMode<nearest_even, true>>, float>>(word nearest ".ftz.f32x2");
#define DIRECTED_PAIR_OF_TWO(function, word)                                                                           \
  table.row<[](Float32x2 a, Float32x2 b, Flags flags) {                                                                \
    return directed_pair(flags, [&]<class Mode>() { return on_pair<&function<Mode>>(a, b); });                         \
  }>(word "{.rz|.rm|.rp}[.ftz].f32x2");

void add_f32x2(OperationTable& table) {
  PAIR_ROWS(semantics::add_f32, each_of_two, "add", "[.rn]")
  PAIR_ROWS(semantics::sub_f32, each_of_two, "sub", "[.rn]")
  PAIR_ROWS(semantics::mul_f32, each_of_two, "mul", "[.rn]")
  PAIR_ROWS(semantics::fma_f32, each_of_three, "fma", ".rn")
  DIRECTED_PAIR_OF_TWO(semantics::add_f32, "add")
  DIRECTED_PAIR_OF_TWO(semantics::sub_f32, "sub")
  DIRECTED_PAIR_OF_TWO(semantics::mul_f32, "mul")
  table.row<[](Float32x2 a, Float32x2 b, Float32x2 c, Flags flags) {
    return directed_pair(flags, [&]<class Mode>() { return on_pair<&semantics::fma_f32<Mode>>(a, b, c); });
  }>("fma{.rz|.rm|.rp}[.ftz].f32x2");
}

template <class Half> float add_mixed_by_flags(Half a, float c, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return add_mixed<FloatMode<mode>>(a, c); }));
}
template <class Half> float sub_mixed_by_flags(Half a, float c, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return sub_mixed<FloatMode<mode>>(a, c); }));
}
template <class Half> float fma_mixed_by_flags(Half a, Half b, float c, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return fma_mixed<FloatMode<mode>>(a, b, c); }));
}

void add_mixed_precision(OperationTable& table) {
  table.row<&add_mixed_by_flags<Float16>>("add[.rn|.rz|.rm|.rp][.sat].f32.f16");
  table.row<&add_mixed_by_flags<BFloat16>>("add[.rn|.rz|.rm|.rp][.sat].f32.bf16");
  table.row<&sub_mixed_by_flags<Float16>>("sub[.rn|.rz|.rm|.rp][.sat].f32.f16");
  table.row<&sub_mixed_by_flags<BFloat16>>("sub[.rn|.rz|.rm|.rp][.sat].f32.bf16");
  table.row<&fma_mixed_by_flags<Float16>>("fma{.rn|.rz|.rm|.rp}[.sat].f32.f16");
  table.row<&fma_mixed_by_flags<BFloat16>>("fma{.rn|.rz|.rm|.rp}[.sat].f32.bf16");
}

void add_signs_and_properties(OperationTable& table) {
  table.row<&abs_float<false, float>>("abs.f32");
  table.row<&abs_float<true, float>>("abs.ftz.f32");
  table.row<&abs_float<false, double>>("abs.f64");
  table.row<&neg_float<false, float>>("neg.f32");
  table.row<&neg_float<true, float>>("neg.ftz.f32");
  table.row<&neg_float<false, double>>("neg.f64");
  table.row<&copysign_float<float>>("copysign.f32");
  table.row<&copysign_float<double>>("copysign.f64");
  table.row<&testp<FloatProperty::finite, float>>("testp.finite.f32");
  table.row<&testp<FloatProperty::infinite, float>>("testp.infinite.f32");
  table.row<&testp<FloatProperty::number, float>>("testp.number.f32");
  table.row<&testp<FloatProperty::not_a_number, float>>("testp.notanumber.f32");
  table.row<&testp<FloatProperty::normal, float>>("testp.normal.f32");
  table.row<&testp<FloatProperty::subnormal, float>>("testp.subnormal.f32");
  table.row<&testp<FloatProperty::finite, double>>("testp.finite.f64");
  table.row<&testp<FloatProperty::infinite, double>>("testp.infinite.f64");
  table.row<&testp<FloatProperty::number, double>>("testp.number.f64");
  table.row<&testp<FloatProperty::not_a_number, double>>("testp.notanumber.f64");
  table.row<&testp<FloatProperty::normal, double>>("testp.normal.f64");
  table.row<&testp<FloatProperty::subnormal, double>>("testp.subnormal.f64");
  // Without a property: always true, as ptxas folds it.
  table.row<[](float) { return true; }>("testp.f32");
  table.row<[](double) { return true; }>("testp.f64");
}

} // namespace

void add_float_arithmetic(OperationTable& table) {
  add_f32(table);
  add_f32_quotients_and_roots(table);
  add_f64(table);
  add_f32x2(table);
  add_mixed_precision(table);
  add_signs_and_properties(table);
}

} // namespace ptxrewrite::emulator
