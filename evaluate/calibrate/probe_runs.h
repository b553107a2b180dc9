// Runs probes on any device, and on the emulator with the recording that the timing model needs to predict their times
// on machines with given figures.
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

// The parsed module of all probes.
std::unique_ptr<ir::Module> read_probe_module(unsigned longer = 1, bool tensor_cores = false);

// Memory of one probe on a device, for consecutive launches.
class ProbeOnDevice {
public:
  // Device and probe must outlive it; the module of probes must be in use.
  static Result<std::unique_ptr<ProbeOnDevice>> make(cuda::Device& device, const Probe& probe);
  ~ProbeOnDevice();
  ProbeOnDevice(const ProbeOnDevice&) = delete;
  ProbeOnDevice& operator=(const ProbeOnDevice&) = delete;

  // Fails with errors of allocation and launching, including faults.
  Result<cuda::KernelRun> launch(bool long_one);
  // The results of all threads in the last launch; addresses are converted to offsets.
  Result<std::vector<uint64_t>> results();

private:
  ProbeOnDevice(cuda::Device& device, const Probe& probe) : device_(device), probe_(probe) {}
  Status fill_constants();

  cuda::Device& device_;
  const Probe& probe_;
  uint64_t out_ = 0, in_ = 0;
  uint64_t threads_ = 0;
  uint32_t start_ = 0; // first node of the next launch
};

class ProbeRuns {
public:
  // Runs all probes on the emulator, for machines with the same port rules and number of SMs as this one.
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
    // For the cache sizes of the last query.
    std::optional<timing::MemorySystem> memory;
    timing::Traffic traffic;
  };
  ProbeRuns() = default;
  template <class Visit> auto with_model(size_t probe, bool long_one, const ir::Machine& machine, Visit visit) const;

  std::vector<Probe> probes_;
  std::unique_ptr<ir::Module> module_;
  std::unique_ptr<cuda::Device> device_; // the counters refer to its programs
  mutable std::vector<std::array<Run, 2>> runs_;
  mutable std::map<const ir::Function*, ir::Lowering> lowered_;
};

} // namespace ptxrewrite::evaluate
