// Difficult kernels for RegLess's machine, annotated by the compiler's part (transforms/regless/regless.cpp) with
// regions of several sizes: each runs with 512 entries and with the fewest that hold the largest region, and must leave
// the same memory as the emulator without the machine. Those found by fuzz_rewrites --regless and reduced have their
// seed in a comment.
#include "emulator/machines/regless/staging_counters.h"
#include "emulator/machines/regless/staging_plan.h"
#include "tests/unit/emulator/run_ptx.h"
#include "transforms/manager/text_insertion.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::staging_kernels_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

std::string annotated(const std::string& text, const std::string& limits) {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  const auto pipeline = transforms::parse_pipeline("regless" + limits);
  REQUIRE(pipeline);
  transforms::RunOptions options;
  options.form = transforms::OutputForm::annotated;
  return transforms::annotated_text(*module, *pipeline, options).text;
}

uint32_t least_entries(const std::string& text) {
  Diagnostics diagnostics;
  return least_staging_entries(*grammar::read_module(SourceFile("test.ptx", text), diagnostics));
}

// The kernel `k` of the text has one buffer of a word per thread, initialised to 3 * thread + 1.
void check_staged(const std::string& text, uint32_t threads, uint32_t blocks = 1) {
  std::vector<uint32_t> data(size_t(threads) * blocks);
  for (uint32_t i = 0; i < data.size(); ++i)
    data[i] = 3 * i + 1;
  LaunchRequest request{.kernel = "k", .grid = {blocks}, .block = {threads}, .fuel = 1'000'000};
  const PtxRun usual = run_ptx(text, request, {buffer_of(data)});
  INFO(usual.error, usual.failure());
  REQUIRE(usual.ok());
  for (const char* limits : {"", "(live=12,bank=4)", "(live=6,bank=2)"}) {
    const std::string marked = annotated(text, limits);
    for (const uint32_t entries : {512u, least_entries(marked)}) {
      request.machines.set(StagingSettings{.entries = entries});
      const PtxRun staged = run_ptx(marked, request, {buffer_of(data)});
      INFO(limits, " ", entries, " entries: ", staged.error, staged.failure(), "\n", marked);
      CHECK(staged.ok());
      CHECK(staged.buffers == usual.buffers);
      CHECK(staged.result.machines.get<StagingCounters>().regions > 0);
    }
  }
}

// `body` uses its thread's number in %tid and the address of its word in %at.
std::string kernel_of(const std::string& body, const std::string& more = {}) {
  return kernel("k", ".param .u64 data",
                R"(.reg .pred %p<10>; .reg .b32 %r<40>; .reg .b32 %t; .reg .b64 %d<20>; .reg .b64 %at;
  ld.param.u64 %d0, [data];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %at, %t, 4, %d0;
)" + body,
                more);
}

} // namespace

// fuzz_rewrites --regless, seed 1041: the copy was recomputed before its readers, and only the merge read
// it.
TEST_CASE("a predicate that is copied on one way to where ways meet") {
  check_staged(kernel_of(R"(
  and.b32 %r1, %t, 4;
  setp.ne.u32 %p1, %r1, 0;
  and.b32 %r2, %t, 1;
  setp.ne.u32 %p2, %r2, 0;
  and.b32 %r3, %t, 8;
  setp.ne.u32 %p3, %r3, 0;
  @%p3 bra JOIN;
  mov.pred %p1, %p2;
JOIN:
  selp.b32 %r4, 1, 0, %p1;
  st.global.u32 [%at], %r4;
  ret;
)"),
               64);
}

// Seed 368: the selection absorbs the conjunction, and reads it where %p2 has another value.
TEST_CASE("a predicate that is needed behind the place where its name is used again") {
  check_staged(kernel_of(R"(
  and.b32 %r1, %t, 4;
  setp.ne.u32 %p1, %r1, 0;
  and.b32 %r2, %t, 1;
  setp.ne.u32 %p2, %r2, 0;
  and.pred %p1, %p2, !%p1;
  setp.ne.u32 %p2, 0, 0;
  selp.b32 %r3, 1, 0, %p2;
  selp.b32 %r4, 2, 0, %p1;
  add.u32 %r4, %r4, %r3;
  st.global.u32 [%at], %r4;
  ret;
)"),
               64);
}

TEST_CASE("a copy of a predicate that is needed behind the place where its name is used again") {
  check_staged(kernel_of(R"(
  and.b32 %r1, %t, 4;
  setp.ne.u32 %p1, %r1, 0;
  and.b32 %r2, %t, 1;
  setp.ne.u32 %p2, %r2, 0;
  mov.pred %p3, %p1;
  and.pred %p4, %p3, %p2;
  mov.pred %p3, %p2;
  setp.ne.u32 %p1, 0, 0;
  selp.b32 %r3, 1, 0, %p3;
  selp.b32 %r4, 2, 0, %p4;
  selp.b32 %r5, 4, 0, %p1;
  add.u32 %r4, %r4, %r3;
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%at], %r4;
  ret;
)"),
               64);
}

// Seed 1711: the result of a call differs between lanes, although it is read like a parameter of the kernel.
TEST_CASE("lanes part by what a device function has returned") {
  check_staged(kernel_of(R"(
  mul.lo.u32 %r9, %t, 5;
  {
  .param .b32 given;
  .param .b32 outcome;
  ld.global.u32 %r1, [%at];
  st.param.b32 [given], %r1;
  call (outcome), half, (given);
  ld.param.b32 %r2, [outcome];
  }
  and.b32 %r3, %r2, 2;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra OTHER;
  st.global.u32 [%at], 77;
  bra JOIN;
OTHER:
  st.global.u32 [%at], %r9;
JOIN:
  ret;
)",
                         R"(.func (.param .b32 result) half(.param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  shr.u32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
)"),
               96);
}

// Each iteration has one number for all lanes; after the loop each lane has that of its last one.
TEST_CASE("lanes that leave a loop one after the other part by its counter") {
  check_staged(kernel_of(R"(
  mul.lo.u32 %r9, %t, 5;
  and.b32 %r1, %t, 7;
  mov.u32 %r2, 0;
LOOP:
  add.u32 %r2, %r2, 1;
  setp.gt.u32 %p1, %r2, %r1;
  @%p1 bra OUT;
  bra LOOP;
OUT:
  and.b32 %r3, %r2, 1;
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra OTHER;
  st.global.u32 [%at], %r2;
  bra JOIN;
OTHER:
  st.global.u32 [%at], %r9;
JOIN:
  ret;
)"),
               96);
}

// A warp-wide instruction names lanes that wait at the kernel's end: these count as ended.
TEST_CASE("lanes that have nothing to do any more hold up no exchange") {
  check_staged(kernel_of(R"(
  setp.ge.u32 %p1, %t, 40;
  @%p1 bra END;
  ld.global.u32 %r1, [%at];
  and.b32 %r2, %t, 1;
  setp.eq.u32 %p2, %r2, 0;
  @%p2 add.u32 %r1, %r1, 100;
  shfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xffffffff;
  add.u32 %r3, %r3, %r1;
  st.global.u32 [%at], %r3;
END:
  ret;
)"),
               96);
}

// Lanes reach X on two paths that do not join before: the first ones wait for the others.
TEST_CASE("an exchange where ways meet before the end of their branch") {
  check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  and.b32 %r2, %t, 3;
  setp.eq.u32 %p1, %r2, 0;
  setp.eq.u32 %p2, %r2, 1;
  or.pred %p3, %p1, %p2;
  vote.sync.ballot.b32 %r5, !%p2, 0xffffffff;
  mul.lo.u32 %r6, %t, 7;
  @%p1 bra X;
  add.u32 %r1, %r1, 1000;
  @%p2 bra Y;
X:
  shfl.sync.idx.b32 %r3, %r1, 0, 31, %r5;
  add.u32 %r1, %r1, %r3;
Y:
  add.u32 %r1, %r1, %r6;
  st.global.u32 [%at], %r1;
  ret;
)"),
               64);
}

// Seed 2417: one half of a literal is stored for a guarded load, the other half is a literal.
TEST_CASE("halves of a literal, one of them in a register") {
  check_staged(kernel_of(R"(
  .reg .b16 %e<5>;
  mov.u32 %r1, 196613;
  mov.b32 {%e2, %e3}, %r1;
  and.b32 %r2, %t, 1;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 ld.global.v2.b16 {%e2, %e1}, [%at];
  cvt.u32.u16 %r3, %e3;
  st.global.u32 [%at], %r3;
  cvt.u32.u16 %r4, %e2;
  red.global.add.u32 [%at], %r4;
  red.global.add.u32 [%at], %r1;
  ret;
)"),
               64);
}

// Seed 2650: the same for a parameter.
TEST_CASE("parts of a parameter, one of them written again") {
  check_staged(kernel_of(R"(
  .reg .b16 %h<6>;
  mov.b64 {%h2, %h3, %h4, %h5}, %d0;
  sub.u64 %d1, %at, %d0;
  slct.u16.s32 %h4, %h4, %h3, 0;
  cvt.u32.u64 %r1, %d1;
  cvt.u32.u16 %r2, %h4;
  sub.u32 %r2, %r2, %r2;
  add.u32 %r2, %r2, %r1;
  st.global.u32 [%at], %r2;
  ret;
)"),
               64);
}

// Seed 2935: a predicate known to the assembler, although its definition has a guard.
TEST_CASE("a known predicate under a guard") {
  check_staged(kernel_of(R"(
  setp.ne.s32 %p1, 0, 0;
  setp.ne.s32 %p2, 0, 0;
  setp.eq.b64 %p3|%p4, 0, 1;
  @!%p1 and.pred %p4, %p2, 0;
  mov.u32 %r1, 11;
  @%p4 mov.u32 %r1, 22;
  st.global.u32 [%at], %r1;
  @!%p4 ret;
  st.global.u32 [%at], %t;
  ret;
)"),
               64);
}

// Limits of strictness: each of these leaves lanes, words or registers behind in a different way.
TEST_CASE("a loop of one block that lanes leave one by one, and a register that only some rounds write") {
  check_staged(kernel_of(R"(
  and.b32 %r1, %t, 5;
  mov.u32 %r2, 0;
  mov.u32 %r3, 900;
LOOP:
  add.u32 %r2, %r2, 1;
  and.b32 %r4, %r2, 1;
  setp.eq.u32 %p1, %r4, 0;
  @%p1 add.u32 %r3, %r3, %r2;
  mul.lo.u32 %r5, %r2, 3;
  setp.le.u32 %p2, %r2, %r1;
  @%p2 bra LOOP;
  add.u32 %r3, %r3, %r5;
  st.global.u32 [%at], %r3;
  ret;
)"),
               40);
}

TEST_CASE("loops in loops that lanes leave from the inner one, and end there") {
  check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  mov.u32 %r2, 0;
  mov.u32 %r6, 1;
OUTER:
  mov.u32 %r3, 0;
INNER:
  add.u32 %r3, %r3, 1;
  mad.lo.u32 %r6, %r6, 5, %r3;
  and.b32 %r4, %r6, 63;
  setp.eq.u32 %p1, %r4, %t;
  @%p1 bra GONE;
  setp.lt.u32 %p2, %r3, 4;
  @%p2 bra INNER;
  add.u32 %r2, %r2, 1;
  add.u32 %r5, %r1, %r2;
  and.b32 %r5, %r5, 7;
  setp.lt.u32 %p3, %r2, %r5;
  @%p3 bra OUTER;
  add.u32 %r6, %r6, %r5;
  st.global.u32 [%at], %r6;
  ret;
GONE:
  add.u32 %r7, %r6, %r1;
  add.u32 %r7, %r7, 100000;
  st.global.u32 [%at], %r7;
  exit;
)"),
               96);
}

TEST_CASE("pairs and vectors of which a guard keeps some words") {
  check_staged(kernel_of(R"(
  .reg .b64 %q<8>;
  and.b32 %r1, %t, 3;
  setp.eq.u32 %p1, %r1, 0;
  setp.lt.u32 %p2, %r1, 2;
  ld.global.u32 %r9, [%at];
  mov.b64 %q1, {%r9, %t};
  @%p1 add.u64 %q1, %q1, 4294967299;
  mov.b64 {%r2, %r3}, %q1;
  and.b64 %q3, %at, -16;
  mov.u32 %r4, 1;
  mov.u32 %r5, 2;
  mov.u32 %r6, 3;
  mov.u32 %r7, 4;
  @%p2 ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%q3];
  bar.sync 0;
  @!%p1 mov.b64 {%r2, %r6}, %q1;
  xor.b32 %r8, %r4, %r5;
  xor.b32 %r8, %r8, %r6;
  mad.lo.u32 %r8, %r7, 17, %r8;
  add.u32 %r8, %r8, %r2;
  mad.lo.u32 %r8, %r3, 3, %r8;
  st.global.u32 [%at], %r8;
  ret;
)"),
               64);
}

TEST_CASE("an exchange that reads lanes whose registers a guard or a way has left alone") {
  check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  and.b32 %r2, %t, 1;
  setp.eq.u32 %p1, %r2, 0;
  mov.u32 %r3, 5;
  @%p1 mul.lo.u32 %r3, %r1, 3;
  shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
  @%p1 bra EVEN;
  mul.lo.u32 %r5, %r4, 9;
  vote.sync.ballot.b32 %r6, %p1, 0xaaaaaaaa;
  shfl.sync.down.b32 %r7, %r5, 2, 31, 0xaaaaaaaa;
  add.u32 %r5, %r5, %r6;
  bra JOIN;
EVEN:
  add.u32 %r5, %r4, 1;
  shfl.sync.up.b32 %r7, %r5, 4, 0, 0x55555555;
JOIN:
  add.u32 %r5, %r5, %r7;
  shfl.sync.idx.b32 %r8, %r5, 3, 31, -1;
  match.any.sync.b32 %r9, %r2, -1;
  add.u32 %r8, %r8, %r9;
  add.u32 %r8, %r8, %r5;
  st.global.u32 [%at], %r8;
  ret;
)"),
               64);
}

TEST_CASE("atomics that give something back, and barriers that do") {
  check_staged(kernel_of(R"(
  .shared .align 4 .b8 sum[16];
  mov.u32 %r1, sum;
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.v4.u32 [%r1], {1, 1, 1, 1};
  bar.sync 0;
  and.b32 %r2, %t, 1;
  setp.eq.u32 %p2, %r2, 0;
  mov.u32 %r3, 7;
  @%p2 atom.shared.add.u32 %r4, [%r1], 2;
  @%p2 red.shared.max.u32 [%r1+4], %t;
  bar.red.popc.u32 %r5, 0, %p2;
  barrier.sync 1;
  ld.shared.u32 %r6, [%r1];
  ld.shared.u32 %r7, [%r1+4];
  atom.shared.or.b32 %r8, [%r1+8], 0;
  add.u32 %r6, %r6, %r7;
  add.u32 %r6, %r6, %r8;
  mad.lo.u32 %r6, %r5, 1000, %r6;
  st.global.u32 [%at], %r6;
  ret;
)"),
               96);
}

// More warps than there are entries of a bank: each waits inside of the barrier, and the last ones have to get there.
TEST_CASE("a barrier that gives something back, for more warps than entries") {
  check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  setp.ne.u32 %p2, %r1, 0;
  bar.red.popc.u32 %r5, 0, %p2;
  mad.lo.u32 %r6, %r5, 1000, %t;
  st.global.u32 [%at], %r6;
  ret;
)"),
               256);
}

TEST_CASE("a branch of many ways, of which some end") {
  check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  mul.lo.u32 %r2, %t, 3;
  mul.lo.u32 %r3, %t, 5;
  and.b32 %r4, %t, 3;
  add.u32 %r9, %t, 1;
WAYS: .branchtargets A, B, C, D;
  brx.idx %r4, WAYS;
A:
  add.u32 %r5, %r1, %r2;
  bra JOIN;
B:
  st.global.u32 [%at], %r3;
  ret;
C:
  mov.u32 %r5, 4;
  mul.lo.u32 %r2, %r9, 7;
D:
  add.u32 %r5, %r2, %r3;
JOIN:
  add.u32 %r5, %r5, %r9;
  st.global.u32 [%at], %r5;
  ret;
)"),
               64);
}

TEST_CASE("calls in ways that lanes take apart, of a function that calls itself") {
  check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  and.b32 %r2, %t, 7;
  mul.lo.u32 %r9, %t, 13;
  setp.lt.u32 %p1, %r2, 3;
  @%p1 bra NONE;
  {
  .param .b32 given;
  .param .b32 outcome;
  st.param.b32 [given], %r2;
  call (outcome), steps, (given);
  ld.param.b32 %r3, [outcome];
  }
  add.u32 %r1, %r1, %r3;
NONE:
  add.u32 %r1, %r1, %r9;
  st.global.u32 [%at], %r1;
  ret;
)",
                         R"(.func (.param .b32 result) steps(.param .b32 value)
{
  .reg .b32 %r<6>; .reg .pred %p;
  ld.param.b32 %r1, [value];
  mov.u32 %r3, 1;
  setp.eq.u32 %p, %r1, 0;
  @%p bra LAST;
  sub.u32 %r2, %r1, 1;
  {
  .param .b32 given;
  .param .b32 outcome;
  st.param.b32 [given], %r2;
  call (outcome), steps, (given);
  ld.param.b32 %r3, [outcome];
  }
  mad.lo.u32 %r3, %r3, 2, %r1;
LAST:
  st.param.b32 [result], %r3;
  ret;
}
)"),
               64);
}

TEST_CASE("lanes that call different functions through a register, some of them not at all") {
  const std::string functions = R"(.func (.param .b32 result) triple(.param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  mul.lo.u32 %r2, %r1, 3;
  st.param.b32 [result], %r2;
  ret;
}
.func (.param .b32 result) early(.param .b32 value)
{
  .reg .b32 %r<3>; .reg .pred %p;
  ld.param.b32 %r1, [value];
  st.param.b32 [result], %r1;
  setp.gt.u32 %p, %r1, 40;
  @%p ret;
  add.u32 %r2, %r1, 7;
  st.param.b32 [result], %r2;
  ret;
}
)";
  for (const char* guard : {"", "@%p2 ", "@!%p1 "})
    check_staged(kernel_of(R"(
  ld.global.u32 %r1, [%at];
  and.b32 %r2, %t, 3;
  setp.eq.u32 %p1, %r2, 1;
  setp.lt.u32 %p2, %t, 50;
  mul.lo.u32 %r9, %t, 13;
  mov.u32 %r3, 11;
  mov.u64 %d1, triple;
  mov.u64 %d2, early;
  selp.b64 %d3, %d1, %d2, %p1;
  {
  .param .b32 given;
  .param .b32 outcome;
  st.param.b32 [outcome], %r3;
  st.param.b32 [given], %r1;
  form: .callprototype (.param .b32 _) _ (.param .b32 _);
  )" + std::string(guard) +
                               R"(call (outcome), %d3, (given), form;
  ld.param.b32 %r3, [outcome];
  }
  add.u32 %r1, %r1, %r3;
  add.u32 %r1, %r1, %r9;
  st.global.u32 [%at], %r1;
  ret;
)",
                           functions),
                 64);
}

TEST_CASE("more warps than entries for all of them, and blocks one after the other") {
  check_staged(kernel_of(R"(
  mov.u32 %r20, %ctaid.x;
  mov.u32 %r21, %ntid.x;
  mul.lo.u32 %r22, %r20, %r21;
  mad.wide.u32 %at, %r22, 4, %at;
  ld.global.u32 %r1, [%at];
  mul.lo.u32 %r2, %r1, 3;
  mul.lo.u32 %r3, %r1, 5;
  mul.lo.u32 %r4, %r1, 7;
  mul.lo.u32 %r5, %r1, 11;
  xor.b32 %r6, %r2, %t;
  bar.sync 0;
  ld.global.u32 %r7, [%at];
  mad.lo.u32 %r7, %r7, %r2, %r3;
  mad.lo.u32 %r7, %r7, %r4, %r5;
  mad.lo.u32 %r7, %r7, %r6, %r1;
  st.global.u32 [%at], %r7;
  ret;
)"),
               512, 20);
}

TEST_CASE("a warp that waits in the middle of a region is found out") {
  std::string marked = annotated(kernel_of(R"(
  st.global.u32 [%at], %t;
  bar.sync 0;
  membar.gl;
  ret;
)"),
                                 "");
  const size_t region = marked.find("//@ regless region 1");
  REQUIRE(region != marked.npos);
  REQUIRE(marked.find("//@ regless region 2") == marked.npos);
  marked.replace(region, marked.find('\n', region) - region, "");
  const LaunchRequest request{.kernel = "k", .block = {64}, .fuel = 100'000, .machines = StagingSettings{}};
  const PtxRun run = run_ptx(marked, request, {zeros<uint32_t>(64)});
  CAPTURE(marked);
  CHECK(run.failure().find("region 0 waits for other warps before its end") != std::string::npos);
}

} // namespace ptxrewrite::tests::staging_kernels_test
