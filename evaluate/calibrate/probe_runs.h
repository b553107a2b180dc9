// Probes on any device, and on the emulator with everything that the timing model wants to know: what a machine with
// these figures would take for each.
#pragma once

#include "cuda/device.h"
#include "emulator/timing/energy.h"
#include "emulator/timing/memory_system.h"
#include "emulator/timing/model.h"
#include "evaluate/calibrate/probes.h"
#include "ir/machine/select/lowering.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace ptxrewrite::evaluate {

// The module of all probes, read.
std::unique_ptr<ir::Module> read_probe_module(unsigned longer = 1, bool tensor_cores = false);

// Memory of one probe on a device, for launches one after the other.
class ProbeOnDevice {
public:
  // Device and probe must outlive it; the module of probes is in use.
  static Result<std::unique_ptr<ProbeOnDevice>> make(cuda::Device& device, const Probe& probe);
  ~ProbeOnDevice();
  ProbeOnDevice(const ProbeOnDevice&) = delete;
  ProbeOnDevice& operator=(const ProbeOnDevice&) = delete;

  // Error: what memory and launches say, a fault included.
  Result<cuda::KernelRun> launch(bool long_one);
  // What every thread of the last launch left, as offsets where chains are of addresses.
  Result<std::vector<uint64_t>> results();

private:
  ProbeOnDevice(cuda::Device& device, const Probe& probe) : device_(device), probe_(probe) {}
  Status fill_constants();

  cuda::Device& device_;
  const Probe& probe_;
  uint64_t out_ = 0, in_ = 0;
  uint64_t threads_ = 0;
  uint32_t start_ = 0; // node, of the next launch
};

class ProbeRuns {
public:
  // Runs all probes on the emulator, for machines with the port law and as many SMs as this one.
  static Result<std::unique_ptr<ProbeRuns>> make(std::vector<Probe> probes, const ir::Machine& machine);

  const std::vector<Probe>& probes() const { return probes_; }
  // Clocks of one launch by the timing model.
  double clocks(size_t probe, bool long_one, const ir::Machine& machine) const;
  ir::EventCounts events(size_t probe, bool long_one, const ir::Machine& machine) const;

private:
  struct Run {
    emulator::Counters counters;
    timing::Recording recording;
    uint32_t registers = 0;
    // Of the caches that were asked for last.
    std::optional<timing::MemorySystem> memory;
    timing::Traffic traffic;
  };
  ProbeRuns() = default;
  template <class Visit> auto with_model(size_t probe, bool long_one, const ir::Machine& machine, Visit visit) const;

  std::vector<Probe> probes_;
  std::unique_ptr<ir::Module> module_;
  std::unique_ptr<cuda::Device> device_; // the counters point into its programs
  mutable std::vector<std::array<Run, 2>> runs_;
  mutable std::map<const ir::Function*, ir::Lowering> lowered_;
};

} // namespace ptxrewrite::evaluate
