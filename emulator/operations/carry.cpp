// Rows of extended-precision arithmetic: add.cc addc sub.cc subc mad.cc madc. The carry flag is a predicate of the
// activation: it is the last source of a function that reads it, the second result of one that writes it.
#include "emulator/semantics/carry.h"
#include "emulator/core/operation.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

template <class T> constexpr Two<T, bool> both(WithCarry<T> result) {
  return {result.value, result.carry};
}

void add_chains_of_sums(OperationTable& table) {
  table.row<[](uint32_t a, uint32_t b) { return both(add_cc(a, b)); }>("add.cc.{u32|s32}");
  table.row<[](uint64_t a, uint64_t b) { return both(add_cc(a, b)); }>("add.cc.{u64|s64}");
  table.row<[](uint32_t a, uint32_t b, bool carry) { return both(addc_cc(a, b, carry)); }>("addc.cc.{u32|s32}");
  table.row<[](uint64_t a, uint64_t b, bool carry) { return both(addc_cc(a, b, carry)); }>("addc.cc.{u64|s64}");
  table.row<&addc<uint16_t>>("addc.{u16|s16}");
  table.row<&addc<uint32_t>>("addc.{u32|s32}");
  table.row<&addc<uint64_t>>("addc.{u64|s64}");
  table.row<&addc_sat>("addc.sat.s32");

  table.row<[](uint32_t a, uint32_t b) { return both(sub_cc(a, b)); }>("sub.cc.{u32|s32}");
  table.row<[](uint64_t a, uint64_t b) { return both(sub_cc(a, b)); }>("sub.cc.{u64|s64}");
  table.row<[](uint32_t a, uint32_t b, bool carry) { return both(subc_cc(a, b, carry)); }>("subc.cc.{u32|s32}");
  table.row<[](uint64_t a, uint64_t b, bool carry) { return both(subc_cc(a, b, carry)); }>("subc.cc.{u64|s64}");
  table.row<&subc<uint16_t>>("subc.{u16|s16}");
  table.row<&subc<uint32_t>>("subc.{u32|s32}");
  table.row<&subc<uint64_t>>("subc.{u64|s64}");
  table.row<&subc_sat>("subc.sat.s32");
}

// The result and its carry out for a, b, c and the carry in.
template <class T> constexpr Two<T, bool> madc_lo_both(T a, T b, T c, bool carry) {
  return both(madc_lo_cc(a, b, c, carry));
}
template <class T> constexpr Two<T, bool> madc_hi_both(T a, T b, T c, bool carry) {
  return both(madc_hi_cc(a, b, c, carry));
}
template <class T> constexpr Two<T, bool> mad_lo_both(T a, T b, T c) {
  return both(mad_lo_cc(a, b, c));
}
template <class T> constexpr Two<T, bool> mad_hi_both(T a, T b, T c) {
  return both(mad_hi_cc(a, b, c));
}

void add_chains_of_products(OperationTable& table) {
  table.row<&mad_lo_both<uint32_t>>("mad.lo.cc.{u32|s32}");
  table.row<&mad_lo_both<uint64_t>>("mad.lo.cc.{u64|s64}");
  table.row<&mad_hi_both<uint32_t>>("mad.hi.cc.u32");
  table.row<&mad_hi_both<uint64_t>>("mad.hi.cc.u64");
  table.row<&mad_hi_both<int32_t>>("mad.hi.cc.s32");
  table.row<&mad_hi_both<int64_t>>("mad.hi.cc.s64");

  table.row<&madc_lo_both<uint32_t>>("madc.lo.cc.{u32|s32}");
  table.row<&madc_lo_both<uint64_t>>("madc.lo.cc.{u64|s64}");
  table.row<&madc_hi_both<uint32_t>>("madc.hi.cc.u32");
  table.row<&madc_hi_both<uint64_t>>("madc.hi.cc.u64");
  table.row<&madc_hi_both<int32_t>>("madc.hi.cc.s32");
  table.row<&madc_hi_both<int64_t>>("madc.hi.cc.s64");

  table.row<&madc_lo<uint16_t>>("madc.lo.{u16|s16}");
  table.row<&madc_lo<uint32_t>>("madc.lo.{u32|s32}");
  table.row<&madc_lo<uint64_t>>("madc.lo.{u64|s64}");
  table.row<&madc_hi<uint16_t>>("madc.hi.u16");
  table.row<&madc_hi<uint32_t>>("madc.hi.u32");
  table.row<&madc_hi<uint64_t>>("madc.hi.u64");
  table.row<&madc_hi<int16_t>>("madc.hi.s16");
  table.row<&madc_hi<int32_t>>("madc.hi.s32");
  table.row<&madc_hi<int64_t>>("madc.hi.s64");
  table.row<&madc_hi_sat>("madc.hi.sat.s32");
}

} // namespace

void add_carry_operations(OperationTable& table) {
  add_chains_of_sums(table);
  add_chains_of_products(table);
}

} // namespace ptxrewrite::emulator
