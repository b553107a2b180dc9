// Rows of the integer arithmetic instructions: add sub mul mad mul24 mad24 sad div rem abs neg min max dp2a dp4a, of
// plain and of packed 16-bit integers.
#include "emulator/core/operation.h"
#include "emulator/operations/families.h"
#include "emulator/semantics/integer.h"
#include "emulator/semantics/packed.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

// Signed and unsigned types share a function where wrapping gives the same result.
void add_sums(OperationTable& table) {
  table.row<&add<uint16_t>>("add.{u16|s16}");
  table.row<&add<uint32_t>>("add.{u32|s32}");
  table.row<&add<uint64_t>>("add.{u64|s64}");
  table.row<&add_sat>("add.sat.s32");
  table.row<&add_x2<uint16_t>>("add.{u16x2|s16x2}");

  table.row<&sub<uint16_t>>("sub.{u16|s16}");
  table.row<&sub<uint32_t>>("sub.{u32|s32}");
  table.row<&sub<uint64_t>>("sub.{u64|s64}");
  table.row<&sub_sat>("sub.sat.s32");

  table.row<&neg<uint16_t>>("neg.s16");
  table.row<&neg<uint32_t>>("neg.s32");
  table.row<&neg<uint64_t>>("neg.s64");
  table.row<&abs<int16_t>>("abs.s16");
  table.row<&abs<int32_t>>("abs.s32");
  table.row<&abs<int64_t>>("abs.s64");

  table.row<&sad<uint16_t>>("sad.u16");
  table.row<&sad<uint32_t>>("sad.u32");
  table.row<&sad<uint64_t>>("sad.u64");
  table.row<&sad<int16_t>>("sad.s16");
  table.row<&sad<int32_t>>("sad.s32");
  table.row<&sad<int64_t>>("sad.s64");
}

void add_products(OperationTable& table) {
  table.row<&mul_lo<uint16_t>>("mul.lo.{u16|s16}");
  table.row<&mul_lo<uint32_t>>("mul.lo.{u32|s32}");
  table.row<&mul_lo<uint64_t>>("mul.lo.{u64|s64}");
  table.row<&mul_hi<uint16_t>>("mul.hi.u16");
  table.row<&mul_hi<uint32_t>>("mul.hi.u32");
  table.row<&mul_hi<uint64_t>>("mul.hi.u64");
  table.row<&mul_hi<int16_t>>("mul.hi.s16");
  table.row<&mul_hi<int32_t>>("mul.hi.s32");
  table.row<&mul_hi<int64_t>>("mul.hi.s64");
  table.row<&mul_wide<uint16_t>>("mul.wide.u16");
  table.row<&mul_wide<uint32_t>>("mul.wide.u32");
  table.row<&mul_wide<int16_t>>("mul.wide.s16");
  table.row<&mul_wide<int32_t>>("mul.wide.s32");
  table.row<&mul24_lo<uint32_t>>("mul24.lo.u32");
  table.row<&mul24_lo<int32_t>>("mul24.lo.s32");
  table.row<&mul24_hi<uint32_t>>("mul24.hi.u32");
  table.row<&mul24_hi<int32_t>>("mul24.hi.s32");
}

void add_products_with_sums(OperationTable& table) {
  table.row<&mad_lo<uint16_t>>("mad.lo.{u16|s16}");
  table.row<&mad_lo<uint32_t>>("mad.lo.{u32|s32}");
  table.row<&mad_lo<uint64_t>>("mad.lo.{u64|s64}");
  table.row<&mad_hi<uint16_t>>("mad.hi.u16");
  table.row<&mad_hi<uint32_t>>("mad.hi.u32");
  table.row<&mad_hi<uint64_t>>("mad.hi.u64");
  table.row<&mad_hi<int16_t>>("mad.hi.s16");
  table.row<&mad_hi<int32_t>>("mad.hi.s32");
  table.row<&mad_hi<int64_t>>("mad.hi.s64");
  table.row<&mad_hi_sat>("mad.hi.sat.s32");
  table.row<&mad_wide<uint16_t>>("mad.wide.u16");
  table.row<&mad_wide<uint32_t>>("mad.wide.u32");
  table.row<&mad_wide<int16_t>>("mad.wide.s16");
  table.row<&mad_wide<int32_t>>("mad.wide.s32");
  table.row<&mad24_lo<uint32_t>>("mad24.lo.u32");
  table.row<&mad24_lo<int32_t>>("mad24.lo.s32");
  table.row<&mad24_hi<uint32_t>>("mad24.hi.u32");
  table.row<&mad24_hi<int32_t>>("mad24.hi.s32");
  table.row<&mad24_hi_sat>("mad24.hi.sat.s32");

  table.row<&dp4a<uint32_t, uint32_t>>("dp4a.u32.u32");
  table.row<&dp4a<uint32_t, int32_t>>("dp4a.u32.s32");
  table.row<&dp4a<int32_t, uint32_t>>("dp4a.s32.u32");
  table.row<&dp4a<int32_t, int32_t>>("dp4a.s32.s32");
  table.row<&dp2a<uint32_t, uint32_t, false>>("dp2a.lo.u32.u32");
  table.row<&dp2a<uint32_t, int32_t, false>>("dp2a.lo.u32.s32");
  table.row<&dp2a<int32_t, uint32_t, false>>("dp2a.lo.s32.u32");
  table.row<&dp2a<int32_t, int32_t, false>>("dp2a.lo.s32.s32");
  table.row<&dp2a<uint32_t, uint32_t, true>>("dp2a.hi.u32.u32");
  table.row<&dp2a<uint32_t, int32_t, true>>("dp2a.hi.u32.s32");
  table.row<&dp2a<int32_t, uint32_t, true>>("dp2a.hi.s32.u32");
  table.row<&dp2a<int32_t, int32_t, true>>("dp2a.hi.s32.s32");
}

void add_quotients(OperationTable& table) {
  table.row<&div<uint16_t>>("div.u16");
  table.row<&div<uint32_t>>("div.u32");
  table.row<&div<uint64_t>>("div.u64");
  table.row<&div<int16_t>>("div.s16");
  table.row<&div<int32_t>>("div.s32");
  table.row<&div<int64_t>>("div.s64");
  table.row<&rem<uint16_t>>("rem.u16");
  table.row<&rem<uint32_t>>("rem.u32");
  table.row<&rem<uint64_t>>("rem.u64");
  table.row<&rem<int16_t>>("rem.s16");
  table.row<&rem<int32_t>>("rem.s32");
  table.row<&rem<int64_t>>("rem.s64");
}

void add_minima(OperationTable& table) {
  table.row<&min<uint16_t>>("min.u16");
  table.row<&min<uint32_t>>("min.u32");
  table.row<&min<uint64_t>>("min.u64");
  table.row<&min<int16_t>>("min.s16");
  table.row<&min<int32_t>>("min.s32");
  table.row<&min<int64_t>>("min.s64");
  table.row<[](int32_t a, int32_t b) { return relu(min(a, b)); }>("min.relu.s32");
  table.row<&min_x2<uint16_t>>("min.u16x2");
  table.row<&min_x2<int16_t>>("min.s16x2");
  table.row<&min_relu_s16x2>("min.relu.s16x2");

  table.row<&max<uint16_t>>("max.u16");
  table.row<&max<uint32_t>>("max.u32");
  table.row<&max<uint64_t>>("max.u64");
  table.row<&max<int16_t>>("max.s16");
  table.row<&max<int32_t>>("max.s32");
  table.row<&max<int64_t>>("max.s64");
  table.row<[](int32_t a, int32_t b) { return relu(max(a, b)); }>("max.relu.s32");
  table.row<&max_x2<uint16_t>>("max.u16x2");
  table.row<&max_x2<int16_t>>("max.s16x2");
  table.row<&max_relu_s16x2>("max.relu.s16x2");
}

} // namespace

void add_arithmetic_operations(OperationTable& table) {
  add_sums(table);
  add_products(table);
  add_products_with_sums(table);
  add_quotients(table);
  add_minima(table);
  add_packed_integers(table);
}

} // namespace ptxrewrite::emulator
