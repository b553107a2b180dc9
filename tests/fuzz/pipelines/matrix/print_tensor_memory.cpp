// Blackwell: one thread issues the products, whose sums lie in tensor memory, and four warps store these.
#include "tests/fuzz/pipelines/matrix/matrix_printer.h"

namespace ptxrewrite::fuzz::pipelines {

void MatrixPrinter::multiplying_warp() {
  put("MULTIPLIER:\n");
  if (p_.elects) {
    put("  elect.sync _|%leads, -1;\n");
  } else {
    put("  setp.eq.u32 %leads, %lane, 0;\n");
  }
  put("  @!%leads bra DONE;\n");
  begin_results("MULTIPLY");
  add("  rem.u32 %x8, %w, {0};\n  div.u32 %x9, %w, {0};\n  and.b32 %x9, %x9, 1;\n  xor.b32 %parity, %x9, 1;\n"
      "  mov.u32 %x10, free;\n  mad.lo.u32 %x10, %x8, 8, %x10;\n",
      p_.accumulators);
  wait("%x10", "WAIT_FREE", p_.relaxes());
  add("  tcgen05.fence::after_thread_sync;\n  mad.lo.u32 %acc, %x8, {}, %tm;\nMULTIPLY:\n", p_.n());
  find_stage();
  add("  xor.b32 %parity, %phase, {};\n", has(MatrixFault::early_consumer) ? 1 : 0);
  wait("%full", "WAIT_FULL");
  put("  tcgen05.fence::after_thread_sync;\n  setp.ne.u32 %adds, %t, 0;\n");
  const uint32_t sums = p_.sums == Sums::f16 ? 0 : p_.sums == Sums::f32 ? 1 : 2;
  const uint32_t descriptor = sums << 4 | p_.type().format << 7 | p_.type().format << 10 |
                              (p_.a.k_major ? 0u : 1u << 15) | (p_.b.k_major ? 0u : 1u << 16) | p_.n() / 8 << 17 |
                              p_.a.rows / 16 << 24;
  add("  mov.u32 %x11, {:#x};\n", descriptor);
  for (uint32_t step = 0; step < p_.a.k_bytes / 32; ++step) {
    find_descriptor(p_.a, "%slot", "%da", step);
    find_descriptor(p_.b, "%slotb", "%db", step);
    add("  tcgen05.mma.cta_group::1.kind::{} [%acc], %da, %db, %x11, %adds;\n", p_.type().kind);
    if (step == 0) put("  setp.eq.u32 %adds, %t, %t;\n");
  }
  if (has(MatrixFault::early_release)) {
    put("  mbarrier.arrive.shared::cta.b64 _, [%empty];\n");
  } else if (p_.shares_b()) {
    put("  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%empty], 3;\n");
  } else {
    put("  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%empty];\n");
  }
  next_stage();
  put("  add.u32 %t, %t, 1;\n  setp.lt.u32 %p3, %t, %tiles;\n  @%p3 bra MULTIPLY;\n  mov.u32 %x12, summed;\n"
      "  mad.lo.u32 %x12, %x8, 8, %x12;\n"
      "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%x12];\n");
  next_result("MULTIPLY");
  put("  bra DONE;\n");
}

// One row of D for each thread.
void MatrixPrinter::result_warps() {
  begin_results("STORE");
  add("  rem.u32 %x8, %w, {0};\n  div.u32 %x9, %w, {0};\n  and.b32 %parity, %x9, 1;\n  mov.u32 %x10, summed;\n"
      "  mad.lo.u32 %x10, %x8, 8, %x10;\n",
      p_.accumulators);
  if (!has(MatrixFault::early_sums)) wait("%x10", "WAIT_SUMMED", p_.relaxes());
  if (!has(MatrixFault::missing_tensor_fence)) put("  tcgen05.fence::after_thread_sync;\n");
  add("  mad.lo.u32 %acc, %x8, {}, %tm;\n  shl.b32 %x11, %warp, 21;\n  add.u32 %acc, %acc, %x11;\n", p_.n());
  store_row();
  put("  tcgen05.fence::before_thread_sync;\n  mov.u32 %x10, free;\n  mad.lo.u32 %x10, %x8, 8, %x10;\n"
      "  mbarrier.arrive");
  add("{}.shared::cta.b64 _, [%x10];\n", p_.relaxes() ? ".relaxed.cta" : "");
  copy_result("128", 128);
  next_result("STORE");
  put("  bra DONE;\n");
}

void MatrixPrinter::store_row() {
  const bool halves = p_.sums == Sums::f16, is_direct = p_.result == ResultPath::stores;
  if (is_direct) {
    add("  mad.lo.u32 %y1, %result, 128, %me;\n  mul.wide.u32 %o0, %y1, {};\n  add.u64 %o0, %d, %o0;\n",
        p_.row_bytes());
  } else {
    add("  mov.u32 %y3, ring;\n  mad.lo.u32 %y3, %me, {}, %y3;\n  add.u32 %y3, %y3, {};\n", p_.row_bytes(),
        p_.stages * p_.stage_bytes());
  }
  const uint32_t columns = halves ? 16 : 8; // of a load
  for (uint32_t column = 0; column < p_.n(); column += columns) {
    add("  add.u32 %x12, %acc, {};\n  tcgen05.ld.sync.aligned.32x32b.x8{}.b32 {}, [%x12];\n"
        "  tcgen05.wait::ld.sync.aligned;\n",
        column, halves ? ".pack::16b" : "", sums());
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t at = column * p_.sum_bytes() + 4 * i;
      if (is_direct) {
        add("  st.global.b32 [%o0+{}], %s{};\n", at, i);
      } else {
        add("  st.shared.b32 [%y3+{}], %s{};\n", at, i);
      }
    }
  }
}

} // namespace ptxrewrite::fuzz::pipelines
