// Divergence and reconvergence of lanes: results are stated by C++ loops over the threads; reconvergence shows in the
// execution counts of instructions.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::control_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// %r1: thread in the grid, %rd1: the address of its word in `out`.
std::string with_thread(const std::string& body, const std::string& more = {}, const std::string& parameters = {}) {
  return kernel("k", ".param .u64 out" + parameters, R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
)" + body,
                more);
}

PtxRun run_threads(const std::string& text, uint32_t threads, uint32_t blocks = 1) {
  PtxRun run = run_ptx(text, {.kernel = "k", .grid = {blocks}, .block = {threads}, .fuel = 10'000'000},
                       {zeros<uint32_t>(threads * blocks)});
  REQUIRE(run.error == "");
  CHECK(run.failure() == "");
  return run;
}

template <class Function> std::vector<uint32_t> for_threads(uint32_t threads, Function&& function) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i)
    values[i] = function(i);
  return values;
}

} // namespace

TEST_CASE("buffers and scalars reach a kernel") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 out, .param .u8 small, .param .u32 value", R"(
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  ld.param.u8 %r2, [small];
  st.global.u32 [%rd1], %r1;
  st.global.u32 [%rd1+4], %r2;
  ret;)"),
                       {.kernel = "k"}, {zeros<uint32_t>(2), uint8_t(200), uint32_t(77)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>{77, 200});
}

TEST_CASE("both sides of a branch run once, and the lanes meet behind it") {
  const std::string text = with_thread(R"(
  and.b32 %r4, %r1, 1;
  setp.eq.u32 %p1, %r4, 0;
  @%p1 bra EVEN;
  mul.lo.u32 %r5, %r1, 3;
  bra JOIN;
EVEN:
  add.u32 %r5, %r1, 1000;
JOIN:
  st.global.u32 [%rd1], %r5;
  ret;)");
  for (uint32_t threads : {1u, 31u, 32u, 33u, 100u, 1024u}) {
    CAPTURE(threads);
    PtxRun run = run_threads(text, threads);
    CHECK(run.buffer<uint32_t>(0) == for_threads(threads, [](uint32_t i) { return i % 2 ? i * 3 : i + 1000; }));
    const uint64_t warps = (threads + 31) / 32;
    CHECK(run.counters("st.global").executions == warps);
    CHECK(run.counters("st.global").lanes == threads);
    CHECK(run.counters("add.u32").executions == warps);
    CHECK(run.counters("add.u32").lanes == (threads + 1) / 2);
    CHECK(run.counters("mul.lo").executions == warps - (threads % 32 == 1)); // thread 32 alone does not diverge
    CHECK(run.counters("mul.lo").lanes == threads / 2);
  }
}

TEST_CASE("nested divergence meets at each level") {
  // if (t & 1) { if (t & 2) a else b; c } else d; e
  PtxRun run = run_threads(with_thread(R"(
  and.b32 %r4, %r1, 1;
  and.b32 %r6, %r1, 2;
  setp.eq.u32 %p1, %r4, 0;
  setp.eq.u32 %p2, %r6, 0;
  @%p1 bra D;
  @%p2 bra B;
  mov.u32 %r5, 10;
  bra C;
B:
  mov.u32 %r5, 20;
C:
  add.u32 %r5, %r5, 1;
  bra E;
D:
  mov.u32 %r5, 40;
E:
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           64);
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return i & 1 ? (i & 2 ? 11u : 21u) : 40u; }));
  CHECK(run.counters("mov.u32 %r5, 10").executions == 2);
  CHECK(run.counters("mov.u32 %r5, 20").executions == 2);
  CHECK(run.counters("add.u32 %r5, %r5, 1").executions == 2); // reconverged
  CHECK(run.counters("add.u32 %r5, %r5, 1").lanes == 32);
  CHECK(run.counters("st.global").executions == 2);
}

TEST_CASE("a loop runs as often as its slowest lane, the lanes that have left wait behind it") {
  PtxRun run = run_threads(with_thread(R"(
  mov.u32 %r4, 0;
  mov.u32 %r5, 0;
  and.b32 %r6, %r1, 7;
LOOP:
  add.u32 %r5, %r5, %r4;
  add.u32 %r4, %r4, 1;
  setp.le.u32 %p1, %r4, %r6;
  @%p1 bra LOOP;
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           96);
  CHECK(run.buffer<uint32_t>(0) == for_threads(96, [](uint32_t i) { return (i % 8) * (i % 8 + 1) / 2; }));
  CHECK(run.counters("add.u32 %r5").executions == 3 * 8);
  CHECK(run.counters("add.u32 %r5").lanes == 12 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8));
  CHECK(run.counters("st.global").executions == 3);
}

TEST_CASE("breaks and continues inside a nest of loops meet at the loops' ends") {
  // for i < 4: for j < t % 5: if ((i + j) % 3 == 0) continue; if (i * j > t % 7) break; sum += i * 10 + j;  sum += 100
  PtxRun run = run_threads(with_thread(R"(
  rem.u32 %r20, %r1, 5;
  rem.u32 %r21, %r1, 7;
  mov.u32 %r5, 0;
  mov.u32 %r6, 0;
OUTER:
  mov.u32 %r7, 0;
INNER:
  setp.ge.u32 %p1, %r7, %r20;
  @%p1 bra INNER_END;
  add.u32 %r8, %r6, %r7;
  rem.u32 %r8, %r8, 3;
  setp.eq.u32 %p2, %r8, 0;
  @%p2 bra NEXT;
  mul.lo.u32 %r9, %r6, %r7;
  setp.gt.u32 %p3, %r9, %r21;
  @%p3 bra INNER_END;
  mad.lo.u32 %r9, %r6, 10, %r7;
  add.u32 %r5, %r5, %r9;
NEXT:
  add.u32 %r7, %r7, 1;
  bra INNER;
INNER_END:
  add.u32 %r5, %r5, 100;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p4, %r6, 4;
  @%p4 bra OUTER;
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           128);
  CHECK(run.buffer<uint32_t>(0) == for_threads(128, [](uint32_t t) {
          uint32_t sum = 0;
          for (uint32_t i = 0; i < 4; ++i) {
            for (uint32_t j = 0; j < t % 5; ++j) {
              if ((i + j) % 3 == 0) continue;
              if (i * j > t % 7) break;
              sum += i * 10 + j;
            }
            sum += 100;
          }
          return sum;
        }));
  CHECK(run.counters("add.u32 %r5, %r5, 100").executions == 4 * 4); // four warps, four iterations
  CHECK(run.counters("add.u32 %r5, %r5, 100").lanes == 4 * 128);
}

TEST_CASE("an irreducible loop, entered at two places") {
  PtxRun run = run_threads(with_thread(R"(
  and.b32 %r4, %r1, 1;
  and.b32 %r6, %r1, 15;
  mov.u32 %r5, 0;
  setp.eq.u32 %p1, %r4, 0;
  @%p1 bra SECOND;
FIRST:
  add.u32 %r5, %r5, 3;
SECOND:
  add.u32 %r5, %r5, 5;
  setp.eq.u32 %p2, %r6, 0;
  sub.u32 %r6, %r6, 1;
  @!%p2 bra FIRST;
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           64);
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return 8 * (i % 16) + (i % 2 ? 8 : 5); }));
  CHECK(run.counters("st.global").executions == 2);
}

TEST_CASE("brx.idx with different indices in a warp, and under a guard") {
  PtxRun run = run_threads(with_thread(R"(
  and.b32 %r4, %r1, 3;
  mov.u32 %r5, 7;
  setp.ne.u32 %p1, %r4, 3;
targets: .branchtargets A, B, C;
  @%p1 brx.idx %r4, targets;
  add.u32 %r5, %r5, 500;
  bra JOIN;
A:
  add.u32 %r5, %r5, 100;
  bra JOIN;
B:
  add.u32 %r5, %r5, 200;
C:
  add.u32 %r5, %r5, 300;
JOIN:
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           64);
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) {
          const uint32_t by_case[] = {107, 507, 307, 507};
          return by_case[i % 4];
        }));
  CHECK(run.counters("@%p1 brx").executions == 2);
  CHECK(run.counters("@%p1 brx").lanes == 48);
  CHECK(run.counters("add.u32 %r5, %r5, 100").executions == 2);
  CHECK(run.counters("add.u32 %r5, %r5, 500").executions == 2);
  CHECK(run.counters("st.global").executions == 2);
  PtxRun wrong = run_ptx(with_thread(R"(
targets: .branchtargets A, B;
  brx.idx %r1, targets;
A:
B:
  ret;)"),
                         {.kernel = "k", .block = {3}}, {zeros<uint32_t>(3)});
  CHECK(wrong.failure() == "brx.idx with index 2 of 2 targets");
  CHECK(wrong.result.failure->thread.x == 2);
}

TEST_CASE("lanes that exit in a branch are waited for nowhere") {
  PtxRun run = run_threads(with_thread(R"(
  mov.u32 %r5, 1;
  rem.u32 %r4, %r1, 3;
  setp.eq.u32 %p1, %r4, 0;
  setp.eq.u32 %p2, %r4, 1;
  @%p1 bra ONE;
  @%p2 exit;
  mov.u32 %r5, 2;
  bra JOIN;
ONE:
  mov.u32 %r5, 3;
JOIN:
  st.global.u32 [%rd1], %r5;
  ret;)"),
                           70);
  CHECK(run.buffer<uint32_t>(0) == for_threads(70, [](uint32_t i) { return i % 3 == 0 ? 3u : i % 3 == 1 ? 0u : 2u; }));
  // With an exit on one side, only the kernel's end post-dominates the branch: the two sides store one after the
  // other.
  CHECK(run.counters("st.global").executions == 6);
  CHECK(run.counters("st.global").lanes == 47);
  CHECK(run.counters("@%p2 exit").lanes == 23);
}

TEST_CASE("ret of a part of the lanes in the entry, in a loop") {
  PtxRun run = run_threads(with_thread(R"(
  mov.u32 %r4, 0;
LOOP:
  st.global.u32 [%rd1], %r4;
  setp.eq.u32 %p1, %r4, %r1;
  @%p1 ret;
  add.u32 %r4, %r4, 1;
  bra LOOP;)"),
                           40);
  CHECK(run.buffer<uint32_t>(0) == for_threads(40, [](uint32_t i) { return i; }));
  CHECK(run.counters("st.global").executions == 32 + 40);
}

TEST_CASE("guards leave registers, memory and predicates of the other lanes alone") {
  PtxRun run = run_threads(with_thread(R"(
  and.b32 %r4, %r1, 1;
  setp.eq.u32 %p1, %r4, 0;
  mov.u32 %r5, 9;
  setp.eq.u32 %p2, %r1, %r1;
  @%p1 mov.u32 %r5, 4;
  @%p1 setp.ne.u32 %p2, %r1, %r1;
  @%p2 add.u32 %r5, %r5, 100;
  @!%p1 add.u32 %r5, %r5, 1000;
  @%p1 st.global.u32 [%rd1], %r5;
  @!%p1 st.global.u32 [%rd1], %r5;
  setp.gt.u32 %p3, %r1, 5000;
  @%p3 trap;
  ret;)"),
                           48);
  CHECK(run.buffer<uint32_t>(0) == for_threads(48, [](uint32_t i) { return i % 2 ? 1109u : 4u; }));
  CHECK(run.counters("trap").guarded_off == 2);
  CHECK(run.counters("trap").executions == 2);
  CHECK(run.counters("trap").lanes == 0);
  CHECK(run.counters("@%p2 add").lanes == 24);
}

TEST_CASE("threads, warps and blocks in three dimensions are numbered as in the manual") {
  const std::string text = kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<40>;
  mov.u32 %r1, %tid.x;   mov.u32 %r2, %tid.y;   mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ntid.x;  mov.u32 %r5, %ntid.y;  mov.u32 %r6, %ntid.z;
  mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
  mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y;
  mov.u32 %r12, %laneid;
  mad.lo.u32 %r20, %r3, %r5, %r2;
  mad.lo.u32 %r20, %r20, %r4, %r1; // thread in the block
  mad.lo.u32 %r21, %r9, %r11, %r8;
  mad.lo.u32 %r21, %r21, %r10, %r7; // block in the grid
  mul.lo.u32 %r22, %r4, %r5;
  mul.lo.u32 %r22, %r22, %r6;
  mad.lo.u32 %r23, %r21, %r22, %r20;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r23, 16, %rd1;
  mad.lo.u32 %r24, %r3, 100, %r2;
  mad.lo.u32 %r24, %r24, 100, %r1;
  mad.lo.u32 %r25, %r9, 100, %r8;
  mad.lo.u32 %r25, %r25, 100, %r7;
  st.global.v4.u32 [%rd1], {%r24, %r25, %r12, %r22};
  ret;)");
  const Dimensions grid{3, 2, 2}, block{5, 4, 3};
  PtxRun run =
      run_ptx(text, {.kernel = "k", .grid = grid, .block = block}, {zeros<uint32_t>(grid.count() * block.count() * 4)});
  REQUIRE(run.ok());
  const std::vector<uint32_t> out = run.buffer<uint32_t>(0);
  size_t at = 0;
  unsigned wrong = 0;
  for (uint32_t bz = 0; bz < grid.z; ++bz)
    for (uint32_t by = 0; by < grid.y; ++by)
      for (uint32_t bx = 0; bx < grid.x; ++bx) {
        uint32_t thread = 0;
        for (uint32_t z = 0; z < block.z; ++z)
          for (uint32_t y = 0; y < block.y; ++y)
            for (uint32_t x = 0; x < block.x; ++x, at += 4, ++thread)
              wrong += out[at] != (z * 100 + y) * 100 + x || out[at + 1] != (bz * 100 + by) * 100 + bx ||
                       out[at + 2] != thread % 32 || out[at + 3] != 60;
      }
  CHECK(wrong == 0);
  CHECK(run.result.counters.blocks == 12);
  CHECK(run.result.counters.warps == 24);
}

TEST_CASE("one block of 1024 threads, and many blocks of one") {
  const std::string text = with_thread(" st.global.u32 [%rd1], %r1;\n ret;");
  CHECK(run_threads(text, 1024).buffer<uint32_t>(0)[1023] == 1023);
  const PtxRun run = run_threads(text, 1, 5000);
  CHECK(run.buffer<uint32_t>(0) == for_threads(5000, [](uint32_t i) { return i; }));
  CHECK(run.counters("st.global").executions == 5000);
}

TEST_CASE("fuel ends what does not end by itself") {
  PtxRun run = run_ptx(with_thread("LOOP:\n add.u32 %r5, %r5, 1;\n bra LOOP;"),
                       {.kernel = "k", .block = {32}, .fuel = 1000}, {zeros<uint32_t>(32)});
  REQUIRE(run.result.failure);
  CHECK(run.result.failure->kind == FailureKind::out_of_fuel);
  CHECK(run.failure().find("out of fuel: the block has executed the 1000 warp instructions that it may") == 0);
  // The fuel suffices: 6 instructions before the loop, 2 per iteration.
  const std::string counted = with_thread(R"(
  mov.u32 %r4, 100;
LOOP:
  sub.u32 %r4, %r4, 1;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra LOOP;
  ret;)");
  CHECK(run_ptx(counted, {.kernel = "k", .fuel = 6 + 1 + 300 + 1}, {zeros<uint32_t>(1)}).ok());
  CHECK(!run_ptx(counted, {.kernel = "k", .fuel = 6 + 1 + 300}, {zeros<uint32_t>(1)}).ok());
}

TEST_CASE("trap names the thread and the block") {
  PtxRun run = run_ptx(with_thread(" setp.eq.u32 %p1, %r1, 77;\n @%p1 trap;\n st.global.u32 [%rd1], %r1;\n ret;"),
                       {.kernel = "k", .grid = {4}, .block = {32}}, {zeros<uint32_t>(128)});
  REQUIRE(run.result.failure);
  CHECK(run.result.failure->kind == FailureKind::program_fault);
  CHECK(run.failure() == "the kernel executed a trap");
  CHECK(run.result.failure->block == Dimensions{2, 0, 0});
  CHECK(run.result.failure->thread == Dimensions{13, 0, 0});
  CHECK(run.result.failure->has_thread);
}

// A module of variants holds further kernels; what a kernel stores may not depend on them.
TEST_CASE("a stored function pointer is the same in a module with more kernels") {
  const auto pointers_with = [](const std::string& before, const std::string& between) {
    PtxRun run = run_ptx(kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, one;
  st.global.u64 [%rd1], %rd2;
  mov.u64 %rd2, two;
  st.global.u64 [%rd1+8], %rd2;
  ret;)",
                                before + ".func one() { ret; }\n" + between + ".func two() { ret; }\n"),
                         {.kernel = "k"}, {zeros<uint64_t>(2)});
    REQUIRE(run.error == "");
    REQUIRE(run.failure() == "");
    return run.buffer<uint64_t>(0);
  };
  const std::string more = ".entry other() { ret; }\n";
  const std::vector<uint64_t> pointers = pointers_with("", "");
  CHECK(pointers[0] != pointers[1]);
  CHECK(pointers_with(more, "") == pointers);
  CHECK(pointers_with("", more) == pointers);
  CHECK(pointers_with(".func one();\n.func two();\n", "") != std::vector<uint64_t>{0, 0});
}

TEST_CASE("control that comes to a body's end returns") {
  // ptxas places EXIT or RET there.
  PtxRun kernel = run_ptx(with_thread(" setp.eq.u32 %p1, %r1, 3;\n @%p1 bra DONE;\n st.global.u32 [%rd1], %r1;\nDONE:"),
                          {.kernel = "k", .block = {8}}, {zeros<uint32_t>(8)});
  CHECK(kernel.failure() == "");
  CHECK(kernel.buffer<uint32_t>(0) == std::vector<uint32_t>{0, 1, 2, 0, 4, 5, 6, 7});
  // Some lanes return at `ret`, the others at the end.
  const std::string function = R"(
.func (.param .b32 r) f(.param .b32 x)
{
  .reg .b32 %a;
  .reg .pred %p;
  ld.param.b32 %a, [x];
  st.param.b32 [r], %a;
  setp.lt.u32 %p, %a, 3;
  @%p ret;
  add.s32 %a, %a, 100;
  st.param.b32 [r], %a;
})";
  PtxRun called = run_ptx(with_thread(R"(
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), f, (a); ld.param.b32 %r4, [b]; }
  st.global.u32 [%rd1], %r4;)",
                                      function),
                          {.kernel = "k", .block = {5}}, {zeros<uint32_t>(5)});
  CHECK(called.failure() == "");
  CHECK(called.buffer<uint32_t>(0) == std::vector<uint32_t>{0, 1, 2, 103, 104});
}

} // namespace ptxrewrite::tests::control_test
