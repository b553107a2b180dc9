// Check mode on global memory: the pairs of accesses that race follow from the memory model (PTX ISA 8), not from the
// order in which the emulator runs blocks.
#include "emulator/memory/global_shadow.h"
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::global_races_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

constexpr uint32_t threads = 64;

// %r1: thread, %r2: block, %r3: thread in the grid; %rd1: the buffer, %rd2: its word for the thread, %rd3: its word for
// the thread in the grid; %r9: 1.
std::string text_with(const std::string& body, const std::string& more = {}) {
  return kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r3, %r2, %r4, %r1;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  mad.wide.u32 %rd3, %r3, 4, %rd1;
  mov.u32 %r9, 1;
)" + body + "\n  ret;",
                more);
}

PtxRun check(const std::string& body, uint32_t blocks, unsigned host_threads = 0, const std::string& more = {}) {
  PtxRun run =
      run_ptx(text_with(body, more),
              {.kernel = "k", .grid = {blocks}, .block = {threads}, .host_threads = host_threads, .check = true},
              {zeros<uint32_t>(1024)});
  CHECK(run.error == "");
  CHECK(run.failure() == "");
  return run;
}

std::string text_of(const PtxRun& run) {
  std::string text;
  for (const Finding& finding : run.result.findings)
    text += render(finding.to_diagnostic(run.module->source), run.module->source);
  return text;
}

bool is_clean(const std::string& body, uint32_t blocks) {
  const PtxRun run = check(body, blocks);
  INFO(text_of(run));
  return run.result.findings.empty();
}

// "st, ld": statements of the first finding's two accesses.
std::string pair_of(const PtxRun& run) {
  auto opcode = [&](const Failure& failure) {
    const std::string_view text = run.module->source.text().substr(failure.range.begin);
    return std::string(text.substr(0, text.find(' ')));
  };
  if (run.result.findings.empty()) return "";
  const Finding& first = run.result.findings[0];
  return opcode(first.where) + ", " + (first.other ? opcode(*first.other) : "");
}

} // namespace

TEST_CASE("blocks that update the same words race, told with both places") {
  // The index ignores the block.
  const char* body = "ld.global.u32 %r5, [%rd2];\n mad.lo.u32 %r5, %r5, 3, 1;\n st.global.u32 [%rd2], %r5;";
  const PtxRun run = check(body, 2);
  REQUIRE(run.result.findings.size() == 2); // the load, and the store
  const Finding& load = run.result.findings[0];
  REQUIRE(load.other);
  CHECK(load.where.block == Dimensions{1, 0, 0});
  CHECK(load.where.thread == Dimensions{0, 0, 0});
  CHECK(load.other->block == Dimensions{0, 0, 0});
  CHECK(load.other->thread == Dimensions{0, 0, 0});
  CHECK(pair_of(run) == "ld.global.u32, st.global.u32");
  CHECK(load.times == 2); // both warps of block 1
  CHECK(load.where.message.find("race: global 0x") == 0);
  CHECK(load.where.message.find("is read by this block and written by another one") != std::string::npos);
  const std::string text = text_of(run);
  CHECK_MESSAGE(text.find("block (1, 0, 0), thread (0, 0, 0)") != std::string::npos, text);
  CHECK_MESSAGE(text.find("the other one: line 19, block (0, 0, 0), thread (0, 0, 0)") != std::string::npos, text);

  CHECK(is_clean(body, 1));
  CHECK(is_clean("ld.global.u32 %r5, [%rd3];\n mad.lo.u32 %r5, %r5, 3, 1;\n st.global.u32 [%rd3], %r5;", 4));
}

TEST_CASE("races are the same whatever the number of host threads") {
  const char* body = "ld.global.u32 %r5, [%rd2];\n add.u32 %r5, %r5, %r3;\n st.global.u32 [%rd2], %r5;";
  const std::string one = text_of(check(body, 40, 1));
  CHECK(one != "");
  for (unsigned host_threads : {2u, 3u, 8u})
    CHECK(text_of(check(body, 40, host_threads)) == one);
}

TEST_CASE("warps of one block need a barrier in global memory, too") {
  auto neighbours = [](const char* between) {
    return std::string("st.global.u32 [%rd2], %r1;\n ") + between + R"(
  xor.b32 %r5, %r1, 32;
  mad.wide.u32 %rd4, %r5, 4, %rd1;
  ld.global.u32 %r6, [%rd4];)";
  };
  CHECK(is_clean(neighbours("bar.sync 0;"), 1));
  // Each warp's store races with the other warp's load.
  const PtxRun run = check(neighbours(""), 1);
  REQUIRE(run.result.findings.size() == 2);
  CHECK(pair_of(run) == "st.global.u32, ld.global.u32");
  CHECK(run.result.findings[0].where.message.find("is written by warp 1 and read by warp 0") != std::string::npos);
  CHECK(run.result.findings[1].where.message.find("is read by warp 1 and written by warp 0") != std::string::npos);
  CHECK(check(neighbours("membar.gl;"), 1).result.findings.size() == 2);
  CHECK(check(neighbours("bar.warp.sync 0xffffffff;"), 1).result.findings.size() == 2);
  // A barrier of the block does not order accesses of different blocks.
  CHECK(pair_of(check(neighbours("bar.sync 0;"), 2)) != "");
}

TEST_CASE("stores of what is there already do not race, others do") {
  CHECK(is_clean("st.global.u32 [%rd1], %r9;", 4));
  CHECK(pair_of(check("st.global.u32 [%rd1], %r2;", 4)) == "st.global.u32, st.global.u32");
  // Readers find 0 or 1.
  CHECK(pair_of(check("ld.global.u32 %r5, [%rd1];\n st.global.u32 [%rd1], %r9;", 2)) == "ld.global.u32, st.global.u32");
}

TEST_CASE("lanes that disagree in one store are told") {
  const PtxRun run = check("st.global.u32 [%rd1], %r1;", 1);
  REQUIRE(!run.result.findings.empty());
  CHECK(text_of(run).find("lanes 0 and 1 of the warp write different values to global") != std::string::npos);
  // Neighbours overlap by half.
  CHECK(text_of(check("shl.b32 %r5, %r1, 1;\n cvt.u64.u32 %rd4, %r5;\n add.u64 %rd4, %rd4, %rd1;\n"
                      "st.global.u16 [%rd4], %r1;\n st.global.u16 [%rd4], %r1;",
                      1)) == "");
}

TEST_CASE("bytes of one word that different blocks own are no race") {
  const char* own = "cvt.u64.u32 %rd4, %r3;\n add.u64 %rd4, %rd4, %rd1;\n st.global.u8 [%rd4], %r9;";
  CHECK(is_clean(own, 4));
  // Two bytes per block, one byte apart.
  const char* overlapping = R"(
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  cvt.u64.u32 %rd4, %r2;
  add.u64 %rd4, %rd4, %rd1;
  add.u32 %r5, %r2, 1;
  st.global.u8 [%rd4], %r5;
  st.global.u8 [%rd4+1], %r5;
DONE:)";
  CHECK(pair_of(check(overlapping, 2)) == "st.global.u8, st.global.u8");
}

TEST_CASE("a write races with reads of another block that its own block has repeated since") {
  // After a barrier of its own, block 1 updates in place the halo that block 0 has read.
  const char* body = R"(
  setp.eq.u32 %p1, %r2, 0;
  ld.global.u32 %r5, [%rd1];
  bar.sync 0;
  @%p1 bra DONE;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra DONE;
  st.global.u32 [%rd1], %r9;
DONE:)";
  CHECK(pair_of(check(body, 2)) == "st.global.u32, ld.global.u32");
}

TEST_CASE("atomics do not race with one another, nor with reads; with stores they do") {
  CHECK(is_clean("red.global.add.u32 [%rd1], %r1;\n atom.global.max.u32 %r5, [%rd1+4], %r3;", 4));
  CHECK(is_clean("red.global.add.u32 [%rd1], %r1;\n ld.global.u32 %r5, [%rd1];", 4));
  CHECK(is_clean("st.volatile.global.u32 [%rd1], %r2;\n ld.volatile.global.u32 %r5, [%rd1];", 4));
  CHECK(pair_of(check("setp.eq.u32 %p1, %r3, 64;\n @%p1 st.global.u32 [%rd1], %r9;\n red.global.add.u32 [%rd1], %r9;",
                      2)) == "@%p1, red.global.add.u32");
}

// The last block reads the words of the others: every thread writes, `release`; one thread counts.
std::string last_block(const std::string& release, const std::string& reset = "") {
  return R"(
  st.global.u32 [%rd3], %r3;
  )" + release +
         R"(
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r8, s;
  @%p1 bra COUNTED;
  atom.global.inc.u32 %r5, [%rd1+4000], 100;
  st.shared.u32 [s], %r5;
COUNTED:
  bar.sync 0;
  ld.shared.u32 %r6, [s];
  setp.ne.u32 %p2, %r6, 3;
  @%p2 bra DONE;
  xor.b32 %r7, %r3, 96;
  mad.wide.u32 %rd4, %r7, 4, %rd1;
  ld.global.u32 %r10, [%rd4];
  )" + reset +
         "\nDONE:";
}

TEST_CASE("the last block may read what all have written in front of a fence") {
  const char* more = ".shared .align 4 .b32 s;";
  CHECK(text_of(check(last_block("membar.gl;\n bar.sync 0;"), 4, 0, more)) == "");
  // A plain reset of the counter comes after all increments.
  CHECK(
      text_of(check(last_block("membar.gl;\n bar.sync 0;", "mov.u32 %r11, 0;\n @!%p1 st.global.u32 [%rd1+4000], %r11;"),
                    4, 0, more)) == "");
  // Only the counting thread's own store precedes its fence; a barrier orders those of the other threads before it.
  CHECK(text_of(check(last_block("bar.sync 0;\n membar.gl;"), 4, 0, more)) == "");
  CHECK(pair_of(check(last_block("bar.sync 0;"), 4, 0, more)) == "ld.global.u32, st.global.u32");
}

TEST_CASE("a flag between blocks orders what is behind a fence") {
  // Block 0 writes data and sets the flag, block 1 waits for the flag.
  auto handed_over = [](const std::string& release, const std::string& acquire) {
    return R"(
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra WAIT;
  st.global.u32 [%rd2], %r9;
  )" + release +
           R"(
  bra DONE;
WAIT:
  )" + acquire +
           R"(
  setp.ne.u32 %p3, %r5, 64;
  @%p3 bra WAIT;
  ld.global.u32 %r6, [%rd2];
DONE:)";
  };
  CHECK(is_clean(handed_over("membar.gl;\n red.global.add.u32 [%rd1+4000], %r9;",
                             "ld.volatile.global.u32 %r5, [%rd1+4000];\n membar.gl;"),
                 2));
  CHECK(is_clean(
      handed_over("red.release.gpu.global.add.u32 [%rd1+4000], %r9;", "ld.acquire.gpu.global.u32 %r5, [%rd1+4000];"),
      2));
  CHECK(is_clean(
      handed_over("membar.gl;\n red.global.add.u32 [%rd1+4000], %r9;", "atom.global.add.u32 %r5, [%rd1+4000], 0;"), 2));
  CHECK(pair_of(check(handed_over("red.global.add.u32 [%rd1+4000], %r9;", "ld.volatile.global.u32 %r5, [%rd1+4000];"),
                      2)) == "ld.global.u32, st.global.u32");
}

TEST_CASE("what is freed and allocated again is another memory") {
  const char* more = R"(
.extern .func (.param .b64 result) malloc (.param .b64 size);
.extern .func free (.param .b64 pointer);
)";
  const char* body = R"(
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  mov.u64 %rd5, 64;
  {
  .param .b64 size; .param .b64 result;
  st.param.b64 [size], %rd5;
  call.uni (result), malloc, (size);
  ld.param.b64 %rd6, [result];
  }
  st.u32 [%rd6], %r3;
  st.u32 [%rd6+8], %r4;
  {
  .param .b64 pointer;
  st.param.b64 [pointer], %rd6;
  call.uni free, (pointer);
  }
DONE:)";
  CHECK(text_of(check(body, 4, 0, more)) == "");
}

TEST_CASE("what is remembered of global memory is bounded") {
  constexpr uint64_t page_words = 256;
  GlobalShadow shadow(2 * page_words * sizeof(GlobalCell) + sizeof(GlobalCell));
  unsigned visited = 0;
  for (uint64_t page = 0; page < 1000; ++page)
    shadow.for_each(page * page_words * 4, 8, [&](GlobalCell& cell, uint64_t, unsigned) {
      cell.write.clock = 1;
      ++visited;
    });
  CHECK(visited == 4); // two words of each of the first two pages
  // No memory for single bytes either; nor for addresses of flags, which then match all addresses.
  shadow.for_each(1, 1, [&](GlobalCell&, uint64_t, unsigned) { FAIL("a byte's cell"); });
  shadow.give(64, 7);
  shadow.give(128, 9);
  CHECK(shadow.given(64) >= 7);
  CHECK(shadow.given(192) == 9);
  shadow.forget(0, UINT64_MAX / 8);
  shadow.for_each(0, 4, [&](GlobalCell& cell, uint64_t, unsigned) { CHECK(cell.write.clock == 0); });
}

} // namespace ptxrewrite::tests::global_races_test
