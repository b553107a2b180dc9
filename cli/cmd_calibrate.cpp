#include "cli/cmd_calibrate.h"
#include "cli/command.h"

#include "cli/device_options.h"
#include "evaluate/calibrate/calibrate_report.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "ir/machine/files/machine_file.h"
#include "support/file_io.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace ptxrewrite::cli {
namespace {

constexpr uint32_t first_tensor_cores = 80; // with the shapes that the probes use

// The machine in the table whose name is contained in the GPU's name; otherwise the closest by compute capability.
const ir::Machine& machine_like(const GpuFacts& facts) {
  std::string name;
  for (unsigned char c : facts.name)
    if (std::isalnum(c)) name += static_cast<char>(std::toupper(c));
  for (const ir::Machine& machine : ir::all_machines())
    if (machine.compute_capability == facts.compute_capability && name.find(machine.name) != std::string::npos)
      return machine;
  return ir::machine_for(facts.compute_capability);
}

// The steps of a calibration, in order.
class Job {
public:
  Job(const CalibrateOptions& options, unsigned rounds, const Session& session)
      : options_(options), rounds_(rounds), session_(session) {}

  int prepare() {
    if (!options_.base.empty()) {
      const MachineChoice choice = find_machine("bench", options_.base, session_);
      if (choice.code != exit_ok) return choice.code;
      base_ = choice.machine;
    }
    return options_.rehearse.empty() ? prepare_gpu() : prepare_rehearsal();
  }

  int calibrate() {
    CalibrationSettings settings;
    settings.rounds = rounds_;
    settings.all_figures = options_.all_figures;
    Progress progress(runs_->probes().size());
    settings.progress = [&](size_t done, size_t, const std::string& what) { progress.show(done, what); };
    Result<Calibration> result = evaluate::calibrate(*base_, facts_, *runs_, *stopwatch_, settings);
    if (!result) return complain(result.error());
    found_ = std::move(*result);
    if (Status status = calibrate_energy(*runs_, *stopwatch_, found_); !status) return complain(status.error());
    return exit_ok;
  }

  int write() const {
    ir::Machine machine = found_.machine;
    const std::string name = facts_.name + ", calibrated";
    machine.name = name;
    ir::EnergySet energy;
    if (found_.energy) energy.pj = found_.energy->pj, energy.static_watt = found_.energy->static_watt;
    const Status status = write_file(options_.output, ir::machine_toml(machine, found_.energy ? &energy : nullptr));
    return status ? exit_ok : complain(status.error());
  }

  int measure(const std::vector<std::string>& files, const LaunchInputOptions& input) {
    int code = exit_ok;
    Progress progress(files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      progress.show(i, files[i]);
      std::optional<LaunchInput> one = read_launch_input(files[i], input, session_);
      if (!one) {
        code = exit_diagnostics;
        continue;
      }
      Result<std::vector<MeasuredPoint>> points = measure_file(files[i], *one, found_.machine, *stopwatch_, rounds_);
      progress.clear();
      if (points)
        points_.insert(points_.end(), points->begin(), points->end());
      else
        code = complain(Error{files[i] + ": " + points.error().message, {}});
    }
    return code;
  }

  void report(bool as_json) const {
    if (as_json) {
      std::puts(json_text(calibration_json(found_, points_)).c_str());
      return;
    }
    std::printf("%s", calibration_text(found_).c_str());
    if (!points_.empty()) std::printf("\n%s", validation_text(points_).c_str());
  }

private:
  static int complain(const Error& error) {
    show(error);
    return exit_diagnostics;
  }

  int prepare_gpu() {
    Result<std::unique_ptr<cuda::Device>> gpu = cuda::make_cuda_device();
    if (!gpu) {
      show(gpu.error());
      return exit_no_gpu;
    }
    device_ = std::move(*gpu);
    probes_ = probes({.sms = static_cast<uint32_t>(device_->info().multiprocessors),
                      .l2_bytes = device_->info().l2_bytes,
                      .length = options_.length,
                      .tensor_cores = static_cast<uint32_t>(device_->info().compute_capability) >= first_tensor_cores});
    Result<std::unique_ptr<Stopwatch>> stopwatch = gpu_stopwatch(*device_, probes_, options_.length);
    if (!stopwatch) return complain(stopwatch.error());
    stopwatch_ = std::move(*stopwatch);
    Result<GpuFacts> facts = stopwatch_->facts();
    if (!facts) return complain(facts.error());
    facts_ = *facts;
    if (!base_) base_ = &machine_like(facts_);
    return run_probes();
  }

  int prepare_rehearsal() {
    const MachineChoice truth = find_machine("bench", options_.rehearse, session_);
    if (truth.code != exit_ok) return truth.code;
    const ir::Machine& machine = *truth.machine;
    if (!base_) base_ = &ir::machine_for(machine.compute_capability);
    facts_.compute_capability = machine.compute_capability;
    facts_.sms = machine.sms;
    facts_.l2_bytes = static_cast<uint64_t>(machine.memory.l2_kib.value * 1024);
    probes_ = probes({.sms = machine.sms,
                      .l2_bytes = facts_.l2_bytes,
                      .length = options_.length,
                      .tensor_cores = machine.compute_capability >= first_tensor_cores});
    facts_.name = machine.name;
    if (const int code = run_probes(); code != exit_ok) return code;
    // Uses the machine's own set of coefficients if its file has one.
    const auto set = std::ranges::find(ir::energy_sets(), machine.name, &ir::EnergySet::name);
    stopwatch_ = model_stopwatch(*runs_, machine, options_.noise, set == ir::energy_sets().end() ? nullptr : &*set);
    Result<GpuFacts> facts = stopwatch_->facts();
    if (!facts) return complain(facts.error());
    facts_ = *facts;
    return exit_ok;
  }

  int run_probes() {
    Result<ir::Machine> machine = adapted(*base_, facts_);
    if (!machine) return complain(machine.error());
    Result<std::unique_ptr<ProbeRuns>> runs = ProbeRuns::make(probes_, *machine);
    if (!runs) return complain(runs.error());
    runs_ = std::move(*runs);
    return exit_ok;
  }

  const CalibrateOptions& options_;
  const unsigned rounds_;
  const Session& session_;
  const ir::Machine* base_ = nullptr;
  std::unique_ptr<cuda::Device> device_;
  std::vector<Probe> probes_;
  GpuFacts facts_;
  std::unique_ptr<ProbeRuns> runs_;
  std::unique_ptr<Stopwatch> stopwatch_;
  Calibration found_;
  std::vector<MeasuredPoint> points_;
};

} // namespace

void add_calibrate_options(Options& command, CalibrateOptions& options) {
  command
      .add_option("--calibrate", options.output,
                  "fit the figures of the machine that are guesses to micro-benchmarks, and write it to FILE.toml; "
                  "estimates are then compared on the kernels of the launch files, which the fit does not see")
      .type_name("FILE.toml");
  command
      .add_option("--gpu", options.base,
                  "with --calibrate: the machine to begin with (default: the one that is like the GPU)")
      .type_name("GPU");
  command.add_flag("--all-figures", options.all_figures,
                   "with --calibrate: fit figures that are no guesses, too, where a micro-benchmark shows them");
  command
      .add_option(
          "--rehearse", options.rehearse,
          "with --calibrate: fit to the timing model's times of this machine instead of a GPU's, as a test of the fit")
      .type_name("GPU");
  command.add_option("--noise", options.noise, "with --rehearse: relative scatter of the times (default 0.01)")
      .type_name("SHARE")
      .range(0.0, 0.5);
  command.add_option("--length", options.length, "with --calibrate: how long micro-benchmarks run (default 1)")
      .type_name("X")
      .range(0.01, 100.0);
}

std::string contradiction(const CalibrateOptions& options) {
  if (!options.output.empty()) return {};
  if (!options.rehearse.empty()) return "--rehearse goes with --calibrate";
  if (!options.base.empty()) return "--gpu goes with --calibrate";
  return options.all_figures ? "--all-figures goes with --calibrate" : "";
}

int run_calibration(const CalibrateOptions& options, const std::vector<std::string>& files,
                    const LaunchInputOptions& input, unsigned rounds, bool json, const Session& session) {
  Job job(options, rounds, session);
  if (const int code = job.prepare(); code != exit_ok) return code;
  if (const int code = job.calibrate(); code != exit_ok) return code;
  if (const int code = job.write(); code != exit_ok) return code;
  const int code = job.measure(files, input);
  job.report(json);
  return code;
}

} // namespace ptxrewrite::cli
