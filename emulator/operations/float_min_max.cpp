// Rows of min and max of floats: f32 f64 f16 f16x2 bf16 bf16x2, with .ftz .NaN .xorsign.abs, and of three f32.
#include "emulator/core/operation.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/min_max.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

#define MIN_AND_MAX(T, mode, words)                                                                                    \
  table.row<&min_float<mode, T>>("min" words);                                                                         \
  table.row<&max_float<mode, T>>("max" words);
#define MIN_AND_MAX_OF_PAIRS(T, mode, words)                                                                           \
  table.row<each_of_two<&min_float<mode, T>, T>>("min" words);                                                         \
  table.row<each_of_two<&max_float<mode, T>, T>>("max" words);
#define MIN_AND_MAX_OF_THREE(mode, words)                                                                              \
  table.row<[](float a, float b, float c) { return min_max<false, mode>(a, b, c); }>("min" words);                     \
  table.row<[](float a, float b, float c) { return min_max<true, mode>(a, b, c); }>("max" words);

constexpr MinMaxMode plain = {};
constexpr MinMaxMode ftz = {.flush = true};
constexpr MinMaxMode nan = {.propagate_nan = true};
constexpr MinMaxMode ftz_nan = {.flush = true, .propagate_nan = true};
constexpr MinMaxMode abs = {.abs = true};
constexpr MinMaxMode ftz_abs = {.flush = true, .abs = true};
constexpr MinMaxMode nan_abs = {.propagate_nan = true, .abs = true};
constexpr MinMaxMode ftz_nan_abs = {.flush = true, .propagate_nan = true, .abs = true};
constexpr MinMaxMode xorsign = {.abs = true, .xorsign = true};
constexpr MinMaxMode ftz_xorsign = {.flush = true, .abs = true, .xorsign = true};
constexpr MinMaxMode nan_xorsign = {.propagate_nan = true, .abs = true, .xorsign = true};
constexpr MinMaxMode ftz_nan_xorsign = {.flush = true, .propagate_nan = true, .abs = true, .xorsign = true};

void add_f32(OperationTable& table) {
  MIN_AND_MAX(float, plain, ".f32")
  MIN_AND_MAX(float, ftz, ".ftz.f32")
  MIN_AND_MAX(float, nan, ".NaN.f32")
  MIN_AND_MAX(float, ftz_nan, ".ftz.NaN.f32")
  MIN_AND_MAX(float, xorsign, ".xorsign.abs.f32")
  MIN_AND_MAX(float, ftz_xorsign, ".ftz.xorsign.abs.f32")
  MIN_AND_MAX(float, nan_xorsign, ".NaN.xorsign.abs.f32")
  MIN_AND_MAX(float, ftz_nan_xorsign, ".ftz.NaN.xorsign.abs.f32")
  MIN_AND_MAX(double, plain, ".f64")
  MIN_AND_MAX_OF_THREE(plain, ".f32")
  MIN_AND_MAX_OF_THREE(ftz, ".ftz.f32")
  MIN_AND_MAX_OF_THREE(nan, ".NaN.f32")
  MIN_AND_MAX_OF_THREE(ftz_nan, ".ftz.NaN.f32")
  MIN_AND_MAX_OF_THREE(abs, ".abs.f32")
  MIN_AND_MAX_OF_THREE(ftz_abs, ".ftz.abs.f32")
  MIN_AND_MAX_OF_THREE(nan_abs, ".NaN.abs.f32")
  MIN_AND_MAX_OF_THREE(ftz_nan_abs, ".ftz.NaN.abs.f32")
}

void add_halves(OperationTable& table) {
  MIN_AND_MAX(Float16, plain, ".f16")
  MIN_AND_MAX(Float16, ftz, ".ftz.f16")
  MIN_AND_MAX(Float16, nan, ".NaN.f16")
  MIN_AND_MAX(Float16, ftz_nan, ".ftz.NaN.f16")
  MIN_AND_MAX(Float16, xorsign, ".xorsign.abs.f16")
  MIN_AND_MAX(Float16, ftz_xorsign, ".ftz.xorsign.abs.f16")
  MIN_AND_MAX(Float16, nan_xorsign, ".NaN.xorsign.abs.f16")
  MIN_AND_MAX(Float16, ftz_nan_xorsign, ".ftz.NaN.xorsign.abs.f16")
  MIN_AND_MAX(BFloat16, plain, ".bf16")
  MIN_AND_MAX(BFloat16, nan, ".NaN.bf16")
  MIN_AND_MAX(BFloat16, xorsign, ".xorsign.abs.bf16")
  MIN_AND_MAX(BFloat16, nan_xorsign, ".NaN.xorsign.abs.bf16")
}

void add_pairs(OperationTable& table) {
  MIN_AND_MAX_OF_PAIRS(Float16, plain, ".f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, ftz, ".ftz.f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, nan, ".NaN.f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, ftz_nan, ".ftz.NaN.f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, xorsign, ".xorsign.abs.f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, ftz_xorsign, ".ftz.xorsign.abs.f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, nan_xorsign, ".NaN.xorsign.abs.f16x2")
  MIN_AND_MAX_OF_PAIRS(Float16, ftz_nan_xorsign, ".ftz.NaN.xorsign.abs.f16x2")
  MIN_AND_MAX_OF_PAIRS(BFloat16, plain, ".bf16x2")
  MIN_AND_MAX_OF_PAIRS(BFloat16, nan, ".NaN.bf16x2")
  MIN_AND_MAX_OF_PAIRS(BFloat16, xorsign, ".xorsign.abs.bf16x2")
  MIN_AND_MAX_OF_PAIRS(BFloat16, nan_xorsign, ".NaN.xorsign.abs.bf16x2")
}

} // namespace

void add_float_min_max(OperationTable& table) {
  add_f32(table);
  add_halves(table);
  add_pairs(table);
}

} // namespace ptxrewrite::emulator
