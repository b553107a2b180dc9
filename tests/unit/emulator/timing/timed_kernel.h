// A kernel through emulator and timing model, for tests.
#pragma once

#include "emulator/timing/memory_system.h"
#include "emulator/timing/model.h"
#include "ir/machine/occupancy.h"
#include "ir/ssa.h"
#include "tests/unit/emulator/run_ptx.h"

#include <functional>
#include <map>

namespace ptxrewrite::timing {

// A run and what was recorded of it; times on any machine with as many SMs and the same port law come from it.
struct TimedKernel {
  emulator::PtxRun run;
  Recording recording;
  uint32_t threads_per_block = 0;

  // `technique`: makes one of the model's input without it.
  KernelTime with(const ir::Machine& machine, const std::function<Technique(const ModelInput&)>& technique,
                  uint32_t registers = 32) const {
    const uint32_t resident =
        ir::occupancy(machine, {threads_per_block, registers, static_cast<uint32_t>(recording.shared_bytes)}).blocks;
    REQUIRE(resident > 0);
    std::map<const ir::Function*, ir::Lowering> lowered;
    auto lowering = [&](const ir::Function& function) -> const ir::Lowering& {
      if (auto known = lowered.find(&function); known != lowered.end()) return known->second;
      ir::Function copy(function);
      if (!copy.is_ssa) (void)ir::construct_ssa(copy);
      return lowered.emplace(&function, ir::lower(copy, machine.compute_capability)).first->second;
    };
    const MachineCode code(machine, recording.sites, lowering);
    const Traffic traffic = simulate(recording, memory_system(machine, recording.shared_bytes, resident));
    ModelInput input{machine, run.result.counters, recording, traffic, code, resident};
    const Technique made = technique(input);
    input.technique = &made;
    return time_of(input);
  }
  KernelTime on(const ir::Machine& machine, uint32_t registers = 32, const Technique* technique = nullptr) const {
    return with(
        machine, [&](const ModelInput&) { return technique ? *technique : Technique(); }, registers);
  }
};

inline TimedKernel time_kernel(const std::string& text, emulator::LaunchRequest request,
                               const std::vector<emulator::Argument>& arguments, const ir::Machine& machine) {
  Recorder recorder({.port = port_law(machine), .sms = machine.sms});
  request.observer = &recorder;
  TimedKernel timed{emulator::run_ptx(text, request, arguments), {}, static_cast<uint32_t>(request.block.count())};
  REQUIRE_MESSAGE(timed.run.ok(), timed.run.error, timed.run.failure());
  timed.recording = recorder.finish();
  return timed;
}

inline double sum_of(const CauseClocks& stack) {
  double sum = 0;
  for (double clocks : stack)
    sum += clocks;
  return sum;
}

} // namespace ptxrewrite::timing
