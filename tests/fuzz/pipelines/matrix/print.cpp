// The frame of a matrix pipeline: declarations, mbarriers, roles, stages.
#include "tests/fuzz/pipelines/matrix/matrix_printer.h"

namespace ptxrewrite::fuzz::pipelines {

void MatrixPrinter::declare() {
  if (p_.has_tensor_memory()) {
    put(".version 8.8\n.target sm_100a\n");
  } else if (p_.is_warp_group()) {
    put(".version 8.6\n.target sm_90a\n");
  } else {
    put(".version 8.6\n.target sm_90\n");
  }
  put(".address_size 64\n");
  if (p_.ring_is_dynamic()) put(".extern .shared .align 1024 .b8 ring[];\n");
  put(".visible .entry pipeline(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128],\n"
      "  .param .align 64 .b8 map_d[128], .param .u64 a, .param .u64 d, .param .u32 tiles, .param .u32 works)\n");
  add("  .reqntid {}{}\n{{\n", p_.threads(), has_cluster() ? " .reqnctapercluster 2" : "");
  if (!p_.ring_is_dynamic()) add("  .shared .align 1024 .b8 ring[{}];\n", p_.ring_bytes());
  add("  .shared .align 8 .b64 full[{0}];\n  .shared .align 8 .b64 empty[{0}];\n", p_.stages);
  if (p_.has_tensor_memory())
    add("  .shared .align 8 .b64 summed[{0}];\n  .shared .align 8 .b64 free[{0}];\n  .shared .align 4 .b32 place;\n",
        p_.accumulators);
  put("  .reg .b32 %me, %lane, %warp, %block, %rank, %tiles, %works, %t, %w, %it, %stage, %phase, %parity, %full, "
      "%empty, %slot, %slotb;\n  .reg .b32 %x<16>, %y<16>, %previous, %row, %column, %result, %tm, %acc, %group;\n"
      "  .reg .b64 %mapa, %mapb, %mapd, %a, %d, %da, %db, %o<8>;\n  .reg .pred %p<12>, %adds, %leads;\n");
  add("  .reg .b32 %s<{}>, %f<16>, %g<8>;\n", std::max(sum_registers(), 1u));
}

// Those that arrive at `empty` of a stage, of both blocks if these share copies.
void MatrixPrinter::initialise_barriers() {
  const uint32_t fillers = p_.a_fill == TileFill::stores ? 33 : 1;
  const uint32_t releases = (p_.has_tensor_memory() ? 1 : p_.multiplying_warps()) * (p_.shares_b() ? 2 : 1);
  put("  setp.ne.u32 %p0, %me, 0;\n  @%p0 bra READY;\n");
  for (uint32_t i = 0; i < p_.stages; ++i)
    add("  mbarrier.init.shared::cta.b64 [full+{0}], {1};\n  mbarrier.init.shared::cta.b64 [empty+{0}], {2};\n", 8 * i,
        fillers, releases);
  for (uint32_t i = 0; p_.has_tensor_memory() && i < p_.accumulators; ++i)
    add("  mbarrier.init.shared::cta.b64 [summed+{0}], 1;\n  mbarrier.init.shared::cta.b64 [free+{0}], 128;\n", 8 * i);
  put("  fence.mbarrier_init.release.cluster;\nREADY:\n  bar.warp.sync -1;\n");
}

void MatrixPrinter::synchronise_blocks() {
  if (has_cluster()) {
    put("  barrier.cluster.arrive.release;\n  barrier.cluster.wait.acquire;\n");
  } else {
    put("  barrier.sync 0;\n");
  }
}

void MatrixPrinter::start() {
  put("  mov.u32 %me, %tid.x;\n  and.b32 %lane, %me, 31;\n  shr.u32 %warp, %me, 5;\n  mov.u32 %block, %ctaid.x;\n"
      "  mov.u32 %rank, %cluster_ctarank;\n  ld.param.u64 %a, [a];\n  ld.param.u64 %d, [d];\n"
      "  ld.param.u32 %tiles, [tiles];\n  ld.param.u32 %works, [works];\n  mov.b64 %mapa, map_a;\n"
      "  cvta.param.u64 %mapa, %mapa;\n  mov.b64 %mapb, map_b;\n  cvta.param.u64 %mapb, %mapb;\n"
      "  mov.b64 %mapd, map_d;\n  cvta.param.u64 %mapd, %mapd;\n");
  initialise_barriers();
  if (p_.has_tensor_memory()) {
    uint32_t columns = 32;
    while (columns < p_.accumulators * p_.n())
      columns *= 2;
    add("  setp.ne.u32 %p0, %warp, 0;\n  @%p0 bra ALLOCATED;\n"
        "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], {};\n"
        "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nALLOCATED:\n"
        "  tcgen05.fence::before_thread_sync;\n",
        columns);
  }
  synchronise_blocks();
  if (p_.has_tensor_memory()) put("  tcgen05.fence::after_thread_sync;\n  ld.shared.u32 %tm, [place];\n");
}

void MatrixPrinter::begin_counts() {
  put("  mov.u32 %it, 0;\n  mov.u32 %stage, 0;\n  mov.u32 %phase, 0;\n");
}

// %full, %empty, %slot, %slotb: addresses of the stage of tile %it.
void MatrixPrinter::find_stage() {
  if (p_.counts_by_division)
    add("  rem.u32 %stage, %it, {0};\n  div.u32 %phase, %it, {0};\n  and.b32 %phase, %phase, 1;\n", p_.stages);
  add("  mov.u32 %x0, full;\n  mad.lo.u32 %full, %stage, 8, %x0;\n  mov.u32 %x0, empty;\n"
      "  mad.lo.u32 %empty, %stage, 8, %x0;\n  mov.u32 %x0, ring;\n  mad.lo.u32 %slot, %stage, {}, %x0;\n"
      "  add.u32 %slotb, %slot, {};\n",
      p_.stage_bytes(), p_.a_room());
}

void MatrixPrinter::next_stage() {
  put("  add.u32 %it, %it, 1;\n");
  if (!p_.counts_by_division)
    add("  add.u32 %stage, %stage, 1;\n  setp.eq.u32 %p1, %stage, {};\n  selp.b32 %stage, 0, %stage, %p1;\n"
        "  selp.b32 %x0, 1, 0, %p1;\n  xor.b32 %phase, %phase, %x0;\n",
        p_.stages);
}

// Until the phase of %parity of the barrier is over.
void MatrixPrinter::wait(const char* barrier, const char* label, bool relaxed) {
  add("{}:\n  mbarrier.{}.parity{}.shared::cta.b64 %p2, [{}], %parity;\n", label, p_.tests ? "test_wait" : "try_wait",
      relaxed ? ".relaxed.cta" : "", barrier);
  if (p_.tests) {
    add("  @%p2 bra {0}_OVER;\n  nanosleep.u32 20;\n  bra {0};\n{0}_OVER:\n", label);
  } else {
    add("  @!%p2 bra {};\n", label);
  }
}

// Loops over results and tiles. %result: number of the tile of D.
void MatrixPrinter::begin_results(const char* label) {
  add("  mov.u32 %w, 0;\n{0}_RESULT:\n  mad.lo.u32 %result, %w, {1}, %block;\n  mov.u32 %t, 0;\n", label, p_.blocks());
}

void MatrixPrinter::next_result(const char* label) {
  add("  add.u32 %w, %w, 1;\n  setp.lt.u32 %p3, %w, %works;\n  @%p3 bra {}_RESULT;\n", label);
}

// One lane of each warp arrives, here and in the other block that waits for the stage.
void MatrixPrinter::release(const char* barrier) {
  put("  bar.warp.sync -1;\n  setp.eq.u32 %p4, %lane, 0;\n");
  if (!p_.shares_b()) {
    add("  @%p4 mbarrier.arrive.shared::cta.b64 _, [{}];\n", barrier);
    return;
  }
  for (uint32_t rank = 0; rank < 2; ++rank)
    add("  mapa.shared::cluster.u32 %x1, {}, {};\n"
        "  @%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x1];\n",
        barrier, rank);
}

void MatrixPrinter::finish() {
  put("DONE:\n  bar.warp.sync -1;\n");
  if (p_.has_tensor_memory()) put("  tcgen05.fence::before_thread_sync;\n");
  synchronise_blocks();
  if (p_.has_tensor_memory() && !has(MatrixFault::leak)) {
    uint32_t columns = 32;
    while (columns < p_.accumulators * p_.n())
      columns *= 2;
    add("  tcgen05.fence::after_thread_sync;\n  setp.ne.u32 %p0, %warp, 0;\n  @%p0 bra END;\n"
        "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, {};\nEND:\n",
        columns);
  }
  put("  ret;\n}\n");
}

std::string MatrixPrinter::text() {
  declare();
  start();
  begin_counts();
  add("  setp.eq.u32 %p0, %warp, {};\n  @%p0 bra PRODUCER;\n", p_.producing_warp());
  if (p_.is_warp_group()) {
    put("  setp.lt.u32 %p0, %warp, 4;\n  @%p0 bra IDLE;\n");
    warp_group_consumer();
    put("IDLE:\n");
    if (p_.registers_move) put("  setmaxnreg.dec.sync.aligned.u32 40;\n");
    put("  bra DONE;\n");
  } else if (p_.multiplier == Multiplier::warp) {
    warp_consumer();
  } else {
    put("  setp.eq.u32 %p0, %warp, 5;\n  @%p0 bra MULTIPLIER;\n");
    result_warps();
    multiplying_warp();
  }
  producer();
  finish();
  return std::move(text_);
}

std::string print(const MatrixPipeline& pipeline) {
  return MatrixPrinter(pipeline).text();
}

// Steps lie in a line one behind the other, or in the next lines.
uint32_t MatrixPrinter::step_offset(const TileLayout& tile, uint32_t step) {
  if (!tile.k_major) return step * 16 * tile.line();
  const uint32_t at = 32 * step;
  return at / tile.line() * tile.rows * tile.line() + at % tile.line();
}

// Leading and stride byte offsets, and the swizzle (PTX ISA 9.7.15.5.1.2 and 9.7.16.5.1).
uint64_t MatrixPrinter::descriptor_fields(const TileLayout& tile) const {
  uint32_t leading = 16, stride = 8 * tile.line();
  if (tile.k_major && tile.swizzle_bits == 0) {
    leading = tile.rows * 16;
  } else if (!tile.k_major) {
    leading = tile.swizzle_bits == 0 ? 128 : tile.k() * tile.line();
    stride = tile.swizzle_bits == 0 ? tile.k() * 16 : 8 * tile.line();
  }
  const uint64_t offsets = uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32;
  if (!p_.has_tensor_memory()) return offsets | uint64_t(tile.swizzle_bits == 0 ? 0 : 4 - tile.swizzle_bits) << 62;
  return offsets | uint64_t(1) << 46 |
         (tile.swizzle_bits == 0 ? uint64_t(0) : uint64_t(8 - 2 * tile.swizzle_bits)) << 61;
}

void MatrixPrinter::find_descriptor(const TileLayout& tile, const char* place, const char* descriptor, uint32_t step) {
  const bool outside = has(MatrixFault::outside) && &tile == &p_.b;
  add("  add.u32 %x2, {}, {};\n  shr.u32 %x2, %x2, 4;\n  and.b32 %x2, %x2, 16383;\n  cvt.u64.u32 {}, %x2;\n"
      "  or.b64 {}, {}, {:#x};\n",
      place, step_offset(tile, step) + (outside ? 131072 : 0), descriptor, descriptor, descriptor,
      descriptor_fields(tile));
}

} // namespace ptxrewrite::fuzz::pipelines
