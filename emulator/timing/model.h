// Time of a launch by interval analysis: T = launch + sum over waves of (latency^q + sum of (demand /
// capacity)^q)^(1/q).
//
//   MachineCode code(machine, recording.sites, lowering);
//   Traffic traffic = simulate(recording, memory);
//   KernelTime time = time_of({machine, counters, recording, traffic, code, resident_blocks});
//
// A wave is as many blocks as the machine holds at a time. Resources are issue slots, the units of an SM, its memory
// port, L2, DRAM, and the distribution of blocks; their demands come from the counters of all blocks and from the
// caches. Latency is the part of the clusters' waits that other warps' instructions do not hide. No term is fitted to a
// result; all terms are listed in KernelTime::terms.
#pragma once

#include "emulator/core/counters.h"
#include "emulator/timing/interval.h"
#include "emulator/timing/machine_code.h"
#include "emulator/timing/technique.h"
#include "emulator/timing/traffic.h"
#include "emulator/timing/walk.h"

#include <array>
#include <map>

namespace ptxrewrite::timing {

using LaunchCost = ir::LaunchFacts;
inline LaunchCost launch_cost(const ir::Machine& machine) {
  return machine.launch;
}

struct ModelInput {
  const ir::Machine& machine;
  const emulator::Counters& counters;
  const Recording& recording;
  const Traffic& traffic;
  const MachineCode& code;
  uint32_t resident_blocks = 1; // per SM
  Policy policy = Policy::greedy_then_oldest;
  LaunchCost launch = launch_cost(machine);
  const Technique* technique = nullptr; // nullptr: none
  const MemorySystem* memory = nullptr; // that `traffic` was simulated with; nullptr: unknown
};
inline const Traffic& traffic_of(const ModelInput& input) {
  return input.technique && input.technique->traffic ? *input.technique->traffic : input.traffic;
}

// Calls visit(number, counts of all blocks) for each static instruction of the launch that may have been executed.
template <class Visit> void for_each_site(const ModelInput& input, const Visit& visit) {
  std::map<const ir::Function*, const emulator::FunctionCounters*> counted;
  for (const emulator::FunctionCounters& function : input.counters.functions)
    counted[function.source] = &function;
  for (uint32_t number = 0; number < input.recording.sites.size(); ++number) {
    const Site& site = input.recording.sites[number];
    const auto function = counted.find(site.function);
    if (site.function && function != counted.end())
      visit(number, function->second->instructions[site.instruction.index()]);
  }
}

// By number: loads of global memory with the latencies of their cache levels, others as in MachineCode.
std::vector<LoadTime> load_times(const ModelInput& input);

// The demands of a whole launch.
struct Demand {
  double instructions = 0;  // machine instructions by warps, uniform ones included
  double issue_slots = 0;   // taken by them
  double uniform = 0;       // of `instructions`
  double steps = 0;         // PTX instructions by warps, except those of Technique::parts
  CauseClocks unit{};       // clocks of one SM's units and memory port
  CauseClocks unit_slots{}; // machine instructions of each unit, by warps
  double l2_bytes = 0;
  double l2_read_bytes = 0; // of l2_bytes
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double l1_accesses = 0, l1_hit_sectors = 0, sectors = 0;
  double unseen_accesses = 0; // executions of accesses that no block that was looked at executed
  double dram_bytes() const { return dram_read_bytes + dram_write_bytes; }
};
Demand demand_of(const ModelInput& input);
// The launch's technique; one that changes nothing where it has none.
const Technique& technique_of(const ModelInput& input);

struct KernelTime {
  double clocks = 0;
  double seconds = 0;
  CauseClocks stack{}; // adds up to clocks
  Demand demand;
  double waves = 0; // full waves, and the last one as a fraction
  uint32_t resident_blocks = 0, resident_warps = 0;
  std::vector<TimeFigure> terms;
  // Clocks of a scheduler per instruction.
  double cpi(const ir::Machine& machine) const;
};

KernelTime time_of(const ModelInput& input);

} // namespace ptxrewrite::timing
