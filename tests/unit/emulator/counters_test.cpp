// Counters: every instruction of a kernel with loops, branches, guards, calls and early exits against an implementation
// of the same algorithm warp by warp with masks; memory transactions against hand-computed cases; all of them for
// several numbers of host threads.
#include "tests/unit/emulator/run_ptx.h"

#include <bit>
#include <functional>
#include <map>

namespace ptxrewrite::tests::counters_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

constexpr const char* walk_functions = R"(
.func (.param .b32 result) square(.param .b32 n) {
  .reg .b32 %r<9>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  setp.gt.u32 %p, %r1, 2;
  @%p bra BIG;
  mul.lo.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
BIG:
  add.u32 %r3, %r1, 40;
  st.param.b32 [result+0], %r3;
  ret;
}
)";

constexpr const char* walk_body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 200, %r1;
  setp.ge.u32 %p1, %r1, 170;
  @%p1 exit;
  rem.u32 %r4, %r3, 7;
  rem.u32 %r5, %r3, 3;
  mov.u32 %r6, 0;
  mov.u32 %r7, 1;
OUTER:
  and.b32 %r8, %r6, 1;
  setp.eq.u32 %p2, %r8, 0;
  @%p2 bra EVEN;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r6;
    call (b), square, (a);
    ld.param.b32 %r9, [b]; }
  add.u32 %r7, %r7, %r9;
  bra INNER_START;
EVEN:
  setp.gt.u32 %p3, %r4, 3;
  @%p3 add.u32 %r7, %r7, 3;
INNER_START:
  mov.u32 %r10, 0;
INNER:
  setp.ge.u32 %p4, %r10, %r5;
  @%p4 bra INNER_END;
  xor.b32 %r7, %r7, %r10;
  add.u32 %r10, %r10, 1;
  bra INNER;
INNER_END:
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p5, %r6, %r4;
  @%p5 bra OUTER;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r3, 4, %rd1;
  and.b32 %r11, %r7, 1;
  setp.eq.u32 %p6, %r11, 1;
  @%p6 st.global.u32 [%rd1], %r7;
  ret;
)";

struct Count {
  uint64_t executions = 0, lanes = 0, off = 0;
};

// The kernel above, one warp at a time: the expected counts of the named instructions.
struct Walk {
  std::map<std::string, Count> counts;
  std::vector<uint32_t> out;

  using Mask = uint32_t;
  void count(const char* what, Mask active) { count(what, active, active); }
  void count(const char* what, Mask active, Mask executing) {
    if (!active) return;
    Count& c = counts[what];
    ++c.executions;
    c.lanes += static_cast<unsigned>(std::popcount(executing));
    c.off += executing == 0;
  }

  void warp(uint32_t block, uint32_t first) {
    uint32_t index[32], n[32], inner[32], i[32] = {}, acc[32];
    auto where = [](Mask lanes, auto&& condition) {
      Mask result = 0;
      for (unsigned l = 0; l < 32; ++l)
        if ((lanes >> l) & 1 && condition(l)) result |= 1u << l;
      return result;
    };
    Mask all = where(~0u, [&](unsigned l) { return first + l < 200; });
    count("mov.u32 %r1, %tid.x", all);
    const Mask leaves = where(all, [&](unsigned l) { return first + l >= 170; });
    count("@%p1 exit", all, leaves);
    all &= ~leaves;
    for (unsigned l = 0; l < 32; ++l) {
      index[l] = block * 200 + first + l;
      n[l] = index[l] % 7, inner[l] = index[l] % 3, acc[l] = 1;
    }
    count("rem.u32 %r4", all);
    for (Mask loop = all; loop;) {
      const Mask even = where(loop, [&](unsigned l) { return i[l] % 2 == 0; }), odd = loop & ~even;
      count("and.b32 %r8", loop);
      count("@%p2 bra", loop, even);
      count("st.param.b32 [a], %r6", odd);
      count("call (b), square", odd);
      count("ld.param.u32 %r1, [n]", odd);
      const Mask big = where(odd, [&](unsigned l) { return i[l] > 2; });
      count("mul.lo.u32 %r2", odd & ~big);
      count("add.u32 %r3, %r1, 40", big);
      count("add.u32 %r7, %r7, %r9", odd);
      const Mask three = where(even, [&](unsigned l) { return n[l] > 3; });
      count("@%p3 add", even, three);
      for (unsigned l = 0; l < 32; ++l)
        if ((odd >> l) & 1)
          acc[l] += (big >> l) & 1 ? i[l] + 40 : i[l] * i[l];
        else if ((three >> l) & 1)
          acc[l] += 3;
      count("mov.u32 %r10, 0", loop);
      for (uint32_t j = 0;; ++j) {
        const Mask turns = where(loop, [&](unsigned l) { return j < inner[l]; });
        // Lanes that have left the loop wait after it.
        const Mask still = where(loop, [&](unsigned l) { return j <= inner[l]; });
        count("@%p4 bra", still, still & ~turns);
        if (!turns) break;
        count("xor.b32 %r7", turns);
        for (unsigned l = 0; l < 32; ++l)
          if ((turns >> l) & 1) acc[l] ^= j;
      }
      count("add.u32 %r6, %r6, 1", loop);
      for (unsigned l = 0; l < 32; ++l)
        ++i[l];
      const Mask again = where(loop, [&](unsigned l) { return i[l] < n[l]; });
      count("@%p5 bra", loop, again);
      loop = again;
    }
    const Mask stores = where(all, [&](unsigned l) { return acc[l] % 2 == 1; });
    count("and.b32 %r11", all);
    count("@%p6 st.global", all, stores);
    for (unsigned l = 0; l < 32; ++l)
      if ((stores >> l) & 1) out[index[l]] = acc[l];
  }
};

// One warp accesses memory; %r1: lane, %rd1: 256-byte aligned global memory.
uint64_t transactions(const std::string& body, const char* access) {
  PtxRun run = run_ptx(kernel("k", ".param .u64 buffer", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>; .reg .b16 %h<4>;
  .shared .align 128 .b8 s[16384];
  .local .align 16 .b8 l[1024];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  mov.u64 %rd2, l;
  ld.param.u64 %rd1, [buffer];
)" + body + "\n  ret;"),
                       {.kernel = "k", .block = {32}, .count_memory = true}, {zeros<uint32_t>(8192)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  return run.counters(access).transactions;
}

uint64_t global_sectors(const char* access, uint32_t stride, uint32_t offset = 0) {
  return transactions("  mad.wide.u32 %rd3, %r1, " + std::to_string(stride) + ", %rd1;\n  add.u64 %rd3, %rd3, " +
                          std::to_string(offset) + ";\n  " + access,
                      access);
}

uint64_t bank_passes(const char* access, uint32_t stride, uint32_t modulus = 32) {
  return transactions("  rem.u32 %r3, %r1, " + std::to_string(modulus) + ";\n  mad.lo.u32 %r4, %r3, " +
                          std::to_string(stride) + ", %r2;\n  " + access,
                      access);
}

uint64_t local_sectors(const char* access, uint32_t stride) {
  return transactions("  mad.wide.u32 %rd4, %r1, " + std::to_string(stride) + ", %rd2;\n  " + access, access);
}

} // namespace

TEST_CASE("executions, lanes and what was guarded off, exactly") {
  const std::string text = kernel("k", ".param .u64 out", walk_body, walk_functions);
  Walk expected;
  constexpr uint32_t blocks = 9;
  expected.out.resize(blocks * 200);
  for (uint32_t block = 0; block < blocks; ++block)
    for (uint32_t first = 0; first < 200; first += 32)
      expected.warp(block, first);
  for (unsigned threads : {1u, 2u, 4u}) {
    CAPTURE(threads);
    PtxRun run = run_ptx(text, {.kernel = "k", .grid = {blocks}, .block = {200}, .host_threads = threads},
                         {zeros<uint32_t>(blocks * 200)});
    REQUIRE(run.error == "");
    REQUIRE(run.failure() == "");
    CHECK(run.buffer<uint32_t>(0) == expected.out);
    for (const auto& [what, count] : expected.counts) {
      CAPTURE(what);
      const InstructionCounters counters = run.counters(what);
      CHECK(counters.executions == count.executions);
      CHECK(counters.lanes == count.lanes);
      CHECK(counters.guarded_off == count.off);
    }
    CHECK(expected.counts.size() == 19);
    CHECK(run.result.counters.blocks == blocks);
    CHECK(run.result.counters.warps == blocks * 7);
    uint64_t warp_instructions = 0, thread_instructions = 0;
    for (const FunctionCounters& function : run.result.counters.functions)
      for (const InstructionCounters& row : function.instructions) {
        warp_instructions += row.executions;
        thread_instructions += row.lanes;
      }
    CHECK(run.result.counters.warp_instructions == warp_instructions);
    CHECK(run.result.counters.thread_instructions == thread_instructions);
  }
}

TEST_CASE("counters are the same for any number of host threads, transactions too") {
  const std::string text = kernel("k", ".param .u64 out", walk_body, walk_functions);
  std::vector<FunctionCounters> first;
  for (unsigned threads : {1u, 2u, 4u}) {
    PtxRun run = run_ptx(
        text,
        {.kernel = "k", .grid = {64}, .block = {200}, .host_threads = threads, .check = true, .count_memory = true},
        {zeros<uint32_t>(64 * 200)});
    REQUIRE(run.ok());
    if (first.empty()) {
      first = run.result.counters.functions;
      CHECK(run.counters("@%p6 st.global").transactions > 0);
      continue;
    }
    REQUIRE(first.size() == run.result.counters.functions.size());
    for (size_t f = 0; f < first.size(); ++f)
      for (size_t i = 0; i < first[f].instructions.size(); ++i) {
        const InstructionCounters &a = first[f].instructions[i], &b = run.result.counters.functions[f].instructions[i];
        CHECK(std::tie(a.executions, a.lanes, a.guarded_off, a.transactions) ==
              std::tie(b.executions, b.lanes, b.guarded_off, b.transactions));
      }
  }
}

TEST_CASE("global memory is counted in sectors of 32 bytes") {
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3];", 4) == 4);
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3];", 4, 4) == 5); // begins in the middle of a sector
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3+32];", 4) == 4);
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3];", 8) == 8);
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3];", 32) == 32);
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3];", 128) == 32);
  CHECK(global_sectors("ld.global.u32 %r9, [%rd3];", 0) == 1);
  CHECK(global_sectors("ld.global.u32 %r9, [%rd1];", 4) == 1);
  CHECK(global_sectors("ld.global.u8 %r9, [%rd3];", 1) == 1);
  CHECK(global_sectors("ld.global.u8 %r9, [%rd3];", 1, 16) == 2);
  CHECK(global_sectors("ld.global.u16 %h1, [%rd3];", 2) == 2);
  CHECK(global_sectors("ld.global.u64 %rd5, [%rd3];", 8) == 8);
  CHECK(global_sectors("ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd3];", 16) == 16);
  CHECK(global_sectors("st.global.u32 [%rd3], %r1;", 4) == 4);
  CHECK(global_sectors("st.u32 [%rd3], %r1;", 64) == 32);
  // Half of the lanes, every second lane, one lane.
  auto guarded = [](const char* condition) {
    return transactions(std::string("  mad.wide.u32 %rd3, %r1, 4, %rd1;\n ") + condition +
                            "\n  @%p1 ld.global.u32 %r9, [%rd3];",
                        "ld.global");
  };
  CHECK(guarded("setp.lt.u32 %p1, %r1, 16;") == 2);
  CHECK(guarded("and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;") == 4);
  CHECK(guarded("setp.eq.u32 %p1, %r1, 9;") == 1);
  CHECK(guarded("setp.eq.u32 %p1, %r1, 99;") == 0);
}

TEST_CASE("shared memory is counted in passes over its 32 banks") {
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 4) == 1);
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 0) == 1); // broadcast
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 8) == 2);
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 12) == 1); // odd strides never collide
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 16) == 4);
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 128) == 32);
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 132) == 1);    // a padded column
  CHECK(bank_passes("ld.shared.u32 %r9, [%r4];", 128, 4) == 4); // 4 words of one bank, 8 lanes each
  CHECK(bank_passes("ld.shared.u8 %r9, [%r4];", 1) == 1);
  CHECK(bank_passes("ld.shared.u8 %r9, [%r4];", 4) == 1);
  CHECK(bank_passes("ld.shared.u64 %rd5, [%r4];", 8) == 2);
  CHECK(bank_passes("ld.shared.v4.u32 {%r9, %r10, %r11, %r12}, [%r4];", 16) == 4);
  CHECK(bank_passes("st.shared.u32 [%r4], %r1;", 256) == 32);
  CHECK(transactions("  cvt.u64.u32 %rd3, %r2;\n  cvta.shared.u64 %rd3, %rd3;\n  mad.wide.u32 %rd3, %r1, 8, %rd3;\n"
                     "  st.u32 [%rd3], %r1;",
                     "st.u32") == 2);
}

TEST_CASE("local memory of a warp lies word by word") {
  // The same variable of all lanes: 32 neighbouring words.
  CHECK(local_sectors("st.local.u32 [%rd4], %r1;", 0) == 4);
  CHECK(local_sectors("st.local.u32 [l+8], %r1;", 0) == 4);
  CHECK(local_sectors("st.local.u8 [%rd4], %r1;", 0) == 4);
  CHECK(local_sectors("st.local.u64 [%rd4], %rd1;", 0) == 8);
  CHECK(local_sectors("st.local.v4.u32 [%rd4], {%r1, %r1, %r1, %r1};", 0) == 16);
  // Every lane accesses another element: a row of words for each.
  CHECK(local_sectors("st.local.u32 [%rd4], %r1;", 4) == 32);
  // Four lanes, or eight, in one row share a sector if they are neighbours.
  CHECK(transactions("  shr.u32 %r3, %r1, 3;\n  mad.wide.u32 %rd4, %r3, 4, %rd2;\n  st.local.u32 [%rd4], %r1;",
                     "st.local.u32 [%rd4]") == 4);
  CHECK(transactions("  and.b32 %r3, %r1, 7;\n  mad.wide.u32 %rd4, %r3, 4, %rd2;\n  st.local.u32 [%rd4], %r1;",
                     "st.local.u32 [%rd4]") == 32);
  CHECK(transactions("  cvta.local.u64 %rd4, %rd2;\n  st.u32 [%rd4], %r1;", "st.u32") == 4);
}

TEST_CASE("one generic access to several spaces counts what each of them takes") {
  // Lanes 0-15 store to 16 neighbouring words of global memory, lanes 16-31 to two words of one bank of shared memory.
  CHECK(transactions(R"(
  mad.wide.u32 %rd3, %r1, 4, %rd1;
  cvt.u64.u32 %rd4, %r2;
  cvta.shared.u64 %rd4, %rd4;
  and.b32 %r3, %r1, 1;
  mad.wide.u32 %rd4, %r3, 128, %rd4;
  setp.lt.u32 %p1, %r1, 16;
  selp.b64 %rd5, %rd3, %rd4, %p1;
  st.u32 [%rd5], %r3;)",
                     "st.u32 [%rd5]") == 2 + 2);
}

} // namespace ptxrewrite::tests::counters_test
