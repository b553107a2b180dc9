// Sampling by the recorder: the launch runs as without it, observations are spread over warps and blocks, and the
// model's result is close to that of a complete recording.
#include "emulator/timing/access_memo.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <algorithm>
#include <random>

namespace ptxrewrite::tests::recorder_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

const ir::Machine& h200() {
  return machine_named("h200");
}

// Every thread sums up `trips` elements of its own row, then reads shared memory with barriers in between, also `trips`
// times; then it stores the sum.
std::string sums(bool with_barriers) {
  std::string body = R"(
  .shared .align 4 .b8 tile[1024];
  .reg .b64 %rd<9>; .reg .b32 %r<12>; .reg .f32 %f<9>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; ld.param.u32 %r9, [trips];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3; mul.lo.u32 %r5, %r4, %r9; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3;
  mov.f32 %f1, 0f00000000; mov.u32 %r6, 0; shl.b32 %r7, %r3, 2; mov.u32 %r8, tile; add.u32 %r7, %r8, %r7;
rows:
  ld.global.f32 %f2, [%rd4]; add.f32 %f1, %f1, %f2; add.s64 %rd4, %rd4, 4;
  add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r9; @%p1 bra rows;
  st.shared.f32 [%r7], %f1; mov.u32 %r6, 0;
)";
  if (with_barriers)
    body += R"(
tiles:
  bar.sync 0; ld.shared.f32 %f2, [tile]; add.f32 %f1, %f1, %f2;
  add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r9; @%p1 bra tiles;
)";
  body += "  mul.wide.u32 %rd5, %r4, 4; add.s64 %rd6, %rd2, %rd5; st.global.f32 [%rd6], %f1; ret;\n";
  return kernel("k", ".param .u64 from, .param .u64 to, .param .u32 trips", body);
}

struct Recorded {
  PtxRun run;
  Recording recording;
};
Recorded record(bool with_barriers, uint32_t blocks, uint32_t trips, bool everything) {
  Recorder recorder({.port = port_law(h200()), .sms = h200().sms, .everything = everything});
  LaunchRequest request{.kernel = "k", .grid = {blocks}, .block = {256}};
  request.observer = &recorder;
  std::vector<float> from(uint64_t(blocks) * 256 * trips, 1);
  Recorded recorded{
      run_ptx(sums(with_barriers), request, {buffer_of(from), zeros<float>(uint64_t(blocks) * 256), trips}), {}};
  REQUIRE_MESSAGE(recorded.run.ok(), recorded.run.error, recorded.run.failure());
  recorded.recording = recorder.finish();
  return recorded;
}

double clocks_of(Recorded recorded) {
  TimedKernel timed{std::move(recorded.run), std::move(recorded.recording), 256};
  return timed.on(h200()).clocks;
}

} // namespace

TEST_CASE("instructions that are left out run as all others") {
  for (bool with_barriers : {false, true}) {
    const Recorded some = record(with_barriers, 3, 4000, false);
    LaunchRequest request{.kernel = "k", .grid = {3}, .block = {256}};
    const PtxRun plain = run_ptx(sums(with_barriers), request,
                                 {buffer_of(std::vector<float>(3 * 256 * 4000, 1)), zeros<float>(3 * 256), 4000u});
    REQUIRE(plain.ok());
    CHECK(some.run.buffers == plain.buffers);
    CHECK(some.run.result.counters.warp_instructions == plain.result.counters.warp_instructions);
    CHECK(some.run.result.counters.thread_instructions == plain.result.counters.thread_instructions);
    // 6 instructions per trip, twice with barriers, by the warps of the blocks that were looked at.
    CHECK(some.recording.share_seen() < 0.35);
    CHECK(some.recording.steps_all * 3 == plain.result.counters.warp_instructions * some.recording.blocks_looked_at);
    // Every executed instruction is seen at least once.
    for (const FunctionCounters& function : plain.result.counters.functions)
      for (size_t i = 0; i < function.instructions.size(); ++i)
        if (function.instructions[i].executions > 3 * 8 * 100) CHECK(some.recording.executions.at(i) > 0);
  }
}

TEST_CASE("what is looked at of few and short blocks is all") {
  const Recorded all = record(true, 12, 20, false);
  CHECK(all.recording.is_complete());
  CHECK(all.recording.blocks_looked_at == 12);
  // Long blocks: two at least, and no more than necessary.
  CHECK(record(true, 12, 4000, false).recording.blocks_looked_at == 2);
  // Many: about one in sixteen.
  const Recorded many = record(false, 1024, 4, false);
  CHECK(many.recording.blocks_looked_at >= 60);
  CHECK(many.recording.blocks_looked_at <= 80);
}

TEST_CASE("what is looked at is a part of what runs, however a launch is cut into blocks") {
  // Various numbers of threads and trips: some 100,000 steps at least.
  for (auto [blocks, trips] : {std::pair(4u, 2500u), {8u, 250u}, {13u, 250u}, {16u, 150u}, {32u, 60u}, {200u, 60u}}) {
    const Recorded some = record(true, blocks, trips, false);
    const auto all = static_cast<double>(some.run.result.counters.warp_instructions);
    uint64_t accesses = 0, patterns = 0;
    for (const BlockAccesses& block : some.recording.accesses) {
      accesses += block.accesses.size();
      for (const Access& access : block.accesses)
        patterns = std::max<uint64_t>(patterns, access.pattern + 1);
    }
    CAPTURE(blocks);
    CHECK(all > 80000);
    CHECK(static_cast<double>(some.recording.steps_seen) <= 0.35 * all);
    // One of six instructions of the first loop accesses memory, none of the second.
    CHECK(static_cast<double>(accesses) <= 0.2 * static_cast<double>(some.recording.steps_seen));
    // Rows of one length, at the starts of some 512-byte blocks: each pattern is stored once or twice.
    CHECK(patterns <= 3 * 512);
  }
}

TEST_CASE("SMs that are looked at lie in pairs all over the grid, in no column of it alone") {
  for (uint64_t width : {8u, 12u, 16u, 32u}) {
    const std::vector<uint32_t> sms = sampled_sms(width * width, 2000, 16);
    CAPTURE(width);
    CHECK(sms.size() >= 16);
    CHECK(sms.size() <= 20);
    CHECK(std::ranges::is_sorted(sms));
    CHECK(sms.front() == 0); // the first block determines the number of blocks
    std::vector<unsigned> in_column(width);
    for (uint32_t sm : sms)
      ++in_column[sm % width];
    // Pairs at even distances would all be in two columns.
    for (unsigned count : in_column)
      CHECK(count <= 4);
  }
}

TEST_CASE("another version of a launch is looked at on the same SMs") {
  const Recorded first = record(true, 12, 4000, false);
  Recorder recorder({.port = port_law(h200()),
                     .sms = h200().sms,
                     .chosen_of = first.recording.blocks,
                     .chosen_sms = first.recording.sms});
  LaunchRequest request{.kernel = "k", .grid = {12}, .block = {256}};
  request.observer = &recorder;
  // A shorter launch, for which more blocks would be looked at.
  const PtxRun run =
      run_ptx(sums(true), request, {buffer_of(std::vector<float>(12 * 256 * 4, 1)), zeros<float>(12 * 256), 4u});
  REQUIRE(run.ok());
  CHECK(recorder.finish().sms == first.recording.sms);
  CHECK(record(true, 12, 4, false).recording.sms.size() == 12);
}

TEST_CASE("a warp that does more than the others of its block is looked at for longer") {
  // One warp of eight executes 20 phases of 300 additions, the others only their barriers.
  std::string body = R"(
  .reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 0; mov.u32 %r5, 1;
phases:
  bar.sync 0; mov.u32 %r3, 0;
  @!%p1 bra next;
adds:
  mul.lo.u32 %r5, %r5, %r1; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 100; @%p2 bra adds;
next:
  add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 20; @%p3 bra phases;
  st.global.u32 [%rd1], %r5; ret;
)";
  Recorder recorder({.port = port_law(h200()), .sms = h200().sms});
  LaunchRequest request{.kernel = "k", .block = {256}};
  request.observer = &recorder;
  REQUIRE(run_ptx(kernel("k", ".param .u64 p", body), request, {zeros<uint32_t>(1)}).ok());
  // 8000 steps of one warp are 1000 per warp: no more than a window of 2048.
  CHECK(recorder.finish().is_complete());
}

TEST_CASE("what windows have too much of counts less") {
  // A long warp: the first window has only multiplications, the rest mostly additions with equal waits.
  const ir::Machine& on = h200();
  std::string body = R"(
  .reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .f64 %fd<4>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.f64 %fd1, 0d3FF0000000000000;
first:
  fma.rn.f64 %fd1, %fd1, %fd1, %fd1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2500; @%p1 bra first;
  mov.u32 %r2, 0;
second:
  xor.b32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40000; @%p1 bra second;
  st.global.f64 [%rd1], %fd1; st.global.u32 [%rd1+8], %r1; ret;
)";
  auto clocks = [&](bool everything) {
    Recorder recorder({.port = port_law(on), .sms = on.sms, .everything = everything});
    LaunchRequest request{.kernel = "k", .block = {32}};
    request.observer = &recorder;
    PtxRun run = run_ptx(kernel("k", ".param .u64 p", body), request, {zeros<uint64_t>(2)});
    REQUIRE(run.ok());
    return clocks_of({std::move(run), recorder.finish()});
  };
  CHECK(clocks(false) == doctest::Approx(clocks(true)).epsilon(0.03));
}

TEST_CASE("times of samples are near to those of all") {
  for (bool with_barriers : {false, true})
    for (uint32_t blocks : {3u, 8u, 40u}) {
      CAPTURE(with_barriers);
      CAPTURE(blocks);
      CHECK(clocks_of(record(with_barriers, blocks, 1500, false)) ==
            doctest::Approx(clocks_of(record(with_barriers, blocks, 1500, true))).epsilon(0.06));
    }
}

TEST_CASE("an allocation that a launch has only been seen to touch in part is in L2 for the next one") {
  const MemorySystem memory{.l1_bytes = 0, .l2_bytes = uint64_t(64) << 20, .resident_blocks = 1, .bypasses_l1 = {}};
  // 3 MB, by 8 blocks, of which 2 are looked at; all is touched.
  const Recorded some = record(false, 8, 400, false);
  REQUIRE(!some.recording.is_complete());
  CacheState state;
  const Traffic first = simulate(some.recording, memory, &state), second = simulate(some.recording, memory, &state);
  double cold_first = 0, cold_second = 0;
  for (size_t i = 0; i < first.sectors.size(); ++i) {
    cold_first += first.sectors[i].cold;
    cold_second += second.sectors[i].cold;
  }
  CHECK(cold_first > 0);
  CHECK(cold_second < 0.1 * cold_first);
  // In a cache that is too small, they are not.
  const MemorySystem small{.l1_bytes = 0, .l2_bytes = uint64_t(1) << 18, .resident_blocks = 1, .bypasses_l1 = {}};
  state = {};
  simulate(some.recording, small, &state);
  double cold_small = 0;
  for (const SectorCounts& sectors : simulate(some.recording, small, &state).sectors)
    cold_small += sectors.cold;
  CHECK(cold_small > 0.8 * cold_first);
}

TEST_CASE("what is remembered of an access is what the laws say of it") {
  std::mt19937 random(5);
  for (const PortLaw& law : {PortLaw{}, PortLaw{.block_tags = true}, PortLaw{.banks = 16, .lanes_at_a_time = 16}}) {
    AccessMemo memo(law);
    for (int round = 0; round < 4000; ++round) {
      // A few patterns, so that many are repeated at other addresses.
      std::array<uint64_t, 32> addresses;
      const uint64_t stride = 4 * (random() % 5), start = (random() % 64) * 4 + (uint64_t(random() % 3) << 20);
      for (unsigned lane = 0; lane < 32; ++lane)
        addresses[lane] = start + lane % 16 * stride + (lane / 16) * (random() % 50 ? 256 : 260);
      const LaneAddresses lanes{addresses.data(), random() % 3 ? 0xffffffffu : 0x00ff0ff0u,
                                uint64_t(4) << random() % 3};
      CHECK(memo.cost(lanes, true).port_clocks == shared_passes(law, lanes));
      const AccessCost& cost = memo.cost(lanes, false);
      const WarpLines lines(lanes);
      CHECK(cost.port_clocks == global_port_clocks(law, lanes, lines.get()));
      REQUIRE(cost.lines.size() == lines.get().size());
      for (size_t i = 0; i < cost.lines.size(); ++i) {
        CHECK(AccessMemo::first_line(lanes) + cost.lines[i].line == lines.get()[i].line);
        CHECK(cost.lines[i].sectors == lines.get()[i].sectors);
      }
    }
  }
}

// ptxas makes of wmma.load of 16 rows of 32 bytes: for sm_80 one LDSM.16.M88.4, for sm_70 two LDS.128, in which two
// lanes read each row. Eight lanes of 16 bytes have 32 banks of 4 bytes: rows 144 bytes apart are in different banks,
// rows 160 bytes apart share them by pairs.
TEST_CASE("port clocks of wmma.load") {
  auto clocks = [](const char* machine, const char* stride) {
    const ir::Machine& on = machine_named(machine);
    Recorder recorder({.port = port_law(on), .sms = on.sms});
    LaunchRequest request{.kernel = "k", .block = {32}};
    request.observer = &recorder;
    const PtxRun run = run_ptx(kernel("k", "", std::string(R"(
  .shared .align 32 .b8 tile[4096];
  .reg .b32 %r<12>;
  mov.u32 %r8, tile; mov.u32 %r9, )") + stride + R"(;
  wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%r8], %r9;
  ret;)"),
                               request, {});
    REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
    uint64_t sum = 0;
    for (const AccessCounts& counts : recorder.finish().shared)
      sum += counts.port_clocks;
    return sum;
  };
  CHECK(clocks("a100", "72") == 4);
  CHECK(clocks("a100", "80") == 8);
  CHECK(clocks("titanv", "72") == 8);
  CHECK(clocks("titanv", "80") == 16);
}

} // namespace ptxrewrite::tests::recorder_test
