// `ptxrewrite bench`: times original and rewritten kernels on a GPU.
#include "cli/cmd_calibrate.h"
#include "cli/cmd_passes.h"
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "cli/pipeline_options.h"
#include "evaluate/bench/autotune.h"
#include "evaluate/bench/bench.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "support/file_io.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

namespace ptxrewrite::cli::bench_command {

namespace {

using json = nlohmann::ordered_json;

struct BenchOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  PipelineOptions pipeline;
  CalibrateOptions calibrate;
  unsigned rounds = 30;
  unsigned warm_up = 3;
  bool autotune = false;
  std::string output = "autotune.json";
  std::string tuned; // folder; "" if none is written
  bool explain = false;
  bool json = false;
};

// The pipelines to time against the originals; a single "" stands for the file's own variants.
std::vector<std::string> pipelines_of(const BenchOptions& options) {
  std::vector<std::string> pipelines;
  const bool all = options.pipeline.passes == "all" || (options.autotune && !options.pipeline.passes_given);
  if (!all) return {options.pipeline.passes};
  for (const transforms::PassDescription& pass : transforms::all_passes())
    pipelines.emplace_back(pass.name);
  return pipelines;
}

std::string microseconds(double seconds) {
  return fmt::format("{:.2f}", seconds * 1e6);
}
std::string interval_text(const Speedup& speedup) {
  return fmt::format("{:.3f} .. {:.3f}", speedup.interval.low, speedup.interval.high);
}

std::string candidate_trouble(const BenchCandidate& candidate) {
  switch (candidate.state) {
  case CandidateState::timed:
    return {};
  case CandidateState::unchanged:
    return "unchanged";
  case CandidateState::refused:
    return "refused: " + candidate.reason;
  case CandidateState::differs:
    break;
  }
  if (!candidate.reason.empty()) return "FAILS: " + candidate.reason;
  std::string text = "DIFFERS:";
  for (const cuda::BufferComparison& buffer : candidate.differences) {
    const cuda::ElementDifference& first = buffer.first.front();
    text += fmt::format("\n  buffer '{}': {} of {} elements; [{}] is {}, rewritten {}", buffer.buffer, buffer.differing,
                        buffer.elements, first.index, first.original, first.rewritten);
  }
  return text;
}

// The tables of one file; collects speed-ups for those over all files.
class BenchReport {
public:
  BenchReport(const std::string& file, const LaunchInput& input, const Bench& bench)
      : file_(file), input_(input), bench_(bench) {}

  std::string text(bool explain) const {
    std::string out = file_ + (input_.plan.size.empty() ? "" : ", size " + input_.plan.size) + '\n';
    TextTable table{{{"passes"},
                     {"kernel"},
                     {"grid"},
                     {"block"},
                     {"L2"},
                     {"original us", true},
                     {"rewritten us", true},
                     {"speed-up", true},
                     {"95 % interval", true}},
                    {}};
    std::string troubles;
    for (size_t i = 0; i < bench_.candidates().size(); ++i) {
      const BenchCandidate& candidate = bench_.candidates()[i];
      if (std::string trouble = candidate_trouble(candidate); !trouble.empty())
        troubles += candidate.name + ": " + trouble + '\n';
      if (explain)
        for (const std::string& reason : candidate.reasons)
          troubles += candidate.name + ": the original ran: " + reason + '\n';
      if (candidate.state == CandidateState::timed) add_rows(i, table);
    }
    if (!table.rows.empty()) out += table.text();
    out += troubles;
    if (bench_.clocks()[0] > 0)
      out += fmt::format("SM clock: {:.0f} MHz before, {:.0f} MHz after\n", bench_.clocks()[0] * 1e-6,
                         bench_.clocks()[1] * 1e-6);
    return out;
  }

  json document() const {
    json candidates = json::array();
    for (size_t i = 0; i < bench_.candidates().size(); ++i)
      candidates.push_back(candidate_json(i));
    return {{"file", file_},
            {"size", input_.plan.size},
            {"sm_clock_hz", {bench_.clocks()[0], bench_.clocks()[1]}},
            {"candidates", std::move(candidates)}};
  }

  // Speed-ups over all timed kernels.
  void collect(std::array<std::vector<Speedup>, 2>& all) const {
    for (CacheState state : cache_states)
      for_each_timed([&](size_t candidate, size_t shape) {
        all[static_cast<size_t>(state)].push_back(bench_.speedup(state, candidate, shape));
      });
  }

  json choices(bool explain, std::string& explanation) const {
    json list = json::array();
    for (size_t shape = 0; shape < bench_.shapes().size(); ++shape) {
      const BenchShape& what = bench_.shapes()[shape];
      const TunedChoice choice = choose(bench_, shape);
      const std::string name = choice.candidate ? bench_.candidates()[*choice.candidate].name : "original";
      list.push_back({{"file", file_},
                      {"size", input_.plan.size},
                      {"kernel", what.kernel},
                      {"grid", {what.grid.x, what.grid.y, what.grid.z}},
                      {"block", {what.block.x, what.block.y, what.block.z}},
                      {"shared", what.dynamic_shared},
                      {"choice", name},
                      {"speedup", choice.speedup.ratio},
                      {"interval", {choice.speedup.interval.low, choice.speedup.interval.high}}});
      explanation +=
          fmt::format("{} <<<{}, {}>>>: {}\n", what.kernel, to_string(what.grid), to_string(what.block), name);
      if (!explain) continue;
      for (size_t i = 0; i < bench_.candidates().size(); ++i)
        explanation += "  " + bench_.candidates()[i].name + ": " + why(i, shape) + '\n';
    }
    return list;
  }

private:
  template <class Visit> void for_each_timed(Visit visit) const {
    for (size_t i = 0; i < bench_.candidates().size(); ++i)
      for (size_t shape = 0; bench_.candidates()[i].state == CandidateState::timed && shape < bench_.shapes().size();
           ++shape)
        visit(i, shape);
  }

  void add_rows(size_t candidate, TextTable& table) const {
    for (size_t shape = 0; shape < bench_.shapes().size(); ++shape)
      for (CacheState state : cache_states) {
        const BenchShape& what = bench_.shapes()[shape];
        const Speedup speedup = bench_.speedup(state, candidate, shape);
        std::string kernel = what.kernel;
        if (bench_.candidates()[candidate].rewritten_launches[shape] == 0) kernel += " (the original ran)";
        table.rows.push_back({bench_.candidates()[candidate].name, kernel, to_string(what.grid), to_string(what.block),
                              to_string(state), microseconds(speedup.original), microseconds(speedup.candidate),
                              fmt::format("{:.3f}", speedup.ratio), interval_text(speedup)});
      }
  }

  std::string why(size_t candidate, size_t shape) const {
    const BenchCandidate& one = bench_.candidates()[candidate];
    if (one.state != CandidateState::timed) return candidate_trouble(one);
    if (one.rewritten_launches[shape] == 0) return "its launch condition does not hold";
    const Speedup speedup = bench_.speedup(CacheState::warm, candidate, shape);
    return fmt::format("{:.3f} ({}){}", speedup.ratio, interval_text(speedup),
                       speedup.interval.low > 1 ? "" : ", not surely faster");
  }

  json candidate_json(size_t index) const {
    const BenchCandidate& candidate = bench_.candidates()[index];
    json one = {{"passes", candidate.name}, {"kernels", json::array()}};
    if (candidate.state != CandidateState::timed) {
      one["trouble"] = candidate_trouble(candidate);
      return one;
    }
    for (size_t shape = 0; shape < bench_.shapes().size(); ++shape) {
      const BenchShape& what = bench_.shapes()[shape];
      json kernel = {{"kernel", what.kernel},
                     {"grid", to_string(what.grid)},
                     {"block", to_string(what.block)},
                     {"launches", what.launches},
                     {"rewritten_launches", candidate.rewritten_launches[shape]}};
      for (CacheState state : cache_states) {
        const Speedup speedup = bench_.speedup(state, index, shape);
        const auto& times = bench_.times()[static_cast<size_t>(state)];
        kernel[to_string(state)] = {{"original_seconds", speedup.original},
                                    {"rewritten_seconds", speedup.candidate},
                                    {"speedup", speedup.ratio},
                                    {"interval", {speedup.interval.low, speedup.interval.high}},
                                    {"original_rounds", times[0][shape]},
                                    {"rewritten_rounds", times[index + 1][shape]}};
      }
      one["kernels"].push_back(std::move(kernel));
    }
    return one;
  }

  std::string file_;
  const LaunchInput& input_;
  const Bench& bench_;
};

// Output that is printed or written at the end.
struct Gathered {
  json files = json::array();
  json choices = json::array();
  std::array<std::vector<Speedup>, 2> speedups;
  std::string explanation;
  std::set<std::string> tuned_files;
};

// Writes DIR/NAME.ptx with its side file; NAME is that of the launch file.
int write_tuned(const BenchOptions& options, const std::string& path, const LaunchInput& input, const Bench& bench,
                Gathered& gathered) {
  std::vector<TunedChoice> choices;
  for (size_t shape = 0; shape < bench.shapes().size(); ++shape)
    choices.push_back(choose(bench, shape));
  const std::string output =
      (std::filesystem::path(options.tuned) / std::filesystem::path(path).stem()).string() + ".ptx";
  Result<TunedModule> tuned = gathered.tuned_files.insert(output).second
                                  ? tuned_module(input, bench, choices)
                                  : Result<TunedModule>(Error{"another launch file of this name has it", {}});
  std::error_code ignored; // writing reports the error
  std::filesystem::create_directories(options.tuned, ignored);
  Status status = tuned ? write_file(output, tuned->text) : Status(tuned.error());
  if (status) status = write_file(launch::side_file_path(output), launch::write_side_file(tuned->side_file));
  if (!status) {
    show(Error{output + ": " + status.error().message, {}});
    return exit_diagnostics;
  }
  for (const std::string& note : tuned->notes)
    gathered.explanation += note + '\n';
  return exit_ok;
}

int bench_file(const BenchOptions& options, const std::string& path, cuda::Device& gpu, const Session& session,
               Gathered& gathered) {
  std::optional<LaunchInput> input = read_launch_input(path, options.input, session);
  if (!input) return exit_diagnostics;
  BenchSettings settings;
  settings.run = make_run_options(options.pipeline);
  settings.rounds = options.rounds;
  settings.warm_up = options.warm_up;
  Bench bench(*input, gpu, settings);
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  auto fail = [&](const Error& error) {
    show_session_error(error, place, *input, session);
    return static_cast<int>(exit_diagnostics);
  };
  if (Status status = bench.prepare(place); !status) return fail(status.error());
  if (bench.original_failure()) {
    show(bench.original_failure()->to_diagnostic(), input->module->source, session);
    return exit_fault;
  }
  if (options.autotune && !options.pipeline.passes_given && bench.has_own_variants())
    if (Status status = bench.add_own_variants(); !status) return fail(status.error());
  for (const std::string& passes : pipelines_of(options)) {
    const bool own = passes.empty() && !options.pipeline.passes_given;
    if (Status status = own ? bench.add_own_variants() : bench.add_candidate(passes); !status)
      return fail(status.error());
  }
  int code = exit_ok;
  for (const BenchCandidate& candidate : bench.candidates()) {
    if (candidate.state == CandidateState::differs) code = exit_differs;
    if (candidate.state == CandidateState::refused) code = std::max<int>(code, exit_diagnostics);
  }
  {
    Progress progress(2 * (options.rounds + options.warm_up));
    Status status = bench.measure([&](unsigned done, unsigned) { progress.show(done, path); });
    if (!status) return bench.faulted() ? (fail(status.error()), exit_fault) : fail(status.error());
  }
  const BenchReport report(path, *input, bench);
  if (options.json)
    gathered.files.push_back(report.document());
  else
    std::printf("%s\n", report.text(options.explain).c_str());
  std::fflush(stdout);
  report.collect(gathered.speedups);
  for (json& choice : report.choices(options.explain, gathered.explanation))
    gathered.choices.push_back(std::move(choice));
  if (!options.tuned.empty()) code = std::max(code, write_tuned(options, path, *input, bench, gathered));
  return code;
}

std::string summary(const Gathered& gathered) {
  std::string text;
  for (CacheState state : cache_states) {
    const std::vector<Speedup>& speedups = gathered.speedups[static_cast<size_t>(state)];
    if (speedups.size() < 2) continue;
    const Speedup mean = geometric_mean(speedups);
    text += fmt::format("geometric mean of {} kernels, L2 {}: {:.3f} ({})\n", speedups.size(), to_string(state),
                        mean.ratio, interval_text(mean));
  }
  return text;
}

json device_json(const cuda::DeviceInfo& device) {
  return {{"name", device.name},
          {"compute_capability", device.compute_capability},
          {"driver", device.driver_version},
          {"multiprocessors", device.multiprocessors},
          {"l2_bytes", device.l2_bytes}};
}

int finish(const BenchOptions& options, const cuda::DeviceInfo& device, const Gathered& gathered) {
  if (options.json) {
    json document = {{"device", device_json(device)}, {"rounds", options.rounds}, {"files", gathered.files}};
    for (CacheState state : cache_states)
      if (const auto& speedups = gathered.speedups[static_cast<size_t>(state)]; !speedups.empty())
        document["geometric_mean"][to_string(state)] = geometric_mean(speedups).ratio;
    std::puts(json_text(document).c_str());
  } else {
    std::fputs(summary(gathered).c_str(), stdout);
  }
  if (!options.autotune) return exit_ok;
  const json choices = {{"format", 1}, {"device", device_json(device)}, {"kernels", gathered.choices}};
  if (Status status = write_file(options.output, json_text(choices) + '\n'); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  if (!options.json) std::printf("%s", gathered.explanation.c_str());
  return exit_ok;
}

// Describes a contradiction between the options; "" if there is none.
std::string contradiction(const BenchOptions& options) {
  if (std::string wrong = contradiction(options.calibrate); !wrong.empty()) return wrong;
  if (!options.calibrate.output.empty() && (options.autotune || options.pipeline.passes_given))
    return "--calibrate is about the GPU, not about passes";
  if (!options.files.empty() || options.calibrate.output.empty())
    if (std::string wrong = contradiction_of_files(options.files, options.input); !wrong.empty()) return wrong;
  if (!options.tuned.empty() && !options.autotune) return "--tuned goes with --autotune";
  if (options.pipeline.form == "hardware") return "--form hardware is for proposed units; GPUs run legal PTX";
  return {};
}

int run_bench(BenchOptions& options, const Session& session) {
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("bench", wrong);
  if (options.input.direct.any()) options.input.kernels = options.pipeline.kernels; // PTX may have several kernels
  if (!options.calibrate.output.empty())
    return run_calibration(options.calibrate, options.files, options.input, options.rounds, options.json, session);
  if (options.pipeline.passes == "all" || (options.autotune && !options.pipeline.passes_given)) {
    if (!load_pass_libraries(options.pipeline.libraries)) return exit_diagnostics;
  } else {
    std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
    if (!pipeline) return exit_usage;
    options.pipeline.passes_given |= options.pipeline.optimise;
    options.pipeline.passes = transforms::to_string(*pipeline);
  }
  Result<std::unique_ptr<cuda::Device>> gpu = cuda::make_cuda_device();
  if (!gpu) {
    show(gpu.error());
    return exit_no_gpu;
  }
  const cuda::DeviceInfo device = (*gpu)->info();
  if (!options.json)
    std::printf("%s, compute capability %d.%d, driver %d.%d; %u rounds after %u to warm up\n\n", device.name.c_str(),
                device.compute_capability / 10, device.compute_capability % 10, device.driver_version / 1000,
                device.driver_version % 1000 / 10, options.rounds, options.warm_up);
  int code = exit_ok;
  Gathered gathered;
  for (const std::string& path : options.files)
    code = std::max(code, bench_file(options, path, **gpu, session, gathered));
  return std::max(code, finish(options, device, gathered));
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<BenchOptions>();
  command.add_option("FILE", options->files, "launch files, or PTX files with --grid, --block and --arg");
  add_launch_input_options(command, options->input);
  add_direct_launch_options(command, options->input.direct);
  add_pipeline_options(command, options->pipeline);
  command.add_option("--rounds", options->rounds, "measurements of each version (default 30)")
      .type_name("N")
      .range(1, 100000);
  command.add_option("--warm-up", options->warm_up, "rounds before that are not counted (default 3)")
      .type_name("N")
      .range(0, 100000);
  command.add_flag("--autotune", options->autotune,
                   "write down which passes are fastest for each kernel and shape: of all passes and the "
                   "file's own variants, or of -p's");
  command.add_option("-o,--output", options->output, "where --autotune writes (default autotune.json)")
      .type_name("FILE");
  command
      .add_option("--tuned", options->tuned,
                  "with --autotune: write DIR/FILE.ptx and its side file, by which the chosen kernels run in the "
                  "shapes that were measured, and originals in all others")
      .type_name("DIR");
  add_limit_options(command);
  add_calibrate_options(command, options->calibrate);
  command.add_flag("--explain", options->explain,
                   "print why originals ran, and the measurements behind --autotune's choices");
  command.add_flag("--json", options->json, "print JSON, with the times of all rounds");
  return [options, &session] { return run_bench(*options, session); };
}

const RegisterCommand registration(
    {.name = "bench",
     .about = "time original and rewritten kernels on a GPU",
     .example = "ptxrewrite bench samples/*/*.toml -p r2d2\n"
                "Results are compared first: no times for a kernel whose results differ (exit code 4). Then both run "
                "in turns;\n"
                "shown are medians and the interval of their ratio, with the L2 cache warm and cold. Without -p, a "
                "file's own\n"
                "variants (side file or annotations) are timed against its originals. Exit code 77 without a GPU.",
     .place = 60,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::bench_command
