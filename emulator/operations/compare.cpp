// Rows of comparison and selection: setp and set of integers, selp, slct.
//
// `setp.lt.s32 p, a, b`, by far the most frequent kind, has a function per comparison; all others take the comparison
// and the operation that combines it with a predicate from the flags.
#include "emulator/semantics/compare.h"
#include "emulator/core/operation.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;
using enum IntegerComparison;

template <class T> constexpr bool holds(T a, T b, Flags flags) {
  return ((a < b) & flags.has(flag_less)) | ((a == b) & flags.has(flag_equal)) | ((a > b) & flags.has(flag_greater));
}
constexpr BooleanOperation joined_by(Flags flags) {
  return flags.has(flag_and)   ? BooleanOperation::and_
         : flags.has(flag_or)  ? BooleanOperation::or_
         : flags.has(flag_xor) ? BooleanOperation::xor_
                               : BooleanOperation::none;
}

template <class T> constexpr Two<bool, bool> both_predicates(T a, T b, Flags flags) {
  const bool comparison = holds(a, b, flags);
  return {comparison, !comparison};
}
template <class T> constexpr bool joined_predicate(T a, T b, bool c, Flags flags) {
  return combine(joined_by(flags), holds(a, b, flags), c);
}
template <class T> constexpr Two<bool, bool> joined_predicates(T a, T b, bool c, Flags flags) {
  const PredicatePair<bool> pair = setp(joined_by(flags), holds(a, b, flags), c);
  return {pair.p, pair.q};
}
// `true_value`: the representation of true, all ones or 1.0f.
template <class T, uint32_t true_value> constexpr uint32_t set_value(T a, T b, Flags flags) {
  return holds(a, b, flags) ? true_value : 0;
}
template <class T, uint32_t true_value> constexpr uint32_t joined_set_value(T a, T b, bool c, Flags flags) {
  return joined_predicate(a, b, c, flags) ? true_value : 0;
}

void add_single_predicates(OperationTable& table) {
  table.row<&compare<eq, uint16_t>>("setp.eq.{b16|u16|s16}");
  table.row<&compare<eq, uint32_t>>("setp.eq.{b32|u32|s32}");
  table.row<&compare<eq, uint64_t>>("setp.eq.{b64|u64|s64}");
  table.row<&compare<ne, uint16_t>>("setp.ne.{b16|u16|s16}");
  table.row<&compare<ne, uint32_t>>("setp.ne.{b32|u32|s32}");
  table.row<&compare<ne, uint64_t>>("setp.ne.{b64|u64|s64}");
  table.row<&compare<lt, uint16_t>>("setp.{lt|lo}.u16");
  table.row<&compare<lt, uint32_t>>("setp.{lt|lo}.u32");
  table.row<&compare<lt, uint64_t>>("setp.{lt|lo}.u64");
  table.row<&compare<le, uint16_t>>("setp.{le|ls}.u16");
  table.row<&compare<le, uint32_t>>("setp.{le|ls}.u32");
  table.row<&compare<le, uint64_t>>("setp.{le|ls}.u64");
  table.row<&compare<gt, uint16_t>>("setp.{gt|hi}.u16");
  table.row<&compare<gt, uint32_t>>("setp.{gt|hi}.u32");
  table.row<&compare<gt, uint64_t>>("setp.{gt|hi}.u64");
  table.row<&compare<ge, uint16_t>>("setp.{ge|hs}.u16");
  table.row<&compare<ge, uint32_t>>("setp.{ge|hs}.u32");
  table.row<&compare<ge, uint64_t>>("setp.{ge|hs}.u64");
  table.row<&compare<lt, int16_t>>("setp.lt.s16");
  table.row<&compare<lt, int32_t>>("setp.lt.s32");
  table.row<&compare<lt, int64_t>>("setp.lt.s64");
  table.row<&compare<le, int16_t>>("setp.le.s16");
  table.row<&compare<le, int32_t>>("setp.le.s32");
  table.row<&compare<le, int64_t>>("setp.le.s64");
  table.row<&compare<gt, int16_t>>("setp.gt.s16");
  table.row<&compare<gt, int32_t>>("setp.gt.s32");
  table.row<&compare<gt, int64_t>>("setp.gt.s64");
  table.row<&compare<ge, int16_t>>("setp.ge.s16");
  table.row<&compare<ge, int32_t>>("setp.ge.s32");
  table.row<&compare<ge, int64_t>>("setp.ge.s64");
}

void add_other_predicates(OperationTable& table) {
  table.row<&both_predicates<uint16_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.{b16|u16}");
  table.row<&both_predicates<uint32_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.{b32|u32}");
  table.row<&both_predicates<uint64_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.{b64|u64}");
  table.row<&both_predicates<int16_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}.s16");
  table.row<&both_predicates<int32_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}.s32");
  table.row<&both_predicates<int64_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}.s64");

  table.row<&joined_predicate<uint16_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{b16|u16}");
  table.row<&joined_predicate<uint32_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{b32|u32}");
  table.row<&joined_predicate<uint64_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{b64|u64}");
  table.row<&joined_predicate<int16_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.s16");
  table.row<&joined_predicate<int32_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.s32");
  table.row<&joined_predicate<int64_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.s64");

  table.row<&joined_predicates<uint16_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{b16|u16}");
  table.row<&joined_predicates<uint32_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{b32|u32}");
  table.row<&joined_predicates<uint64_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{b64|u64}");
  table.row<&joined_predicates<int16_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.s16");
  table.row<&joined_predicates<int32_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.s32");
  table.row<&joined_predicates<int64_t>>("setp{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.s64");
}

constexpr uint32_t all_bits = 0xffffffff;
constexpr uint32_t one_f32 = set_f32(true);

void add_set(OperationTable& table) {
  table.row<&set_value<uint16_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.{u32|s32}.{b16|u16}");
  table.row<&set_value<uint32_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.{u32|s32}.{b32|u32}");
  table.row<&set_value<uint64_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.{u32|s32}.{b64|u64}");
  table.row<&set_value<int16_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge}.{u32|s32}.s16");
  table.row<&set_value<int32_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge}.{u32|s32}.s32");
  table.row<&set_value<int64_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge}.{u32|s32}.s64");
  table.row<&set_value<uint16_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.f32.{b16|u16}");
  table.row<&set_value<uint32_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.f32.{b32|u32}");
  table.row<&set_value<uint64_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}.f32.{b64|u64}");
  table.row<&set_value<int16_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge}.f32.s16");
  table.row<&set_value<int32_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge}.f32.s32");
  table.row<&set_value<int64_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge}.f32.s64");
}

void add_joined_set(OperationTable& table) {
  table.row<&joined_set_value<uint16_t, all_bits>>(
      "set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{u32|s32}.{b16|u16}");
  table.row<&joined_set_value<uint32_t, all_bits>>(
      "set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{u32|s32}.{b32|u32}");
  table.row<&joined_set_value<uint64_t, all_bits>>(
      "set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.{u32|s32}.{b64|u64}");
  table.row<&joined_set_value<int16_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.{u32|s32}.s16");
  table.row<&joined_set_value<int32_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.{u32|s32}.s32");
  table.row<&joined_set_value<int64_t, all_bits>>("set{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.{u32|s32}.s64");
  table.row<&joined_set_value<uint16_t, one_f32>>(
      "set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.f32.{b16|u16}");
  table.row<&joined_set_value<uint32_t, one_f32>>(
      "set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.f32.{b32|u32}");
  table.row<&joined_set_value<uint64_t, one_f32>>(
      "set{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}{.and|.or|.xor}.f32.{b64|u64}");
  table.row<&joined_set_value<int16_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.f32.s16");
  table.row<&joined_set_value<int32_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.f32.s32");
  table.row<&joined_set_value<int64_t, one_f32>>("set{.eq|.ne|.lt|.le|.gt|.ge}{.and|.or|.xor}.f32.s64");
}

template <class T> constexpr T selected_by_float(T a, T b, float selector, Flags flags) {
  return slct_f32(a, b, selector, flags.has(flag_ftz));
}

// Selected values are only moved: floats are handled as bits.
void add_selection(OperationTable& table) {
  table.row<&selp<uint16_t>>("selp.{b16|u16|s16}");
  table.row<&selp<uint32_t>>("selp.{b32|u32|s32|f32}");
  table.row<&selp<uint64_t>>("selp.{b64|u64|s64|f64}");
  table.row<&slct<uint16_t>>("slct.{b16|u16|s16}.s32");
  table.row<&slct<uint32_t>>("slct.{b32|u32|s32|f32}.s32");
  table.row<&slct<uint64_t>>("slct.{b64|u64|s64|f64}.s32");
  table.row<&selected_by_float<uint16_t>>("slct[.ftz].{b16|u16|s16}.f32");
  table.row<&selected_by_float<uint32_t>>("slct[.ftz].{b32|u32|s32|f32}.f32");
  table.row<&selected_by_float<uint64_t>>("slct[.ftz].{b64|u64|s64|f64}.f32");
}

} // namespace

void add_comparison_operations(OperationTable& table) {
  add_single_predicates(table);
  add_other_predicates(table);
  add_set(table);
  add_joined_set(table);
  add_selection(table);
}

} // namespace ptxrewrite::emulator
