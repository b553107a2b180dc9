// Rows of comparisons of floats: setp and set of f32 f64 f16 f16x2 bf16 bf16x2, and set with a result in f16 or bf16 of
// integers, too.
//
// `setp.lt.f32 p, a, b` and similar forms have a function per comparison. All others take from the flags the outcomes
// (less, equal, greater, unordered) that make the comparison true, and the operation that combines it with a predicate.
#include "emulator/semantics/float_compare.h"
#include "emulator/core/operation.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/compare.h"

#include <type_traits>

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

#define EACH_FLOAT_COMPARISON(ROW)                                                                                     \
  ROW(eq)                                                                                                              \
  ROW(ne) ROW(lt) ROW(le) ROW(gt) ROW(ge) ROW(equ) ROW(neu) ROW(ltu) ROW(leu) ROW(gtu) ROW(geu) ROW(num) ROW(nan)

template <FloatComparison Comparison, bool Flush> constexpr bool compare_f32(float a, float b) {
  return compare_float<Comparison, Flush>(a, b);
}
template <FloatComparison Comparison> constexpr bool compare_f64(double a, double b) {
  return compare_float<Comparison>(a, b);
}

#define SETP(comparison)                                                                                               \
  table.row<&compare_f32<FloatComparison::comparison, false>>("setp." #comparison ".f32");                             \
  table.row<&compare_f32<FloatComparison::comparison, true>>("setp." #comparison ".ftz.f32");                          \
  table.row<&compare_f64<FloatComparison::comparison>>("setp." #comparison ".f64");
void add_single_predicates(OperationTable& table) {
  EACH_FLOAT_COMPARISON(SETP)
}

// --- by flags ---

// a <relation> b, after .ftz. Integers are never unordered.
template <class T> constexpr bool holds(T a, T b, Flags flags) {
  auto relation = [&](auto x, auto y) {
    bool unordered = false;
    if constexpr (std::is_floating_point_v<decltype(x)>) unordered = is_nan(x) | is_nan(y);
    return ((x < y) & flags.has(flag_less)) | ((x == y) & flags.has(flag_equal)) | ((x > y) & flags.has(flag_greater)) |
           (unordered & flags.has(flag_unordered));
  };
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
    return relation(a, b);
  else if constexpr (std::is_same_v<T, float>)
    return relation(flushed_by(flags, a), flushed_by(flags, b));
  else
    return relation(to_float(flushed_by(flags, a)), to_float(flushed_by(flags, b)));
}

constexpr bool joined(bool comparison, bool c, Flags flags) {
  const BooleanOperation operation = flags.has(flag_and)   ? BooleanOperation::and_
                                     : flags.has(flag_or)  ? BooleanOperation::or_
                                     : flags.has(flag_xor) ? BooleanOperation::xor_
                                                           : BooleanOperation::none;
  return combine(operation, comparison, c);
}

// Without a predicate to combine with, c is arbitrary.
template <class T> constexpr bool predicate(T a, T b, Flags flags) {
  return holds(a, b, flags);
}
template <class T> constexpr bool joined_predicate(T a, T b, bool c, Flags flags) {
  return joined(holds(a, b, flags), c, flags);
}
// q is computed from the complement of the comparison.
template <class T> constexpr Two<bool, bool> predicates(T a, T b, Flags flags) {
  const bool comparison = holds(a, b, flags);
  return {comparison, !comparison};
}
template <class T> constexpr Two<bool, bool> joined_predicates(T a, T b, bool c, Flags flags) {
  const bool comparison = holds(a, b, flags);
  return {joined(comparison, c, flags), joined(!comparison, c, flags)};
}
// p is computed from the lower elements, q from the upper ones.
template <class T> constexpr Two<bool, bool> predicates_of_pairs(Pair<T> a, Pair<T> b, Flags flags) {
  return {holds(a.low, b.low, flags), holds(a.high, b.high, flags)};
}
template <class T> constexpr Two<bool, bool> joined_predicates_of_pairs(Pair<T> a, Pair<T> b, bool c, Flags flags) {
  return {joined(holds(a.low, b.low, flags), c, flags), joined(holds(a.high, b.high, flags), c, flags)};
}

template <class Result, class T> constexpr Result set(T a, T b, Flags flags) {
  return set_value<Result>(holds(a, b, flags));
}
template <class Result, class T> constexpr Result joined_set(T a, T b, bool c, Flags flags) {
  return set_value<Result>(joined(holds(a, b, flags), c, flags));
}
template <class Result, class T> constexpr Pair<Result> set_pair(Pair<T> a, Pair<T> b, Flags flags) {
  return {set<Result>(a.low, b.low, flags), set<Result>(a.high, b.high, flags)};
}
template <class Result, class T> constexpr Pair<Result> joined_set_pair(Pair<T> a, Pair<T> b, bool c, Flags flags) {
  return {joined_set<Result>(a.low, b.low, c, flags), joined_set<Result>(a.high, b.high, c, flags)};
}

#define FLOAT_WORDS ".eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan"
#define ANY "{" FLOAT_WORDS "}"
#define JOINED ANY "{.and|.or|.xor}"

#define PREDICATES(T, type)                                                                                            \
  table.row<&predicates<T>>("setp" ANY type);                                                                          \
  table.row<&joined_predicate<T>>("setp" JOINED type);                                                                 \
  table.row<&joined_predicates<T>>("setp" JOINED type);
#define PREDICATES_OF_PAIRS(T, type)                                                                                   \
  table.row<&predicates_of_pairs<T>>("setp" ANY type);                                                                 \
  table.row<&joined_predicates_of_pairs<T>>("setp" JOINED type);
void add_other_predicates(OperationTable& table) {
  PREDICATES(float, "[.ftz].f32")
  PREDICATES(double, ".f64")
  table.row<&predicate<Float16>>("setp" ANY "[.ftz].f16");
  table.row<&joined_predicate<Float16>>("setp" JOINED "[.ftz].f16");
  table.row<&predicate<BFloat16>>("setp" ANY ".bf16");
  table.row<&joined_predicate<BFloat16>>("setp" JOINED ".bf16");
  PREDICATES_OF_PAIRS(Float16, "[.ftz].f16x2")
  PREDICATES_OF_PAIRS(BFloat16, ".bf16x2")
}

#define SET(Result, T, types)                                                                                          \
  table.row<&set<Result, T>>("set" ANY types);                                                                         \
  table.row<&joined_set<Result, T>>("set" JOINED types);
#define SET_PAIR(Result, T, types)                                                                                     \
  table.row<&set_pair<Result, T>>("set" ANY types);                                                                    \
  table.row<&joined_set_pair<Result, T>>("set" JOINED types);
void add_set(OperationTable& table) {
  SET(uint32_t, float, "[.ftz].{u32|s32}.f32")
  SET(float, float, "[.ftz].f32.f32")
  SET(Float16, float, "[.ftz].f16.f32")
  SET(BFloat16, float, ".bf16.f32")
  SET(uint32_t, double, ".{u32|s32}.f64")
  SET(float, double, ".f32.f64")
  SET(Float16, double, ".f16.f64")
  SET(BFloat16, double, ".bf16.f64")
  SET(uint16_t, Float16, "[.ftz].{u16|s16}.f16")
  SET(uint32_t, Float16, "[.ftz].{u32|s32}.f16")
  SET(Float16, Float16, "[.ftz].f16.f16")
  SET(BFloat16, Float16, ".bf16.f16")
  SET(uint16_t, BFloat16, ".{u16|s16}.bf16")
  SET(uint32_t, BFloat16, ".{u32|s32}.bf16")
  SET(BFloat16, BFloat16, ".bf16.bf16")
  SET_PAIR(uint16_t, Float16, "[.ftz].{u32|s32}.f16x2")
  SET_PAIR(Float16, Float16, "[.ftz].f16x2.f16x2")
  SET_PAIR(uint16_t, BFloat16, ".{u32|s32}.bf16x2")
  SET_PAIR(BFloat16, BFloat16, ".bf16x2.bf16x2")
}

#define ANY_INTEGER "{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}"
#define SET_OF_INTEGER(T, types)                                                                                       \
  table.row<&set<Float16, T>>("set" ANY_INTEGER ".f16" types);                                                         \
  table.row<&joined_set<Float16, T>>("set" ANY_INTEGER "{.and|.or|.xor}.f16" types);                                   \
  table.row<&set<BFloat16, T>>("set" ANY_INTEGER ".bf16" types);                                                       \
  table.row<&joined_set<BFloat16, T>>("set" ANY_INTEGER "{.and|.or|.xor}.bf16" types);
void add_half_set_of_integers(OperationTable& table) {
  SET_OF_INTEGER(uint16_t, ".{b16|u16}")
  SET_OF_INTEGER(uint32_t, ".{b32|u32}")
  SET_OF_INTEGER(uint64_t, ".{b64|u64}")
  SET_OF_INTEGER(int16_t, ".s16")
  SET_OF_INTEGER(int32_t, ".s32")
  SET_OF_INTEGER(int64_t, ".s64")
}

} // namespace

void add_float_comparisons(OperationTable& table) {
  add_single_predicates(table);
  add_other_predicates(table);
  add_set(table);
  add_half_set_of_integers(table);
}

} // namespace ptxrewrite::emulator
