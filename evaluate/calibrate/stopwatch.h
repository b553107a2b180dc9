// Source of times for calibration: a GPU, or the timing model of a known machine, with which the fit itself is tested.
#pragma once

#include "evaluate/calibrate/probe_runs.h"
#include "evaluate/launches/launch_input.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct GpuFacts {
  std::string name;
  uint32_t compute_capability = 0;
  uint32_t sms = 0;
  double clock_mhz = 0; // at work
  uint64_t l2_bytes = 0;
};

struct KernelSeconds {
  std::string kernel;
  double seconds = 0; // all its launches in one pass over the launch file: the median over rounds
};

// Of one launch, on average.
struct ProbeEnergy {
  double seconds = 0, joules = 0;
};

// How many blocks of a probe energy is measured with for each that it has: probes of one block run on all SMs. 0: its
// energy is not measured.
uint32_t energy_copies(const Probe& probe, uint32_t sms);

class Stopwatch {
public:
  virtual ~Stopwatch() = default;
  virtual Result<GpuFacts> facts() = 0;
  // Seconds of launches of one probe, round by round.
  virtual Result<std::vector<double>> time_probe(size_t probe, bool long_one, unsigned rounds) = 0;
  // With energy_copies of its blocks, not 0, again and again. Nothing: energy is not counted here.
  virtual Result<std::optional<ProbeEnergy>> energy_of_probe(size_t probe) = 0;
  // By kernel, in the order of the first launches.
  virtual Result<std::vector<KernelSeconds>> time_file(const LaunchInput& input, unsigned rounds) = 0;
};

// Device and probes must outlive it. `energy_seconds`: how long each probe runs for its energy; counters go in steps of
// tens of milliseconds.
Result<std::unique_ptr<Stopwatch>> gpu_stopwatch(cuda::Device& device, const std::vector<Probe>& probes,
                                                 double energy_seconds = 1);
// Times of `truth` by the timing model, and energies by a set of coefficients, each off by up to a few times `noise` of
// itself. nullptr: there is no energy counter.
std::unique_ptr<Stopwatch> model_stopwatch(const ProbeRuns& runs, const ir::Machine& truth, double noise,
                                           const ir::EnergySet* energy = nullptr, uint64_t seed = 1);

} // namespace ptxrewrite::evaluate
