// Warp groups and warps that multiply the tiles of a stage, and the way of their sums to memory.
#include "tests/fuzz/pipelines/matrix/matrix_printer.h"

namespace ptxrewrite::fuzz::pipelines {

uint32_t MatrixPrinter::sum_registers() const {
  if (p_.has_tensor_memory()) return 8;
  return p_.n() / (p_.sums == Sums::f16 ? 4 : 2);
}

std::string MatrixPrinter::sums() const {
  std::string list = "{";
  for (uint32_t i = 0; i < sum_registers(); ++i)
    list += fmt::format("{}%s{}", i ? ", " : "", i);
  return list + "}";
}

namespace {

const char* name_of_sums(Sums sums) {
  return sums == Sums::f32 ? "f32" : sums == Sums::f16 ? "f16" : "s32";
}

} // namespace

// A word of a fragment: four bytes of a line for each of four lanes. `base`: the lane's word of the first line.
void MatrixPrinter::load_fragment(const TileLayout& tile, const char* base, const std::string& to, uint32_t k_byte) {
  add("  add.u32 %y8, {}, {};\n", base, k_byte / tile.line() * tile.rows * tile.line() + k_byte % tile.line());
  if (tile.swizzle_bits)
    add("  and.b32 %y9, %y8, {};\n  shr.u32 %y9, %y9, 3;\n  xor.b32 %y8, %y8, %y9;\n", ((1u << tile.swizzle_bits) - 1)
                                                                                           << 7);
  add("  ld.shared.b32 {}, [%y8];\n", to);
}

// Into %f<4 * step> and on; %y10: the lane's word in its row.
void MatrixPrinter::load_fragments_of_a(uint32_t step) {
  for (uint32_t i = 0; i < 4; ++i) {
    add("  add.u32 %y11, %y10, {};\n", i % 2 * 8 * p_.a.line());
    load_fragment(p_.a, "%y11", fmt::format("%f{}", 4 * step + i), 32 * step + i / 2 * 16);
  }
}

void MatrixPrinter::products_of_warp(uint32_t step) {
  load_fragments_of_a(step);
  const std::string type(p_.type().name), d = name_of_sums(p_.sums);
  const uint32_t each = p_.sums == Sums::f16 ? 2 : 4;
  for (uint32_t i = 0; i < p_.n() / 8; ++i) {
    add("  add.u32 %y13, %y12, {};\n", i * 8 * p_.b.line());
    load_fragment(p_.b, "%y13", "%g0", 32 * step);
    load_fragment(p_.b, "%y13", "%g1", 32 * step + 16);
    std::string sums;
    for (uint32_t j = 0; j < each; ++j)
      sums += fmt::format("{}%s{}", j ? ", " : "", i * each + j);
    add("  mma.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{} {{{}}}, {{%f{}, %f{}, %f{}, %f{}}}, {{%g0, %g1}}, {{{}}};\n",
        32 / p_.a.element_bytes, d, type, type, d, sums, 4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3, sums);
  }
}

void MatrixPrinter::clear_sums() {
  for (uint32_t i = 0; i < sum_registers(); ++i)
    add("  mov.b32 %s{}, 0;\n", i);
}

// The products of a warp group: all steps along k of the tile.
void MatrixPrinter::products_of_stage() {
  const bool in_registers = p_.multiplier == Multiplier::warp_group_registers;
  const uint32_t steps = p_.a.k_bytes / 32;
  add("  mad.lo.u32 %x7, %group, {}, %slot;\n  setp.ne.u32 %adds, %t, 0;\n", p_.a.room());
  if (in_registers) {
    add("  and.b32 %y0, %warp, 3;\n  shl.b32 %y0, %y0, 4;\n  shr.u32 %y1, %lane, 2;\n  add.u32 %y0, %y0, %y1;\n"
        "  mad.lo.u32 %y10, %y0, {}, %x7;\n  and.b32 %y1, %lane, 3;\n  mad.lo.u32 %y10, %y1, 4, %y10;\n",
        p_.a.line());
    for (uint32_t step = 0; step < steps; ++step)
      load_fragments_of_a(step);
  }
  if (!has(MatrixFault::missing_fence)) put("  wgmma.fence.sync.aligned;\n");
  const std::string type(p_.type().name);
  std::string behind;
  if (p_.sums != Sums::s32) behind += p_.signs ? ", -1, 1" : ", 1, 1";
  if (p_.a.element_bytes == 2 && !in_registers) behind += p_.a.k_major ? ", 0" : ", 1";
  if (p_.a.element_bytes == 2) behind += p_.b.k_major ? ", 0" : ", 1";
  for (uint32_t step = 0; step < steps; ++step) {
    if (!in_registers) find_descriptor(p_.a, "%x7", "%da", step);
    find_descriptor(p_.b, "%slotb", "%db", step);
    const std::string a =
        in_registers ? fmt::format("{{%f{}, %f{}, %f{}, %f{}}}", 4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3)
                     : "%da";
    add("  wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, {}, %db, %adds{};\n", p_.n(), 32 / p_.a.element_bytes,
        name_of_sums(p_.sums), type, type, sums(), a, behind);
    if (step == 0) put("  setp.eq.u32 %adds, %t, %t;\n");
  }
  put("  wgmma.commit_group.sync.aligned;\n");
}

void MatrixPrinter::warp_group_consumer() {
  if (p_.registers_move) put("  setmaxnreg.inc.sync.aligned.u32 160;\n");
  put("  shr.u32 %group, %warp, 2;\n  sub.u32 %group, %group, 1;\n  mov.u32 %previous, 0;\n");
  clear_sums();
  begin_results("CONSUME");
  put("CONSUME:\n");
  find_stage();
  add("  xor.b32 %parity, %phase, {};\n", has(MatrixFault::early_consumer) ? 1 : 0);
  wait("%full", "WAIT_FULL");
  products_of_stage();
  if (has(MatrixFault::early_release)) {
    release("%empty");
    put("  wgmma.wait_group.sync.aligned 0;\n");
  } else if (has(MatrixFault::early_sums)) {
    put("  wgmma.wait_group.sync.aligned 1;\n"); // without waiting for the last tile
    release("%empty");
  } else if (p_.keeps_one_open) {
    put("  wgmma.wait_group.sync.aligned 1;\n  setp.eq.u32 %p5, %t, 0;\n  @%p5 bra FIRST;\n");
    release("%previous");
    put("FIRST:\n  mov.u32 %previous, %empty;\n");
  } else {
    put("  wgmma.wait_group.sync.aligned 0;\n");
    release("%empty");
  }
  next_stage();
  put("  add.u32 %t, %t, 1;\n  setp.lt.u32 %p3, %t, %tiles;\n  @%p3 bra CONSUME;\n");
  const bool is_right = !has(MatrixFault::early_release) && !has(MatrixFault::early_sums);
  if (p_.keeps_one_open && is_right) {
    put("  wgmma.wait_group.sync.aligned 0;\n");
    release("%previous");
  }
  put("  and.b32 %row, %warp, 3;\n  shl.b32 %row, %row, 4;\n  mad.lo.u32 %row, %group, 64, %row;\n");
  store_sums();
  copy_result("128", 64);
  next_result("CONSUME");
  put("  bra DONE;\n");
}

void MatrixPrinter::warp_consumer() {
  put("  sub.u32 %group, %warp, 1;\n");
  begin_results("CONSUME");
  clear_sums();
  put("CONSUME:\n");
  find_stage();
  add("  xor.b32 %parity, %phase, {};\n", has(MatrixFault::early_consumer) ? 1 : 0);
  wait("%full", "WAIT_FULL");
  add("  shr.u32 %y1, %lane, 2;\n  and.b32 %y2, %lane, 3;\n  mad.lo.u32 %y0, %group, 16, %y1;\n"
      "  mad.lo.u32 %y10, %y0, {0}, %slot;\n  mad.lo.u32 %y10, %y2, 4, %y10;\n  mad.lo.u32 %y12, %y1, {1}, %slotb;\n"
      "  mad.lo.u32 %y12, %y2, 4, %y12;\n",
      p_.a.line(), p_.b.line());
  if (has(MatrixFault::early_release)) release("%empty");
  for (uint32_t step = 0; step < p_.a.k_bytes / 32; ++step)
    products_of_warp(step);
  if (!has(MatrixFault::early_release)) release("%empty");
  next_stage();
  put("  add.u32 %t, %t, 1;\n  setp.lt.u32 %p3, %t, %tiles;\n  @%p3 bra CONSUME;\n  shl.b32 %row, %group, 4;\n");
  store_sums();
  copy_result(fmt::format("{}", 32 * p_.groups).c_str(), p_.a.rows);
  next_result("CONSUME");
  put("  bra DONE;\n");
}

// %row: the first row of the warp in the block's tile of D. To D itself, or to its image in shared memory.
void MatrixPrinter::store_sums() {
  const bool halves = p_.sums == Sums::f16, is_direct = p_.result == ResultPath::stores;
  add("  shr.u32 %y1, %lane, 2;\n  add.u32 %y1, %y1, %row;\n  and.b32 %y2, %lane, 3;\n  mul.lo.u32 %y2, %y2, {};\n",
      halves ? 4 : 8);
  if (is_direct) {
    add("  mad.lo.u32 %y1, %result, {}, %y1;\n  mul.wide.u32 %o0, %y1, {};\n  cvt.u64.u32 %o1, %y2;\n"
        "  add.u64 %o0, %o0, %o1;\n  add.u64 %o0, %d, %o0;\n",
        p_.block_rows(), p_.row_bytes());
  } else {
    add("  mov.u32 %y3, ring;\n  mad.lo.u32 %y3, %y1, {}, %y3;\n  add.u32 %y3, %y3, %y2;\n", p_.row_bytes());
  }
  const uint32_t ring = p_.stages * p_.stage_bytes();
  for (uint32_t i = 0; i < sum_registers(); ++i) {
    const uint32_t at =
        halves ? i % 2 * 8 * p_.row_bytes() + i / 2 * 16 : i / 2 % 2 * 8 * p_.row_bytes() + i / 4 * 32 + i % 2 * 4;
    if (is_direct) {
      add("  st.global.b32 [%o0+{}], %s{};\n", at, i);
    } else {
      add("  st.shared.b32 [%y3+{}], %s{};\n", ring + at, i);
    }
  }
}

// The rows of a warp group, or of all warps, leave by a tensor copy; `threads` of them share a barrier.
void MatrixPrinter::copy_result(const char* threads, uint32_t rows) {
  if (p_.result == ResultPath::stores) return;
  if (!has(MatrixFault::missing_proxy_fence)) put("  fence.proxy.async.shared::cta;\n");
  put(p_.is_warp_group() ? "  add.u32 %y4, %group, 1;\n" : "  mov.u32 %y4, 1;\n");
  add("  barrier.sync %y4, {};\n", threads);
  const bool adds = p_.result == ResultPath::tensor_reduction;
  add("  shl.b32 %y5, %y4, 7;\n  setp.ne.u32 %p7, %me, {};\n  @%p7 bra COPIED;\n", p_.is_warp_group()       ? "%y5"
                                                                                   : p_.has_tensor_memory() ? "0"
                                                                                                            : "32");
  const uint32_t ring = p_.stages * p_.stage_bytes();
  add("  mul.lo.u32 %y6, %result, {};\n  mov.u32 %y7, ring;\n", p_.block_rows());
  if (p_.is_warp_group())
    add("  mad.lo.u32 %y6, %group, 64, %y6;\n  mad.lo.u32 %y7, %group, {}, %y7;\n", rows * p_.row_bytes());
  add("  add.u32 %y7, %y7, {};\n  {}.global.shared::cta{}.tile.bulk_group [%mapd, {{0, %y6}}], [%y7];\n"
      "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group{} 0;\nCOPIED:\n  barrier.sync %y4, {};\n",
      ring, adds ? "cp.reduce.async.bulk.tensor.2d" : "cp.async.bulk.tensor.2d", adds ? ".add" : "",
      p_.seed % 2 ? ".read" : "", threads);
}

} // namespace ptxrewrite::fuzz::pipelines
