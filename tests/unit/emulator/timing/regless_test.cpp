// RegLess, RFV and RFH in the timing model: the number of fitting warps against all orders; laws of time and energy.
#include "evaluate/score/regless_technique.h"

#include "emulator/timing/energy.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <random>

namespace ptxrewrite::tests::regless_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

const ir::Machine& gtx980() {
  return machine_named("gtx980");
}

// A region ends after the load in the loop.
struct Sample {
  TimedKernel timed;
  ModelledLaunch launch;
  std::vector<uint32_t> body, head; // sites

  explicit Sample(uint32_t blocks)
      : timed(timed_loop(gtx980(), blocks)), launch(timed.run.result.counters, timed.recording, gtx980(), resident) {
    bool behind_load = false;
    for (uint32_t number = 0; number < timed.recording.sites.size(); ++number) {
      if (!timed.recording.sites[number].function || launch.code()[number].instructions == 0) continue;
      (behind_load ? body : head).push_back(number);
      behind_load |= launch.code()[number].waits == Waits::for_global_memory;
    }
    REQUIRE(behind_load);
  }

  static constexpr uint32_t resident = 8;
  ModelInput input() const { return launch.input(); }
  double clocks(const Technique& technique) const {
    const KernelTime time = time_of(launch.input(&technique));
    CHECK(sum_of(time.stack) == doctest::Approx(time.clocks).epsilon(1e-9));
    return time.clocks;
  }
  double baseline() const { return clocks({}); }
  double register_energy(const Technique& technique) const {
    const EventCounts events = events_of(launch.input(&technique));
    for (double count : events)
      CHECK(count >= -1e-6);
    return events[static_cast<size_t>(EnergyEvent::rf_read)] * register_read_pj +
           events[static_cast<size_t>(EnergyEvent::rf_write)] * register_write_pj;
  }
  // Two regions: up to the load, and the rest; each with this many registers in every bank.
  StagingRun staging(uint32_t entries, uint8_t registers_by_bank) const {
    StagingRun run;
    run.entries = entries;
    run.compressor_lines = 12;
    for (const std::vector<uint32_t>* sites : {&head, &body}) {
      StagedRegion region;
      region.sites = *sites;
      region.banks.fill(registers_by_bank);
      run.regions.push_back(region);
    }
    return run;
  }
};

} // namespace

TEST_CASE("fitting warps: as many as any order of them gets in, for even needs") {
  std::array<uint8_t, banks_of_unit> even;
  for (uint8_t need = 1; need < 6; ++need)
    for (uint32_t lines = 1; lines < 40; ++lines) {
      even.fill(need);
      CHECK(fitting_warps(even, lines, 16) == std::min(lines / need, 16u));
    }
}

TEST_CASE("fitting warps: one bank that is needed more moves on with the warp's number") {
  std::array<uint8_t, banks_of_unit> one{};
  one[3] = 1;
  CHECK(fitting_warps(one, 1, 16) == 8); // the ninth warp uses the first one's bank
  CHECK(fitting_warps(one, 2, 16) == 16);
  one[3] = 5;
  CHECK(fitting_warps(one, 4, 16) == 0);
}

TEST_CASE("fitting warps: no more than the lines there are, whatever the need") {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    std::array<uint8_t, banks_of_unit> need;
    uint32_t sum = 0;
    for (uint8_t& bank : need)
      sum += bank = static_cast<uint8_t>(random() % 5);
    const auto lines = static_cast<uint32_t>(1 + random() % 64);
    const uint32_t fit = fitting_warps(need, lines, 16);
    CHECK(fit * sum <= lines * banks_of_unit);
    CHECK(fit <= fitting_warps(need, lines + 1, 16));
  }
}

TEST_CASE("staging units: more entries are never slower, and few make a launch wait") {
  for (uint32_t blocks : {1u, 16u, 128u, 500u}) {
    const Sample sample(blocks);
    double before = HUGE_VAL;
    for (uint32_t entries : {128u, 192u, 256u, 384u, 512u, 1024u, 2048u}) {
      const double now = sample.clocks(regless_technique(sample.input(), sample.staging(entries, 3)));
      CHECK(now <= before * (1 + 1e-9));
      CHECK(now >= sample.baseline() * (1 - 1e-9));
      before = now;
    }
    if (blocks == 500) {
      const Technique small = regless_technique(sample.input(), sample.staging(128, 4));
      CHECK(small.demands[index(Cause::staging)] > 0); // one warp of sixteen at a time
      CHECK(sample.clocks(small) > 1.2 * before);
    }
  }
}

TEST_CASE("staging units: one warp at a time takes as long as all of them after one another") {
  const Sample sample(128); // 16 SMs, 8 blocks of 8 warps on each: 16 warps of a scheduler
  StagingRun run = sample.staging(128, 4);
  const Holding holding = staging_holding(sample.input(), run);
  // Whole regions are held by one warp only; warps that wait for the load hold one entry of 32.
  CHECK(holding.held < holding.clocks);
  CHECK(sample.clocks(regless_technique(sample.input(), run)) >= 16 * holding.held);
}

TEST_CASE("staging units that hold everything cost activation and the order of regions alone") {
  const Sample sample(500);
  const StagingRun run = sample.staging(2048, 4); // 64 lines of a bank, 16 warps
  CHECK(staging_holding(sample.input(), run).wait(16) == 0);
  const Technique technique = regless_technique(sample.input(), run);
  for (double clocks : technique.demands)
    CHECK(clocks == 0);
  CHECK(technique.instructions == 0);
  CHECK(technique.l2_bytes == 0);
  size_t changed = 0;
  for (const SiteChange& site : technique.sites) {
    changed += site.joins;
    CHECK(site.early_stall == (site.joins ? 1 : 0)); // the clock in which the manager activates it
  }
  CHECK(changed == 2);
}

TEST_CASE("staging units: what preloads cost and ask for") {
  const Sample sample(128);
  StagingRun run = sample.staging(512, 3);
  const double before = sample.clocks(regless_technique(sample.input(), run));
  run.regions[1].from_l1 = 1;
  run.regions[1].lookups = 2;
  const Technique technique = regless_technique(sample.input(), run);
  // L1's latency, the compressor's bit vector, two look-ups in one bank.
  CHECK(technique.sites[sample.body.front()].early_stall == gtx980().latency.l1.value + 1 + 2);
  CHECK(sample.clocks(technique) >= before);
  run.regions[0].operand_waits = static_cast<double>(sample.head.size()); // a clock for each instruction
  const Technique conflicts = regless_technique(sample.input(), run);
  CHECK(conflicts.sites[sample.head.front()].more_latency > 0);
  CHECK(conflicts.sites[sample.body.front()].more_latency == 0);
  CHECK(sample.clocks(conflicts) > sample.clocks(technique));
  run.l1_loads = 1e6;
  CHECK(regless_technique(sample.input(), run).demands[index(Cause::memory_port)] == 1e6);
  run.read_below_l1 = 1000;
  CHECK(regless_technique(sample.input(), run).l2_bytes == 128 * 1000);
}

TEST_CASE("the caches are simulated with the warps whose regions fit") {
  const Sample sample(500);
  ModelInput input = sample.input();
  MemorySystem memory = memory_system(gtx980(), 0, Sample::resident);
  input.memory = &memory;
  const auto warps_by_turns = [&](uint32_t entries) {
    CacheState caches;
    const Technique technique = regless_technique(input, sample.staging(entries, 4), &caches);
    REQUIRE(technique.traffic);
    CHECK(technique.terms.back().name == "warps of an SM that access memory by turns");
    return std::pair(technique.terms.back().value, technique.traffic);
  };
  const double resident_warps = Sample::resident * 8;
  CHECK(warps_by_turns(2048).first == resident_warps);
  // One warp of a scheduler at a time, and those that wait for their load with one entry.
  const auto [few, traffic] = warps_by_turns(128);
  CHECK(few >= 4);
  CHECK(few < resident_warps);
  memory.active_warps = static_cast<uint32_t>(few);
  const Traffic expected = simulate(input.recording, memory);
  for (size_t number = 0; number < expected.levels.size(); ++number) {
    CHECK(traffic->levels[number].slowest_l2 == expected.levels[number].slowest_l2);
    CHECK(traffic->levels[number].slowest_dram == expected.levels[number].slowest_dram);
  }
  CHECK(!regless_technique(input, sample.staging(128, 4)).traffic); // caches of the baseline
}

TEST_CASE("annotations take issue slots only where there are more of them than instructions") {
  const Sample sample(128);
  StagingRun run = sample.staging(512, 3);
  double instructions = 0;
  const FunctionCounters& counts = sample.timed.run.result.counters.functions.front();
  for (uint32_t number = 0; number < sample.timed.recording.sites.size(); ++number)
    if (const Site& site = sample.timed.recording.sites[number]; site.function)
      instructions += static_cast<double>(counts.instructions[site.instruction.index()].executions) *
                      sample.launch.code()[number].instructions;
  run.metadata = instructions;
  CHECK(regless_technique(sample.input(), run).instructions == 0);
  run.metadata = 3 * instructions;
  CHECK(regless_technique(sample.input(), run).instructions == doctest::Approx(instructions));
}

TEST_CASE("a renamed file as large as the register file is the baseline") {
  for (uint32_t blocks : {16u, 500u}) {
    const Sample sample(blocks);
    RenamedFile file{.registers = 2048, .active_warps = HUGE_VAL, .mapped = {}};
    file.mapped.assign(sample.timed.recording.sites.size(), 32); // 64 warps of 32 registers: all of it
    const Technique technique = renamed_technique(sample.input(), file);
    CHECK(sample.clocks(technique) == sample.baseline());
    CHECK(sample.register_energy(technique) == doctest::Approx(sample.register_energy({})));
    file.registers = 1024;
    CHECK(sample.clocks(renamed_technique(sample.input(), file)) >= sample.baseline());
    CHECK(sample.register_energy(renamed_technique(sample.input(), file)) ==
          doctest::Approx(sample.register_energy({}) / 2));
  }
}

TEST_CASE("a two-level scheduler is never faster than one that sees all warps") {
  const Sample sample(500);
  RenamedFile file{.registers = 2048, .active_warps = 4, .mapped = {}};
  CHECK(sample.clocks(renamed_technique(sample.input(), file)) >= sample.baseline());
}

TEST_CASE("register energy: by bits of the structure") {
  const ir::Machine& machine = gtx980();
  CHECK(energy_of_registers(machine, 2048) == 1);
  CHECK(energy_of_registers(machine, 512) == 0.25);
  CHECK(energy_of_tags(machine, 2048) == doctest::Approx(16.0 / 1024));
  const Sample sample(128);
  const double all = sample.register_energy({});
  CHECK(sample.register_energy(without_register_energy(sample.input())) == doctest::Approx(0).scale(all));
  StagingRun run = sample.staging(512, 3);
  CHECK(sample.register_energy(regless_technique(sample.input(), run)) == doctest::Approx(all / 4));
  run.tag_lookups = 1000;
  run.entry_writes = 10;
  CHECK(sample.register_energy(regless_technique(sample.input(), run)) > all / 4);
}

TEST_CASE("register hierarchy: everything in the main file is the register file, everything elsewhere is less") {
  const Sample sample(128);
  HierarchicalFile file;
  const double all = sample.register_energy({});
  CHECK(sample.register_energy(hierarchical_technique(sample.input(), file)) == doctest::Approx(all));
  for (size_t i = 0; i < sample.timed.recording.sites.size(); ++i) {
    LevelAccesses accesses;
    accesses.reads = {0, 2, 0}, accesses.writes = {0, 1, 0};
    accesses.registers_read = 2, accesses.registers_written = 1;
    file.sites.push_back(accesses);
  }
  const double share = energy_of_levels(gtx980(), file)[static_cast<size_t>(RegisterLevel::operand)];
  CHECK(share == doctest::Approx(32 * 8.0 / 2048)); // 8 active warps of 4 schedulers
  CHECK(sample.register_energy(hierarchical_technique(sample.input(), file)) == doctest::Approx(share * all));
}

} // namespace ptxrewrite::tests::regless_test
