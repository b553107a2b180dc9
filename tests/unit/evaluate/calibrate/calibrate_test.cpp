// Calibration recovers the figures of a machine from times alone: the timing model replaces the GPU, as a machine with
// other figures and noisy times.
#include "evaluate/calibrate/calibrate.h"
#include "ir/machine/files/machine_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace ptxrewrite::tests::calibrate_test {

using namespace ptxrewrite;
using namespace ptxrewrite::cuda;
using namespace ptxrewrite::evaluate;

namespace {

// A part of an H200: eight SMs, and a proportional memory. All figures measured by probes are guesses.
ir::Machine small_h200() {
  ir::Machine machine = *ir::find_machine("h200");
  machine.sms = 8;
  machine.memory.l2_kib = ir::Figure(3072);
  machine.memory.dram_gb_per_second = ir::Figure(600);
  machine.memory.achieved_dram_gb_per_second = ir::Figure(235, true);
  return machine;
}

constexpr double length = 0.05;

struct Rehearsal {
  ir::Machine base = small_h200();
  ir::Machine truth = base;
  std::unique_ptr<ProbeRuns> runs;

  Rehearsal() {
    auto made = ProbeRuns::make(probes({.sms = base.sms, .l2_bytes = uint64_t(3072) << 10, .length = length}), base);
    REQUIRE_MESSAGE(made, made.error().message);
    runs = std::move(*made);
  }
  Calibration calibrated(double noise, bool all) const {
    const std::unique_ptr<Stopwatch> stopwatch = model_stopwatch(*runs, truth, noise);
    const Result<GpuFacts> facts = stopwatch->facts();
    REQUIRE(facts);
    CalibrationSettings settings;
    settings.all_figures = all;
    Result<Calibration> result = calibrate(base, *facts, *runs, *stopwatch, settings);
    REQUIRE_MESSAGE(result, result.error().message);
    return std::move(*result);
  }
};

} // namespace

TEST_CASE("altered figures are found back") {
  Rehearsal rehearsal;
  std::mt19937 random(7);
  for (const Probe& probe : rehearsal.runs->probes())
    for (const ir::MachineField& field : ir::machine_fields())
      if (field.name == probe.figure) {
        ir::Figure figure = field.read(rehearsal.truth);
        figure.value *= std::exp(std::uniform_real_distribution<>(-0.35, 0.3)(random));
        field.write(rehearsal.truth, figure);
      }
  for (double noise : {0.0, 0.005}) {
    CAPTURE(noise);
    const Calibration result = rehearsal.calibrated(noise, true);
    for (const ProbeCheck& check : result.probes) {
      CAPTURE(check.probe);
      CAPTURE(check.measured);
      CAPTURE(check.after);
      CHECK(std::abs(check.after / check.measured - 1) < 0.001 + 8 * noise);
    }
    size_t fitted = 0;
    for (const FittedFigure& figure : result.figures) {
      const double truth = figure.field->read(rehearsal.truth).value;
      CAPTURE(figure.field->name);
      CAPTURE(figure.before);
      CAPTURE(figure.value);
      CAPTURE(truth);
      CAPTURE(figure.uncertainty);
      if (figure.state == FitState::not_shown) continue;
      ++fitted;
      // Misses are served in whole batches: several numbers of registers take equally long.
      const bool in_steps = figure.field->name == "memory.outstanding_misses";
      CHECK(std::abs(figure.value / truth - 1) < (in_steps ? 0.12 : noise > 0 ? 0.04 : 0.002));
      CHECK_FALSE(figure.field->read(result.machine).guess);
    }
    CHECK(fitted >= 31);
  }
}

TEST_CASE("only guesses are touched, and what no time shows stays a guess") {
  Rehearsal rehearsal;
  rehearsal.truth.latency.dram = ir::Figure(800);         // no guess
  rehearsal.truth.latency.l2 = ir::Figure(300);           // a guess
  rehearsal.truth.throughput.load_store = ir::Figure(64); // more than the port's throughput
  rehearsal.base.throughput.load_store = ir::Figure(32, true);
  const Calibration result = rehearsal.calibrated(0.002, false);
  CHECK(result.machine.latency.dram.value == 562);
  CHECK(result.machine.latency.l2.value == doctest::Approx(300).epsilon(0.01));
  CHECK(result.machine.throughput.load_store.guess);
  CHECK(result.machine.throughput.load_store.value == 32);
  for (const FittedFigure& figure : result.figures) {
    CAPTURE(figure.field->name);
    CHECK((figure.field->read(rehearsal.base).guess || figure.state == FitState::from_driver));
  }
  // Written files are read back.
  Diagnostics diagnostics;
  CHECK(ir::read_machine_file(SourceFile("found.toml", ir::machine_toml(result.machine)), diagnostics));
}

TEST_CASE("the driver's facts come first, and another generation is refused") {
  const ir::Machine base = small_h200();
  GpuFacts facts{"a GPU", 90, 78, 1755.4, uint64_t(50) << 20};
  const Result<ir::Machine> machine = adapted(base, facts);
  REQUIRE(machine);
  CHECK(machine->sms == 78);
  CHECK(machine->clock_mhz == 1755);
  CHECK(machine->memory.l2_kib.value == 51200);
  facts.compute_capability = 80;
  CHECK_FALSE(adapted(base, facts));
}

TEST_CASE("energies made of a set of coefficients are explained by the set that is found") {
  Rehearsal rehearsal;
  ir::EnergySet truth;
  truth.static_watt = 80;
  for (ir::EnergyEvent event : {ir::EnergyEvent::sched, ir::EnergyEvent::rf_read, ir::EnergyEvent::int_alu,
                                ir::EnergyEvent::fp_mul, ir::EnergyEvent::shared, ir::EnergyEvent::dram_read})
    truth.pj[static_cast<size_t>(event)] = event == ir::EnergyEvent::dram_read ? 1500 : 20;
  const std::unique_ptr<Stopwatch> stopwatch = model_stopwatch(*rehearsal.runs, rehearsal.truth, 0.005, &truth);
  Calibration calibration;
  calibration.machine = rehearsal.truth;
  REQUIRE(calibrate_energy(*rehearsal.runs, *stopwatch, calibration));
  REQUIRE(calibration.energy);
  CHECK(calibration.energy_rows >= 25);
  CHECK(calibration.energy->static_watt == doctest::Approx(80).epsilon(0.05));
  CHECK(calibration.energy->error < 0.01);
  CHECK(calibration.energy->error_left_out < 0.05);
  // Without a counter there is no result.
  Calibration none;
  none.machine = rehearsal.truth;
  REQUIRE(calibrate_energy(*rehearsal.runs, *model_stopwatch(*rehearsal.runs, rehearsal.truth, 0.005), none));
  CHECK_FALSE(none.energy);
}

TEST_CASE("on a device that answers with times of its own, probes run and are timed") {
  const std::vector<Probe> all = probes({.sms = 2, .l2_bytes = 1 << 18, .length = 0.02});
  std::unique_ptr<Device> device = make_emulator_device();
  Result<std::unique_ptr<Stopwatch>> stopwatch = gpu_stopwatch(*device, all);
  REQUIRE(stopwatch);
  const Result<GpuFacts> facts = (*stopwatch)->facts();
  REQUIRE_MESSAGE(facts, facts.error().message);
  CHECK(facts->clock_mhz > 0);
  for (size_t i = 0; i < all.size(); ++i)
    for (bool long_one : {true, false}) {
      CAPTURE(all[i].name);
      const Result<std::vector<double>> seconds = (*stopwatch)->time_probe(i, long_one, 3);
      REQUIRE_MESSAGE(seconds, seconds.error().message);
      CHECK(seconds->size() == 3);
    }
}

} // namespace ptxrewrite::tests::calibrate_test
