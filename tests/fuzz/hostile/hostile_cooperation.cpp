// Wrong cooperation of threads: mismatched barriers, masks without the own lane, transactions that never complete,
// matrices with strides out of bounds.
#include "tests/fuzz/hostile/hostile_writer.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

using Writer = HostileWriter;

std::string barrier_number(Writer& out) {
  return out.random.one_in(2) ? std::to_string(out.random.below(16)) : "%r" + std::to_string(out.random.below(8));
}
std::string barrier_count(Writer& out) {
  if (out.random.one_in(4)) return "%r" + std::to_string(out.random.below(8));
  return std::to_string(out.random.one_in(2) ? 32 * out.random.below(34) : out.random.below(1100));
}

void barriers(Writer& out) {
  const std::string number = barrier_number(out);
  switch (out.random.below(7)) {
  case 0:
    return out.line("{}bar.sync {};", out.guard(), number);
  case 1:
    return out.line("{}bar.sync {}, {};", out.guard(), number, barrier_count(out));
  case 2:
    return out.line("{}bar.arrive {}, {};", out.guard(), number, barrier_count(out));
  case 3:
    return out.line("{}barrier.sync {};", out.guard(), number);
  case 4:
    return out.line("{}bar.red.popc.u32 %r3, {}, %p3;", out.guard(), number);
  case 5:
    return out.line("{}barrier.cluster.arrive;\n  {}barrier.cluster.wait;", out.guard(), out.guard());
  default:
    return out.line("@%p3 bar.sync 0;\n  @!%p3 bar.sync {};", 1 + out.random.below(2));
  }
}

std::string mask(Writer& out) {
  constexpr std::array masks = {"-1", "0", "1", "0xffff0000", "%r4", "0x80000001"};
  return out.random.pick(masks);
}

void warp_functions(Writer& out) {
  const std::string guard = out.guard(), members = mask(out);
  switch (out.random.below(8)) {
  case 0:
    return out.line("{}shfl.sync.idx.b32 %r3|%p3, %r4, {}, {}, {};", guard, out.source('r'), out.source('r'), members);
  case 1:
    return out.line("{}vote.sync.ballot.b32 %r3, %p4, {};", guard, members);
  case 2:
    return out.line("{}match.any.sync.b64 %r3, %l4, {};", guard, members);
  case 3:
    return out.line("{}match.all.sync.b32 %r3|%p4, %r5, {};", guard, members);
  case 4:
    return out.line("{}redux.sync.add.s32 %r3, %r4, {};", guard, members);
  case 5:
    return out.line("{}bar.warp.sync {};", guard, members);
  case 6:
    return out.line("{}elect.sync %r3|%p3, {};", guard, members);
  default:
    return out.line("{}activemask.b32 %r3;\n  shfl.sync.down.b32 %r5, %r4, {}, {}, %r3;", guard, out.edge() & 0xff,
                    out.edge() & 0x1fff);
  }
}

void mbarriers(Writer& out) {
  constexpr std::array counts = {"0", "1", "32", "1048575", "-1", "%r4"};
  constexpr std::array lines = {"mbarrier.init.shared::cta.b64 [%r5], COUNT;",
                                "mbarrier.arrive.shared::cta.b64 %l3, [%r5];",
                                "mbarrier.arrive.noComplete.shared::cta.b64 %l3, [%r5], COUNT;",
                                "mbarrier.arrive.expect_tx.shared::cta.b64 %l3, [%r5], COUNT;",
                                "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r5], COUNT;",
                                "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r5], COUNT;",
                                "mbarrier.arrive_drop.shared::cta.b64 %l3, [%r5];",
                                "mbarrier.test_wait.shared::cta.b64 %p3, [%r5], %l3;",
                                "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], COUNT;",
                                "mbarrier.pending_count.b64 %r3, %l3;",
                                "mbarrier.inval.shared::cta.b64 [%r5];",
                                "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r5];"};
  out.line("mov.u32 %r5, {};", out.random.one_in(4) ? std::to_string(out.edge() & 0xffffffff) : "svar");
  if (!out.random.one_in(3)) out.line("mbarrier.init.shared::cta.b64 [%r5], {};", out.random.pick(counts));
  for (size_t i = 0, n = 1 + out.random.below(4); i < n; ++i) {
    std::string text = out.random.pick(lines);
    if (const size_t at = text.find("COUNT"); at != text.npos) text.replace(at, 5, out.random.pick(counts));
    out.raw(out.guard() + text);
  }
}

void asynchronous_copies(Writer& out) {
  constexpr std::array lines = {
      "cp.async.ca.shared.global [%r5], [%l3], 4;",
      "cp.async.cg.shared.global [%r5], [%l3], 16;",
      "cp.async.ca.shared.global [%r5], [%l3], 16, %r4;",
      "cp.async.ca.shared.global [%r5], [%l3], 8, %p3;",
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%l3], %r4, [%r6];",
      "cp.async.bulk.global.shared::cta.bulk_group [%l3], [%r5], %r4;",
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r6], %r4, [%r6];",
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%l3], [%r5], %r4;",
      "cp.async.commit_group;",
      "cp.async.wait_group 0;",
      "cp.async.wait_group 7;",
      "cp.async.wait_all;",
      "cp.async.bulk.commit_group;",
      "cp.async.bulk.wait_group 0;",
      "cp.async.bulk.wait_group.read 1;"};
  if (out.random.one_in(2)) out.line("mov.u32 %r5, svar;\n  add.s32 %r5, %r5, {};", 16 * out.random.below(20));
  if (out.random.one_in(2))
    out.line("mov.u32 %r6, svar;\n  mov.u64 %l3, %l0;\n  mov.u32 %r4, {};",
             out.random.one_in(2) ? 16 * out.random.below(9) : out.edge() & 0xffffffff);
  else
    out.line("mov.u64 %l3, {};", out.wild_address());
  for (size_t i = 0, n = 1 + out.random.below(4); i < n; ++i)
    out.raw((out.random.one_in(6) ? "@%p4 " : "") + std::string(out.random.pick(lines)));
}

void matrices(Writer& out) {
  constexpr std::array lines = {
      "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r3,%r4,%r5,%r6,%r7,%r10,%r11,%r12}, [%l3], STRIDE;",
      "wmma.load.c.sync.aligned.col.m16n16k16.shared.f32 {%f3,%f4,%f5,%f6,%f7,%f10,%f11,%f12}, [%r5], STRIDE;",
      "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%l3], {%f3,%f4,%f5,%f6,%f7,%f10,%f11,%f12}, STRIDE;",
      "wmma.load.b.sync.aligned.col.m8n8k4.f64 {%d3}, [%l3], STRIDE;",
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3,%r4,%r5,%r6}, [%r5];",
      "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r3}, [%r5];",
      "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {%r3,%r4};",
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f3,%f4,%f5,%f6}, {%r3,%r4,%r5,%r6}, {%r3,%r4}, "
      "{%f3,%f4,%f5,%f6};",
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d3,%d4}, {%d5}, {%d6}, {%d3,%d4};",
      "movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r4;"};
  out.line("mov.u32 %r5, {};", out.random.one_in(3) ? std::to_string(out.edge() & 0xfffffff0) : "svar");
  out.line("mov.u64 %l3, {};", out.random.one_in(2)   ? std::to_string(out.wild_address() & ~15ull)
                               : out.random.one_in(2) ? "%l0"
                                                      : "%l1");
  std::string text = out.random.pick(lines);
  if (const size_t at = text.find("STRIDE"); at != text.npos)
    text.replace(at, 6,
                 out.random.one_in(2) ? "%r" + std::to_string(out.random.below(8))
                                      : std::to_string(out.edge() & 0xffffffff));
  out.raw(out.guard() + text);
}

void clusters(Writer& out) {
  constexpr std::array lines = {"mapa.shared::cluster.u32 %r3, %r5, %r4;",
                                "getctarank.shared::cluster.u32 %r3, %r5;",
                                "mov.u32 %r3, %cluster_ctarank;",
                                "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r4, [%r6];",
                                "red.async.relaxed.cluster.global.add.u32 [%r5], %r4, [%r6];",
                                "ld.shared::cluster.u32 %r3, [%r5];",
                                "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q3;"};
  out.line("mov.u32 %r5, svar;\n  mov.u32 %r6, svar;");
  out.raw(out.guard() + out.random.pick(lines));
}

void atomics(Writer& out) {
  constexpr std::array lines = {
      "atom.global.add.f32 %f3, [%l2], %f4;",
      "atom.global.inc.u32 %r3, [%l2], 7;",
      "red.global.add.v4.f32 [%l2], {%f3,%f4,%f5,%f6};",
      "atom.global.exch.b128 %q3, [%l2], %q4;",
      "atom.shared.cas.b16 %h3, [svar], %h4, %h5;",
      "atom.acq_rel.sys.global.min.s64 %l3, [%l2], %l4;",
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r5], %r4, [%r6];",
      "multimem.ld_reduce.relaxed.gpu.global.add.f32 %f3, [%l2];"};
  out.raw(out.guard() + out.random.pick(lines));
}

constexpr std::array features = {
    HostileFeature{"barriers", barriers},   HostileFeature{"warp functions", warp_functions},
    HostileFeature{"mbarriers", mbarriers}, HostileFeature{"asynchronous copies", asynchronous_copies},
    HostileFeature{"matrices", matrices},   HostileFeature{"clusters", clusters},
    HostileFeature{"atomics", atomics}};

} // namespace

std::span<const HostileFeature> cooperation_features() {
  return features;
}

} // namespace ptxrewrite::fuzz
