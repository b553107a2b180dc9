// Barriers of the block: all forms, partial counts, exited warps, reductions, and the messages for deadlocks.
#include "tests/unit/emulator/run_ptx.h"

#include <algorithm>

namespace ptxrewrite::tests::barrier_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// %r1: thread, %r2: the address of its word in the shared array `s`, %rd1: that of its word in `out`.
std::string with_shared(const std::string& body) {
  return kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  .shared .align 4 .b8 s[4096];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  mad.lo.u32 %r2, %r1, 4, %r2;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
)" + body);
}

PtxRun run_threads(const std::string& text, uint32_t threads) {
  PtxRun run = run_ptx(text, {.kernel = "k", .block = {threads}, .fuel = 10'000'000}, {zeros<uint32_t>(threads)});
  REQUIRE(run.error == "");
  return run;
}

template <class Function> std::vector<uint32_t> for_threads(uint32_t threads, Function&& function) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i)
    values[i] = function(i);
  return values;
}

// Every thread stores its number, waits, and reads the number of the thread at the other end of the block.
std::string reverse(const std::string& barrier, uint32_t threads) {
  return with_shared("  st.shared.u32 [%r2], %r1;\n  " + barrier + "\n  mov.u32 %r3, " + std::to_string(threads - 1) +
                     R"(;
  sub.u32 %r3, %r3, %r1;
  mov.u32 %r4, s;
  mad.lo.u32 %r4, %r3, 4, %r4;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%rd1], %r5;
  ret;)");
}

} // namespace

TEST_CASE("all warps wait for one another, also the last one that is not full") {
  for (uint32_t threads : {1u, 31u, 32u, 33u, 100u, 1024u})
    for (const char* barrier : {"bar.sync 0;", "barrier.sync 15;", "barrier.sync.aligned 3;"}) {
      CAPTURE(threads);
      CAPTURE(barrier);
      PtxRun run = run_threads(reverse(barrier, threads), threads);
      CHECK(run.failure() == "");
      CHECK(run.buffer<uint32_t>(0) == for_threads(threads, [&](uint32_t i) { return threads - 1 - i; }));
    }
}

TEST_CASE("a tree reduction with a barrier in each of its steps") {
  PtxRun run = run_threads(with_shared(R"(
  mul.lo.u32 %r5, %r1, 7;
  add.u32 %r5, %r5, 3;
  st.shared.u32 [%r2], %r5;
  mov.u32 %r6, 128;
LOOP:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r6;
  @%p1 bra SKIP;
  mad.lo.u32 %r7, %r6, 4, %r2;
  ld.shared.u32 %r8, [%r7];
  ld.shared.u32 %r9, [%r2];
  add.u32 %r9, %r9, %r8;
  st.shared.u32 [%r2], %r9;
SKIP:
  shr.u32 %r6, %r6, 1;
  setp.ne.u32 %p2, %r6, 0;
  @%p2 bra LOOP;
  bar.sync 0;
  ld.shared.u32 %r9, [s];
  st.global.u32 [%rd1], %r9;
  ret;)"),
                           256);
  CHECK(run.failure() == "");
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 256; ++i)
    sum += 7 * i + 3;
  CHECK(run.buffer<uint32_t>(0) == for_threads(256, [&](uint32_t) { return sum; }));
  CHECK(run.counters("bar.sync").executions == 8 * 8);
}

TEST_CASE("warps come to one barrier in different ways, whichever of them is the first or the last") {
  // What one of four warps does instead of a bar.sync; %p1 is true in half of its lanes.
  for (const char* other : {"bar.sync 0;", "bar.sync 0, 128;", "bar.red.popc.u32 %r9, 0, %p1;",
                            "@%p1 bra HALF; barrier.sync 0; bra PAST;\nHALF:\n  barrier.sync 0; bra PAST;"})
    for (uint32_t warp = 0; warp < 4; ++warp) {
      CAPTURE(other);
      CAPTURE(warp);
      PtxRun run = run_threads(with_shared(R"(
  st.shared.u32 [%r2], %r1;
  and.b32 %r3, %r1, 16;
  setp.eq.u32 %p1, %r3, 0;
  shr.u32 %r4, %r1, 5;
  setp.eq.u32 %p2, %r4, )" + std::to_string(warp) +
                                           R"(;
  mov.u32 %r7, 3;
AGAIN:
  @%p2 bra OTHER;
  bar.sync 0;
  bra PAST;
OTHER:
  )" + other + R"(
PAST:
  sub.u32 %r5, 508, %r2;
  mov.u32 %r6, s;
  add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r6;
  ld.shared.u32 %r5, [%r5];
  st.global.u32 [%rd1], %r5;
  bar.sync 0;
  sub.u32 %r7, %r7, 1;
  setp.ne.u32 %p3, %r7, 0;
  @%p3 bra AGAIN;
  ret;)"),
                               128);
      CHECK(run.failure() == "");
      CHECK(run.buffer<uint32_t>(0) == for_threads(128, [](uint32_t i) { return 127 - i; }));
    }
}

TEST_CASE("warps that have ended, and lanes that have, are not waited for") {
  PtxRun run = run_threads(with_shared(R"(
  st.shared.u32 [%r2], %r1;
  setp.ge.u32 %p1, %r1, 45;
  @%p1 exit;
  bar.sync 0;
  xor.b32 %r3, %r1, 32;
  mov.u32 %r4, s;
  mad.lo.u32 %r4, %r3, 4, %r4;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           128);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(128, [](uint32_t i) { return i < 45 ? i ^ 32 : 0u; }));
  // Threads that exit later release the waiting ones.
  run = run_threads(with_shared(R"(
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra WAIT;
  mov.u32 %r6, 200;
LOOP:
  sub.u32 %r6, %r6, 1;
  setp.ne.u32 %p2, %r6, 0;
  @%p2 bra LOOP;
  exit;
WAIT:
  bar.sync 0;
  st.global.u32 [%rd1], %r1;
  ret;)"),
                    96);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(96, [](uint32_t i) { return i < 64 ? i : 0u; }));
}

TEST_CASE("barrier.red gives all threads the count, the conjunction or the disjunction") {
  PtxRun run = run_threads(with_shared(R"(
  rem.u32 %r3, %r1, 3;
  setp.eq.u32 %p1, %r3, 0;
  bar.red.popc.u32 %r4, 0, %p1;
  bar.red.popc.u32 %r5, 0, !%p1;
  setp.lt.u32 %p2, %r1, 1000;
  bar.red.and.pred %p3, 1, %p2;
  bar.red.and.pred %p4, 1, %p1;
  barrier.red.or.pred %p5, 2, %p1;
  bar.red.or.pred %p6, 2, 128, !%p2;
  mad.lo.u32 %r4, %r4, 1000, %r5;
  mul.lo.u32 %r4, %r4, 10000;
  @%p3 add.u32 %r4, %r4, 1000;
  @%p4 add.u32 %r4, %r4, 100;
  @%p5 add.u32 %r4, %r4, 10;
  @%p6 add.u32 %r4, %r4, 1;
  st.global.u32 [%rd1], %r4;
  ret;)"),
                           128);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(128, [](uint32_t) { return (43u * 1000 + 85) * 10000 + 1010; }));
}

TEST_CASE("barriers with partial counts tie only the warps that use them") {
  // Warps 0+1 and 2+3 exchange their words, at barriers 1 and 2; the number comes from a register.
  PtxRun run = run_threads(with_shared(R"(
  st.shared.u32 [%r2], %r1;
  shr.u32 %r6, %r1, 6;
  add.u32 %r6, %r6, 1;
  mov.u32 %r7, 64;
  barrier.sync %r6, %r7;
  xor.b32 %r3, %r1, 32;
  mov.u32 %r4, s;
  mad.lo.u32 %r4, %r3, 4, %r4;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           128);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(128, [](uint32_t i) { return i ^ 32; }));
}

TEST_CASE("a producer warp and a consumer warp with bar.arrive and two buffers") {
  // PTX ISA 9.7.13.1: producer: sync on empty, fill, arrive on full; consumer: sync on full, use, arrive on empty.
  PtxRun run = run_threads(with_shared(R"(
  and.b32 %r3, %r1, 31;
  mov.u32 %r10, 0;
  mov.u32 %r11, 0;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra CONSUMER;
PRODUCER:
  and.b32 %r4, %r10, 1;
  add.u32 %r5, %r4, 3;
  bar.sync %r5, 64;
  mad.lo.u32 %r6, %r4, 32, %r3;
  mov.u32 %r7, s;
  mad.lo.u32 %r6, %r6, 4, %r7;
  mad.lo.u32 %r8, %r10, 1000, %r3;
  st.shared.u32 [%r6], %r8;
  add.u32 %r5, %r4, 1;
  bar.arrive %r5, 64;
  add.u32 %r10, %r10, 1;
  setp.lt.u32 %p2, %r10, 9;
  @%p2 bra PRODUCER;
  ret;
CONSUMER:
  bar.arrive 3, 64;
  bar.arrive 4, 64;
NEXT:
  and.b32 %r4, %r10, 1;
  add.u32 %r5, %r4, 1;
  bar.sync %r5, 64;
  mad.lo.u32 %r6, %r4, 32, %r3;
  mov.u32 %r7, s;
  mad.lo.u32 %r6, %r6, 4, %r7;
  ld.shared.u32 %r8, [%r6];
  add.u32 %r11, %r11, %r8;
  add.u32 %r10, %r10, 1;
  setp.lt.u32 %p2, %r10, 8;
  add.u32 %r5, %r4, 3;
  setp.lt.u32 %p3, %r10, 8;
  @%p3 bar.arrive %r5, 64;
  setp.lt.u32 %p2, %r10, 9;
  @%p2 bra NEXT;
  st.global.u32 [%rd1], %r11;
  ret;)"),
                           64);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return i < 32 ? 0u : 36 * 1000 + 9 * (i - 32); }));
}

TEST_CASE("bar.arrive of a warp whose lanes have diverged counts once") {
  // Lane 0 of warp 0 spins, so that its other lanes arrive before it. Barrier 1 takes three warps: if their arrivals
  // counted as two, warp 1 would pass without warp 2 and read 0.
  PtxRun run = run_threads(with_shared(R"(
  and.b32 %r3, %r1, 31;
  setp.ge.u32 %p1, %r1, 64;
  @%p1 bra SLOW;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra READER;
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra ARRIVE;
SPIN:
  ld.volatile.shared.u32 %r4, [s];
  setp.eq.u32 %p3, %r4, 0;
  @%p3 bra SPIN;
ARRIVE:
  bar.arrive 1, 96;
  @%p2 bra DONE;
  st.volatile.shared.u32 [s+4], 1;
DONE:
  ret;
SLOW:
  mov.u32 %r5, 0;
DELAY:
  add.u32 %r5, %r5, 1;
  ld.volatile.shared.u32 %r6, [s+4];
  setp.lt.u32 %p4, %r5, 1000;
  @%p4 bra DELAY;
  st.volatile.shared.u32 [s], 1;
ANSWER:
  ld.volatile.shared.u32 %r6, [s+4];
  setp.eq.u32 %p4, %r6, 0;
  @%p4 bra ANSWER;
  mov.u32 %r5, 0;
LATER:
  add.u32 %r5, %r5, 1;
  ld.volatile.shared.u32 %r6, [s+4];
  setp.lt.u32 %p4, %r5, 1000;
  @%p4 bra LATER;
  st.volatile.shared.u32 [s+8], 7;
  bar.sync 1, 96;
  ret;
READER:
  bar.sync 1, 96;
  ld.volatile.shared.u32 %r4, [s+8];
  st.global.u32 [%rd1], %r4;
  ret;)"),
                           96);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(96, [](uint32_t i) { return i / 32 == 1 ? 7u : 0u; }));
}

TEST_CASE("lanes of a warp come to a barrier that is not aligned on different ways") {
  PtxRun run = run_threads(with_shared(R"(
  st.shared.u32 [%r2], %r1;
  and.b32 %r6, %r1, 1;
  setp.eq.u32 %p1, %r6, 0;
  @%p1 bra EVEN;
  barrier.sync 0;
  bra JOIN;
EVEN:
  mov.u32 %r6, 5;
  barrier.sync 0;
JOIN:
  xor.b32 %r3, %r1, 32;
  mov.u32 %r4, s;
  mad.lo.u32 %r4, %r3, 4, %r4;
  ld.shared.u32 %r5, [%r4];
  add.u32 %r5, %r5, %r6;
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           64);
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return (i ^ 32) + (i % 2 ? 1 : 5); }));
}

TEST_CASE("a deadlock says who waits where") {
  PtxRun run = run_threads(with_shared(R"(
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra FIRST;
  bar.sync 1;
  ret;
FIRST:
  bar.sync 2;
  ret;)"),
                           160);
  REQUIRE(run.result.failure);
  CHECK(run.result.failure->kind == FailureKind::deadlock);
  CHECK_FALSE(run.result.failure->has_thread);
  // The kernel's text starts in line 7 of the module.
  const std::string text(run.module->source.text());
  auto line_of = [&](const char* what) {
    return std::to_string(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(text.find(what)), '\n') + 1);
  };
  CHECK(run.failure() == "deadlock: no warp of the block can go on; warps 0-1 wait at barrier 2 in line " +
                             line_of("bar.sync 2") + "; warps 2-4 wait at barrier 1 in line " + line_of("bar.sync 1"));
}

TEST_CASE("too few threads at a barrier, or a number that does not exist") {
  CHECK(run_threads(with_shared(" bar.sync 0, 96;\n ret;"), 64).failure().find("deadlock") == 0);
  CHECK(run_threads(with_shared(" mov.u32 %r3, 16;\n barrier.sync %r3;\n ret;"), 64).failure() == "barrier 16 of 16");
  CHECK(run_threads(with_shared(" mov.u32 %r3, 40;\n barrier.sync 1, %r3;\n ret;"), 64).failure() ==
        "barrier of 40 threads, which is no multiple of 32");
  CHECK(run_threads(with_shared(" mov.u32 %r3, 0;\n barrier.sync 1, %r3;\n ret;"), 64).failure() ==
        "barrier of 0 threads, which is no multiple of 32");
}

TEST_CASE("barriers inside functions and loops, many phases") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, s;
  mad.lo.u32 %r2, %r1, 4, %r3;
  add.u32 %r4, %r1, 1;
  and.b32 %r4, %r4, 127;
  mad.lo.u32 %r4, %r4, 4, %r3;
  st.shared.u32 [%r2], %r1;
  mov.u32 %r5, 50;
LOOP:
  call rotate, (%r4, %r2);
  sub.u32 %r5, %r5, 1;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra LOOP;
  ld.shared.u32 %r6, [%r2];
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  st.global.u32 [%rd1], %r6;
  ret;)",
                              R"(
.shared .align 4 .b8 s[512];
.func rotate(.reg .u32 %from, .reg .u32 %to) {
  .reg .b32 %r<4>;
  bar.sync 0;
  ld.shared.u32 %r1, [%from];
  bar.sync 0;
  st.shared.u32 [%to], %r1;
  ret;
})"),
                       {.kernel = "k", .block = {128}, .check = true}, {zeros<uint32_t>(128)});
  REQUIRE(run.error == "");
  CHECK(run.failure() == "");
  CHECK(run.result.findings.empty());
  CHECK(run.buffer<uint32_t>(0) == for_threads(128, [](uint32_t i) { return (i + 50) % 128; }));
}

} // namespace ptxrewrite::tests::barrier_test
