// Laws of techniques in the model: a technique without changes gives the baseline, less work is not slower, more work
// is not faster, and stacks add up for all changes.
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <functional>

namespace ptxrewrite::tests::technique_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

using Change = std::function<void(Technique&, const Recording&)>;

void at_all_sites(Technique& technique, const Recording& recording, const std::function<void(SiteChange&)>& change) {
  technique.sites.resize(recording.sites.size());
  for (SiteChange& site : technique.sites)
    change(site);
}

void check_direction(const Change& change, bool may_be_slower) {
  for (const char* name : {"fx5800", "gtx480", "gtx980", "titanv", "h200"})
    for (uint32_t blocks : {1u, 40u, 700u}) {
      CAPTURE(name);
      CAPTURE(blocks);
      const ir::Machine& machine = machine_named(name);
      const TimedKernel timed = timed_loop(machine, blocks);
      Technique technique;
      change(technique, timed.recording);
      const double before = timed.on(machine).clocks;
      const KernelTime now = timed.on(machine, 32, &technique);
      CHECK(sum_of(now.stack) == doctest::Approx(now.clocks).epsilon(1e-9));
      for (double clocks : now.stack)
        CHECK(clocks >= 0);
      constexpr double rounding = 1e-9;
      if (may_be_slower)
        CHECK(now.clocks >= before * (1 - rounding));
      else
        CHECK(now.clocks <= before * (1 + rounding));
    }
}

} // namespace

TEST_CASE("a technique that changes nothing is the baseline") {
  const ir::Machine& machine = machine_named("gtx480");
  const TimedKernel timed = timed_loop(machine, 100);
  Technique technique;
  at_all_sites(technique, timed.recording, [](SiteChange&) {});
  const KernelTime without = timed.on(machine), with = timed.on(machine, 32, &technique);
  CHECK(with.clocks == without.clocks);
  CHECK(with.stack == without.stack);
}

TEST_CASE("what a technique spares makes nothing slower") {
  check_direction(
      [](Technique& technique, const Recording& recording) {
        at_all_sites(technique, recording, [](SiteChange& site) { site.unit = 0.5, site.slots = 0.5; });
      },
      false);
  check_direction(
      [](Technique& technique, const Recording& recording) {
        at_all_sites(technique, recording, [](SiteChange& site) { site.more_latency = -5; });
      },
      false);
}

TEST_CASE("what a technique asks for in addition makes nothing faster") {
  check_direction(
      [](Technique& technique, const Recording& recording) {
        at_all_sites(technique, recording,
                     [](SiteChange& site) { site.early_stall = 3, site.early_cause = Cause::wait_staged; });
      },
      true);
  check_direction(
      [](Technique& technique, const Recording& recording) {
        at_all_sites(technique, recording, [](SiteChange& site) { site.joins = true; });
      },
      true);
  check_direction([](Technique& technique, const Recording&) { technique.active_warps = 2; }, true);
  check_direction([](Technique& technique, const Recording&) { technique.demands[index(Cause::staging)] = 1e6; }, true);
  check_direction([](Technique& technique, const Recording&) { technique.instructions = 1e5; }, true);
  check_direction([](Technique& technique, const Recording&) { technique.dram_read_bytes = 1e7; }, true);
  check_direction([](Technique& technique, const Recording&) { technique.stalls[index(Cause::barrier)] = 100; }, true);
  check_direction(
      [](Technique& technique, const Recording& recording) {
        technique.added_warps.push_back({&recording.clusters.front(), Cause::affine});
      },
      true);
}

TEST_CASE("one active warp of many hides nothing of short waits") {
  const ir::Machine& machine = machine_named("h200");
  const TimedKernel timed = timed_loop(machine, 132 * 8); // 8 blocks of 8 warps: 16 warps of a scheduler
  Technique technique;
  technique.active_warps = 1;
  const KernelTime one = timed.on(machine, 32, &technique);
  // In each of 20 trips all 16 warps wait for integer results one after the other: three times at least.
  const double waits = 20 * 3 * (machine.latency.integer.value - 1) * 16;
  CHECK(one.clocks >= waits);
  CHECK(one.stack[index(Cause::wait_integer)] > timed.on(machine).stack[index(Cause::wait_integer)]);
}

TEST_CASE("a wave is not over before the added warp is") {
  const ir::Machine& machine = machine_named("gtx480");
  const TimedKernel timed = timed_loop(machine, 15);
  // An added warp: 5000 instructions, each on the previous result.
  Cluster chain;
  uint32_t number = 0;
  for (; number < timed.recording.sites.size(); ++number) {
    const Site& site = timed.recording.sites[number];
    if (site.function && site.function->is_opcode(site.instruction, ir::Opcode::add)) break;
  }
  for (int i = 0; i < 5000; ++i)
    chain.steps.push_back({.number = number, .guarded_off = 0});
  chain.length = chain.steps.size();
  Technique technique;
  technique.added_warps.push_back({&chain, Cause::affine});
  CHECK(timed.on(machine, 32, &technique).clocks >= 5000 / machine.issue_rate.value);
}

} // namespace ptxrewrite::tests::technique_test
