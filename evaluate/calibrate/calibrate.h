// Fits the figures of a machine to measured times of probes: each figure is chosen so that the timing model reproduces
// the time of the probe that isolates it. Figures interact (a chain of loads contains address arithmetic), so the fit
// takes several rounds over all figures.
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
  from_driver, // reported by the driver
  not_shown,   // the times hardly depend on it: unchanged
};

struct FittedFigure {
  const ir::MachineField* field = nullptr;
  FitState state = FitState::fitted;
  std::string probe;
  double before = 0, value = 0;
  double uncertainty = 0; // of the value, relative, from the scatter of the times
};

// The duration of a probe in clocks: the difference of its two launches.
struct ProbeCheck {
  std::string probe;
  double measured = 0, before = 0, after = 0; // with the base machine, and with the fitted one
};

struct Calibration {
  ir::Machine machine; // with the base's name
  GpuFacts facts;
  std::vector<FittedFigure> figures;
  std::vector<ProbeCheck> probes;
  std::optional<EnergyFit> energy; // empty if the stopwatch has no energy counter
  size_t energy_rows = 0;
};

struct CalibrationSettings {
  unsigned rounds = 15;
  bool all_figures = false; // also fit figures that are not guesses
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

// The base machine with the number of SMs, the clock and the L2 size of the stopwatch's GPU. Fails with errors of the
// stopwatch, or if the compute capability differs.
Result<ir::Machine> adapted(const ir::Machine& base, const GpuFacts& facts);

// `runs` must have been made for the adapted base machine.
Result<Calibration> calibrate(const ir::Machine& base, const GpuFacts& facts, const ProbeRuns& runs,
                              Stopwatch& stopwatch, const CalibrationSettings& settings);

// Fits energy coefficients to the probes on the fitted machine. Does nothing without an energy counter.
Status calibrate_energy(const ProbeRuns& runs, Stopwatch& stopwatch, Calibration& calibration);

// The estimators that are compared, in the order of MeasuredPoint::estimates.
inline constexpr std::array estimator_names = {"interval model", "counting instructions", "roofline", "MWP-CWP"};

// Measures and estimates one launch file: one point for each kernel. The suite is the name of the file's folder.
Result<std::vector<MeasuredPoint>> measure_file(const std::string& path, const LaunchInput& input,
                                                const ir::Machine& machine, Stopwatch& stopwatch, unsigned rounds);

} // namespace ptxrewrite::evaluate
