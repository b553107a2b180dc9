// Rows of the instructions that count, find and move bits: popc clz bfind brev fns bfe bfi szext bmsk, shifts, prmt.
#include "emulator/semantics/bits.h"
#include "emulator/core/operation.h"
#include "emulator/semantics/logic.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

void add_counts(OperationTable& table) {
  table.row<&popc<uint32_t>>("popc.b32");
  table.row<&popc<uint64_t>>("popc.b64");
  table.row<&clz<uint32_t>>("clz.b32");
  table.row<&clz<uint64_t>>("clz.b64");
  table.row<&bfind<uint32_t>>("bfind.u32");
  table.row<&bfind<uint64_t>>("bfind.u64");
  table.row<&bfind<int32_t>>("bfind.s32");
  table.row<&bfind<int64_t>>("bfind.s64");
  table.row<&bfind_shiftamt<uint32_t>>("bfind.shiftamt.u32");
  table.row<&bfind_shiftamt<uint64_t>>("bfind.shiftamt.u64");
  table.row<&bfind_shiftamt<int32_t>>("bfind.shiftamt.s32");
  table.row<&bfind_shiftamt<int64_t>>("bfind.shiftamt.s64");
  table.row<&fns>("fns.b32");
}

void add_fields(OperationTable& table) {
  table.row<&brev<uint32_t>>("brev.b32");
  table.row<&brev<uint64_t>>("brev.b64");
  table.row<&bfe<uint32_t>>("bfe.u32");
  table.row<&bfe<uint64_t>>("bfe.u64");
  table.row<&bfe<int32_t>>("bfe.s32");
  table.row<&bfe<int64_t>>("bfe.s64");
  table.row<&bfi<uint32_t>>("bfi.b32");
  table.row<&bfi<uint64_t>>("bfi.b64");
  table.row<&szext<uint32_t, Overflow::clamp>>("szext.clamp.u32");
  table.row<&szext<uint32_t, Overflow::wrap>>("szext.wrap.u32");
  table.row<&szext<int32_t, Overflow::clamp>>("szext.clamp.s32");
  table.row<&szext<int32_t, Overflow::wrap>>("szext.wrap.s32");
  table.row<&bmsk<Overflow::clamp>>("bmsk.clamp.b32");
  table.row<&bmsk<Overflow::wrap>>("bmsk.wrap.b32");
}

void add_shifts(OperationTable& table) {
  table.row<&shl<uint16_t>>("shl.b16");
  table.row<&shl<uint32_t>>("shl.b32");
  table.row<&shl<uint64_t>>("shl.b64");
  table.row<&shr<uint16_t>>("shr.{b16|u16}");
  table.row<&shr<uint32_t>>("shr.{b32|u32}");
  table.row<&shr<uint64_t>>("shr.{b64|u64}");
  table.row<&shr<int16_t>>("shr.s16");
  table.row<&shr<int32_t>>("shr.s32");
  table.row<&shr<int64_t>>("shr.s64");
  table.row<&shf_l<Overflow::clamp>>("shf.l.clamp.b32");
  table.row<&shf_l<Overflow::wrap>>("shf.l.wrap.b32");
  table.row<&shf_r<Overflow::clamp>>("shf.r.clamp.b32");
  table.row<&shf_r<Overflow::wrap>>("shf.r.wrap.b32");
}

void add_permutations(OperationTable& table) {
  table.row<&prmt>("prmt.b32");
  table.row<&prmt_mode<PermuteMode::f4e>>("prmt.b32.f4e");
  table.row<&prmt_mode<PermuteMode::b4e>>("prmt.b32.b4e");
  table.row<&prmt_mode<PermuteMode::rc8>>("prmt.b32.rc8");
  table.row<&prmt_mode<PermuteMode::ecl>>("prmt.b32.ecl");
  table.row<&prmt_mode<PermuteMode::ecr>>("prmt.b32.ecr");
  table.row<&prmt_mode<PermuteMode::rc16>>("prmt.b32.rc16");
}

} // namespace

void add_bit_operations(OperationTable& table) {
  add_counts(table);
  add_fields(table);
  add_shifts(table);
  add_permutations(table);
}

} // namespace ptxrewrite::emulator
