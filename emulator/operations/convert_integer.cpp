// Rows of conversions between integers: cvt, cvt.sat, cvt.pack.
#include "emulator/semantics/convert_integer.h"
#include "emulator/core/operation.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

// One row per source type; `word` and `Type` are the destination's.
#define TO(word, Type)                                                                                                 \
  table.row<&cvt<Type, uint8_t>>("cvt." word ".u8");                                                                   \
  table.row<&cvt<Type, uint16_t>>("cvt." word ".u16");                                                                 \
  table.row<&cvt<Type, uint32_t>>("cvt." word ".u32");                                                                 \
  table.row<&cvt<Type, uint64_t>>("cvt." word ".u64");                                                                 \
  table.row<&cvt<Type, int8_t>>("cvt." word ".s8");                                                                    \
  table.row<&cvt<Type, int16_t>>("cvt." word ".s16");                                                                  \
  table.row<&cvt<Type, int32_t>>("cvt." word ".s32");                                                                  \
  table.row<&cvt<Type, int64_t>>("cvt." word ".s64");
void add_conversions(OperationTable& table) {
  TO("u8", uint8_t)
  TO("u16", uint16_t)
  TO("u32", uint32_t)
  TO("u64", uint64_t)
  TO("s8", int8_t)
  TO("s16", int16_t)
  TO("s32", int32_t)
  TO("s64", int64_t)
}
#undef TO

// .sat exists only if the source type has values outside of the destination's range.
void add_saturating_conversions(OperationTable& table) {
  table.row<&cvt_sat<uint8_t, uint16_t>>("cvt.sat.u8.u16");
  table.row<&cvt_sat<uint8_t, uint32_t>>("cvt.sat.u8.u32");
  table.row<&cvt_sat<uint8_t, uint64_t>>("cvt.sat.u8.u64");
  table.row<&cvt_sat<uint8_t, int8_t>>("cvt.sat.u8.s8");
  table.row<&cvt_sat<uint8_t, int16_t>>("cvt.sat.u8.s16");
  table.row<&cvt_sat<uint8_t, int32_t>>("cvt.sat.u8.s32");
  table.row<&cvt_sat<uint8_t, int64_t>>("cvt.sat.u8.s64");
  table.row<&cvt_sat<int8_t, uint8_t>>("cvt.sat.s8.u8");
  table.row<&cvt_sat<int8_t, uint16_t>>("cvt.sat.s8.u16");
  table.row<&cvt_sat<int8_t, uint32_t>>("cvt.sat.s8.u32");
  table.row<&cvt_sat<int8_t, uint64_t>>("cvt.sat.s8.u64");
  table.row<&cvt_sat<int8_t, int16_t>>("cvt.sat.s8.s16");
  table.row<&cvt_sat<int8_t, int32_t>>("cvt.sat.s8.s32");
  table.row<&cvt_sat<int8_t, int64_t>>("cvt.sat.s8.s64");
  table.row<&cvt_sat<uint16_t, uint32_t>>("cvt.sat.u16.u32");
  table.row<&cvt_sat<uint16_t, uint64_t>>("cvt.sat.u16.u64");
  table.row<&cvt_sat<uint16_t, int8_t>>("cvt.sat.u16.s8");
  table.row<&cvt_sat<uint16_t, int16_t>>("cvt.sat.u16.s16");
  table.row<&cvt_sat<uint16_t, int32_t>>("cvt.sat.u16.s32");
  table.row<&cvt_sat<uint16_t, int64_t>>("cvt.sat.u16.s64");
  table.row<&cvt_sat<int16_t, uint16_t>>("cvt.sat.s16.u16");
  table.row<&cvt_sat<int16_t, uint32_t>>("cvt.sat.s16.u32");
  table.row<&cvt_sat<int16_t, uint64_t>>("cvt.sat.s16.u64");
  table.row<&cvt_sat<int16_t, int32_t>>("cvt.sat.s16.s32");
  table.row<&cvt_sat<int16_t, int64_t>>("cvt.sat.s16.s64");
  table.row<&cvt_sat<uint32_t, uint64_t>>("cvt.sat.u32.u64");
  table.row<&cvt_sat<uint32_t, int8_t>>("cvt.sat.u32.s8");
  table.row<&cvt_sat<uint32_t, int16_t>>("cvt.sat.u32.s16");
  table.row<&cvt_sat<uint32_t, int32_t>>("cvt.sat.u32.s32");
  table.row<&cvt_sat<uint32_t, int64_t>>("cvt.sat.u32.s64");
  table.row<&cvt_sat<int32_t, uint32_t>>("cvt.sat.s32.u32");
  table.row<&cvt_sat<int32_t, uint64_t>>("cvt.sat.s32.u64");
  table.row<&cvt_sat<int32_t, int64_t>>("cvt.sat.s32.s64");
  table.row<&cvt_sat<uint64_t, int8_t>>("cvt.sat.u64.s8");
  table.row<&cvt_sat<uint64_t, int16_t>>("cvt.sat.u64.s16");
  table.row<&cvt_sat<uint64_t, int32_t>>("cvt.sat.u64.s32");
  table.row<&cvt_sat<uint64_t, int64_t>>("cvt.sat.u64.s64");
  table.row<&cvt_sat<int64_t, uint64_t>>("cvt.sat.s64.u64");
}

template <bool Signed> constexpr uint32_t pack_halves(int32_t a, int32_t b) {
  return cvt_pack<16, Signed>(a, b, 0);
}

void add_packing(OperationTable& table) {
  table.row<&cvt_pack<2, false>>("cvt.pack.sat.u2.s32.b32");
  table.row<&cvt_pack<2, true>>("cvt.pack.sat.s2.s32.b32");
  table.row<&cvt_pack<4, false>>("cvt.pack.sat.u4.s32.b32");
  table.row<&cvt_pack<4, true>>("cvt.pack.sat.s4.s32.b32");
  table.row<&cvt_pack<8, false>>("cvt.pack.sat.u8.s32.b32");
  table.row<&cvt_pack<8, true>>("cvt.pack.sat.s8.s32.b32");
  table.row<&pack_halves<false>>("cvt.pack.sat.u16.s32");
  table.row<&pack_halves<true>>("cvt.pack.sat.s16.s32");
}

} // namespace

void add_integer_conversions(OperationTable& table) {
  add_conversions(table);
  add_saturating_conversions(table);
  add_packing(table);
}

} // namespace ptxrewrite::emulator
