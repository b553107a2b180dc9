// Rows of integer instructions added by PTX 9.2 to 9.4: four bytes in a register (.u8x4 .s8x4), saturation of unsigned
// and of packed numbers, set of packed numbers, and the carry-less product.
#include "emulator/core/operation.h"
#include "emulator/operations/families.h"
#include "emulator/semantics/integer.h"
#include "emulator/semantics/packed.h"

#include <functional>

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

void add_saturating(OperationTable& table) {
  table.row<&add_sat_u32>("add.sat.u32");
  table.row<&add_sat_x2<uint16_t>>("add.sat.u16x2");
  table.row<&add_sat_x2<int16_t>>("add.sat.s16x2");
  table.row<&add_sat_x4<uint8_t>>("add.sat.u8x4");
  table.row<&add_sat_x4<int8_t>>("add.sat.s8x4");
  table.row<&sub_sat_x4<uint8_t>>("sub.sat.u8x4");
  table.row<&sub_sat_x4<int8_t>>("sub.sat.s8x4");
}

void add_bytes(OperationTable& table) {
  table.row<&add_x4>("add.{u8x4|s8x4}");
  table.row<&sub_x4>("sub.{u8x4|s8x4}");
  table.row<&min_x4<uint8_t>>("min.u8x4");
  table.row<&min_x4<int8_t>>("min.s8x4");
  table.row<&min_relu_s8x4>("min.relu.s8x4");
  table.row<&max_x4<uint8_t>>("max.u8x4");
  table.row<&max_x4<int8_t>>("max.s8x4");
  table.row<&max_relu_s8x4>("max.relu.s8x4");
  table.row<&neg_s8x4>("neg.s8x4");
}

#define SET_BOTH(word, compare)                                                                                        \
  table.row<&set_x2<uint16_t, compare>>("set" word ".u16x2");                                                          \
  table.row<&set_x4<uint8_t, compare>>("set" word ".u8x4");
#define SET_SIGNED(word, compare)                                                                                      \
  table.row<&set_x2<int16_t, compare>>("set" word ".s16x2");                                                           \
  table.row<&set_x4<int8_t, compare>>("set" word ".s8x4");
void add_sets(OperationTable& table) {
  SET_BOTH(".eq", std::equal_to<>)
  SET_BOTH(".ne", std::not_equal_to<>)
  SET_BOTH("{.lt|.lo}", std::less<>)
  SET_BOTH("{.le|.ls}", std::less_equal<>)
  SET_BOTH("{.gt|.hi}", std::greater<>)
  SET_BOTH("{.ge|.hs}", std::greater_equal<>)
  SET_SIGNED(".eq", std::equal_to<>)
  SET_SIGNED(".ne", std::not_equal_to<>)
  SET_SIGNED(".lt", std::less<>)
  SET_SIGNED(".le", std::less_equal<>)
  SET_SIGNED(".gt", std::greater<>)
  SET_SIGNED(".ge", std::greater_equal<>)
}

} // namespace

void add_packed_integers(OperationTable& table) {
  add_saturating(table);
  add_bytes(table);
  add_sets(table);
  table.row<[](uint64_t a, uint64_t b, uint64_t c) { return carry_less_low(a, b) ^ c; }>("clmad.lo.{u64|s64}");
  table.row<[](uint64_t a, uint64_t b, uint64_t c) { return carry_less_high(a, b) ^ c; }>("clmad.hi.{u64|s64}");
}

} // namespace ptxrewrite::emulator
