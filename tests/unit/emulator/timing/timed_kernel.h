// Runs a kernel through emulator and timing model, for tests.
#pragma once

#include "emulator/timing/memory_system.h"
#include "emulator/timing/model.h"
#include "evaluate/score/linear_technique.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/emulator/run_ptx.h"

#include <functional>
#include <map>
#include <optional>

namespace ptxrewrite::timing {

// A built-in machine.
inline const ir::Machine& machine_named(const char* name) {
  const ir::Machine* found = ir::find_machine(name);
  REQUIRE(found);
  return *found;
}

// A launch as input of the model. `counters` and `recording` must outlive it.
class ModelledLaunch {
public:
  ModelledLaunch(const emulator::Counters& counters, const Recording& recording, const ir::Machine& machine,
                 uint32_t resident_blocks)
      : counters_(counters), recording_(recording), machine_(machine), resident_blocks_(resident_blocks),
        code_(machine, recording.sites,
              [this](const ir::Function& function) -> const ir::Lowering& { return lowering(function); }),
        traffic_(simulate(recording, memory_of(code_, machine, recording, resident_blocks))) {}
  ModelledLaunch(const ModelledLaunch&) = delete;
  ModelledLaunch& operator=(const ModelledLaunch&) = delete;

  const MachineCode& code() const { return code_; }
  ModelInput input(const Technique* technique = nullptr) const {
    ModelInput input{machine_, counters_, recording_, traffic_, code_, resident_blocks_};
    input.technique = technique;
    return input;
  }

private:
  static MemorySystem memory_of(const MachineCode& code, const ir::Machine& machine, const Recording& recording,
                                uint32_t resident_blocks) {
    MemorySystem memory = memory_system(machine, recording.shared_bytes, resident_blocks);
    memory.absent = code.absent_accesses();
    return memory;
  }
  const ir::Lowering& lowering(const ir::Function& function) {
    if (auto known = lowered_.find(&function); known != lowered_.end()) return known->second;
    ir::Function copy(function);
    if (!copy.is_ssa) REQUIRE(ir::construct_ssa(copy).ok());
    return lowered_.emplace(&function, ir::lower(copy, machine_.compute_capability)).first->second;
  }

  const emulator::Counters& counters_;
  const Recording& recording_;
  const ir::Machine& machine_;
  uint32_t resident_blocks_;
  std::map<const ir::Function*, ir::Lowering> lowered_;
  MachineCode code_;
  Traffic traffic_;
};

// A run and its recording, from which times on any machine with the same number of SMs and port law are computed.
struct TimedKernel {
  emulator::PtxRun run;
  Recording recording;
  uint32_t threads_per_block = 0;

  // `technique`: computes a technique from the model's input without it.
  KernelTime with(const ir::Machine& machine, const std::function<Technique(const ModelInput&)>& technique,
                  uint32_t registers = 32) const {
    const uint32_t resident =
        ir::occupancy(machine, {threads_per_block, registers, static_cast<uint32_t>(recording.shared_bytes)}).blocks;
    REQUIRE(resident > 0);
    const ModelledLaunch launch(run.result.counters, recording, machine, resident);
    Technique made = technique(launch.input());
    add_linear_phases(launch.input(), made);
    return time_of(launch.input(&made));
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

// A loop of 20 trips in each of 256 threads per block: a load, dependent arithmetic on it that ends in `last` (of %r9
// and %r4 into %r10), a store.
inline TimedKernel timed_loop(const ir::Machine& machine, uint32_t blocks,
                              const std::string& last = "mul.lo.u32 %r10, %r9, %r9;") {
  const std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<12>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; mov.u32 %r5, 0;
LOOP:
  ld.global.u32 %r6, [%rd3];
  xor.b32 %r7, %r6, %r4; shl.b32 %r8, %r7, 3; xor.b32 %r9, %r8, %r7; )" +
                           last + R"(
  st.global.u32 [%rd3], %r10;
  add.s64 %rd3, %rd3, 65536; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 20;
  @%p1 bra LOOP;
  ret;
)";
  return time_kernel(emulator::kernel("k", ".param .u64 p", body), {.kernel = "k", .grid = {blocks}, .block = {256}},
                     {emulator::Buffer{std::vector<std::byte>(65536 * 20 + uint64_t(blocks) * 1024)}}, machine);
}

inline double sum_of(const CauseClocks& stack) {
  double sum = 0;
  for (double clocks : stack)
    sum += clocks;
  return sum;
}

} // namespace ptxrewrite::timing
