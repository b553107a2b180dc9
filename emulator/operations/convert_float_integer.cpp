// Rows of conversions between floats and integers, in either direction.
//
// f32 to 32-bit integers toward zero and to the nearest, and integers to the nearest f32, are frequent and have
// separate functions; the others take rounding, .ftz and .sat from the flags. In conversions to integers .sat has no
// effect, and .ftz matters only for roundings away from zero.
#include "emulator/core/operation.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/convert.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

// --- to integers ---

template <class Int, class Float> Int to_int_by_flags(Float a, Flags flags) {
  Float source = a;
  if constexpr (std::is_same_v<Float, float>) source = flushed_by(flags, a);
  if (flags.has(flag_rzi)) return float_to_int<Int, IntegerRounding::toward_zero>(source);
  if (flags.has(flag_rmi)) return float_to_int<Int, IntegerRounding::down>(source);
  if (flags.has(flag_rpi)) return float_to_int<Int, IntegerRounding::up>(source);
  return float_to_int<Int, IntegerRounding::nearest_even>(source);
}

#define ROUNDED "cvt{.rni|.rzi|.rmi|.rpi}"
#define TO(Int, type)                                                                                                  \
  table.row<&to_int_by_flags<Int, float>>(ROUNDED "[.ftz][.sat]" type ".f32");                                         \
  table.row<&to_int_by_flags<Int, double>>(ROUNDED "[.sat]" type ".f64");                                              \
  table.row<&to_int_by_flags<Int, Float16>>(ROUNDED "[.sat]" type ".f16");                                             \
  table.row<&to_int_by_flags<Int, BFloat16>>(ROUNDED type ".bf16");

void add_to_integers(OperationTable& table) {
  table.row<&float_to_int<int32_t, IntegerRounding::toward_zero, false, float>>("cvt.rzi[.ftz][.sat].s32.f32");
  table.row<&float_to_int<uint32_t, IntegerRounding::toward_zero, false, float>>("cvt.rzi[.ftz][.sat].u32.f32");
  table.row<&float_to_int<int32_t, IntegerRounding::nearest_even, false, float>>("cvt.rni[.ftz][.sat].s32.f32");
  table.row<&float_to_int<uint32_t, IntegerRounding::nearest_even, false, float>>("cvt.rni[.ftz][.sat].u32.f32");
  table.row<&float_to_int<int32_t, IntegerRounding::toward_zero, false, double>>("cvt.rzi[.sat].s32.f64");
  TO(uint8_t, ".u8")
  TO(uint16_t, ".u16")
  TO(uint32_t, ".u32")
  TO(uint64_t, ".u64")
  TO(int8_t, ".s8")
  TO(int16_t, ".s16")
  TO(int32_t, ".s32")
  TO(int64_t, ".s64")
}

// --- from integers: never subnormal, so .ftz has no effect ---

template <class Int> constexpr float nearest_f32(Int a) {
  return int_to_f32<FloatMode<>>(a);
}
template <class Int> constexpr double nearest_f64(Int a) {
  return int_to_f64<Rounding::nearest_even>(a);
}
template <class Int> float to_f32_by_flags(Int a, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return int_to_f32<FloatMode<mode>>(a); }));
}
template <class Int> double to_f64_by_flags(Int a, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return int_to_f64<mode>(a); }));
}
template <class Half, class Int> Half to_half_by_flags(Int a, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return int_to_half<Half, mode>(a); }));
}

#define FROM(Int, type)                                                                                                \
  table.row<&nearest_f32<Int>>("cvt.rn[.ftz].f32" type);                                                               \
  table.row<&to_f32_by_flags<Int>>("cvt{.rn|.rz|.rm|.rp}[.ftz][.sat].f32" type);                                       \
  table.row<&nearest_f64<Int>>("cvt.rn.f64" type);                                                                     \
  table.row<&to_f64_by_flags<Int>>("cvt{.rn|.rz|.rm|.rp}[.sat].f64" type);                                             \
  table.row<&to_half_by_flags<Float16, Int>>("cvt{.rn|.rz|.rm|.rp}[.sat].f16" type);                                   \
  table.row<&to_half_by_flags<BFloat16, Int>>("cvt{.rn|.rz|.rm|.rp}.bf16" type);

void add_from_integers(OperationTable& table) {
  FROM(uint8_t, ".u8")
  FROM(uint16_t, ".u16")
  FROM(uint32_t, ".u32")
  FROM(uint64_t, ".u64")
  FROM(int8_t, ".s8")
  FROM(int16_t, ".s16")
  FROM(int32_t, ".s32")
  FROM(int64_t, ".s64")
}

} // namespace

void add_float_integer_conversions(OperationTable& table) {
  add_to_integers(table);
  add_from_integers(table);
}

} // namespace ptxrewrite::emulator
