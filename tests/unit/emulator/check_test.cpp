// Check mode: planted bugs are found, and correct kernels give no finding.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::check_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

PtxRun check(const std::string& text, uint32_t threads, const std::vector<Argument>& arguments = {},
             Dimensions grid = {}) {
  PtxRun run = run_ptx(text, {.kernel = "k", .grid = grid, .block = {threads}, .check = true}, arguments);
  CHECK(run.error == "");
  CHECK(run.failure() == "");
  return run;
}

// %r1: thread, %r2: the address of its word in `s`; %rd1: the address of its result.
std::string shared_kernel(const std::string& body, const std::string& more = {}) {
  return kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<9>; .reg .b16 %h<4>;
  .shared .align 4 .b8 s[4096];
  .shared .align 4 .b32 flag;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  mad.lo.u32 %r2, %r1, 4, %r2;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
)" + body + "\n  ret;",
                more);
}

std::string text_of(const PtxRun& run) {
  std::string text;
  for (const Finding& finding : run.result.findings)
    text += render(finding.to_diagnostic(run.module->source), run.module->source);
  return text;
}

// The instruction as written, without its semicolon.
std::string statement(const PtxRun& run, const Failure& failure) {
  const SourceRange range = failure.range;
  return std::string(run.module->source.text().substr(range.begin, range.end - range.begin - 1));
}

// Every thread stores, waits at `between`, and reads its neighbour's word.
std::string neighbours(const std::string& between, const std::string& behind = {}) {
  return shared_kernel(R"(
  st.shared.u32 [%r2], %r1;
  )" + between + R"(
  xor.b32 %r3, %r1, 32;
  mov.u32 %r4, s;
  mad.lo.u32 %r4, %r3, 4, %r4;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%rd1], %r5;
  )" + behind);
}

} // namespace

TEST_CASE("a read of what another warp wrote without a barrier is a race, told with both accesses") {
  PtxRun run = check(neighbours(""), 64, {zeros<uint32_t>(64)});
  // The first warp reads words that are not written yet; the second one reads those of the first; and it wrote words
  // that the first one had read.
  REQUIRE(run.result.findings.size() == 3);
  const Finding& written = run.result.findings[0];
  CHECK(written.where.message ==
        "race: shared 0x80 ('s' + 128) is written by warp 1 and read by warp 0, with nothing that orders the two");
  CHECK(statement(run, written.where) == "st.shared.u32 [%r2], %r1");
  CHECK(written.where.kernel == "k");
  CHECK(written.where.thread == Dimensions{32, 0, 0});
  REQUIRE(written.other);
  CHECK(statement(run, *written.other) == "ld.shared.u32 %r5, [%r4]");
  CHECK(written.other->thread == Dimensions{0, 0, 0});
  CHECK(run.result.findings[1].where.message ==
        "4 of the 4 bytes read at shared 0x80 ('s' + 128) were never written in this block");
  const Finding& read = run.result.findings[2];
  CHECK(read.where.message ==
        "race: shared 0x0 ('s') is read by warp 1 and written by warp 0, with nothing that orders the two");
  CHECK(read.where.thread == Dimensions{32, 0, 0});
  REQUIRE(read.other);
  CHECK(statement(run, *read.other) == "st.shared.u32 [%r2], %r1");
}

TEST_CASE("barriers order, also partial and named ones, and reductions") {
  for (const char* barrier :
       {"bar.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 3, 64;", "bar.sync 7, 64;",
        "setp.eq.u32 %p1, %r1, 0; bar.red.popc.u32 %r9, 0, %p1;", "mov.u32 %r9, 5; bar.sync %r9;"}) {
    CAPTURE(barrier);
    PtxRun run = check(neighbours(barrier), 64, {zeros<uint32_t>(64)});
    CHECK(text_of(run) == "");
    CHECK(run.buffer<uint32_t>(0)[3] == 35);
  }
}

TEST_CASE("fences alone order nothing, nor does a barrier of the warp") {
  for (const char* fence : {"membar.cta;", "fence.sc.cta;", "membar.gl;"}) {
    CAPTURE(fence);
    CHECK(check(neighbours(fence), 64, {zeros<uint32_t>(64)}).result.findings.size() == 3);
  }
}

TEST_CASE("the second half of a loop's barriers may not be left out") {
  // while (--n) { s[t] = ...; barrier; read neighbour; [barrier] }: without the second barrier the next turn's store
  // races with a slow reader.
  auto loop = [](const char* second) {
    return neighbours("mov.u32 %r10, 4;\nLOOP:\n st.shared.u32 [%r2], %r10;\nbar.sync 0;", std::string(second) + R"(
  sub.u32 %r10, %r10, 1;
  setp.ne.u32 %p1, %r10, 0;
  @%p1 bra LOOP;)");
  };
  CHECK(text_of(check(loop("bar.sync 1;"), 64, {zeros<uint32_t>(64)})) == "");
  PtxRun run = check(loop(""), 64, {zeros<uint32_t>(64)});
  // Found at the next iteration's store and, where that came first, at the load.
  REQUIRE(run.result.findings.size() == 2);
  CHECK(statement(run, run.result.findings[0].where) == "st.shared.u32 [%r2], %r10");
  CHECK(statement(run, *run.result.findings[0].other) == "ld.shared.u32 %r5, [%r4]");
  CHECK(statement(run, run.result.findings[1].where) == "ld.shared.u32 %r5, [%r4]");
  CHECK(statement(run, *run.result.findings[1].other) == "st.shared.u32 [%r2], %r10");
}

TEST_CASE("lanes of one warp need no barrier") {
  PtxRun run = check(shared_kernel(R"(
  st.shared.u32 [%r2], %r1;
  xor.b32 %r3, %r1, 1;
  mov.u32 %r4, s;
  mad.lo.u32 %r4, %r3, 4, %r4;
  ld.shared.u32 %r5, [%r4];
  st.shared.u32 [%r4], %r5;
  ld.volatile.shared.u32 %r5, [%r2];
  st.global.u32 [%rd1], %r5;)"),
                     96, {zeros<uint32_t>(96)});
  CHECK(text_of(run) == "");
}

TEST_CASE("producers and consumers at named barriers with partial counts") {
  // Warp 0 produces for warp 1 through barrier 1 (full) and barrier 2 (empty), both of 64 threads; warps 2 and 3 take
  // no part.
  auto text = [](const char* wait_until_empty) {
    return shared_kernel(std::string(R"(
  mov.u32 %r6, s;
  setp.ge.u32 %p1, %r1, 64;
  @%p1 bra DONE;
  mov.u32 %r10, 3;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra CONSUME;
PRODUCE:
)") + wait_until_empty + R"(
  st.shared.u32 [%r2], %r10;
  bar.arrive 1, 64;
  sub.u32 %r10, %r10, 1;
  setp.ne.u32 %p2, %r10, 0;
  @%p2 bra PRODUCE;
  bra DONE;
CONSUME:
  bar.arrive 2, 64;
CONSUME_NEXT:
  bar.sync 1, 64;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd1], %r7;
  sub.u32 %r10, %r10, 1;
  setp.ne.u32 %p2, %r10, 0;
  @%p2 bar.arrive 2, 64;
  @%p2 bra CONSUME_NEXT;
DONE:)");
  };
  PtxRun run = check(text("bar.sync 2, 64;"), 128, {zeros<uint32_t>(128)});
  CHECK(text_of(run) == "");
  CHECK(run.buffer<uint32_t>(0)[40] == 1);
}

TEST_CASE("one that only arrives at a barrier knows nothing of the others") {
  PtxRun run = check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra SECOND;
  st.shared.u32 [%r2], %r1;
  bar.arrive 1, 64;
  st.shared.u32 [%r2], %r2;
  bra DONE;
SECOND:
  bar.sync 1, 64;
  ld.shared.u32 %r5, [s];
  st.global.u32 [%rd1], %r5;
DONE:)"),
                     64, {zeros<uint32_t>(64)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(statement(run, run.result.findings[0].where) == "ld.shared.u32 %r5, [s]");
  REQUIRE(run.result.findings[0].other);
  CHECK(statement(run, *run.result.findings[0].other) == "st.shared.u32 [%r2], %r2");
}

TEST_CASE("a flag behind a fence orders; without fences it does not") {
  auto text = [](const char* release, const char* acquire) {
    return shared_kernel(std::string(R"(
  setp.ne.u32 %p3, %r1, 0;
  @!%p3 st.shared.u32 [flag], %r1;
  st.shared.u32 [%r2], %r1;
  bar.sync 0;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra SECOND;
  st.shared.u32 [%r2], %r2;
  )") + release + R"(
  bra DONE;
SECOND:
  mov.u32 %r9, 1;
WAIT:
  )" + acquire + R"(
  ld.shared.u32 %r5, [s];
  st.global.u32 [%rd1], %r5;
DONE:)");
  };
  const std::string loop = " setp.eq.u32 %p2, %r8, 0;\n @%p2 bra WAIT;\n";
  CHECK(text_of(check(text("membar.cta; mov.u32 %r8, 1; st.volatile.shared.u32 [flag], %r8;",
                           ("ld.volatile.shared.u32 %r8, [flag];\n" + loop + "membar.cta;").c_str()),
                      64, {zeros<uint32_t>(64)})) == "");
  CHECK(text_of(check(text("mov.u32 %r8, 1; st.release.cta.shared.u32 [flag], %r8;",
                           ("ld.acquire.cta.shared.u32 %r8, [flag];\n" + loop).c_str()),
                      64, {zeros<uint32_t>(64)})) == "");
  PtxRun run = check(text("mov.u32 %r8, 1; st.volatile.shared.u32 [flag], %r8;",
                          ("ld.volatile.shared.u32 %r8, [flag];\n" + loop).c_str()),
                     64, {zeros<uint32_t>(64)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(statement(run, run.result.findings[0].where) == "ld.shared.u32 %r5, [s]");
}

TEST_CASE("weak and strong accesses race with one another, strong ones do not") {
  auto text = [](const char* access) {
    return shared_kernel(std::string(" mov.u32 %r6, 0;\n st.volatile.shared.u32 [s], %r1;\n") + access);
  };
  CHECK(text_of(check(text("ld.volatile.shared.u32 %r5, [s]; ld.relaxed.cta.shared.u32 %r5, [s];"), 64,
                      {zeros<uint32_t>(64)})) == "");
  PtxRun run = check(text("ld.shared.u32 %r5, [s];"), 64, {zeros<uint32_t>(64)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(statement(run, *run.result.findings[0].other) == "ld.shared.u32 %r5, [s]");
}

TEST_CASE("stores of the same bytes by several warps do not race; of other bytes they do") {
  auto text = [](const char* value) {
    return shared_kernel(std::string(" shr.u32 %r7, %r1, 5;\n mov.u32 %r6, 1;\n st.shared.u32 [s], ") + value +
                         ";\n bar.sync 0;\n ld.shared.u32 %r5, [s];");
  };
  CHECK(text_of(check(text("%r6"), 128, {zeros<uint32_t>(128)})) == "");
  PtxRun run = check(text("%r7"), 128, {zeros<uint32_t>(128)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(run.result.findings[0].times == 3);
  CHECK(run.result.findings[0].where.message ==
        "race: shared 0x0 ('s') is written by warp 1 and written by warp 0, with nothing that orders the two");
}

TEST_CASE("neighbouring bytes of one word are no race") {
  auto text = [](const char* offset) {
    return shared_kernel(std::string(R"(
  shr.u32 %r7, %r1, 5;
  mov.u32 %r6, s;
  add.u32 %r6, %r6, %r7;
  and.b32 %r8, %r1, 31;
  setp.ne.u32 %p1, %r8, 0;
  @%p1 bra JOIN;
  st.shared.u8 [%r6)") + offset +
                         R"(], %r7;
JOIN:
  bar.sync 0;
  ld.shared.u32 %r5, [s];
  st.global.u32 [%rd1], %r5;)");
  };
  PtxRun run = check(text(""), 128, {zeros<uint32_t>(128)});
  CHECK(text_of(run) == "");
  CHECK(run.buffer<uint32_t>(0)[0] == 0x03020100);
  // Byte 0 is missing now.
  run = check(text("+1"), 128, {zeros<uint32_t>(128)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(run.result.findings[0].where.message ==
        "1 of the 4 bytes read at shared 0x0 ('s') were never written in this block");
  CHECK(run.result.findings[0].times == 4);
}

TEST_CASE("lanes of one store that disagree on a value are told; those that agree are not") {
  auto text = [](const char* value) {
    return shared_kernel(std::string(" mov.u32 %r6, 1;\n st.shared.u32 [s], ") + value + ";");
  };
  PtxRun run = check(text("%r1"), 32, {zeros<uint32_t>(32)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(run.result.findings[0].where.message ==
        "lanes 0 and 1 of the warp write different values to shared 0x0 ('s') in the same instruction");
  CHECK(text_of(check(text("%r6"), 32, {zeros<uint32_t>(32)})) == "");
  // Overlapping vectors with equal or different values in the words they share.
  auto vectors = [](const char* second) {
    return shared_kernel(std::string(R"(
  mov.u32 %r6, s;
  shl.b32 %r7, %r1, 3;
  add.u32 %r6, %r6, %r7;
  and.b32 %r9, %r7, 8;
  st.shared.v2.u32 [s], {%r9, )") +
                         second + "};");
  };
  CHECK(check(vectors("%r9"), 32, {zeros<uint32_t>(32)}).result.findings.size() == 1);
}

TEST_CASE("uninitialised shared memory is told byte by byte, per block") {
  PtxRun run = check(shared_kernel(R"(
  mov.u32 %r6, 7;
  st.shared.u16 [%r2], %r6;
  ld.shared.u16 %h1, [%r2];
  ld.shared.u32 %r5, [%r2];
  ld.shared.v2.u16 {%h1, %h2}, [%r2];)"),
                     32, {zeros<uint32_t>(32)}, {3, 1, 1});
  REQUIRE(run.result.findings.size() == 2);
  CHECK(statement(run, run.result.findings[0].where) == "ld.shared.u32 %r5, [%r2]");
  CHECK(run.result.findings[0].where.message ==
        "2 of the 4 bytes read at shared 0x0 ('s') were never written in this block");
  CHECK(run.result.findings[0].times == 3); // once in each block
  CHECK(run.result.findings[0].where.block == Dimensions{0, 0, 0});
}

TEST_CASE("generic accesses to shared memory are seen") {
  PtxRun run = check(shared_kernel(R"(
  mov.u64 %rd3, s;
  cvta.shared.u64 %rd3, %rd3;
  mad.wide.u32 %rd3, %r1, 4, %rd3;
  st.u32 [%rd3], %r1;
  ld.u32 %r5, [%rd3+4];)"),
                     64, {zeros<uint32_t>(64)});
  REQUIRE(run.result.findings.size() == 2);
  CHECK(run.result.findings[0].where.message ==
        "race: shared 0x80 ('s' + 128) is written by warp 1 and read by warp 0, with nothing that orders the two");
  CHECK(run.result.findings[1].where.message ==
        "4 of the 4 bytes read at shared 0x80 ('s' + 128) were never written in this block");
}

TEST_CASE("uninitialised local memory is told by thread, and again in every call") {
  PtxRun run = check(kernel("k", "", R"(
  .local .align 4 .b8 depot[16];
  .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 8;
  @%p1 st.local.u32 [depot+4], %r1;
  ld.local.u32 %r2, [depot+4];
  ret;)"),
                     32);
  REQUIRE(run.result.findings.size() == 1);
  CHECK(run.result.findings[0].where.message == "4 of the 4 bytes read at local 0x4 were never written by the thread");
  CHECK(run.result.findings[0].where.thread == Dimensions{8, 0, 0});
  // The callee leaves its local memory initialised; the next call has new, uninitialised memory.
  run = check(kernel("k", "", R"(
  call leaf;
  call leaf;
  ret;)",
                     R"(
.func leaf() {
  .local .align 4 .b8 mine[8];
  .reg .b32 %r<4>;
  mov.u32 %r1, 1;
  ld.local.u32 %r2, [mine+4];
  st.local.u32 [mine+4], %r1;
  ret;
})"),
              32);
  REQUIRE(run.result.findings.size() == 1);
  CHECK(run.result.findings[0].times == 2);
  CHECK(run.result.findings[0].where.function == "leaf");
}

TEST_CASE("divergent .aligned barriers are told") {
  SUBCASE("in one side of a branch") {
    PtxRun run = check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 16;
  @%p1 bra JOIN;
  bar.sync 0;
JOIN:
  st.global.u32 [%rd1], %r1;)"),
                       32, {zeros<uint32_t>(32)});
    REQUIRE(run.result.findings.size() == 1);
    CHECK(run.result.findings[0].where.message ==
          "lanes 0xffff0000 of the warp do not execute this barrier, which all lanes of a warp must");
  }
  SUBCASE("under a guard that differs") {
    PtxRun run = check(shared_kernel(" setp.lt.u32 %p1, %r1, 31;\n @%p1 bar.sync 0;"), 32, {zeros<uint32_t>(32)});
    REQUIRE(run.result.findings.size() == 1);
    CHECK(run.result.findings[0].where.message ==
          "lanes 0x80000000 of the warp do not execute this barrier, which all lanes of a warp must");
  }
  SUBCASE("one barrier in each branch") {
    PtxRun run = check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 16;
  @%p1 bra OTHER;
  bar.sync 0;
  bra JOIN;
OTHER:
  bar.sync 0;
JOIN:
  st.global.u32 [%rd1], %r1;)"),
                       32, {zeros<uint32_t>(32)});
    REQUIRE(run.result.findings.size() == 1);
    CHECK(run.result.findings[0].other.has_value());
  }
  SUBCASE("in a loop of different lengths") {
    PtxRun run = check(shared_kernel(R"(
  mov.u32 %r4, 0;
LOOP:
  bar.sync 0;
  add.u32 %r4, %r4, 1;
  setp.le.u32 %p1, %r4, %r1;
  @%p1 bra LOOP;
  st.global.u32 [%rd1], %r1;)"),
                       32, {zeros<uint32_t>(32)});
    REQUIRE(run.result.findings.size() == 1);
    CHECK(run.result.findings[0].times == 31);
  }
  SUBCASE("not those without .aligned, nor those where lanes have ended") {
    CHECK(text_of(check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 16;
  @%p1 bra OTHER;
  barrier.sync 0;
  bra JOIN;
OTHER:
  barrier.sync 0;
JOIN:
  st.global.u32 [%rd1], %r1;)"),
                        32, {zeros<uint32_t>(32)})) == "");
    CHECK(text_of(check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 16;
  @%p1 bra END;
  bar.sync 0;
  st.global.u32 [%rd1], %r1;
END:)"),
                        32, {zeros<uint32_t>(32)})) == "");
    CHECK(text_of(check(shared_kernel(" setp.ge.u32 %p1, %r1, 40;\n @%p1 exit;\n bar.sync 0;"), 64,
                        {zeros<uint32_t>(64)})) == "");
  }
}

TEST_CASE("warps that disagree on a barrier's size are told") {
  PtxRun run = check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra OTHER;
  bar.sync 0, 96;
  bra JOIN;
OTHER:
  bar.sync 0;
JOIN:
  st.global.u32 [%rd1], %r1;)"),
                     96, {zeros<uint32_t>(96)});
  CHECK(text_of(run) == "");
  run = check(shared_kernel(R"(
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra OTHER;
  bar.sync 0, 64;
  bra JOIN;
OTHER:
  bar.sync 0, 96;
JOIN:
  st.global.u32 [%rd1], %r1;)"),
              96, {zeros<uint32_t>(96)});
  REQUIRE(run.result.findings.size() == 1);
  CHECK(run.result.findings[0].where.message ==
        "barrier 0 takes 96 threads here, but 64 threads for a warp that is there already");
  REQUIRE(run.result.findings[0].other);
  CHECK(statement(run, *run.result.findings[0].other) == "bar.sync 0, 64");
}

TEST_CASE("findings have CUDA lines and do not depend on the number of host threads") {
  const std::string text = kernel("k", ".param .u64 out", R"(
  .reg .b32 %r<9>;
  .shared .b32 cell[64];
  .loc 1 7 3
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, cell;
  mad.lo.u32 %r2, %r1, 4, %r2;
  .loc 1 8 3
  st.shared.u32 [%r2], %r1;
  .loc 1 9 3
  xor.b32 %r3, %r1, 32;
  mov.u32 %r2, cell;
  mad.lo.u32 %r2, %r3, 4, %r2;
  ld.shared.u32 %r4, [%r2];
  ret;)",
                                  ".file 1 \"tile.cu\"\n");
  std::string first;
  for (unsigned threads : {1u, 2u, 4u}) {
    PtxRun run = run_ptx(text, {.kernel = "k", .grid = {100}, .block = {64}, .host_threads = threads, .check = true},
                         {zeros<uint32_t>(64)});
    REQUIRE(run.result.findings.size() == 3);
    CHECK(run.result.findings[0].where.source_file == "tile.cu");
    CHECK(run.result.findings[0].where.source_line == 8);
    CHECK(run.result.findings[0].other->source_line == 9);
    CHECK(run.result.findings[0].times == 100);
    CHECK(run.result.findings[0].where.block == Dimensions{0, 0, 0});
    if (first.empty()) first = text_of(run);
    CHECK(text_of(run) == first);
  }
  CHECK(first.find("note: from tile.cu:8") != std::string::npos);
  CHECK(first.find("tile.cu:9") != std::string::npos);
}

TEST_CASE("findings of blocks in front of a failure are kept, of those behind it left out") {
  // Every block races; block 5 traps.
  const std::string text = kernel("k", "", R"(
  .reg .b32 %r<9>; .reg .pred %p;
  .shared .b32 cell;
  mov.u32 %r1, %tid.x;
  st.shared.u32 [cell], %r1;
  mov.u32 %r2, %ctaid.x;
  setp.eq.u32 %p, %r2, 5;
  @%p trap;
  ret;)");
  for (unsigned threads : {1u, 2u, 4u}) {
    PtxRun run = run_ptx(text, {.kernel = "k", .grid = {64}, .block = {32}, .host_threads = threads, .check = true});
    CHECK(run.failure() == "the kernel executed a trap");
    CHECK(run.result.failure->block.x == 5);
    REQUIRE(run.result.findings.size() == 1);
    CHECK(run.result.findings[0].times == 6);
  }
}

TEST_CASE("without check mode nothing is looked for") {
  PtxRun run = run_ptx(neighbours(""), {.kernel = "k", .block = {64}}, {zeros<uint32_t>(64)});
  CHECK(run.ok());
  CHECK(run.result.findings.empty());
}

} // namespace ptxrewrite::tests::check_test
