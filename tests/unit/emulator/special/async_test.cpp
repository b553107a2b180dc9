// Asynchronous copies and mbarriers, as observed by kernels with correct waits.
#include "tests/unit/emulator/lane_kernel.h"

namespace ptxrewrite::emulator::async_test {
namespace {

// Lane t copies from byte 16 t of `in` to byte 16 t of shared memory filled with 0xff, and returns the result.
PtxRun run_copies(const std::string& copy, uint32_t lanes = 32) {
  std::vector<uint8_t> bytes(16 * 32);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 7 + i / 16);
  return run_ptx(kernel("k", ".param .u64 in, .param .u64 out", R"(
  .reg .b32 %t, %s, %n, %x<4>;
  .reg .b64 %p, %o, %policy;
  .reg .pred %q, %g;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 16;
  ld.param.u64 %p, [in];
  add.u64 %p, %p, %o;
  mov.u32 %s, area;
  shl.b32 %n, %t, 4;
  add.u32 %s, %s, %n;
  mov.b32 %x0, -1;
  st.shared.v4.b32 [%s], {%x0, %x0, %x0, %x0};
  and.b32 %n, %t, 7;
  setp.ge.u32 %q, %t, 16;
  setp.ne.u32 %g, %t, 5;
)" + copy + R"(
  cp.async.commit_group;
  cp.async.wait_group 0;
  cp.async.wait_all;
  ld.shared.v4.b32 {%x0, %x1, %x2, %x3}, [%s];
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  st.global.v4.b32 [%p], {%x0, %x1, %x2, %x3};
  ret;)",
                        ".shared .align 16 .b8 area[512];\n"),
                 {.kernel = "k", .block = {lanes}}, {buffer_of(bytes), zeros<uint8_t>(16 * 32)});
}

// Each lane writes `written` bytes, the first `copied` of them from memory, the others zero.
template <class Written, class Copied> void check_copies(const PtxRun& run, Written written, Copied copied) {
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint8_t> out = run.buffer<uint8_t>(1), in = run.buffer<uint8_t>(0);
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t i = 0; i < 16; ++i) {
      const uint8_t expected = i >= written(lane) ? 0xff : i < copied(lane) ? in[lane * 16 + i] : 0;
      CAPTURE(lane);
      CAPTURE(i);
      CHECK(out[lane * 16 + i] == expected);
    }
}

TEST_CASE("cp.async of all sizes, cut short, and ignored") {
  auto all = [](size_t bytes) { return [bytes](size_t) { return bytes; }; };
  for (const size_t bytes : {4, 8, 16})
    check_copies(run_copies("cp.async.ca.shared.global [%s], [%p], " + std::to_string(bytes) + ";"), all(bytes),
                 all(bytes));
  check_copies(run_copies("cp.async.cg.shared.global [%s], [%p], 16;"), all(16), all(16));
  check_copies(run_copies("cp.async.cg.shared.global.L2::128B [%s], [%p], 16, %n;"), all(16),
               [](size_t lane) { return lane % 8; });
  check_copies(run_copies("cp.async.ca.shared.global [%s], [%p], 8, 3;"), all(8), all(3));
  check_copies(run_copies("cp.async.ca.shared.global [%s], [%p], 8, %q;"), all(8),
               [](size_t lane) { return lane < 16 ? 8u : 0u; });
  check_copies(run_copies("createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;\n"
                          "cp.async.cg.shared::cta.global.L2::cache_hint [%s], [%p], 16, %policy;"),
               all(16), all(16));
  check_copies(run_copies("createpolicy.fractional.L2::evict_first.b64 %policy;\n"
                          "cp.async.cg.shared.global.L2::cache_hint [%s], [%p], 16, %n, %policy;"),
               all(16), [](size_t lane) { return lane % 8; });
  check_copies(run_copies("@%g cp.async.ca.shared.global [%s+4], [%p+8], 4;\n"
                          "@!%g cp.async.ca.shared.global [%s], [%p], 4;\n"
                          "@%g ld.shared.b32 %x0, [%s+4];\n@%g st.shared.b32 [%s], %x0;\n"
                          "@%g mov.b32 %x1, -1;\n@%g st.shared.b32 [%s+4], %x1;\n"
                          "@%g cp.async.ca.shared.global [%s], [%p], 4;"),
               all(4), all(4));
}

TEST_CASE("copies that go wrong") {
  CHECK(run_copies("cp.async.cg.shared.global [%s+8], [%p], 16;").failure().find("not a multiple of 16") !=
        std::string::npos);
  CHECK(run_copies("cp.async.cg.shared.global [%s], [%p+16], 16;").failure().find("asynchronous load of 16 bytes") !=
        std::string::npos);
  CHECK(run_copies("cp.async.ca.shared.global [%s+512], [%p], 4;").failure().find("asynchronous store of 4 bytes") !=
        std::string::npos);
  // Bytes that are not read may be anywhere.
  CHECK(run_copies("cp.async.cg.shared.global [%s], [%p+8192], 16, 0;").ok());
}

TEST_CASE("warps hand work on through an mbarrier, phase after phase") {
  // Warp 0 writes a number per lane, warp 1 adds them up; two barriers signal that it is written, and read.
  LaneInputs in;
  in.a.resize(64);
  for (const std::string wait : {"test_wait", "try_wait"}) {
    LaneResults out = run_lanes(R"(
  .reg .b64 %state;
  mov.u32 %r8, full;
  mov.u32 %r9, empty;
  mov.u32 %r7, work;
  setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r8], 32;
  @%p0 mbarrier.init.shared::cta.b64 [%r9], 32;
  bar.sync 0;
  and.b32 %r1, %thread, 31;
  shl.b32 %r2, %r1, 2;
  add.u32 %r2, %r2, %r7;
  mov.u32 %d, 0;
  mov.u32 %r4, 0;
  setp.lt.u32 %p1, %thread, 32;
LOOP:
  and.b32 %r5, %r4, 1;
  @!%p1 bra CONSUMER;
  xor.b32 %r6, %r5, 1;
WAIT_EMPTY:
  mbarrier.)" + wait + R"(.parity.shared.b64 %p2, [%r9], %r6;
  @!%p2 bra WAIT_EMPTY;
  mad.lo.u32 %r3, %r4, 100, %r1;
  st.shared.u32 [%r2], %r3;
  mbarrier.arrive.shared.b64 %state, [%r8];
  bra NEXT;
CONSUMER:
WAIT_FULL:
  mbarrier.)" + wait + R"(.parity.shared.b64 %p2, [%r8], %r5;
  @!%p2 bra WAIT_FULL;
  xor.b32 %r6, %r2, 4;
  ld.shared.u32 %r3, [%r6];
  add.u32 %d, %d, %r3;
  mbarrier.arrive.shared.b64 _, [%r9];
NEXT:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 7;
  @%p3 bra LOOP;
)",
                                in, ".shared .b64 full;\n.shared .b64 empty;\n.shared .align 128 .b32 work[32];\n");
    REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
    for (uint32_t lane = 0; lane < 32; ++lane)
      CHECK(out.d[32 + lane] == 7 * (lane ^ 1) + 100 * (0 + 1 + 2 + 3 + 4 + 5 + 6));
  }
}

// One lane; the body sets %d and %q.
LaneResults run_barrier(const std::string& body) {
  return run_lanes("  .reg .b64 %state, %old;\n  mov.u32 %r8, full;\n" + body, {{0}, {}, {}, {}},
                   ".shared .b64 full;\n");
}

TEST_CASE("counts of an mbarrier: arrivals, drops, bytes") {
  LaneResults out = run_barrier(R"(
  mbarrier.init.shared.b64 [%r8], 5;
  mbarrier.arrive.shared.b64 %old, [%r8], 2;
  mbarrier.pending_count.b64 %r1, %old;         // 5
  mbarrier.arrive_drop.shared.b64 %state, [%r8];
  mbarrier.pending_count.b64 %r2, %state;       // 3
  mbarrier.test_wait.shared.b64 %p1, [%r8], %old;
  mbarrier.arrive.noComplete.shared.b64 %state, [%r8], 1;
  mbarrier.arrive.shared.b64 %state, [%r8];
  mbarrier.test_wait.shared.b64 %p2, [%r8], %old;
  mbarrier.test_wait.shared.b64 %p3, [%r8], %state;
  mbarrier.arrive.shared.b64 %state, [%r8];
  mbarrier.pending_count.b64 %r3, %state;       // 4: one was dropped
  mbarrier.test_wait.shared.b64 %p4, [%r8], %state;
  mad.lo.u32 %d, %r1, 100, %r2;
  mad.lo.u32 %d, %d, 100, %r3;
  selp.u32 %q, 1, 0, %p1;
  @%p2 or.b32 %q, %q, 2;
  @%p3 or.b32 %q, %q, 4;
  @%p4 or.b32 %q, %q, 8;
)");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  CHECK(out.d[0] == 50304);
  CHECK(out.q[0] == 2 + 4);

  out = run_barrier(R"(
  mbarrier.init.shared.b64 [%r8], 1;
  mbarrier.arrive.expect_tx.shared.b64 %old, [%r8], 100;
  mbarrier.test_wait.shared.b64 %p1, [%r8], %old;
  mbarrier.complete_tx.shared.b64 [%r8], 60;
  mbarrier.expect_tx.shared.b64 [%r8], 8;
  mbarrier.test_wait.parity.shared.b64 %p2, [%r8], 0;
  mbarrier.complete_tx.shared.b64 [%r8], 48;
  mbarrier.test_wait.parity.shared.b64 %p3, [%r8], 0;
  mbarrier.try_wait.parity.shared.b64 %p4, [%r8], 1, 100;
  selp.u32 %q, 1, 0, %p1;
  @%p2 or.b32 %q, %q, 2;
  @%p3 or.b32 %q, %q, 4;
  @%p4 or.b32 %q, %q, 8;
)");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  CHECK(out.q[0] == 4);
}

TEST_CASE("copies arrive at an mbarrier") {
  LaneResults out = run_barrier(R"(
  mbarrier.init.shared.b64 [%r8], 2;
  cp.async.mbarrier.arrive.shared.b64 [%r8];
  mbarrier.test_wait.parity.shared.b64 %p1, [%r8], 0;
  cp.async.mbarrier.arrive.noinc.shared.b64 [%r8];
  mbarrier.test_wait.parity.shared.b64 %p2, [%r8], 0;
  mbarrier.arrive.shared.b64 _, [%r8];
  mbarrier.test_wait.parity.shared.b64 %p3, [%r8], 0;
  selp.u32 %q, 1, 0, %p1;
  @%p2 or.b32 %q, %q, 2;
  @%p3 or.b32 %q, %q, 4;
)");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  CHECK(out.q[0] == 4);
}

TEST_CASE("mbarriers used wrongly") {
  CHECK(run_barrier("mbarrier.arrive.shared.b64 _, [%r8];").run.failure().find("not initialised") != std::string::npos);
  CHECK(run_barrier("mbarrier.init.shared.b64 [%r8], 1;\nmbarrier.inval.shared.b64 [%r8];\n"
                    "mbarrier.arrive.shared.b64 _, [%r8];")
            .run.failure()
            .find("not initialised") != std::string::npos);
  CHECK(run_barrier("mbarrier.init.shared.b64 [%r8], 3;\nmbarrier.arrive.shared.b64 _, [%r8], 4;").run.failure() ==
        "4 arrivals at an mbarrier that expects 3 more");
  CHECK(run_barrier("mbarrier.init.shared.b64 [%r8], 0;").run.failure() == "mbarrier of 0 arrivals");
}

TEST_CASE("st.bulk fills shared memory with zeros") {
  LaneInputs in{{1, 2, 3, 4}, {}, {}, {}};
  LaneResults out = run_lanes(R"(
  mov.u64 %rd1, area;
  mov.u32 %r2, area;
  shl.b32 %r1, %thread, 2;
  add.u32 %r1, %r1, %r2;
  st.shared.u32 [%r1], %a;
  setp.eq.u32 %p1, %thread, 0;
  @%p1 st.bulk.weak.shared::cta [%rd1], 8, 0;
  ld.shared.u32 %d, [%r1];
)",
                              in, ".shared .align 16 .b32 area[4];\n", ".version 8.7\n.target sm_100\n");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  CHECK(out.d == std::vector<uint32_t>{0, 0, 3, 4});
}

} // namespace
} // namespace ptxrewrite::emulator::async_test
