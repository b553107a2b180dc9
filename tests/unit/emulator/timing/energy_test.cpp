// Events of a kernel counted by hand, and sums that a set's coefficients give for them.
#include "emulator/timing/energy.h"

#include "emulator/timing/guesses.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <algorithm>

namespace ptxrewrite::tests::energy_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

// Two loads of 4 bytes, a product, a sum and a store by each of 32 threads.
constexpr const char* body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  ld.global.f32 %f2, [%rd3+128];
  mul.rn.f32 %f3, %f1, %f2;
  add.rn.f32 %f4, %f3, %f2;
  st.global.f32 [%rd3+256], %f4;
  ret;
)";

double count(const EventCounts& events, EnergyEvent event) {
  return events[static_cast<size_t>(event)];
}

EventCounts events_on(const TimedKernel& timed, const ir::Machine& machine) {
  return events_of(ModelledLaunch(timed.run.result.counters, timed.recording, machine, 1).input());
}

} // namespace

TEST_CASE("events of one warp") {
  const ir::Machine& machine = machine_named("titanv");
  const TimedKernel timed =
      time_kernel(kernel("k", ".param .u64 p", body), {.kernel = "k", .block = {32}}, {zeros<float>(96)}, machine);
  const EventCounts events = events_on(timed, machine);
  const double instructions = timed.on(machine).demand.instructions;
  CHECK(count(events, EnergyEvent::ibuffer) == instructions);
  CHECK(count(events, EnergyEvent::fp_mul) == 32);
  CHECK(count(events, EnergyEvent::fp32) == 32);
  CHECK(count(events, EnergyEvent::shared) == 0);
  // Eight sectors in two lines come from DRAM; four are written, and stay in L2.
  CHECK(count(events, EnergyEvent::dram_read) == 8);
  CHECK(count(events, EnergyEvent::dram_write) == 0);
  CHECK(count(events, EnergyEvent::l2_read_miss) == 8);
  CHECK(count(events, EnergyEvent::l2_write_miss) == 4);
  CHECK(count(events, EnergyEvent::l1_read_miss) == 2);
  CHECK(count(events, EnergyEvent::noc_flit) == 2 + 8 + 1 + 4);
  // Written: the thread's number, the address (two registers), two loads, two results; by 32 lanes.
  CHECK(count(events, EnergyEvent::rf_write) == doctest::Approx(32 * 7));
  // Read: product and sum two each, the number, the address thrice, the value that is stored.
  CHECK(count(events, EnergyEvent::rf_read) == doctest::Approx(32 * (4 + 1 + 3 * 2 + 1)));
}

TEST_CASE("a set's energy is its coefficients times the events; sets do not mix") {
  EventCounts events{};
  events[static_cast<size_t>(EnergyEvent::ibuffer)] = 1000;
  events[static_cast<size_t>(EnergyEvent::dram_read)] = 10;
  REQUIRE(energy_sets().size() >= 2);
  for (const EnergySet& set : energy_sets()) {
    const Energy sum = energy(set, events, 0.5);
    CHECK(sum.front_end == doctest::Approx(1000e-12 * set.pj[static_cast<size_t>(EnergyEvent::ibuffer)]));
    CHECK(sum.memory == doctest::Approx(10e-12 * set.pj[static_cast<size_t>(EnergyEvent::dram_read)]));
    CHECK(sum.registers == 0);
    CHECK(sum.all() == doctest::Approx(sum.front_end + sum.memory + 0.5 * set.static_watt));
  }
  // The values of their sources.
  auto pj = [](std::string_view name, EnergyEvent event) {
    const auto set = std::ranges::find(energy_sets(), name, &EnergySet::name);
    REQUIRE(set != energy_sets().end());
    return set->pj[static_cast<size_t>(event)];
  };
  CHECK(pj("AccelWattch QV100 sass-sim", EnergyEvent::rf_read) == 2.5);
  CHECK(pj("AccelWattch QV100 sass-hw", EnergyEvent::rf_read) == 0);
  CHECK(pj("GPUWattch GTX480", EnergyEvent::dram_read) == 26948.0 / 2);
}

TEST_CASE("guesses of a machine are those that its table marks") {
  const ir::Machine& h200 = machine_named("h200");
  std::vector<std::string> names;
  for (const Guess& guess : guesses_of(h200)) {
    names.emplace_back(guess.name);
    const TimedMachine more = with_figure(h200, guess, 1.3);
    CHECK(guess.field->read(more.machine).guess);
    CHECK(more.launch.constant.value == more.machine.launch.constant.value);
    CHECK(guess.field->read(more.machine).value == doctest::Approx(1.3 * value_of(guess, h200)));
  }
  CHECK(std::ranges::count(names, "launch.constant") == 1);
  CHECK(std::ranges::count(names, "latency.l2") == 1);
  CHECK(std::ranges::count(names, "memory.outstanding_misses") == 1);
  CHECK(std::ranges::count(names, "latency.dram") == 0);
  CHECK(std::ranges::count(names, "throughput.fp32") == 0);
}

} // namespace ptxrewrite::tests::energy_test
