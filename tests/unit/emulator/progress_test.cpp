// Independent progress of threads (PTX ISA 3.2): locks and flags between lanes of a warp, warps of a block and blocks.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::progress_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

std::string with_data(const std::string& body, const std::string& variables = {}) {
  return kernel("k", ".param .u64 data", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  .shared .align 4 .b32 lock, count;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  ld.param.u64 %rd1, [data];
)" + body,
                variables);
}

PtxRun run(const std::string& text, Dimensions grid, Dimensions block, size_t words, bool check = false,
           bool unordered = false, unsigned threads = 0) {
  PtxRun result = run_ptx(text,
                          {.kernel = "k",
                           .grid = grid,
                           .block = block,
                           .host_threads = threads,
                           .unordered = unordered,
                           .check = check,
                           .fuel = 100'000'000},
                          {zeros<uint32_t>(words)});
  REQUIRE(result.error == "");
  CHECK(result.failure() == "");
  std::string findings;
  for (const Finding& finding : result.result.findings)
    findings += render(finding.to_diagnostic(result.module->source), result.module->source);
  CHECK(findings == "");
  return result;
}

// data[0] is a lock, data[1] the protected counter: every thread adds one without atomics.
constexpr const char* locked_increment = R"(
AGAIN:
  atom.global.cas.b32 %r3, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra AGAIN;
  membar.gl;
  ld.global.u32 %r4, [%rd1+4];
  add.u32 %r4, %r4, 1;
  st.global.u32 [%rd1+4], %r4;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0;
  ret;)";

} // namespace

TEST_CASE("lanes of a warp take turns at a lock that each of them releases behind the loop") {
  for (uint32_t threads : {1u, 2u, 32u, 33u, 256u, 1024u}) {
    CAPTURE(threads);
    CHECK(run(with_data(locked_increment), {1}, {threads}, 2).buffer<uint32_t>(0)[1] == threads);
  }
}

TEST_CASE("blocks take turns at a lock, on one host thread and, unordered, on several") {
  CHECK(run(with_data(locked_increment), {50}, {40}, 2).buffer<uint32_t>(0)[1] == 2000);
  CHECK(run(with_data(locked_increment), {50}, {40}, 2, false, true, 4).buffer<uint32_t>(0)[1] == 2000);
}

TEST_CASE("a lock in shared memory whose holder is one of the spinning lanes, under check") {
  PtxRun result = run(with_data(R"(
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r9, 0;
  @%p1 bra READY;
  st.shared.u32 [lock], %r9;
  st.shared.u32 [count], %r9;
READY:
  bar.sync 0;
AGAIN:
  atom.shared.cas.b32 %r3, [lock], 0, 1;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra AGAIN;
  membar.cta;
  ld.shared.u32 %r4, [count];
  add.u32 %r4, %r4, 1;
  st.shared.u32 [count], %r4;
  membar.cta;
  atom.shared.exch.b32 %r3, [lock], 0;
  bar.sync 0;
  ld.shared.u32 %r4, [count];
  st.global.u32 [%rd1], %r4;
  ret;)"),
                      {3}, {96}, 1, true);
  CHECK(result.buffer<uint32_t>(0)[0] == 96);
}

TEST_CASE("the lock of a loop with a critical section inside, as compilers lay it out") {
  // done = false; while (!done) { if (cas == 0) { ...; release; done = true; } }
  PtxRun result = run(with_data(R"(
  mov.u32 %r8, 0;
LOOP:
  atom.global.cas.b32 %r3, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra NEXT;
  membar.gl;
  ld.global.u32 %r4, [%rd1+4];
  add.u32 %r4, %r4, 1;
  st.global.u32 [%rd1+4], %r4;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0;
  mov.u32 %r8, 1;
NEXT:
  setp.eq.u32 %p2, %r8, 0;
  @%p2 bra LOOP;
  ret;)"),
                      {4}, {64}, 2);
  CHECK(result.buffer<uint32_t>(0)[1] == 256);
}

TEST_CASE("a lane waits for a flag of another lane of its warp, that comes later in the program") {
  // Odd lanes spin until their even neighbour, which waits after the branch, has stored.
  PtxRun result = run(with_data(R"(
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  and.b32 %r3, %r1, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra EVEN;
WAIT:
  ld.volatile.global.u32 %r4, [%rd2+-4];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra WAIT;
  add.u32 %r4, %r4, 1000;
  bra STORE;
EVEN:
  add.u32 %r4, %r1, 5;
STORE:
  st.volatile.global.u32 [%rd2], %r4;
  ret;)"),
                      {1}, {64}, 64);
  const std::vector<uint32_t> out = result.buffer<uint32_t>(0);
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(out[i] == (i % 2 ? i - 1 + 5 + 1000 : i + 5));
}

TEST_CASE("warps wait for one another's flags, forwards and backwards") {
  // A token is passed through the warps from the last to the first; then all warps exit.
  PtxRun result = run(with_data(R"(
  shr.u32 %r3, %r1, 5;
  mad.wide.u32 %rd2, %r3, 4, %rd1;
  setp.eq.u32 %p1, %r3, 7;
  @%p1 bra PASS;
WAIT:
  ld.volatile.global.u32 %r4, [%rd2+4];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra WAIT;
PASS:
  and.b32 %r5, %r1, 31;
  setp.ne.u32 %p3, %r5, 0;
  @%p3 bra END;
  add.u32 %r6, %r4, 1;
  @%p1 mov.u32 %r6, 1;
  st.volatile.global.u32 [%rd2], %r6;
END:
  ret;)"),
                      {1}, {256}, 8);
  const std::vector<uint32_t> out = result.buffer<uint32_t>(0);
  for (uint32_t warp = 0; warp < 8; ++warp)
    CHECK(out[warp] == 8 - warp);
}

TEST_CASE("a barrier of the whole grid by an atomic counter; every block is needed") {
  // Before: each block writes its number. After: each block reads the next block's.
  const std::string text = with_data(R"(
  mov.u32 %r3, %nctaid.x;
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra MEET;
  add.u32 %r4, %r2, 70;
  st.global.u32 [%rd2+4], %r4;
  membar.gl;
  atom.global.add.u32 %r5, [%rd1], 1;
WAIT:
  ld.volatile.global.u32 %r5, [%rd1];
  setp.lt.u32 %p2, %r5, %r3;
  @%p2 bra WAIT;
  membar.gl;
MEET:
  bar.sync 0;
  add.u32 %r6, %r2, 1;
  rem.u32 %r6, %r6, %r3;
  mad.wide.u32 %rd3, %r6, 4, %rd1;
  ld.global.u32 %r7, [%rd3+4];
  mad.wide.u32 %rd4, %r3, 4, %rd2;
  @!%p1 st.global.u32 [%rd4+4], %r7;
  ret;)");
  for (uint32_t blocks : {1u, 2u, 300u}) {
    CAPTURE(blocks);
    const std::vector<uint32_t> out = run(text, {blocks}, {64}, 1 + 2 * blocks).buffer<uint32_t>(0);
    for (uint32_t i = 0; i < blocks; ++i)
      CHECK(out[1 + blocks + i] == 70 + (i + 1) % blocks);
  }
  const std::vector<uint32_t> out = run(text, {64}, {64}, 1 + 128, false, true, 3).buffer<uint32_t>(0);
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(out[1 + 64 + i] == 70 + (i + 1) % 64);
}

TEST_CASE("the last block to come adds up what the others left") {
  // The pattern of single-pass reductions: results, fence, counter; the last block reads all results.
  const std::string text = with_data(R"(
  mov.u32 %r3, %nctaid.x;
  sub.u32 %r4, %r3, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra VOTE;
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  mad.lo.u32 %r5, %r2, %r2, 1;
  st.global.u32 [%rd2+8], %r5;
  membar.gl;
  atom.global.inc.u32 %r6, [%rd1], %r4;
  setp.eq.u32 %p2, %r6, %r4;
  selp.u32 %r7, 1, 0, %p2;
  st.shared.u32 [lock], %r7;
VOTE:
  bar.sync 0;
  ld.shared.u32 %r7, [lock];
  setp.eq.u32 %p3, %r7, 0;
  @%p3 bra END;
  @%p1 bra END;
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
SUM:
  mad.wide.u32 %rd3, %r8, 4, %rd1;
  ld.volatile.global.u32 %r10, [%rd3+8];
  add.u32 %r9, %r9, %r10;
  add.u32 %r8, %r8, 1;
  setp.lt.u32 %p4, %r8, %r3;
  @%p4 bra SUM;
  st.global.u32 [%rd1+4], %r9;
END:
  ret;)");
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 40; ++i)
    sum += i * i + 1;
  CHECK(run(text, {40}, {64}, 42, true).buffer<uint32_t>(0)[1] == sum);
  CHECK(run(text, {40}, {64}, 42, true, true, 4).buffer<uint32_t>(0)[1] == sum);
}

TEST_CASE("what nobody will ever write is not waited for without end") {
  const std::string text = with_data(R"(
WAIT:
  ld.volatile.global.u32 %r5, [%rd1];
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra WAIT;
  ret;)");
  for (bool unordered : {false, true}) {
    PtxRun result =
        run_ptx(text, {.kernel = "k", .grid = {3}, .block = {64}, .host_threads = 2, .unordered = unordered},
                {zeros<uint32_t>(1)});
    REQUIRE(result.result.failure);
    CHECK(result.result.failure->kind == FailureKind::deadlock);
    CHECK(result.failure() == "all blocks spin: nothing that they wait for will come");
  }
  PtxRun result = run_ptx(text, {.kernel = "k", .block = {32}, .fuel = 10'000}, {zeros<uint32_t>(1)});
  CHECK(result.failure().find("out of fuel") == 0);
}

TEST_CASE("loops that look like waiting, but count, are not given up") {
  // An atomic in a loop of half a million iterations; a poll with the same limit.
  PtxRun result = run(with_data(R"(
  mov.u32 %r3, 0;
COUNT:
  atom.global.add.u32 %r4, [%rd1], 2;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, 500000;
  @%p1 bra COUNT;
  mov.u32 %r3, 0;
POLL:
  ld.volatile.global.u32 %r4, [%rd1+4];
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, 500000;
  setp.eq.and.u32 %p1, %r4, 0, %p1;
  @%p1 bra POLL;
  st.global.u32 [%rd1+8], %r3;
  ret;)"),
                      {1}, {1}, 3);
  CHECK(result.buffer<uint32_t>(0) == std::vector<uint32_t>{1000000, 0, 500000});
}

TEST_CASE("thousands of barriers of the grid without a block that ends") {
  PtxRun result = run(with_data(R"(
  mov.u32 %r3, 0;
PHASE:
  atom.global.add.u32 %r5, [%rd1], 1;
  add.u32 %r3, %r3, 8;
WAIT:
  ld.volatile.global.u32 %r5, [%rd1];
  setp.lt.u32 %p2, %r5, %r3;
  @%p2 bra WAIT;
  setp.lt.u32 %p3, %r3, 40000;
  @%p3 bra PHASE;
  ret;)"),
                      {8}, {1}, 1);
  CHECK(result.buffer<uint32_t>(0)[0] == 40000);
}

TEST_CASE("a host thread whose blocks spin waits for another one's long computation") {
  // Block 0 counts for a long time before it sets the flag that the others poll.
  const std::string text = with_data(R"(
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra WAIT;
  mov.u32 %r4, 0;
LONG:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p2, %r4, 2000000;
  @%p2 bra LONG;
  st.volatile.global.u32 [%rd1], %r4;
  ret;
WAIT:
  ld.volatile.global.u32 %r5, [%rd1];
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra WAIT;
  ret;)");
  CHECK(run(text, {2}, {1}, 1, false, true, 2).buffer<uint32_t>(0)[0] == 2000000);
}

// The loops of CUTLASS's tutorials of Blackwell: one warp finishes every phase, at once on the emulator, and nothing
// but its own wait keeps it from being two phases ahead of the warps that only wait.
TEST_CASE("warps that wait for every phase of an mbarrier keep up with the warp that finishes the phases") {
  PtxRun result = run(with_data(R"(
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [bar], 1;
READY:
  bar.sync 0;
  mov.u32 %r3, 0;
PHASE:
  @%p1 bra WAIT;
  mbarrier.arrive.shared::cta.b64 _, [bar];
WAIT:
  and.b32 %r4, %r3, 1;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r4;
  @!%p2 bra AGAIN;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p3, %r3, 10;
  @%p3 bra PHASE;
  atom.global.add.u32 %r5, [%rd1], %r3;
  ret;)",
                                ".shared .align 8 .b64 bar;"),
                      {1}, {128}, 1, true);
  CHECK(result.buffer<uint32_t>(0)[0] == 1280);
}

} // namespace ptxrewrite::tests::progress_test
