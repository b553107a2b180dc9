#include "evaluate/calibrate/calibrate.h"

#include "evaluate/common/statistics.h"
#include "evaluate/score/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace ptxrewrite::evaluate {
namespace {

constexpr double widest = 16;         // the largest factor by which a fitted figure may differ from its base value
constexpr double least_effect = 0.05; // relative change of time per relative change of the figure; a smaller effect
                                      // does not determine the figure
constexpr double close_enough = 1e-4; // relative, of a time
constexpr double settled = 2e-3;      // relative change of a figure from one pass over all figures to the next
constexpr int most_passes = 6;
constexpr double scan_step = 1.01; // relative step of a figure, to find the extent of a plateau of times
constexpr double same_step = 2e-4; // relative, of a time

struct Measured {
  double clocks = 0; // of the difference between the two launches
  double error = 0;  // its relative standard error
};

// Standard error of the median, as for a normal distribution with the same median absolute deviation.
double error_of_median(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> off;
  for (double value : values)
    off.push_back(std::abs(value - middle));
  return 1.2533 * 1.4826 * median(off) / std::sqrt(static_cast<double>(std::max<size_t>(values.size(), 1)));
}

bool has_short(const Probe& probe) {
  return probe.short_trips > 0 || probe.short_grid > 0;
}

class Fitter {
public:
  Fitter(const ir::Machine& base, const ProbeRuns& runs, std::vector<Measured> measured, Calibration& result)
      : base_(base), runs_(runs), measured_(std::move(measured)), result_(result) {}

  void run(bool all_figures) {
    choose(all_figures);
    settle();
    // Figures that the times do not determine have arbitrary values now, and have distorted the others: resets them and
    // repeats the fit.
    std::vector<Wanted> shown;
    for (const Wanted& wanted : wanted_) {
      if (is_shown(wanted)) {
        shown.push_back(wanted);
      } else {
        wanted.field->write(result_.machine, wanted.field->read(base_));
        result_.figures.push_back(figure_of(wanted, FitState::not_shown));
      }
    }
    wanted_ = std::move(shown);
    settle();
    for (const Wanted& wanted : wanted_)
      finish(wanted);
    for (size_t probe = 0; probe < runs_.probes().size(); ++probe)
      result_.probes.push_back({runs_.probes()[probe].name, measured_[probe].clocks, difference(probe, base_),
                                difference(probe, result_.machine)});
  }

private:
  struct Wanted {
    const ir::MachineField* field;
    size_t probe;
  };

  void choose(bool all_figures) {
    for (size_t probe = 0; probe < runs_.probes().size(); ++probe)
      for (const ir::MachineField& field : ir::machine_fields()) {
        if (field.name != runs_.probes()[probe].figure) continue;
        const ir::Figure figure = field.read(base_);
        if (figure.known && (figure.guess || all_figures)) wanted_.push_back({&field, probe});
      }
  }

  double difference(size_t probe, const ir::Machine& machine) const {
    const double whole = runs_.clocks(probe, true, machine);
    return has_short(runs_.probes()[probe]) ? whole - runs_.clocks(probe, false, machine) : whole;
  }
  double value_of(const Wanted& wanted) const { return wanted.field->read(result_.machine).value; }
  double time_with(const Wanted& wanted, double value) const {
    ir::Machine changed = result_.machine;
    wanted.field->write(changed, ir::Figure(value));
    return difference(wanted.probe, changed);
  }

  // Finds the root of log(predicted / measured time) as a function of the figure's logarithm by regula falsi; the
  // weight of an end that stays is halved (the Illinois rule).
  void solve(const Wanted& wanted) {
    const double target = measured_[wanted.probe].clocks;
    if (target <= 0) return;
    auto off = [&](double logarithm) {
      return std::log(std::max(time_with(wanted, std::exp(logarithm)), 1e-9) / target);
    };
    const double start = wanted.field->read(base_).value;
    double low = std::log(std::max(start / widest, wanted.field->least + 1e-9));
    double high = std::log(std::min(start * widest, wanted.field->most));
    double at_low = off(low), at_high = off(high);
    // The best of all values tried, because times may change in steps and none may match exactly.
    double best = std::abs(at_low) < std::abs(at_high) ? low : high;
    double least = std::min(std::abs(at_low), std::abs(at_high));
    if (at_low * at_high >= 0 && std::abs(at_high - at_low) < least_effect) return; // no effect
    for (int step = 0; step < 60 && at_low * at_high < 0; ++step) {
      const double next = low - at_low * (high - low) / (at_high - at_low);
      const double here = off(next);
      if (std::abs(here) < least) best = next, least = std::abs(here);
      if (least < close_enough || std::abs(high - low) < 1e-7) break;
      if (here * at_high < 0)
        low = high, at_low = at_high;
      else
        at_low /= 2;
      high = next, at_high = here;
    }
    wanted.field->write(result_.machine, ir::Figure(std::exp(best)));
  }

  // Fits all figures repeatedly, until none changes.
  void settle() {
    for (int pass = 0; pass < most_passes; ++pass) {
      double moved = 0;
      for (const Wanted& wanted : wanted_) {
        const double before = value_of(wanted);
        solve(wanted);
        moved = std::max(moved, std::abs(std::log(value_of(wanted) / before)));
      }
      if (moved < settled) return;
    }
  }

  FittedFigure figure_of(const Wanted& wanted, FitState state) const {
    return {wanted.field,     state, runs_.probes()[wanted.probe].name, wanted.field->read(base_).value,
            value_of(wanted), 0};
  }

  // Does the probe's time depend on the figure, and does a value within the limits reproduce the time?
  bool is_shown(const Wanted& wanted) const {
    const double value = value_of(wanted), before = wanted.field->read(base_).value;
    const bool at_limit = std::abs(std::log(value / before)) > std::log(widest) * 0.999;
    return effect_around(wanted, value, 1.3) > least_effect && !at_limit && measured_[wanted.probe].clocks > 0;
  }

  // Times may change in steps: all values on a plateau are equivalent, and the middle one is taken.
  void finish(const Wanted& wanted) {
    const double value = value_of(wanted);
    const double low = alike(wanted, value, 1 / scan_step), high = alike(wanted, value, scan_step);
    wanted.field->write(result_.machine, ir::Figure(std::sqrt(low * high)));
    FittedFigure figure = figure_of(wanted, FitState::fitted);
    figure.uncertainty =
        std::max(measured_[wanted.probe].error / std::max(effect_around(wanted, value, 1.05), least_effect),
                 std::sqrt(high / low) - 1);
    result_.figures.push_back(std::move(figure));
  }

  // The relative change of time per relative change of the figure, with a step large enough to cross plateaus.
  double effect_around(const Wanted& wanted, double value, double step) const {
    return std::abs(std::log(time_with(wanted, value * step) / time_with(wanted, value / step)) / (2 * std::log(step)));
  }
  // Returns the last value, starting from `value`, with the same time.
  double alike(const Wanted& wanted, double value, double step) const {
    constexpr int most_steps = 25;
    const double time = time_with(wanted, value);
    double last = value;
    for (int i = 0; i < most_steps; ++i) {
      const double next = last * step;
      if (next < wanted.field->least || next > wanted.field->most ||
          std::abs(time_with(wanted, next) / time - 1) > same_step)
        break;
      last = next;
    }
    return last;
  }

  const ir::Machine& base_;
  const ProbeRuns& runs_;
  const std::vector<Measured> measured_;
  Calibration& result_;
  std::vector<Wanted> wanted_;
};

Result<Measured> measure(size_t number, const Probe& probe, double clock_mhz, Stopwatch& stopwatch, unsigned rounds) {
  Result<std::vector<double>> whole = stopwatch.time_probe(number, true, rounds);
  if (!whole) return whole.error();
  double seconds = median(*whole), error = error_of_median(*whole);
  if (has_short(probe)) {
    Result<std::vector<double>> part = stopwatch.time_probe(number, false, rounds);
    if (!part) return part.error();
    seconds -= median(*part);
    error = std::hypot(error, error_of_median(*part));
  }
  return Measured{seconds * clock_mhz * 1e6, seconds > 0 ? error / seconds : 1};
}

// Records figures that the driver reports and that need no probe.
void note_facts(const ir::Machine& base, const GpuFacts& facts, Calibration& result) {
  const ir::MachineField* l2 = ir::find_machine_field("memory", "l2_kib");
  const double kib = static_cast<double>(facts.l2_bytes) / 1024;
  if (facts.l2_bytes == 0 || !l2->read(base).known) return;
  result.figures.push_back({l2, FitState::from_driver, "", l2->read(base).value, kib, 0});
}

} // namespace

Result<ir::Machine> adapted(const ir::Machine& base, const GpuFacts& facts) {
  if (facts.compute_capability != base.compute_capability)
    return Error{
        fmt::format("{} has compute capability {}.{}, {} has {}.{}: --gpu names a machine to begin with, a file "
                    "with one will do",
                    facts.name, facts.compute_capability / 10, facts.compute_capability % 10, base.name,
                    base.compute_capability / 10, base.compute_capability % 10),
        {}};
  ir::Machine machine = base;
  if (facts.sms) machine.sms = facts.sms;
  if (facts.clock_mhz >= 1) machine.clock_mhz = static_cast<uint32_t>(std::lround(facts.clock_mhz));
  if (facts.l2_bytes && machine.memory.l2_kib.known)
    machine.memory.l2_kib = ir::Figure(static_cast<double>(facts.l2_bytes) / 1024);
  return machine;
}

Result<Calibration> calibrate(const ir::Machine& base, const GpuFacts& facts, const ProbeRuns& runs,
                              Stopwatch& stopwatch, const CalibrationSettings& settings) {
  Result<ir::Machine> start = adapted(base, facts);
  if (!start) return start.error();
  Calibration result;
  result.machine = *start;
  result.facts = facts;
  std::vector<Measured> measured;
  for (size_t i = 0; i < runs.probes().size(); ++i) {
    if (settings.progress) settings.progress(i, runs.probes().size(), runs.probes()[i].name);
    Result<Measured> one = measure(i, runs.probes()[i], facts.clock_mhz, stopwatch, settings.rounds);
    if (!one) return Error{runs.probes()[i].name + ": " + one.error().message, {}};
    measured.push_back(*one);
  }
  note_facts(base, facts, result);
  Fitter(*start, runs, std::move(measured), result).run(settings.all_figures);
  return result;
}

Status calibrate_energy(const ProbeRuns& runs, Stopwatch& stopwatch, Calibration& calibration) {
  const ir::Machine& machine = calibration.machine;
  std::vector<EnergyRow> rows;
  for (size_t i = 0; i < runs.probes().size(); ++i) {
    const double copies = energy_copies(runs.probes()[i], machine.sms);
    if (copies == 0) continue;
    Result<std::optional<ProbeEnergy>> energy = stopwatch.energy_of_probe(i);
    if (!energy) return Error{runs.probes()[i].name + ": " + energy.error().message, {}};
    if (!*energy) return {};
    EnergyRow row{runs.events(i, true, machine), (*energy)->seconds, (*energy)->joules};
    for (double& count : row.events)
      count *= copies;
    rows.push_back(row);
  }
  calibration.energy = fit_energy(rows);
  calibration.energy_rows = rows.size();
  return {};
}

Result<std::vector<MeasuredPoint>> measure_file(const std::string& path, const LaunchInput& input,
                                                const ir::Machine& machine, Stopwatch& stopwatch, unsigned rounds) {
  Result<std::vector<KernelSeconds>> times = stopwatch.time_file(input, rounds);
  if (!times) return times.error();
  cuda::ErrorPlace place;
  Result<ScoreRun> run = score(input, ScoreSettings{.machine = machine, .passes = {}, .changes = {}}, place);
  if (!run) return run.error();
  if (run->failure) return Error{run->failure->message, {}};
  const double clock = machine.clock_mhz * 1e6;
  std::vector<MeasuredPoint> points;
  for (const ScoredKernel& kernel : run->scored.versions.front().kernels)
    for (const KernelSeconds& time : *times)
      if (time.kernel == kernel.kernel && time.seconds > 0)
        points.push_back({std::filesystem::path(path).parent_path().filename().string(),
                          kernel.kernel + (input.plan.size.empty() ? "" : " (" + input.plan.size + ")"),
                          time.seconds,
                          {kernel.seconds, kernel.estimates.instructions / clock, kernel.estimates.roofline / clock,
                           kernel.estimates.mwp_cwp / clock}});
  return points;
}

} // namespace ptxrewrite::evaluate
