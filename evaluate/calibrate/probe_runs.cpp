#include "evaluate/calibrate/probe_runs.h"

#include "emulator/timing/energy.h"
#include "emulator/timing/memory_system.h"
#include "grammar/reader.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/registers/registers.h"
#include "ir/ssa/ssa.h"
#include "launch/signature.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::evaluate {
namespace {

constexpr uint64_t result_bytes = 8;

std::vector<std::byte> parameters(uint64_t out, uint64_t in, uint32_t trips, const std::array<uint32_t, 4>& numbers) {
  std::vector<std::byte> bytes(2 * sizeof(uint64_t) + 5 * sizeof(uint32_t));
  std::memcpy(&bytes[0], &out, 8);
  std::memcpy(&bytes[8], &in, 8);
  std::memcpy(&bytes[16], &trips, 4);
  std::memcpy(&bytes[20], numbers.data(), sizeof numbers);
  return bytes;
}

} // namespace

std::unique_ptr<ir::Module> read_probe_module(unsigned longer, bool tensor_cores) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("the probes", probe_module_text(longer, tensor_cores)), diagnostics);
}

Result<std::unique_ptr<ProbeOnDevice>> ProbeOnDevice::make(cuda::Device& device, const Probe& probe) {
  std::unique_ptr<ProbeOnDevice> made(new ProbeOnDevice(device, probe));
  made->threads_ = std::max(probe.grid_of(false).count(), probe.grid.count()) * probe.block.count();
  Result<uint64_t> out = device.allocate(made->threads_ * result_bytes, "results of a probe");
  if (!out) return out.error();
  made->out_ = *out;
  if (probe.memory_bytes == 0) return made;
  if (probe.memory == ProbeMemory::constants) {
    if (Status status = made->fill_constants(); !status) return status.error();
    return made;
  }
  Result<uint64_t> in = device.allocate(probe.memory_bytes, "memory of a probe");
  if (!in) return in.error();
  made->in_ = *in;
  if (Status status = device.write(*in, probe_memory(probe, *in)); !status) return status.error();
  return made;
}

Status ProbeOnDevice::fill_constants() {
  cuda::KernelLaunch launch{std::string(constants_kernel), {1, 1, 1}, {1, 1, 1}, 0, {}, {}};
  launch.parameters = parameters(out_, 0, 1, {});
  Result<cuda::KernelRun> run = device_.launch(launch);
  if (!run) return run.error();
  if (run->failure) return Error{run->failure->message, {}};
  uint64_t address = 0;
  if (Status status = device_.read(out_, std::as_writable_bytes(std::span(&address, 1))); !status) return status;
  return device_.write_variable(constants_name, probe_memory(probe_, address));
}

ProbeOnDevice::~ProbeOnDevice() {
  if (out_) (void)device_.release(out_);
  if (in_) (void)device_.release(in_);
}

Result<cuda::KernelRun> ProbeOnDevice::launch(bool long_one) {
  cuda::KernelLaunch launch{probe_.name, probe_.grid_of(long_one), probe_.block, 0, {}, {}};
  std::array<uint32_t, 4> numbers = probe_.numbers;
  if (probe_.fresh) numbers[0] = start_;
  launch.parameters = parameters(out_, in_, long_one ? probe_.long_trips : std::max(probe_.short_trips, 1u), numbers);
  Result<cuda::KernelRun> run = device_.launch(launch);
  if (!run) return run;
  if (run->failure) return Error{run->failure->message, {}};
  if (probe_.fresh) {
    // The next launch continues where this one ended.
    uint64_t end = 0;
    if (Status status = device_.read(out_, std::as_writable_bytes(std::span(&end, 1))); !status) return status.error();
    start_ = static_cast<uint32_t>(end / probe_.stride);
  }
  return run;
}

Result<std::vector<uint64_t>> ProbeOnDevice::results() {
  std::vector<uint64_t> words(threads_);
  if (Status status = device_.read(out_, std::as_writable_bytes(std::span(words))); !status) return status.error();
  return words;
}

Result<std::unique_ptr<ProbeRuns>> ProbeRuns::make(std::vector<Probe> probes, const ir::Machine& machine) {
  std::unique_ptr<ProbeRuns> made(new ProbeRuns);
  made->probes_ = std::move(probes);
  made->module_ = read_probe_module(1, needs_tensor_cores(made->probes_));
  std::unique_ptr<timing::Recorder> recorder;
  cuda::EmulatorOptions options;
  options.host_threads = 1;
  options.observer = [&recorder](const emulator::LaunchRequest&) { return recorder.get(); };
  made->device_ = cuda::make_emulator_device(options);
  if (Status status = made->device_->load(*made->module_); !status) return status.error();
  for (const Probe& probe : made->probes_) {
    recorder = nullptr; // launches that fill memory are not recorded
    Result<std::unique_ptr<ProbeOnDevice>> on_device = ProbeOnDevice::make(*made->device_, probe);
    if (!on_device) return on_device.error();
    std::array<Run, 2>& runs = made->runs_.emplace_back();
    for (bool long_one : {false, true}) {
      recorder = std::make_unique<timing::Recorder>(
          timing::RecorderOptions{.port = timing::port_law(machine), .sms = machine.sms, .everything = true});
      Result<cuda::KernelRun> run = (*on_device)->launch(long_one);
      if (!run) return run.error();
      Run& kept = runs[long_one];
      kept.counters = std::move(run->counters);
      kept.recording = recorder->finish();
      kept.registers =
          ir::register_need(*launch::find_kernel(*made->module_, probe.name), machine.compute_capability).registers;
    }
  }
  return made;
}

template <class Visit>
auto ProbeRuns::with_model(size_t probe, bool long_one, const ir::Machine& machine, Visit visit) const {
  Run& run = runs_[probe][long_one];
  const auto threads = static_cast<uint32_t>(probes_[probe].block.count());
  const auto shared = static_cast<uint32_t>(run.recording.shared_bytes);
  const uint32_t resident = std::max(ir::occupancy(machine, {threads, run.registers, shared}).blocks, 1u);
  timing::MemorySystem memory = timing::memory_system(machine, shared, resident);
  // The caches are simulated again only if their sizes change.
  const bool same = run.memory && run.memory->l1_bytes == memory.l1_bytes && run.memory->l2_bytes == memory.l2_bytes &&
                    run.memory->resident_blocks == memory.resident_blocks;
  if (!same) {
    run.traffic = timing::simulate(run.recording, memory);
    memory.bypasses_l1 = nullptr; // it belongs to the machine, which is temporary
    run.memory = std::move(memory);
  }
  const timing::MachineCode code(
      machine, run.recording.sites, [&](const ir::Function& function) -> const ir::Lowering& {
        if (const auto known = lowered_.find(&function); known != lowered_.end()) return known->second;
        ir::Function copy(function);
        if (!copy.is_ssa) (void)ir::construct_ssa(copy);
        return lowered_.emplace(&function, ir::lower(copy, machine.compute_capability)).first->second;
      });
  return visit(timing::ModelInput{machine, run.counters, run.recording, run.traffic, code, resident});
}

double ProbeRuns::clocks(size_t probe, bool long_one, const ir::Machine& machine) const {
  return with_model(probe, long_one, machine,
                    [](const timing::ModelInput& input) { return timing::time_of(input).clocks; });
}

ir::EventCounts ProbeRuns::events(size_t probe, bool long_one, const ir::Machine& machine) const {
  return with_model(probe, long_one, machine, [](const timing::ModelInput& input) { return timing::events_of(input); });
}

} // namespace ptxrewrite::evaluate
