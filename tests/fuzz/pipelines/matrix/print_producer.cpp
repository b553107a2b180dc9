// The producer of a matrix pipeline: waits for empty stages and fills them.
#include "tests/fuzz/pipelines/matrix/matrix_printer.h"

namespace ptxrewrite::fuzz::pipelines {

// Bytes that `full` of a stage waits for.
uint32_t MatrixPrinter::copied_bytes() const {
  const uint32_t of_a = p_.a_fill == TileFill::stores ? 0 : p_.a_copies() * p_.a.bytes();
  return of_a + p_.b.bytes();
}

void MatrixPrinter::expect(uint32_t bytes) {
  if (p_.expects_apart) {
    add("  @%leads mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%full], {};\n"
        "  @%leads mbarrier.arrive.shared::cta.b64 _, [%full];\n",
        bytes);
  } else {
    add("  @%leads mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {};\n", bytes);
  }
}

// `line`: the first line that follows others in the tensor, `wide`: the first of those beside it.
void MatrixPrinter::copy(const char* map, const char* place, const char* line, const char* wide, bool shared) {
  add("  @%leads cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{} [{}], "
      "[{}, {{0, {}, {}}}], [%full]{};\n",
      shared ? ".multicast::cluster" : "", place, map, line, wide, shared ? ", 3" : "");
}

void MatrixPrinter::copy_a() {
  for (uint32_t i = 0; i < p_.a_copies(); ++i) {
    add("  add.u32 %x3, %row, {};\n  add.u32 %x6, %slot, {};\n", i * p_.a.rows, i * p_.a.room());
    if (p_.a.k_major) {
      add("  mul.lo.u32 %x4, %t, {};\n", p_.a.lines_wide());
      copy("%mapa", "%x6", "%x3", "%x4", false);
    } else {
      add("  shr.u32 %x3, %x3, {};\n  mul.lo.u32 %x4, %t, {};\n", p_.a.swizzle_bits + 3, p_.a.k());
      copy("%mapa", "%x6", "%x4", "%x3", false);
    }
  }
}

void MatrixPrinter::copy_b() {
  const bool halves = p_.b_fill == TileFill::halves;
  put("  mov.u32 %x6, %slotb;\n  mov.u32 %x3, %column;\n");
  if (halves)
    add("  mad.lo.u32 %x6, %rank, {}, %x6;\n  mad.lo.u32 %x3, %rank, {}, %x3;\n", p_.b.bytes() / 2, p_.n() / 2);
  if (p_.b_fill == TileFill::turns)
    put("  xor.b32 %x5, %it, %rank;\n  and.b32 %x5, %x5, 1;\n  setp.ne.u32 %p6, %x5, 0;\n  @%p6 bra NOT_MINE;\n");
  if (p_.b.k_major) {
    add("  mul.lo.u32 %x4, %t, {};\n", p_.b.lines_wide());
    copy("%mapb", "%x6", "%x3", "%x4", p_.shares_b());
  } else {
    add("  shr.u32 %x3, %x3, {};\n  mul.lo.u32 %x4, %t, {};\n", p_.b.swizzle_bits + 3, p_.b.k());
    copy("%mapb", "%x6", "%x4", "%x3", p_.shares_b());
  }
  if (p_.b_fill == TileFill::turns) put("NOT_MINE:\n");
}

// Chunks of 16 bytes, to the places that a tensor copy would give them.
void MatrixPrinter::store_a() {
  const TileLayout& tile = p_.a;
  const uint32_t chunks = tile.line() / 16, deep = tile.lines_deep(), all = tile.bytes() / 16;
  const uint32_t depth = tile.k(), rows = p_.results() * p_.block_rows();
  for (uint32_t i = 0; i < p_.a_copies(); ++i) {
    add("  mov.u32 %y0, %lane;\nSTORE{0}:\n  rem.u32 %y1, %y0, {1};\n  div.u32 %y2, %y0, {1};\n  rem.u32 %y3, %y2, "
        "{2};\n"
        "  div.u32 %y4, %y2, {2};\n",
        i, chunks, deep);
    // Line %y3 of those that follow each other, %y4 of those beside it, chunk %y1.
    add("  mad.lo.u32 %y5, %y4, {}, %y1;\n  shl.b32 %y5, %y5, 4;\n", chunks);
    if (tile.k_major) {
      add("  add.u32 %y6, %row, %y3;\n  add.u32 %y6, %y6, {0};\n  mul.lo.u32 %y7, %tiles, {1};\n"
          "  mul.wide.u32 %o0, %y6, %y7;\n  mad.lo.u32 %y5, %t, {1}, %y5;\n",
          i * tile.rows, tile.k_bytes);
    } else {
      add("  mad.lo.u32 %y6, %t, {0}, %y3;\n  mul.wide.u32 %o0, %y6, {1};\n  add.u32 %y7, %row, {2};\n"
          "  mad.lo.u32 %y5, %y7, {3}, %y5;\n",
          depth, rows * tile.element_bytes, i * tile.rows, tile.element_bytes);
    }
    add("  cvt.u64.u32 %o1, %y5;\n  add.u64 %o0, %o0, %o1;\n  add.u64 %o0, %a, %o0;\n"
        "  ld.global.v4.u32 {{%f0, %f1, %f2, %f3}}, [%o0];\n  mad.lo.u32 %y8, %y0, 16, {};\n",
        i * tile.room());
    put("  add.u32 %y8, %slot, %y8;\n");
    if (tile.swizzle_bits)
      add("  and.b32 %y9, %y8, {};\n  shr.u32 %y9, %y9, 3;\n  xor.b32 %y8, %y8, %y9;\n", ((1u << tile.swizzle_bits) - 1)
                                                                                             << 7);
    add("  st.shared.v4.u32 [%y8], {{%f0, %f1, %f2, %f3}};\n  add.u32 %y0, %y0, 32;\n"
        "  setp.lt.u32 %p6, %y0, {};\n  @%p6 bra STORE{};\n",
        all, i);
  }
  if (!has(MatrixFault::missing_proxy_fence)) put("  fence.proxy.async.shared::cta;\n");
  put("  mbarrier.arrive.shared::cta.b64 _, [%full];\n");
}

void MatrixPrinter::producer() {
  put("PRODUCER:\n");
  if (p_.registers_move) put("  setmaxnreg.dec.sync.aligned.u32 40;\n");
  if (p_.elects) {
    put("  elect.sync _|%leads, -1;\n");
  } else {
    put("  setp.eq.u32 %leads, %lane, 0;\n");
  }
  if (p_.a_fill != TileFill::stores) put("  @!%leads bra DONE;\n");
  begin_results("PRODUCE");
  add("  mul.lo.u32 %row, %result, {};\n  mov.u32 %column, %result;\n", p_.block_rows());
  if (p_.shares_b()) put("  shr.u32 %column, %column, 1;\n");
  add("  mul.lo.u32 %column, %column, {};\nPRODUCE:\n", p_.n());
  find_stage();
  if (!has(MatrixFault::early_producer)) {
    put("  xor.b32 %parity, %phase, 1;\n");
    wait("%empty", "WAIT_EMPTY");
  }
  const uint32_t bytes = copied_bytes();
  expect(has(MatrixFault::short_count) ? bytes - 16 : has(MatrixFault::long_count) ? bytes + 16 : bytes);
  if (p_.a_fill == TileFill::stores) {
    store_a();
  } else {
    copy_a();
  }
  copy_b();
  next_stage();
  put("  add.u32 %t, %t, 1;\n  setp.lt.u32 %p3, %t, %tiles;\n  @%p3 bra PRODUCE;\n");
  next_result("PRODUCE");
}

} // namespace ptxrewrite::fuzz::pipelines
