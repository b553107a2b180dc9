// DAC's machine (dac-isca17 section 4) on kernels with two hand-written streams, beside the original kernel. The
// machine must leave the same memory as the original, with queues of any length, any number of blocks and SMs, and in
// check mode, which compares each address, predicate and datum with the original's.
#include "emulator/core/observer.h"
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/dac/affine_expansion.h"
#include "tests/unit/emulator/run_ptx.h"

#include <bit>
#include <numeric>
#include <set>
#include <tuple>

namespace ptxrewrite::tests::affine_machine_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

struct Streams {
  std::string parameters;
  std::string original;
  std::string affine;
  std::string body;
  std::string shared = {}; // declarations of both kernels
};

constexpr std::string_view registers =
    ".reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<16>; .reg .pred %p<12>; .reg .b16 %rs<8>;\n";

std::string text_of(const Streams& streams) {
  std::string text = "//@ ptxrewrite hardware 1\n.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(";
  text += streams.parameters + ")\n{\n" + std::string(registers) + streams.shared + streams.original;
  text += "}\n.visible .entry k__dac(" + streams.parameters + ")\n{\n" + std::string(registers) + streams.shared;
  text +=
      "//@ dac original k\n.dac.affine {\n" + std::string(registers) + streams.affine + "}\n" + streams.body + "}\n";
  return text;
}

struct Shape {
  Dimensions grid, block;
};

PtxRun run_streams(const Streams& streams, const Shape& shape, const std::vector<Argument>& arguments,
                   const AffineSettings& settings = {.check = true}, uint32_t multiprocessors = 2) {
  return run_ptx(text_of(streams),
                 {.kernel = "k__dac",
                  .grid = shape.grid,
                  .block = shape.block,
                  .fuel = 1'000'000,
                  .multiprocessors = multiprocessors,
                  .machines = settings},
                 arguments);
}

// Runs the original, and the streams on machines of all sizes. Returns the counters of the widest one.
AffineCounters check_streams(const Streams& streams, const std::vector<Shape>& shapes,
                             const std::vector<Argument>& arguments) {
  AffineCounters last;
  for (const Shape& shape : shapes) {
    const PtxRun plain = run_ptx(
        text_of(streams), {.kernel = "k", .grid = shape.grid, .block = shape.block, .fuel = 1'000'000}, arguments);
    INFO(plain.error, plain.failure());
    REQUIRE(plain.ok());
    for (uint32_t entries : {1u, 2u, 0u})
      for (uint32_t multiprocessors : {1u, 3u})
        for (uint32_t resident : {1u, 2u, 5u})
          for (bool check : {true, false}) {
            const AffineSettings settings{.entries_per_warp = entries, .resident_blocks = resident, .check = check};
            const PtxRun run = run_streams(streams, shape, arguments, settings, multiprocessors);
            INFO("entries ", entries, " SMs ", multiprocessors, " blocks ", resident, " check ", check, " ", run.error,
                 run.failure());
            REQUIRE(run.ok());
            CHECK(run.buffers == plain.buffers);
            REQUIRE(run.result.machines.find<AffineCounters>());
            last = run.result.machines.get<AffineCounters>();
            CHECK(last.fallbacks == 0);
            CHECK(last.affine + last.body == run.result.counters.warp_instructions);
            CHECK(last.baseline == (check ? plain.result.counters.warp_instructions : 0));
            if (check) CHECK(last.checked >= last.addresses + last.predicates);
          }
  }
  return last;
}

std::vector<float> floats(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i * 37 % 101) * 0.25f;
  return values;
}

std::vector<uint32_t> numbers(size_t count) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<uint32_t>(i * 2654435761u >> 7);
  return values;
}

// c[i] = a[i] + b[i] for i < n.
const Streams vecadd = {.parameters = ".param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n",
                        .original = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];  // 0-3
      mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
      mad.lo.s32 %r5, %r2, %r3, %r4;      // 4
      setp.ge.s32 %p1, %r5, %r1;          // 5
      @%p1 bra END;
      mul.wide.s32 %rd4, %r5, 4;          // 6
      add.s64 %rd5, %rd1, %rd4;           // 7
      ld.global.f32 %f1, [%rd5];          // 8
      add.s64 %rd6, %rd2, %rd4;           // 9
      ld.global.f32 %f2, [%rd6];          // 10
      add.f32 %f3, %f1, %f2;              // 11
      add.s64 %rd7, %rd3, %rd4;           // 12
      st.global.f32 [%rd7], %f3;          // 13
    END:
      ret;)",
                        .affine = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];
      mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
      mad.lo.s32 %r5, %r2, %r3, %r4;
      setp.ge.s32 %p1, %r5, %r1;
      dac.enq.pred 5, %p1;
      @%p1 bra END;
      mul.wide.s32 %rd4, %r5, 4;
      add.s64 %rd5, %rd1, %rd4;
      dac.enq.data.global.f32 8, [%rd5];
      add.s64 %rd6, %rd2, %rd4;
      dac.enq.data.global.f32 10, [%rd6];
      add.s64 %rd7, %rd3, %rd4;
      dac.enq.addr.global 13, [%rd7];
    END:
      ret;)",
                        .body = R"(
      @dac.deq.pred(5) bra END;
      ld.global.f32 %f1, [dac.deq.data(8)];
      ld.global.f32 %f2, [dac.deq.data(10)];
      add.f32 %f3, %f1, %f2;
      st.global.f32 [dac.deq.addr(13)], %f3;
    END:
      ret;)"};

std::vector<Argument> vecadd_arguments(uint32_t n) {
  return {buffer_of(floats(1024)), buffer_of(floats(1024)), zeros<float>(1024), n};
}

// The paper's Fig. 4 and its decoupling in Fig. 7: B[i * num + tid] = A[i * num + tid] + 1, for dim rows.
const Streams rows = {.parameters = ".param .u64 A, .param .u64 B, .param .u32 dim, .param .u32 num",
                      .original = R"(
      ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u32 %r1, [dim]; ld.param.u32 %r2, [num]; // 0-3
      mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
      mul.lo.s32 %r6, %r3, %r4;           // 4
      add.s32 %r7, %r6, %r5;              // 5
      mul.wide.s32 %rd3, %r7, 4;          // 6
      add.s64 %rd4, %rd1, %rd3;           // 7
      add.s64 %rd5, %rd2, %rd3;           // 8
      mov.u32 %r8, 0;
      mul.wide.s32 %rd6, %r2, 4;          // 9
    LOOP:
      ld.global.u32 %r9, [%rd4];          // 10
      add.s32 %r10, %r9, 1;               // 11
      st.global.u32 [%rd5], %r10;         // 12
      add.s32 %r8, %r8, 1;                // 13
      add.s64 %rd4, %rd6, %rd4;           // 14
      add.s64 %rd5, %rd6, %rd5;           // 15
      setp.ne.s32 %p1, %r1, %r8;          // 16
      @%p1 bra LOOP;
      ret;)",
                      .affine = R"(
      ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u32 %r1, [dim]; ld.param.u32 %r2, [num];
      mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
      mul.lo.s32 %r6, %r3, %r4;
      add.s32 %r7, %r6, %r5;
      mul.wide.s32 %rd3, %r7, 4;
      add.s64 %rd4, %rd1, %rd3;
      add.s64 %rd5, %rd2, %rd3;
      mov.u32 %r8, 0;
      mul.wide.s32 %rd6, %r2, 4;
    LOOP:
      dac.enq.data.global.u32 10, [%rd4];
      dac.enq.addr.global 12, [%rd5];
      add.s32 %r8, %r8, 1;
      add.s64 %rd4, %rd6, %rd4;
      add.s64 %rd5, %rd6, %rd5;
      setp.ne.s32 %p1, %r1, %r8;
      dac.enq.pred 16, %p1;
      @%p1 bra LOOP;
      ret;)",
                      .body = R"(
    LOOP:
      ld.global.u32 %r9, [dac.deq.data(10)];
      add.s32 %r10, %r9, 1;
      st.global.u32 [dac.deq.addr(12)], %r10;
      @dac.deq.pred(16) bra LOOP;
      ret;)"};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const size_t at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), with);
}

} // namespace

TEST_CASE("affine machine: vecadd, with blocks of all kinds and n in the middle of a warp") {
  const AffineCounters counters =
      check_streams(vecadd, {{{1}, {32}}, {{3}, {70}}, {{4}, {256}}, {{7}, {33}}}, vecadd_arguments(200));
  CHECK(counters.early_loads == counters.loads);
  CHECK(counters.loads > 0);
  CHECK(counters.addresses > counters.early_loads);
  const AffineCounters all = check_streams(vecadd, {{{4}, {256}}}, vecadd_arguments(1024));
  CHECK(all.predicate_cases[static_cast<size_t>(PredicateCase::ends)] == 32);
  CHECK(all.predicate_cases[static_cast<size_t>(PredicateCase::lanes)] == 0);
}

TEST_CASE("affine machine: what Fig. 7 counts, by hand") {
  // Two blocks of 64 threads on one SM: one batch of four warps; 6 trips.
  const PtxRun run = run_streams(rows, {{2}, {64}}, {buffer_of(numbers(1024)), zeros<uint32_t>(1024), 6u, 128u},
                                 {.resident_blocks = 2, .check = true}, 1);
  INFO(run.error, run.failure());
  REQUIRE(run.ok());
  const AffineCounters& counters = run.result.machines.get<AffineCounters>();
  CHECK(counters.batches == 1);
  CHECK(counters.affine == 14 + 6 * 8 + 1);
  CHECK(counters.body == 4 * (6 * 4 + 1));
  CHECK(counters.baseline == 4 * (14 + 6 * 8 + 1));
  CHECK(counters.tuples == 6 * 3);
  CHECK(counters.loads == 4 * 6);
  CHECK(counters.early_loads == 4 * 6);
  CHECK(counters.addresses == 2 * 4 * 6);
  CHECK(counters.predicates == 4 * 6);
  CHECK(counters.predicate_cases == std::array<uint64_t, 3>{4 * 6, 0, 0});
  CHECK(counters.comparisons == 2 * 6);      // one for each block
  CHECK(counters.block_starts == 2 * 2 * 6); // and so with starting addresses
  CHECK(counters.lines == 2 * 4 * 6);        // 32 words each
  CHECK(counters.requested_lines == 4 * 6);
  CHECK(counters.checked == 2 * 4 * 6 + 4 * 6 + 4 * 6); // addresses, data, predicates
  CHECK(counters.most_lead > 0);
  CHECK(counters.deepest_stack == 1);
  const std::vector<uint32_t> in = numbers(1024), out = run.buffer<uint32_t>(1);
  for (size_t i = 0; i < 6 * 128; ++i)
    CHECK(out[i] == in[i] + 1);
}

TEST_CASE("affine machine: loops run ahead as far as the queues go") {
  const std::vector<Argument> arguments = {buffer_of(numbers(4096)), zeros<uint32_t>(4096), 30u, 128u};
  check_streams(rows, {{{2}, {64}}, {{3}, {20}}, {{5}, {32}}}, arguments);
  // With 16 warps, which wait for memory while the affine warp does not.
  const std::vector<Argument> many = {buffer_of(numbers(131072)), zeros<uint32_t>(131072), 200u, 512u};
  auto lead = [&](uint32_t entries) {
    const PtxRun run = run_streams(rows, {{1}, {512}}, many, {.entries_per_warp = entries, .resident_blocks = 1}, 1);
    REQUIRE(run.ok());
    return run.result.machines.get<AffineCounters>().lead_in_trips();
  };
  CHECK(lead(1) < lead(8));
  CHECK(lead(8) < lead(32));
}

TEST_CASE("affine machine: a loop that updates in place reads what its last trip has stored") {
  // a[tid] += i, 20 times: the affine warp requests a[tid] before it is stored.
  const Streams in_place = {.parameters = ".param .u64 a, .param .u32 n",
                            .original = R"(
      ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];   // 0, 1
      mov.u32 %r2, %tid.x;
      mul.wide.u32 %rd2, %r2, 4;     // 2
      add.s64 %rd3, %rd1, %rd2;      // 3
      mov.u32 %r3, 0;
    LOOP:
      ld.global.u32 %r4, [%rd3];     // 4
      add.u32 %r5, %r4, %r3;         // 5
      st.global.u32 [%rd3], %r5;     // 6
      add.u32 %r3, %r3, 1;           // 7
      setp.lt.u32 %p1, %r3, %r1;     // 8
      @%p1 bra LOOP;
      ret;)",
                            .affine = R"(
      ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];
      mov.u32 %r2, %tid.x;
      mul.wide.u32 %rd2, %r2, 4;
      add.s64 %rd3, %rd1, %rd2;
      mov.u32 %r3, 0;
    LOOP:
      dac.enq.data.global.u32 4, [%rd3];
      dac.enq.addr.global 6, [%rd3];
      add.u32 %r3, %r3, 1;
      setp.lt.u32 %p1, %r3, %r1;
      dac.enq.pred 8, %p1;
      @%p1 bra LOOP;
      ret;)",
                            .body = R"(
      mov.u32 %r3, 0;
    LOOP:
      ld.global.u32 %r4, [dac.deq.data(4)];
      add.u32 %r5, %r4, %r3;
      st.global.u32 [dac.deq.addr(6)], %r5;
      add.u32 %r3, %r3, 1;
      @dac.deq.pred(8) bra LOOP;
      ret;)"};
  const AffineCounters counters = check_streams(in_place, {{{1}, {96}}, {{1}, {1}}}, {buffer_of(numbers(96)), 20u});
  CHECK(counters.most_lead >= 1);
}

TEST_CASE("affine machine: barriers hold early loads back until the block has passed them") {
  // Twice: tile[tid] = in[tid] + trip; barrier; in[tid] = tile[n - 1 - tid]; barrier.
  const Streams tiles = {.parameters = ".param .u64 a, .param .u32 n",
                         .original = R"(
      ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];   // 0, 1
      mov.u32 %r2, %tid.x; mov.u32 %r3, tile; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ctaid.x;
      mad.lo.u32 %r6, %r5, %r4, %r2;   // 2
      mul.wide.u32 %rd2, %r6, 4;       // 3
      add.s64 %rd3, %rd1, %rd2;        // 4
      shl.b32 %r7, %r2, 2;             // 5
      add.u32 %r8, %r3, %r7;           // 6
      sub.u32 %r9, %r4, %r2;           // 7
      shl.b32 %r10, %r9, 2;            // 8
      add.u32 %r11, %r3, %r10;         // 9
      mov.u32 %r12, 0;
    LOOP:
      ld.global.u32 %r13, [%rd3];      // 10
      add.u32 %r14, %r13, %r12;        // 11
      st.shared.u32 [%r8], %r14;       // 12
      bar.sync 0;                      // 13
      ld.shared.u32 %r15, [%r11+-4];   // 14
      st.global.u32 [%rd3], %r15;      // 15
      bar.sync 0;                      // 16
      add.u32 %r12, %r12, 1;           // 17
      setp.ne.u32 %p1, %r12, %r1;      // 18
      @%p1 bra LOOP;
      ret;)",
                         .affine = R"(
      ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];
      mov.u32 %r2, %tid.x; mov.u32 %r3, tile; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ctaid.x;
      mad.lo.u32 %r6, %r5, %r4, %r2;
      mul.wide.u32 %rd2, %r6, 4;
      add.s64 %rd3, %rd1, %rd2;
      shl.b32 %r7, %r2, 2;
      add.u32 %r8, %r3, %r7;
      sub.u32 %r9, %r4, %r2;
      shl.b32 %r10, %r9, 2;
      add.u32 %r11, %r3, %r10;
      mov.u32 %r12, 0;
    LOOP:
      dac.enq.data.global.u32 10, [%rd3];
      dac.enq.addr.shared 12, [%r8];
      bar.sync 0;
      dac.enq.addr.shared 14, [%r11+-4];
      dac.enq.addr.global 15, [%rd3];
      bar.sync 0;
      add.u32 %r12, %r12, 1;
      setp.ne.u32 %p1, %r12, %r1;
      dac.enq.pred 18, %p1;
      @%p1 bra LOOP;
      ret;)",
                         .body = R"(
      mov.u32 %r12, 0;
    LOOP:
      ld.global.u32 %r13, [dac.deq.data(10)];
      add.u32 %r14, %r13, %r12;
      st.shared.u32 [dac.deq.addr(12)], %r14;
      bar.sync 0;
      ld.shared.u32 %r15, [dac.deq.addr(14)];
      st.global.u32 [dac.deq.addr(15)], %r15;
      bar.sync 0;
      add.u32 %r12, %r12, 1;
      @dac.deq.pred(18) bra LOOP;
      ret;)",
                         .shared = ".shared .align 4 .b8 tile[512];\n"};
  const AffineCounters counters =
      check_streams(tiles, {{{1}, {32}}, {{5}, {128}}, {{3}, {100}}}, {buffer_of(numbers(640)), 5u});
  CHECK(counters.barrier_holds > 0);
}

TEST_CASE("affine machine: divergent tuples, Fig. 14: one that is masked off, and one of two") {
  // Left: only threads below n load base + 4 tid. Right: offset is 4 tid below n, else 0.
  const Streams divergent = {.parameters = ".param .u64 a, .param .u64 out, .param .u32 n",
                             .original = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];  // 0-2
      mov.u32 %r2, %tid.x; mov.u32 %r9, 5;
      mul.wide.u32 %rd3, %r2, 4;        // 3
      setp.ge.u32 %p1, %r2, %r1;        // 4
      @%p1 bra ELSE;
      add.s64 %rd4, %rd1, %rd3;         // 5
      ld.global.u32 %r9, [%rd4];        // 6
      mov.u64 %rd5, %rd3;
      bra.uni JOIN;
    ELSE:
      mov.u64 %rd5, 0;
    JOIN:
      add.s64 %rd6, %rd1, %rd5;         // 7
      ld.global.u32 %r10, [%rd6+8];     // 8
      add.u32 %r11, %r9, %r10;          // 9
      add.s64 %rd7, %rd2, %rd3;         // 10
      st.global.u32 [%rd7], %r11;       // 11
      ret;)",
                             .affine = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];
      mov.u32 %r2, %tid.x;
      mul.wide.u32 %rd3, %r2, 4;
      setp.ge.u32 %p1, %r2, %r1;
      dac.enq.pred 4, %p1;
      @%p1 bra ELSE;
      add.s64 %rd4, %rd1, %rd3;
      dac.enq.data.global.u32 6, [%rd4];
      mov.u64 %rd5, %rd3;
      bra.uni JOIN;
    ELSE:
      mov.u64 %rd5, 0;
    JOIN:
      dac.condition 0;
      add.s64 %rd6, %rd1, %rd5;
      dac.enq.data.global.u32 8, [%rd6+8];
      add.s64 %rd7, %rd2, %rd3;
      dac.enq.addr.global 11, [%rd7];
      ret;)",
                             .body = R"(
      mov.u32 %r9, 5;
      @dac.deq.pred(4) bra JOIN;
      ld.global.u32 %r9, [dac.deq.data(6)];
    JOIN:
      ld.global.u32 %r10, [dac.deq.data(8)];
      add.u32 %r11, %r9, %r10;
      st.global.u32 [dac.deq.addr(11)], %r11;
      ret;)"};
  for (uint32_t n : {0u, 1u, 40u, 64u, 100u}) {
    const AffineCounters counters =
        check_streams(divergent, {{{2}, {100}}, {{1}, {64}}}, {buffer_of(numbers(128)), zeros<uint32_t>(128), n});
    CHECK(counters.most_tuples == (n > 0 && n < 64 ? 2 : 1));
    CHECK(counters.conditions > 0);
    CHECK(counters.deepest_stack == (n > 0 && n < 64 ? 3 : 1));
    // One of two warps diverges, so that both sides need its lane masks; the other one is entirely on one side.
    CHECK(counters.stack_warp_updates == (n > 0 && n < 64 ? 3 : 0));
    CHECK(counters.stack_lane_updates == (n > 0 && n < 64 ? 2 : 0));
  }
}

TEST_CASE("affine machine: selections of values: min, max, abs, selp, a remainder, two conditions, four tuples") {
  const std::string head = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];  // 0-2
      mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mov.u32 %r30, %ctaid.x;
      mad.lo.u32 %r5, %r3, %r4, %r2;     // 3
      sub.s32 %r6, %r5, 20;              // 4
      abs.s32 %r7, %r6;                  // 5
      min.s32 %r8, %r7, 30;              // 6
      mul.wide.s32 %rd3, %r8, 4;         // 7
      add.s64 %rd4, %rd1, %rd3;          // 8
)";
  const std::string middle = R"(
      add.u32 %r10, %r5, 3;              // 10
      add.u32 %r10, %r10, %r30;          // 11
      rem.u32 %r11, %r10, %r1;           // 12
      shl.b32 %r12, %r11, 3;             // 13
      cvt.u64.u32 %rd5, %r12;            // 14
      add.s64 %rd6, %rd1, %rd5;          // 15
)";
  const std::string tail = R"(
      setp.lt.u32 %p1, %r5, 17;          // 17
      setp.gt.u32 %p2, %r3, 1;           // 18
      selp.b32 %r14, %r5, 9, %p1;        // 19
      selp.b32 %r15, %r14, 40, %p2;      // 20
      max.u32 %r16, %r15, 12;            // 21
      mul.wide.u32 %rd7, %r16, 4;        // 22
      add.s64 %rd8, %rd1, %rd7;          // 23
)";
  const std::string last = R"(
      mad.lo.u32 %r20, %r30, 64, %r5;    // 25
      mul.wide.u32 %rd9, %r20, 4;        // 26
      add.s64 %rd10, %rd2, %rd9;         // 27
)";
  const std::string loads[] = {"ld.global.u32 %r9, [%rd4];\n", "ld.global.u32 %r13, [%rd6];\n",
                               "ld.global.u32 %r17, [%rd8];\n"};
  const Streams choices = {
      .parameters = ".param .u64 a, .param .u64 out, .param .u32 n",
      .original = head + loads[0] + middle + loads[1] + tail + loads[2] + last +
                  "add.u32 %r18, %r9, %r13; add.u32 %r19, %r18, %r17; st.global.u32 [%rd10], %r19; ret;", // 28 29 30
      .affine = head + "dac.enq.data.global.u32 9, [%rd4];" + middle + "dac.enq.data.global.u32 16, [%rd6];" + tail +
                "dac.enq.data.global.u32 24, [%rd8];" + last + "dac.enq.addr.global 30, [%rd10]; ret;",
      .body = R"(
      ld.global.u32 %r9, [dac.deq.data(9)];
      ld.global.u32 %r13, [dac.deq.data(16)];
      ld.global.u32 %r17, [dac.deq.data(24)];
      add.u32 %r18, %r9, %r13;
      add.u32 %r19, %r18, %r17;
      st.global.u32 [dac.deq.addr(30)], %r19;
      ret;)"};
  const AffineCounters counters = check_streams(choices, {{{3}, {16, 4}}, {{2}, {64}}, {{1}, {5, 3}}},
                                                {buffer_of(numbers(256)), zeros<uint32_t>(192), 7u});
  CHECK(counters.most_tuples >= 2);
}

TEST_CASE("affine machine: the other warps say how a data-dependent loop goes on; threads end in it") {
  // x = in[tid]; while (x > 1) { x /= 3; in2[k * ntid + tid] is added; k++ }; odd threads end early
  const Streams search = {.parameters = ".param .u64 a, .param .u64 out",
                          .original = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out];   // 0, 1
      mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r9, 0;
      mul.wide.u32 %rd3, %r1, 4;       // 2
      mul.wide.u32 %rd4, %r2, 4;       // 3
      add.s64 %rd5, %rd1, %rd3;        // 4
      add.s64 %rd6, %rd2, %rd3;        // 5
      ld.global.u32 %r3, [%rd5];       // 6
    LOOP:
      ld.global.u32 %r4, [%rd5];       // 7
      add.u32 %r9, %r9, %r4;           // 8
      add.s64 %rd5, %rd5, %rd4;        // 9
      shr.u32 %r3, %r3, 2;             // 10
      and.b32 %r5, %r3, 64;            // 11
      setp.ne.u32 %p2, %r5, 0;         // 12
      @%p2 exit;                       // 13
      setp.gt.u32 %p1, %r3, 3;         // 14
      @%p1 bra LOOP;
      st.global.u32 [%rd6], %r9;       // 15
      ret;)",
                          .affine = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out];
      mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;
      mul.wide.u32 %rd3, %r1, 4;
      mul.wide.u32 %rd4, %r2, 4;
      add.s64 %rd5, %rd1, %rd3;
      add.s64 %rd6, %rd2, %rd3;
      dac.enq.data.global.u32 6, [%rd5];
    LOOP:
      dac.enq.data.global.u32 7, [%rd5];
      add.s64 %rd5, %rd5, %rd4;
      dac.take.pred %p2, 12;
      @%p2 exit;
      @dac.take.pred(14) bra LOOP;
      dac.enq.addr.global 15, [%rd6];
      ret;)",
                          .body = R"(
      mov.u32 %r9, 0;
      ld.global.u32 %r3, [dac.deq.data(6)];
    LOOP:
      ld.global.u32 %r4, [dac.deq.data(7)];
      add.u32 %r9, %r9, %r4;
      shr.u32 %r3, %r3, 2;
      and.b32 %r5, %r3, 64;
      setp.ne.u32 %p2, %r5, 0;
      dac.give.pred 12, %p2;
      @%p2 exit;
      setp.gt.u32 %p1, %r3, 3;
      dac.give.pred 14, %p1;
      @%p1 bra LOOP;
      st.global.u32 [dac.deq.addr(15)], %r9;
      ret;)"};
  const AffineCounters counters =
      check_streams(search, {{{1}, {32}}, {{1}, {128}}, {{1}, {77}}}, {buffer_of(numbers(4096)), zeros<uint32_t>(128)});
  CHECK(counters.waits_for_given > 0);
}

TEST_CASE("affine machine: blocks and grids of three dimensions, vectors, halves, atomics, an exit under a guard") {
  const Streams shapes = {.parameters = ".param .u64 a, .param .u64 out, .param .u64 sum, .param .u32 n",
                          .original = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [sum]; ld.param.u32 %r1, [n];  // 0-3
      mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %tid.z; mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y;
      mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
      mad.lo.u32 %r10, %r4, %r6, %r3;    // 4
      mad.lo.u32 %r11, %r10, %r5, %r2;   // 5
      mad.lo.u32 %r12, %r7, 60, %r11;    // 6
      mad.lo.u32 %r13, %r8, 120, %r12;   // 7
      mad.lo.u32 %r14, %r9, 240, %r13;   // 8
      setp.ge.u32 %p1, %r14, %r1;        // 9
      @%p1 exit;                         // 10
      mul.wide.u32 %rd4, %r14, 8;        // 11
      add.s64 %rd5, %rd1, %rd4;          // 12
      ld.global.v2.u32 {%r15, %r16}, [%rd5];   // 13
      ld.global.u16 %rs1, [%rd5+2];      // 14
      cvt.u32.u16 %r17, %rs1;            // 15
      add.u32 %r18, %r15, %r17;          // 16
      add.s64 %rd6, %rd2, %rd4;          // 17
      st.global.v2.u32 [%rd6], {%r16, %r18};   // 18
      mul.wide.u32 %rd7, %r2, 4;         // 19
      add.s64 %rd8, %rd3, %rd7;          // 20
      red.global.add.u32 [%rd8], %r15;   // 21
      ret;)",
                          .affine = R"(
      ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [sum]; ld.param.u32 %r1, [n];
      mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %tid.z; mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y;
      mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
      mad.lo.u32 %r10, %r4, %r6, %r3;
      mad.lo.u32 %r11, %r10, %r5, %r2;
      mad.lo.u32 %r12, %r7, 60, %r11;
      mad.lo.u32 %r13, %r8, 120, %r12;
      mad.lo.u32 %r14, %r9, 240, %r13;
      setp.ge.u32 %p1, %r14, %r1;
      dac.enq.pred 9, %p1;
      @%p1 exit;
      mul.wide.u32 %rd4, %r14, 8;
      add.s64 %rd5, %rd1, %rd4;
      dac.enq.data.global.v2.u32 13, [%rd5];
      dac.enq.data.global.u16 14, [%rd5+2];
      add.s64 %rd6, %rd2, %rd4;
      dac.enq.addr.global 18, [%rd6];
      mul.wide.u32 %rd7, %r2, 4;
      add.s64 %rd8, %rd3, %rd7;
      dac.enq.addr.global 21, [%rd8];
      ret;)",
                          .body = R"(
      @dac.deq.pred(9) exit;
      ld.global.v2.u32 {%r15, %r16}, [dac.deq.data(13)];
      ld.global.u16 %rs1, [dac.deq.data(14)];
      cvt.u32.u16 %r17, %rs1;
      add.u32 %r18, %r15, %r17;
      st.global.v2.u32 [dac.deq.addr(18)], {%r16, %r18};
      red.global.add.u32 [dac.deq.addr(21)], %r15;
      ret;)"};
  check_streams(shapes, {{{2, 2, 2}, {5, 4, 3}}, {{2, 1, 2}, {60}}},
                {buffer_of(numbers(1024)), zeros<uint32_t>(1024), zeros<uint32_t>(64), 400u});
}

TEST_CASE("affine machine: check mode names the number, the block and the thread of what is wrong") {
  Streams wrong = rows;
  wrong.affine =
      replaced(rows.affine, "mul.wide.s32 %rd6, %r2, 4;", "mul.wide.s32 %rd6, %r2, 4; add.s64 %rd6, %rd6, 4;");
  const std::vector<Argument> arguments = {buffer_of(numbers(1024)), zeros<uint32_t>(1024), 6u, 128u};
  PtxRun run = run_streams(wrong, {{2}, {64}}, arguments);
  CHECK(run.failure().find("not the address that the original kernel has at line") != std::string::npos);
  CHECK(run.failure().find("queue number 10") != std::string::npos);
  CHECK(run.failure().find("in lane 0") != std::string::npos);
  CHECK(run.result.failure->has_thread);
  run = run_streams(wrong, {{2}, {64}}, arguments, {.check = false});
  CHECK(run.ok()); // without check mode

  // Only thread 5 of the second warp, by a predicate.
  wrong = rows;
  wrong.affine = replaced(rows.affine, "setp.ne.s32 %p1, %r1, %r8;", R"(
      setp.ne.s32 %p1, %r1, %r8; setp.eq.s32 %p2, %r7, 37; setp.eq.and.s32 %p2, %r8, 3, %p2; not.pred %p3, %p2;
      and.pred %p1, %p1, %p3;)");
  run = run_streams(wrong, {{2}, {64}}, arguments);
  CHECK(run.failure().find("not the predicate that the original kernel has at line") != std::string::npos);
  CHECK(run.failure().find("queue number 16") != std::string::npos);
  CHECK(run.failure().find("0x0 in the place of 0x1 in lane 5") != std::string::npos);
  CHECK(run.result.failure->thread.x == 37);
  CHECK(run.result.failure->block.x == 0);

  // A datum: the body has stored another value before.
  wrong = rows;
  wrong.affine = replaced(rows.affine, "ld.param.u64 %rd2, [B];", "ld.param.u64 %rd2, [A];");
  wrong.original = replaced(rows.original, "ld.param.u64 %rd2, [B];", "ld.param.u64 %rd2, [A];");
  wrong.body = replaced(rows.body, "add.s32 %r10, %r9, 1;", "add.s32 %r10, %r9, 2;");
  run = run_streams(wrong, {{2}, {64}}, {buffer_of(numbers(1024)), zeros<uint32_t>(1024), 6u, 0u});
  CHECK(run.failure().find("not the datum that the original kernel has at line") != std::string::npos);
}

TEST_CASE("affine machine: streams that do not fit together are found, with and without check mode") {
  const std::vector<Argument> arguments = {buffer_of(numbers(1024)), zeros<uint32_t>(1024), 6u, 128u};
  for (bool check : {true, false}) {
    auto failure = [&](const Streams& streams) {
      return run_streams(streams, {{2}, {64}}, arguments, {.check = check}).failure();
    };
    Streams wrong = rows; // in the other order
    wrong.affine = replaced(rows.affine, "dac.enq.data.global.u32 10, [%rd4];", "");
    wrong.affine = replaced(wrong.affine, "dac.enq.addr.global 12, [%rd5];",
                            "dac.enq.addr.global 12, [%rd5]; dac.enq.data.global.u32 10, [%rd4];");
    CHECK(failure(wrong).find("the streams do not fit together: address 10") != std::string::npos);
    wrong = rows; // for fewer lanes
    wrong.affine = replaced(rows.affine, "dac.enq.data.global.u32 10, [%rd4];",
                            "setp.ne.s32 %p2, %r7, 9; @%p2 dac.enq.data.global.u32 10, [%rd4];");
    CHECK(failure(wrong).find("the streams do not fit together: address 10") != std::string::npos);
    wrong = rows; // once too often
    wrong.affine = replaced(rows.affine, "@%p1 bra LOOP;", "@%p1 bra LOOP; setp.ne.s32 %p2, %r8, %r8; ret; ");
    wrong.body = replaced(rows.body, "@dac.deq.pred(16) bra LOOP;",
                          "@dac.deq.pred(16) bra LOOP; ld.global.u32 %r9, [dac.deq.data(17)];");
    wrong.affine =
        replaced(wrong.affine, "LOOP:", "setp.ne.s32 %p3, %r1, %r1; @%p3 dac.enq.data.global.u32 17, [%rd4]; LOOP:");
    wrong.original = replaced(rows.original, "@%p1 bra LOOP;", "@%p1 bra LOOP; ld.global.u32 %r9, [%rd1];");
    CHECK(failure(wrong).find("deadlock") != std::string::npos);
    wrong = rows; // never taken
    wrong.body = replaced(rows.body, "LOOP:", "setp.ne.u32 %p1, 1, 1; LOOP:");
    wrong.body =
        replaced(wrong.body, "st.global.u32 [dac.deq.addr(12)], %r10;", "@%p1 st.global.u32 [dac.deq.addr(12)], %r10;");
    CHECK(failure(wrong).find("the streams do not fit together: address 10") != std::string::npos);
    wrong = rows; // impossible with tuples
    wrong.affine = replaced(rows.affine, "mov.u32 %r8, 0;", "mov.u32 %r8, 0; mul.lo.s32 %r20, %r5, %r5;");
    CHECK(failure(wrong).find("'mul.lo.s32' has operands that differ between threads") != std::string::npos);
  }
}

TEST_CASE("affine machine: branches nested deeper than its stack make the original run, with the reason") {
  // Each of `levels` branches halves the active threads; all of them reconverge at the end.
  auto nested = [](unsigned levels) {
    std::string original = R"(
      ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;)"; // 0-2
    std::string affine = original, body, ends;
    unsigned number = 3;
    for (unsigned level = 0; level < levels; ++level) {
      const std::string n = std::to_string(number), l = std::to_string(level);
      const std::string compare =
          "setp.ge.u32 %p" + l + ", %r1, " + std::to_string(64 >> (level + 1)) + ";\n"; // number
      original += compare + "@%p" + l + " bra ELSE" + l + ";\n";
      affine += compare + "dac.enq.pred " + n + ", %p" + l + ";\n@%p" + l + " bra ELSE" + l + ";\n";
      body += "@dac.deq.pred(" + n + ") bra ELSE" + l + ";\n";
      ends = "bra.uni JOIN" + l + ";\nELSE" + l + ": RED" + l + "\nJOIN" + l + ":\n" + ends;
      ++number;
    }
    auto with = [&](std::string text, std::string_view form) {
      for (unsigned level = levels; level-- > 0;) {
        const std::string n = std::to_string(number + levels - 1 - level);
        std::string red = "red.global.add.u32 [%rd3], " + std::to_string(level + 1) + ";";
        if (form == "affine") red = "dac.enq.addr.global " + n + ", [%rd3];";
        if (form == "body") red = "red.global.add.u32 [dac.deq.addr(" + n + ")], " + std::to_string(level + 1) + ";";
        text = replaced(text, "RED" + std::to_string(level) + "\n", red + "\n");
      }
      return text + "ret;";
    };
    Streams streams;
    streams.parameters = ".param .u64 a";
    streams.original = with(original + ends, "");
    streams.affine = with(affine + ends, "affine");
    streams.body = with(body + ends, "body");
    return streams;
  };
  check_streams(nested(3), {{{2}, {64}}}, {zeros<uint32_t>(64)});
  const Streams deep = nested(4);
  const std::vector<Argument> arguments = {zeros<uint32_t>(64)};
  const PtxRun plain = run_ptx(text_of(deep), {.kernel = "k", .grid = {2}, .block = {64}}, arguments);
  for (bool check : {true, false}) {
    const PtxRun run = run_streams(deep, {{2}, {64}}, arguments, {.check = check});
    INFO(run.error, run.failure());
    REQUIRE(run.ok());
    CHECK(run.buffers == plain.buffers);
    CHECK(run.result.machines.get<AffineCounters>().fallbacks == 1);
    CHECK(run.result.machines.get<AffineCounters>().fallback_reason ==
          "branches part threads deeper than the affine SIMT stack's 8 entries");
    CHECK(run.result.counters.warp_instructions == plain.result.counters.warp_instructions);
  }
}

TEST_CASE("affine machine: an observer sees both streams") {
  // Records the addresses of each access by lane, in either form, and the number of executed instructions.
  class Looker : public Observer {
  public:
    bool wants_accesses() const override { return true; }
    void before(Block&, Warp&, const MicroOp&) override { ++body; }
    void passed(Block&, Warp&, const MicroOp&) override { ++body; }
    void accessed(Block& block, Warp& warp, const MicroOp&, const ObservedAccess& access) override {
      for (uint32_t rest = warp.mask; rest; rest &= rest - 1)
        accesses.insert(
            {block.linear, warp.index, static_cast<int>(access.kind), access.addresses[std::countr_zero(rest)]});
    }
    void block_ended(Block&) override { ++blocks; }
    void stream_executed(const Block& first, uint32_t) override {
      ++affine;
      batches.insert(first.linear);
    }
    std::multiset<std::tuple<uint64_t, uint32_t, int, uint64_t>> accesses;
    std::set<uint64_t> batches;
    uint64_t body = 0, affine = 0, blocks = 0;
  };
  const std::vector<Argument> arguments = {buffer_of(numbers(1024)), zeros<uint32_t>(1024), 2u, 448u};
  Looker plain, streams;
  LaunchRequest request{.kernel = "k",
                        .grid = {7},
                        .block = {64},
                        .multiprocessors = 2,
                        .machines = AffineSettings{.resident_blocks = 2}};
  request.observer = &plain;
  REQUIRE(run_ptx(text_of(rows), request, arguments).ok());
  request.kernel = "k__dac";
  request.observer = &streams;
  for (bool check : {false, true}) {
    streams = {};
    request.machines.set(AffineSettings{.resident_blocks = 2, .check = check});
    const PtxRun run = run_ptx(text_of(rows), request, arguments);
    REQUIRE(run.ok());
    CHECK(streams.blocks == 7);
    CHECK(streams.body == run.result.machines.get<AffineCounters>().body);
    CHECK(streams.affine == run.result.machines.get<AffineCounters>().affine);
    CHECK(streams.batches == std::set<uint64_t>{0, 1, 4, 5});
    CHECK(streams.accesses == plain.accesses);
  }
}

TEST_CASE("affine machine: a kernel without an original runs, but not in check mode") {
  std::string text = text_of(rows);
  text = replaced(text, "//@ dac original k\n", "");
  const std::vector<Argument> arguments = {buffer_of(numbers(1024)), zeros<uint32_t>(1024), 6u, 128u};
  CHECK(run_ptx(text, {.kernel = "k__dac", .grid = {2}, .block = {64}}, arguments).ok());
  CHECK(run_ptx(text, {.kernel = "k__dac", .grid = {2}, .block = {64}, .machines = AffineSettings{.check = true}},
                arguments)
            .error == "'k__dac' cannot be checked: it does not say which kernel it was made of");
}

} // namespace ptxrewrite::tests::affine_machine_test
