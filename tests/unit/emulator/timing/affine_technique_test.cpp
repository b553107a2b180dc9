// DAC in the timing model (dac-isca17 §4): running ahead hides latency and no more than that. The law of the queues is
// tested alone, by arithmetic; then kernels with two hand-written streams are timed.
#include "evaluate/score/affine_technique.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <fmt/format.h>

namespace ptxrewrite::tests::affine_technique_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

// Total clocks that a warp waits if it takes a datum in each of `trips` trips of `trip` clocks.
double waits(double entries, double latency, double trip, int trips) {
  RunAhead ahead;
  ahead.uses = {{.address = 0, .is_datum = true}};
  ahead.enqueued = {std::vector<double>(static_cast<size_t>(trips), 0.0)};
  ahead.taken = {{}};
  ahead.entries = entries;
  ahead.lines = 1000;
  WarpQueues queues(ahead);
  double now = 0, waited = 0;
  for (int i = 0; i < trips; ++i) {
    const double there = queues.datum(ahead.uses[0], latency);
    if (there > now) {
      waited += there - now;
      now = there;
    }
    queues.take(now);
    now += trip;
  }
  return waited;
}

// B[i] = f(A[i]) over `trips` rows; f is a chain of `work` dependent instructions.
std::string streams(unsigned work) {
  const std::string registers = ".reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .pred %p<4>;\n";
  const std::string start = R"(
      ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u32 %r1, [dim]; ld.param.u32 %r2, [num];
      mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
      mad.lo.s32 %r7, %r3, %r4, %r5;
      mul.wide.s32 %rd3, %r7, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
      mov.u32 %r8, 0; mul.wide.s32 %rd6, %r2, 4;
)";
  const std::string step = R"(
      add.s32 %r8, %r8, 1; add.s64 %rd4, %rd6, %rd4; add.s64 %rd5, %rd6, %rd5;
      setp.ne.s32 %p1, %r1, %r8;
)";
  std::string chain = "add.s32 %r10, %r9, 1;\n";
  for (unsigned i = 0; i < work; ++i)
    chain += "xor.b32 %r10, %r10, %r9;\n";
  const std::string parameters = "(.param .u64 A, .param .u64 B, .param .u32 dim, .param .u32 num)\n{\n" + registers;
  return "//@ ptxrewrite hardware 1\n.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k" + parameters +
         start + "LOOP:\n ld.global.u32 %r9, [%rd4];\n" + chain + "st.global.u32 [%rd5], %r10;\n" + step +
         "@%p1 bra LOOP;\n ret;\n}\n.visible .entry k__dac" + parameters + "//@ dac original k\n.dac.affine {\n" +
         registers + start + "LOOP:\n dac.enq.data.global.u32 10, [%rd4];\n dac.enq.addr.global 12, [%rd5];\n" + step +
         "dac.enq.pred 16, %p1;\n @%p1 bra LOOP;\n ret;\n}\nLOOP:\n ld.global.u32 %r9, [dac.deq.data(10)];\n" + chain +
         "st.global.u32 [dac.deq.addr(12)], %r10;\n @dac.deq.pred(16) bra LOOP;\n ret;\n}\n";
}

constexpr uint32_t rows = 24;

TimedKernel run(const std::string& text, const char* name, uint32_t blocks, const ir::Machine& machine) {
  const uint32_t threads = blocks * 128, resident = ir::occupancy(machine, {128, 32, 0}).blocks;
  return time_kernel(text,
                     {.kernel = name,
                      .grid = {blocks},
                      .block = {128},
                      .multiprocessors = machine.sms,
                      .machines = emulator::AffineSettings{.resident_blocks = resident}},
                     {Buffer{std::vector<std::byte>(uint64_t(threads) * rows * 4)},
                      Buffer{std::vector<std::byte>(uint64_t(threads) * rows * 4)}, rows, threads},
                     machine);
}

KernelTime as_streams(const TimedKernel& timed, const ir::Machine& machine, uint32_t entries = 192) {
  return timed.with(machine, [&](const ModelInput& input) {
    return affine_technique(input, timed.run.result.machines.get<emulator::AffineCounters>(), entries);
  });
}

} // namespace

TEST_CASE("a lead that covers the latency exposes none; no lead exposes all") {
  constexpr double latency = 600, trip = 50;
  constexpr int trips = 1000;
  // 12 trips ahead: only the first datum is waited for.
  CHECK(waits(12, latency, trip, trips) == doctest::Approx(latency));
  CHECK(waits(200, latency, trip, trips) == doctest::Approx(latency));
  // A warp that returns at once has no lead.
  CHECK(waits(1, latency, 0, trips) == doctest::Approx(latency * trips));
  // In between: n requests in each latency.
  for (double entries : {1, 2, 5, 11}) {
    const double all = waits(entries, latency, trip, trips) + trips * trip;
    CHECK(all == doctest::Approx(trips / entries * latency).epsilon(0.02));
  }
}

TEST_CASE("locked lines bound the lead as entries do") {
  RunAhead ahead;
  ahead.uses = {{.address = 0, .is_datum = true, .lines = 32}};
  ahead.enqueued = {std::vector<double>(100, 0.0)};
  ahead.taken = {{}};
  ahead.entries = 50;
  ahead.lines = 64;
  WarpQueues queues(ahead);
  for (int i = 0; i < 2; ++i) {
    CHECK(queues.datum(ahead.uses[0], 100) == 100);
    queues.take(1000);
  }
  CHECK(queues.datum(ahead.uses[0], 100) == 1100);
}

TEST_CASE("barriers hold expansion, and the affine warp waits for what it is given") {
  RunAhead ahead;
  ahead.uses = {{.address = 0, .is_datum = true}};
  ahead.enqueued = {{10, 20, 30}, {15, 25, 35}};
  ahead.taken = {{}, {}, {22}};
  ahead.entries = 10;
  ahead.lines = 10;
  WarpQueues queues(ahead);
  CHECK(queues.datum(ahead.uses[0], 100) == 110);
  queues.take(110);
  queues.pass_barrier(500);
  CHECK(queues.datum(ahead.uses[0], 100) == 600);
  queues.take(600);
  CHECK(queues.predicate(1) == 15);
  queues.give(2, 700); // it was ready at clock 22
  CHECK(queues.predicate(1) == 25 + 700 - 22);
  CHECK(queues.datum(ahead.uses[0], 100) == 30 + 700 - 22 + 100);
}

TEST_CASE("two streams of a lone warp wait for memory once, the original in each trip") {
  const ir::Machine& machine = machine_named("gtx480");
  // A trip of two streams takes longer than memory: 60 dependent instructions.
  const std::string text = streams(60);
  const TimedKernel original = run(text, "k", 1, machine), decoupled = run(text, "k__dac", 1, machine);
  const KernelTime before = original.on(machine), now = as_streams(decoupled, machine);
  auto memory = [](const KernelTime& time) {
    return time.stack[index(Cause::wait_l2)] + time.stack[index(Cause::wait_dram)];
  };
  CHECK(memory(before) > rows * 0.8 * machine.latency.dram.value);
  CHECK(memory(now) < 2 * machine.latency.dram.value);
  // Available data still cost a hit in L1 each time (and a share of the clocks issued meanwhile).
  CHECK(now.stack[index(Cause::wait_l1)] <= 1.2 * rows * machine.latency.l1.value);
  CHECK(now.stack[index(Cause::wait_l1)] > rows * 0.8 * machine.latency.l1.value);
  CHECK(now.clocks < before.clocks);
  CHECK(sum_of(now.stack) == doctest::Approx(now.clocks).epsilon(1e-9));
}

TEST_CASE("a warp that others slow down does not wait for an affine warp that keeps their pace") {
  const ir::Machine& machine = *ir::find_machine("gtx480");
  const TimedKernel timed = run(streams(20), "k__dac", 1, machine);
  // Clocks that a warp's walk waits if the affine warp takes `period` clocks per trip.
  double issue = 0; // clocks by trip
  auto stalls = [&](double period, double warps) {
    double clocks = 0;
    (void)timed.with(machine, [&](const ModelInput& input) {
      Technique technique = affine_technique(input, timed.run.result.machines.get<emulator::AffineCounters>());
      auto ahead = std::make_shared<RunAhead>(*technique.run_ahead);
      for (std::vector<double>& at : ahead->enqueued)
        for (size_t trip = 0; trip < at.size(); ++trip)
          at[trip] = static_cast<double>(trip) * period;
      ahead->warps_of_scheduler = warps;
      technique.run_ahead = ahead;
      const Walk walked =
          walk(input.recording.clusters.front(), input.code, load_times(input), machine.issue_rate.value, technique);
      clocks = walked.stalls;
      issue = walked.issued / machine.issue_rate.value / rows;
      return Technique();
    });
    return clocks;
  };
  // Waits for the affine warp alone, and for memory as often as necessary.
  auto waited = [&](double period, double warps) { return stalls(period, warps) - stalls(0, warps); };
  (void)stalls(0, 1);
  const double lone_trip = issue + stalls(0, 1) / rows, warps = 40;
  const double slow = 0.75 * warps * issue; // slower than a lone warp, faster than forty
  REQUIRE(slow > 2 * lone_trip);
  CHECK(waited(slow, 1) >= rows * (slow - lone_trip) * 0.9);
  CHECK(waited(slow, warps) <= slow);
  double before = HUGE_VAL;
  for (double some : {1, 2, 8, 16, 24, 40}) {
    const double now = waited(slow, some);
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("two streams do not beat bandwidth, nor do short queues beat long ones") {
  for (const char* name : {"gtx480", "titanv", "h200"})
    for (unsigned work : {0u, 20u})
      for (uint32_t blocks : {1u, 30u, 400u}) {
        CAPTURE(name);
        CAPTURE(work);
        CAPTURE(blocks);
        const ir::Machine& machine = machine_named(name);
        const TimedKernel timed = run(streams(work), "k__dac", blocks, machine);
        double longer = 0;
        for (uint32_t entries : {192u, 48u, 8u, 1u}) {
          const KernelTime time = as_streams(timed, machine, entries);
          CHECK(sum_of(time.stack) == doctest::Approx(time.clocks).epsilon(1e-9));
          CHECK(time.clocks >= longer * (1 - 1e-9));
          longer = time.clocks;
          CHECK(time.demand.dram_bytes() / time.seconds / 1e9 <= machine.memory.achieved_dram_gb_per_second.value);
          // For all queue sizes, the instructions of the body and of the affine warp are issued.
          CHECK(time.clocks >= time.demand.issue_slots / machine.issue_rate.value / machine.schedulers / machine.sms);
        }
      }
}

} // namespace ptxrewrite::tests::affine_technique_test
