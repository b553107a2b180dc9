// Fits the figures of a machine to measured times of probes: each figure is chosen so that the timing model reproduces
// the time of the probe that isolates it. Figures interact (a chain of loads contains address arithmetic), so all are
// fitted in several rounds.
#pragma once

#include "evaluate/calibrate/energy_fit.h"
#include "evaluate/calibrate/stopwatch.h"
#include "evaluate/common/agreement.h"
#include "ir/machine/figures/machine_fields.h"

#include <functional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

enum class FitState : uint8_t {
  fitted,
  from_driver, // the driver knows it
  not_shown,   // times hardly depend on it: it stays as it was
};

struct FittedFigure {
  const ir::MachineField* field = nullptr;
  FitState state = FitState::fitted;
  std::string probe;
  double before = 0, value = 0;
  double uncertainty = 0; // of the value, from how much the times scatter: a share of it
};

// What a probe takes, in clocks: the difference of its two launches.
struct ProbeCheck {
  std::string probe;
  double measured = 0, before = 0, after = 0; // by the machine as it was, and as it is now
};

struct Calibration {
  ir::Machine machine; // with the base's name
  GpuFacts facts;
  std::vector<FittedFigure> figures;
  std::vector<ProbeCheck> probes;
  std::optional<EnergyFit> energy; // where energy is counted
  size_t energy_rows = 0;
};

struct CalibrationSettings {
  unsigned rounds = 15;
  bool all_figures = false; // those that are no guesses, too
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

// The base with its SMs, clock and L2 as the stopwatch has them. Errors: the stopwatch's; another compute capability.
Result<ir::Machine> adapted(const ir::Machine& base, const GpuFacts& facts);

// The runs are for the base as adapted.
Result<Calibration> calibrate(const ir::Machine& base, const GpuFacts& facts, const ProbeRuns& runs,
                              Stopwatch& stopwatch, const CalibrationSettings& settings);

// Energy coefficients from the probes, of the machine that was found. Nothing where energy is not counted.
Status calibrate_energy(const ProbeRuns& runs, Stopwatch& stopwatch, Calibration& calibration);

// What estimators are compared, in the order of MeasuredPoint::estimates.
inline constexpr std::array estimator_names = {"interval model", "counting instructions", "roofline", "MWP-CWP"};

// One launch file on both: a point by kernel. Its suite is the folder that the file is in.
Result<std::vector<MeasuredPoint>> measure_file(const std::string& path, const LaunchInput& input,
                                                const ir::Machine& machine, Stopwatch& stopwatch, unsigned rounds);

} // namespace ptxrewrite::evaluate
