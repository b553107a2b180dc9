// Pipelines as PTX.
#include "tests/fuzz/pipelines/pipeline.h"

#include <fmt/format.h>

namespace ptxrewrite::fuzz::pipelines {
namespace {

constexpr const char* declarations =
    R"(  .reg .b32 %me, %lane, %warp, %block, %tiles, %t, %stage, %phase, %parity, %sum, %x<12>, %full, %empty, %slot;
  .reg .b64 %in, %out, %from, %o<6>;
  .reg .pred %p<8>;
)";

class Printer {
public:
  explicit Printer(const Pipeline& pipeline) : p_(pipeline) {}

  std::string text() {
    add(".version 8.0\n.target sm_90\n.address_size 64\n");
    add(".visible .entry pipeline(.param .u64 in, .param .u64 out, .param .u32 tiles)\n{{\n");
    add("  .shared .align 128 .b8 ring[{}];\n  .shared .align 8 .b64 full[{}];\n  .shared .align 8 .b64 empty[{}];\n",
        p_.stages * p_.words * 4, p_.stages, p_.stages);
    if (p_.bulk_result) add("  .shared .align 128 .b8 result[{}];\n", p_.consumer_threads() * 4);
    text_ += declarations;
    start();
    producer();
    consumer();
    add("}}\n");
    return std::move(text_);
  }

private:
  template <class... Values> void add(fmt::format_string<Values...> format, Values&&... values) {
    text_ += fmt::format(format, std::forward<Values>(values)...);
  }

  void start() {
    text_ += R"(  mov.u32 %me, %tid.x;
  and.b32 %lane, %me, 31;
  shr.u32 %warp, %me, 5;
  mov.u32 %block, %ctaid.x;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u32 %tiles, [tiles];
  setp.ne.u32 %p0, %me, 0;
  @%p0 bra READY;
)";
    const uint32_t arrivals = p_.fill == Fill::bulk ? 1 : 32;
    const uint32_t releases = p_.all_release ? p_.consumer_threads() : p_.consumers;
    for (uint32_t i = 0; i < p_.stages; ++i)
      add("  mbarrier.init.shared::cta.b64 [full+{}], {};\n  mbarrier.init.shared::cta.b64 [empty+{}], {};\n", 8 * i,
          arrivals, 8 * i, releases);
    text_ += "READY:\n  bar.sync 0;\n  mov.u32 %t, 0;\n  mov.u32 %stage, 0;\n  mov.u32 %phase, 0;\n"
             "  setp.ne.u32 %p1, %warp, 0;\n  @%p1 bra CONSUMER;\n";
  }

  // %full, %empty, %slot: addresses of the stage of tile %t.
  void find_stage() {
    if (p_.counts_by_division)
      add("  rem.u32 %stage, %t, {0};\n  div.u32 %phase, %t, {0};\n  and.b32 %phase, %phase, 1;\n", p_.stages);
    add("  mov.u32 %x0, full;\n  mad.lo.u32 %full, %stage, 8, %x0;\n  mov.u32 %x0, empty;\n"
        "  mad.lo.u32 %empty, %stage, 8, %x0;\n  mov.u32 %x0, ring;\n  mad.lo.u32 %slot, %stage, {}, %x0;\n",
        p_.words * 4);
  }

  void next_stage(const char* label) {
    add("  add.u32 %t, %t, 1;\n");
    if (!p_.counts_by_division)
      add("  add.u32 %stage, %stage, 1;\n  setp.eq.u32 %p2, %stage, {};\n  selp.b32 %stage, 0, %stage, %p2;\n"
          "  selp.b32 %x0, 1, 0, %p2;\n  xor.b32 %phase, %phase, %x0;\n",
          p_.stages);
    add("  setp.lt.u32 %p2, %t, %tiles;\n  @%p2 bra {};\n", label);
  }

  // Until the phase of %parity of the barrier is over.
  void wait(const char* barrier, const char* label) {
    add("{}:\n  mbarrier.{}.parity.shared::cta.b64 %p3, [{}], %parity;\n", label, p_.tests ? "test_wait" : "try_wait",
        barrier);
    if (p_.tests) {
      add("  @%p3 bra {0}_OVER;\n  nanosleep.u32 20;\n  bra {0};\n{0}_OVER:\n", label);
    } else {
      add("  @!%p3 bra {};\n", label);
    }
  }

  void producer() {
    if (p_.fill == Fill::bulk) text_ += "  setp.ne.u32 %p4, %lane, 0;\n  @%p4 bra DONE;\n";
    add("  mul.lo.u32 %x1, %block, %tiles;\n  mul.wide.u32 %o0, %x1, {};\n  add.u64 %from, %in, %o0;\n", p_.words * 4);
    text_ += "PRODUCE:\n";
    find_stage();
    if (p_.fault != Fault::early_producer) {
      text_ += "  xor.b32 %parity, %phase, 1;\n";
      wait("%empty", "WAIT_EMPTY");
    }
    switch (p_.fill) {
    case Fill::bulk:
      fill_by_bulk_copy();
      break;
    case Fill::copies:
      fill_by_copies();
      break;
    case Fill::stores:
      fill_by_stores();
      break;
    }
    add("  add.u64 %from, %from, {};\n", p_.words * 4);
    next_stage("PRODUCE");
    text_ += "  bra DONE;\n";
  }

  void fill_by_bulk_copy() {
    const uint32_t bytes = p_.words * 4;
    const uint32_t counted = p_.fault == Fault::short_count  ? bytes - 16
                             : p_.fault == Fault::long_count ? bytes + 16
                                                             : bytes;
    add("  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {};\n"
        "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%slot], [%from], {}, [%full];\n",
        counted, bytes);
  }

  void fill_by_copies() {
    const uint32_t bytes = p_.words / 8; // of each lane
    add("  mul.lo.u32 %x1, %lane, {0};\n  cvt.u64.u32 %o1, %x1;\n  add.u64 %o1, %from, %o1;\n"
        "  add.u32 %x1, %slot, %x1;\n  cp.async.{1}.shared::cta.global [%x1], [%o1], {0};\n"
        "  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%full];\n",
        bytes, bytes == 16 ? "cg" : "ca");
  }

  void fill_by_stores() {
    for (uint32_t i = 0; i < p_.words; i += 32)
      add("  shl.b32 %x1, %lane, 2;\n  cvt.u64.u32 %o1, %x1;\n  add.u64 %o1, %from, %o1;\n  add.u32 %x1, %slot, %x1;\n"
          "  ld.global.u32 %x2, [%o1+{0}];\n  st.shared.u32 [%x1+{0}], %x2;\n",
          i * 4);
    text_ += "  mbarrier.arrive.shared::cta.b64 _, [%full];\n";
  }

  void consumer() {
    text_ += "CONSUMER:\n  sub.u32 %x10, %me, 32;\n  add.u32 %sum, %x10, 1;\n";
    text_ += "CONSUME:\n";
    find_stage();
    add("  {}.b32 %parity, %phase, {};\n", p_.fault == Fault::early_consumer ? "xor" : "or",
        p_.fault == Fault::early_consumer ? 1 : 0);
    wait("%full", "WAIT_FULL");
    for (const Read& read : p_.reads)
      consume(read);
    if (p_.stores_tiles) store_tile();
    if (p_.all_release) {
      text_ += "  mbarrier.arrive.shared::cta.b64 _, [%empty];\n";
    } else {
      text_ += "  bar.warp.sync -1;\n  setp.eq.u32 %p5, %lane, 0;\n"
               "  @%p5 mbarrier.arrive.shared::cta.b64 _, [%empty];\n";
    }
    next_stage("CONSUME");
    finish();
    text_ += "DONE:\n  ret;\n";
  }

  void consume(const Read& read) {
    add("  mad.lo.u32 %x3, %x10, {}, {};\n  rem.u32 %x3, %x3, {};\n  mad.lo.u32 %x3, %x3, 4, %slot;\n", read.stride,
        read.offset, p_.words);
    const bool guarded = read.lanes < 32;
    if (guarded) add("  setp.lt.u32 %p6, %lane, {};\n", read.lanes);
    const char* guard = guarded ? "@%p6 " : "";
    add("  {0}ld.shared.u32 %x4, [%x3];\n  {0}mad.lo.u32 %x4, %sum, {1}, %x4;\n  add.u32 %x5, %t, {2};\n"
        "  {0}xor.b32 %sum, %x4, %x5;\n",
        guard, static_cast<int32_t>(read.factor), static_cast<int32_t>(read.mix));
  }

  void store_tile() {
    add("  mad.lo.u32 %x6, %block, %tiles, %t;\n  mad.lo.u32 %x6, %x6, {0}, %x10;\n  add.u32 %x6, %x6, {1};\n"
        "  mul.wide.u32 %o2, %x6, 4;\n  add.u64 %o2, %out, %o2;\n  st.global.u32 [%o2], %sum;\n",
        p_.consumer_threads(), p_.blocks * p_.consumer_threads());
  }

  void finish() {
    const uint32_t bytes = p_.consumer_threads() * 4;
    if (!p_.bulk_result) {
      add("  mad.lo.u32 %x7, %block, {}, %x10;\n  mul.wide.u32 %o3, %x7, 4;\n  add.u64 %o3, %out, %o3;\n"
          "  st.global.u32 [%o3], %sum;\n",
          p_.consumer_threads());
      return;
    }
    text_ += "  mov.u32 %x7, result;\n  mad.lo.u32 %x8, %x10, 4, %x7;\n  st.shared.u32 [%x8], %sum;\n";
    if (p_.fault != Fault::missing_fence) text_ += "  fence.proxy.async.shared::cta;\n";
    add("  bar.sync 1, {0};\n  setp.ne.u32 %p7, %x10, 0;\n  @%p7 bra DONE;\n  mul.wide.u32 %o3, %block, {1};\n"
        "  add.u64 %o3, %out, %o3;\n  cp.async.bulk.global.shared::cta.bulk_group [%o3], [%x7], {1};\n"
        "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n",
        p_.consumer_threads(), bytes);
  }

  const Pipeline& p_;
  std::string text_;
};

} // namespace

std::string print(const Pipeline& pipeline) {
  return Printer(pipeline).text();
}

} // namespace ptxrewrite::fuzz::pipelines
