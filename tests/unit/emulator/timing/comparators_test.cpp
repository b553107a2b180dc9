// Laws of the comparators in the model: without opportunities the result is the baseline, offloading is not slower,
// useless prefetches are not faster, and the energy of register files follows Table 4 of composite-hpca13.
#include "emulator/timing/energy.h"
#include "evaluate/score/comparator_techniques.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

namespace ptxrewrite::tests::comparators_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

// Only simple instructions.
TimedKernel loop(const ir::Machine& machine, uint32_t blocks) {
  return timed_loop(machine, blocks, "and.b32 %r10, %r9, %r4;");
}

template <class Share> std::map<uint32_t, Share> everywhere(const ModelInput& input, const Share& share) {
  std::map<uint32_t, Share> shares;
  for (uint32_t number = 0; number < input.recording.sites.size(); ++number)
    if (input.code[number].unit == Cause::unit_integer) shares[number] = share;
  return shares;
}

LoadPrefetches all_covered(uint64_t trips) {
  return {.accesses = 100, .misses = 100, .covered = 100, .from_trips = 100, .trips = 100 * trips};
}

std::map<uint32_t, LoadPrefetches> of_loads(const ModelInput& input, const LoadPrefetches& prefetches) {
  std::map<uint32_t, LoadPrefetches> loads;
  for (uint32_t number = 0; number < input.recording.sites.size(); ++number) {
    const Site& site = input.recording.sites[number];
    if (site.function && site.function->is_opcode(site.instruction, ir::Opcode::ld) &&
        input.recording.global[number].accesses)
      loads[number] = prefetches;
  }
  return loads;
}

double memory_waits(const KernelTime& time) {
  return time.stack[index(Cause::wait_l1)] + time.stack[index(Cause::wait_l2)] + time.stack[index(Cause::wait_dram)];
}

constexpr double rounding = 1e-9;

} // namespace

TEST_CASE("comparators that find nothing are the baseline") {
  for (const char* name : {"fx5800", "gtx480", "titanv"}) {
    const ir::Machine& machine = machine_named(name);
    const TimedKernel timed = loop(machine, 60);
    const KernelTime baseline = timed.on(machine);
    const auto check = [&](const std::function<Technique(const ModelInput&)>& technique) {
      const KernelTime time = timed.with(machine, technique);
      CHECK(time.clocks == doctest::Approx(baseline.clocks).epsilon(rounding));
      CHECK(time.stack == baseline.stack);
    };
    check([](const ModelInput& input) { return affine_unit_technique(input, {}); });
    check([](const ModelInput& input) { return affine_unit_technique(input, everywhere(input, 0.0)); });
    check([](const ModelInput& input) { return prefetch_technique(input, {}, {}); });
    check([](const ModelInput& input) {
      return prefetch_technique(input, of_loads(input, {.accesses = 100, .misses = 100}), {});
    });
    check([](const ModelInput& input) { return datapath_technique(input, {}, {}); });
    check([](const ModelInput& input) { return ideal_technique(input, {}); });
    check([](const ModelInput& input) { return left_to_scalar_technique(input, {}, {}); });
  }
}

TEST_CASE("affine units double the issue of what is affine where a warp takes two clocks, and nothing elsewhere") {
  // Two schedulers with two clocks per instruction: if all are affine, issue is the bound.
  const ir::Machine& fermi = machine_named("gtx480");
  const TimedKernel timed = loop(fermi, 600);
  auto half = [](const ModelInput& input) { return affine_unit_technique(input, everywhere(input, 0.5)); };
  auto all = [](const ModelInput& input) { return affine_unit_technique(input, everywhere(input, 1.0)); };
  const KernelTime none = timed.on(fermi), some = timed.with(fermi, half), most = timed.with(fermi, all);
  CHECK(some.clocks <= none.clocks * (1 + rounding));
  CHECK(most.clocks <= some.clocks * (1 + rounding));
  CHECK(most.demand.instructions == none.demand.instructions);
  CHECK(most.demand.issue_slots < none.demand.issue_slots);
  CHECK(most.demand.issue_slots >= none.demand.issue_slots / 2);
  CHECK(sum_of(most.stack) == doctest::Approx(most.clocks).epsilon(rounding));
  const ir::Machine& volta = machine_named("titanv");
  const TimedKernel other = loop(volta, 600);
  CHECK(other.with(volta, all).demand.issue_slots == other.on(volta).demand.issue_slots);
}

TEST_CASE("a prefetcher hides what its lead is worth, and pays for what nobody wants") {
  const ir::Machine& machine = machine_named("gtx480");
  const TimedKernel timed = loop(machine, 1);
  const KernelTime without = timed.on(machine);
  double before = without.clocks;
  for (uint64_t trips : {1u, 2u, 4u, 100u}) {
    const KernelTime time = timed.with(machine, [&](const ModelInput& input) {
      return prefetch_technique(input, of_loads(input, all_covered(trips)), {});
    });
    CHECK(time.clocks <= before * (1 + rounding));
    CHECK(sum_of(time.stack) == doctest::Approx(time.clocks).epsilon(rounding));
    before = time.clocks;
    // No data are prefetched before the first trip, and hits in L1 take time.
    CHECK(memory_waits(time) > 0);
  }
  CHECK(before < without.clocks);
  const TimedKernel full = loop(machine, 600);
  const KernelTime vain = full.with(machine, [&](const ModelInput& input) {
    return prefetch_technique(input, {}, {.prefetched = 100'000, .unused = 100'000});
  });
  CHECK(vain.clocks > full.on(machine).clocks);
  CHECK(vain.demand.l2_bytes == doctest::Approx(full.on(machine).demand.l2_bytes + 100'000 * 128));
}

TEST_CASE("what goes beside others takes no slot of theirs; the scalar pipeline is a bound of its own") {
  const ir::Machine& machine = machine_named("fx5800");
  const TimedKernel timed = loop(machine, 600), lone = loop(machine, 1);
  auto scalar = [](double share) {
    return [share](const ModelInput& input) {
      return datapath_technique(input, everywhere(input, DatapathShares{.scalar = share}), {});
    };
  };
  auto paired = [](const ModelInput& input) {
    return datapath_technique(input, everywhere(input, DatapathShares{.paired = 1}), {});
  };
  const KernelTime none = timed.on(machine), half = timed.with(machine, scalar(0.5)),
                   all = timed.with(machine, scalar(1));
  CHECK(half.clocks < none.clocks);
  CHECK(timed.with(machine, paired).clocks < none.clocks);
  // With all instructions on the scalar pipeline its demand equals that of the lanes.
  CHECK(all.demand.unit[index(Cause::unit_scalar)] == doctest::Approx(none.demand.unit[index(Cause::unit_integer)]));
  CHECK(all.demand.unit[index(Cause::unit_integer)] == doctest::Approx(0));
  for (const KernelTime& time : {half, all})
    CHECK(sum_of(time.stack) == doctest::Approx(time.clocks).epsilon(rounding));
  // Stalls make the slices slower again.
  const KernelTime stalled = timed.with(machine, [](const ModelInput& input) {
    return datapath_technique(input, everywhere(input, DatapathShares{.paired = 1, .stalled = 1}), {});
  });
  CHECK(stalled.clocks >= timed.with(machine, paired).clocks);
}

TEST_CASE("an ideal machine executes what is left of its instructions, and that takes as long as ever") {
  const ir::Machine& machine = *ir::find_machine("titanv");
  const TimedKernel timed = loop(machine, 600), lone = loop(machine, 1);
  auto ideal = [](const ModelInput& input) { return ideal_technique(input, everywhere(input, 0.75)); };
  double integer = 0;
  (void)timed.with(machine, [&](const ModelInput& input) {
    for_each_site(input, [&](uint32_t number, const InstructionCounters& counts) {
      if (input.code[number].unit == Cause::unit_integer)
        integer += static_cast<double>(counts.executions) * input.code[number].instructions;
    });
    return Technique();
  });
  const KernelTime before = timed.on(machine), now = timed.with(machine, ideal);
  CHECK(before.demand.instructions - now.demand.instructions == doctest::Approx(0.75 * integer));
  CHECK(now.clocks <= before.clocks * (1 + rounding));
  CHECK(now.demand.dram_bytes() == doctest::Approx(before.demand.dram_bytes())); // loads are not skipped
  // A warp that skips waits for the leader: twenty trips of four dependent instructions.
  CHECK(lone.with(machine, ideal).clocks >= 20 * 4 * (machine.latency.integer.value - 1));
}

TEST_CASE("beside a machine that skips, the scalar pipeline gets what is left and no more") {
  const ir::Machine& machine = *ir::find_machine("titanv");
  const TimedKernel timed = loop(machine, 600);
  auto of_scalar = [&](double skipped, double scalar) {
    return timed.with(machine, [&](const ModelInput& input) {
      Technique skipping;
      skipping.sites.resize(input.recording.sites.size());
      for (const auto& [number, share] : everywhere(input, skipped))
        skipping.sites[number].skipped = share;
      ModelInput with = input;
      with.technique = &skipping;
      return left_to_scalar_technique(with, everywhere(input, DatapathShares{.scalar = scalar}), {});
    });
  };
  auto scalar_unit = [](const KernelTime& time) { return time.demand.unit[index(Cause::unit_scalar)]; };
  const double all = scalar_unit(of_scalar(0, 1));
  CHECK(all > 0);
  CHECK(scalar_unit(of_scalar(0.75, 1)) == doctest::Approx(all / 4));
  CHECK(scalar_unit(of_scalar(0.75, 0.5)) == 0); // those are among the skipped ones
  CHECK(of_scalar(0.75, 1).demand.unit[index(Cause::unit_integer)] == doctest::Approx(0));
  CHECK(of_scalar(0.75, 1).demand.instructions == doctest::Approx(of_scalar(0.75, 0).demand.instructions));
}

TEST_CASE("energy of register files follows Table 4") {
  const ir::Machine& machine = machine_named("fx5800");
  const TimedKernel timed = loop(machine, 60);
  auto registers = [&](const DatapathAccesses& accesses) {
    double before = 0, change = 0;
    (void)timed.with(machine, [&](const ModelInput& input) {
      const EventCounts events = events_of(input);
      const Technique technique = datapath_technique(input, {}, accesses);
      before = events[static_cast<size_t>(EnergyEvent::rf_read)];
      change = technique.events[static_cast<size_t>(EnergyEvent::rf_read)];
      return technique;
    });
    return 1 + change / before;
  };
  CHECK(registers({.all = 100, .full = 100}) == doctest::Approx(1));
  CHECK(registers({.all = 100, .half = 100}) == doctest::Approx(0.5)); // 1.4e-2 of 2.8e-2 nJ
  // One access of 1.4e-3 nJ in the place of eight of 2.8e-2.
  CHECK(registers({.all = 100, .scalar = 100}) == doctest::Approx(1.4e-3 / (8 * 2.8e-2)));
}

TEST_CASE("composites' register file is what the counters of the launch say, at Table 4's share of the main one") {
  const std::string text = "//@ ptxrewrite hardware 1\n" + kernel("k", ".param .u64 p", R"(
  .reg .b64 %rd<4>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  crf.xor.b32.shr.u32 %r3, %r2, %r1, 3;
  mov.b32 %r4, %crf;
  add.u32 %r5, %r3, %r4;
  st.global.u32 [%rd3], %r5;
  ret;
)");
  const ir::Machine& machine = machine_named("fx5800");
  const TimedKernel timed =
      time_kernel(text, {.kernel = "k", .grid = {3}, .block = {64}}, {zeros<uint32_t>(64)}, machine);
  // 6 warps of 32 lanes: each writes its slot once, the second half and the copy read it.
  Technique technique;
  add_composite_energy(timed.run.result.counters, technique);
  CHECK(technique.events[static_cast<size_t>(EnergyEvent::rf_write)] ==
        doctest::Approx(6 * 32 * 7.4e-4 / (2.8e-2 / 4)));
  CHECK(technique.events[static_cast<size_t>(EnergyEvent::rf_read)] ==
        doctest::Approx(6 * 2 * 32 * 7.1e-4 / (2.8e-2 / 4)));
}

} // namespace ptxrewrite::tests::comparators_test
