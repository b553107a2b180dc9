// Sources of times for calibration: a GPU, or the timing model of a known machine, which is used to test the fit
// itself.
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
  double clock_mhz = 0; // under load
  uint64_t l2_bytes = 0;
};

struct KernelSeconds {
  std::string kernel;
  double seconds = 0; // all its launches in one pass over the launch file: the median over rounds
};

// Average of one launch.
struct ProbeEnergy {
  double seconds = 0, joules = 0;
};

// The factor by which a probe's blocks are multiplied for measuring energy: probes of one block run on all SMs. 0 if
// its energy is not measured.
uint32_t energy_copies(const Probe& probe, uint32_t sms);

class Stopwatch {
public:
  virtual ~Stopwatch() = default;
  virtual Result<GpuFacts> facts() = 0;
  // Seconds of one probe's launches, by round.
  virtual Result<std::vector<double>> time_probe(size_t probe, bool long_one, unsigned rounds) = 0;
  // Repeats launches with energy_copies times the probe's blocks; energy_copies must not be 0. Returns nothing without
  // an energy counter.
  virtual Result<std::optional<ProbeEnergy>> energy_of_probe(size_t probe) = 0;
  // By kernel, in the order of the first launches.
  virtual Result<std::vector<KernelSeconds>> time_file(const LaunchInput& input, unsigned rounds) = 0;
};

// Device and probes must outlive it. `energy_seconds`: how long each probe runs to measure its energy; counters are
// updated every few tens of milliseconds.
Result<std::unique_ptr<Stopwatch>> gpu_stopwatch(cuda::Device& device, const std::vector<Probe>& probes,
                                                 double energy_seconds = 1);
// Times of `truth` by the timing model, and energies by a set of coefficients, each with a relative error of up to a
// few times `noise`. nullptr: no energy counter.
std::unique_ptr<Stopwatch> model_stopwatch(const ProbeRuns& runs, const ir::Machine& truth, double noise,
                                           const ir::EnergySet* energy = nullptr, uint64_t seed = 1);

} // namespace ptxrewrite::evaluate
