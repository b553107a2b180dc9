// `ptxrewrite opt`: runs passes over PTX and writes PTX.
#include "cli/cmd_passes.h"
#include "cli/command.h"
#include "cli/extract_input.h"
#include "cli/machine_choice.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/optimise.h"
#include "evaluate/common/report.h"
#include "evaluate/machines/machine_figures.h"
#include "ir/core/print.h"
#include "ir/isa/isa_availability.h"
#include "launch/side_file.h"
#include "support/file_io.h"
#include "support/text/json_text.h"
#include "support/text/terminal.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

namespace ptxrewrite::cli::opt_command {

namespace {

struct OptOptions {
  std::vector<std::string> files;
  PipelineOptions pipeline;
  std::string output = "-";
  bool output_given = false;
  bool in_place = false;
  bool no_ssa = false;
  bool list_passes = false;
  bool json = false;
  bool extract = false;
  uint32_t extracted = 0; // number of the embedded module to extract; 0: the only one
  ReportSelection report;
  transforms::StageFilter print_before;
  transforms::StageFilter print_after;
  bool print_changed = false;
  std::optional<uint64_t> stop_after;
  uint32_t jobs = 1; // 0: one for each hardware thread
};

Diagnostic warning(std::string message) {
  return {Severity::warning, {}, std::move(message), {}};
}

transforms::RunOptions run_options(const OptOptions& options) {
  transforms::RunOptions run = make_run_options(options.pipeline);
  run.print_before = options.print_before;
  run.print_after = options.print_after;
  run.print_changed = options.print_changed;
  if (options.stop_after) run.stop_after = *options.stop_after;
  run.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  return run;
}

// The output path for `input`. If -o names a folder, each input gets a file in it.
std::string output_path(const OptOptions& options, const std::string& input) {
  if (options.in_place) return input;
  std::error_code ignored;
  if (options.output != "-" && std::filesystem::is_directory(options.output, ignored))
    return (std::filesystem::path(options.output) /
            (input == "-" ? std::filesystem::path("stdin.ptx") : std::filesystem::path(input).filename()))
        .string();
  return options.output;
}

// Describes a contradiction between the options; empty if there is none.
std::string contradiction(const OptOptions& options) {
  if (options.files.empty()) return "FILE is missing (- is standard input)";
  if (options.in_place && options.output_given) return "--in-place and -o exclude each other";
  bool has_stdin = std::find(options.files.begin(), options.files.end(), "-") != options.files.end();
  if (options.in_place && options.extract) return "--in-place would write PTX over the file that --extract reads";
  if (options.in_place && has_stdin) return "--in-place cannot write back to standard input";
  std::error_code ignored;
  if (options.files.size() > 1 && !options.in_place && !std::filesystem::is_directory(options.output, ignored))
    return "several files need --in-place, or -o with an existing folder";
  if (options.pipeline.optimise && options.pipeline.form != "legal")
    return "-O is for today's GPUs: it excludes --form " + options.pipeline.form;
  if (!options.pipeline.gpu.empty() && !options.report.statistics && !options.pipeline.optimise)
    return "--gpu says which GPU --stats and -O count for: give one of them";
  if (options.json &&
      (!options.print_before.names.empty() || !options.print_after.names.empty() || options.print_changed))
    return "--json has standard error to itself: it excludes --print-before, --print-after and --print-changed";
  if (options.no_ssa && (options.pipeline.optimise || options.pipeline.passes_given))
    return "--no-ssa only parses and prints: it excludes -p and -O";
  return "";
}

OptimiseSettings settings_of(const OptOptions& options) {
  return {.run = run_options(options),
          .gives_back = options.pipeline.optimise,
          .wants_figures = options.report.statistics && !options.pipeline.gpu.empty(),
          .may_run_ptxas = !options.pipeline.no_ptxas,
          .architecture = options.pipeline.gpu,
          .jobs = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency())};
}

void show_report(const OptOptions& options, const Optimised& result, const Session& session,
                 nlohmann::ordered_json& report) {
  const SourceFile& source = result.module->source;
  const bool show_figures = options.report.statistics && !options.pipeline.gpu.empty();
  const bool has_figures = result.no_figures.empty();
  if (options.json) {
    report = report_json(result.report, source, options.report);
    if (show_figures)
      report["figures"] =
          has_figures ? figures_json(result.before, result.after) : nlohmann::ordered_json(result.no_figures);
  } else if (options.report.any()) {
    std::string text = report_text(result.report, source, options.report, use_colour(session, stderr));
    if (show_figures)
      text += source.name() + ": on " + options.pipeline.gpu + '\n' +
              (has_figures ? figures_text(result.before, result.after) : "none: " + result.no_figures + '\n');
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

// Parses, runs the passes and weighs the result; returns nothing after showing an error.
std::optional<Optimised> rewritten_output(const OptOptions& options, const transforms::Pipeline& pipeline,
                                          std::unique_ptr<ir::Module> module, const Session& session,
                                          nlohmann::ordered_json& report) {
  const SourceFile source = module->source;
  Result<Optimised> result = optimise(std::move(module), pipeline, settings_of(options));
  if (!result) {
    show(result.error(), source, session);
    return std::nullopt;
  }
  show_report(options, *result, session, report);
  if (!options.pipeline.specialise.empty() && !result->report.statistics.contains("darsie.specialised"))
    show(warning("no kernel was specialised; --explain says why"), source, session);
  for (const Diagnostic& one : result->warnings)
    show(one, source, session);
  return *std::move(result);
}

// Writes the side file for launchers beside the module. Warns of an existing one, which would be taken for this
// module's.
Status write_output(const Optimised& output, const std::string& path, const Session& session) {
  if (Status status = write_file(path, output.text); !status) return status;
  if (path == "-") {
    if (!output.side_file.empty())
      show(warning("some kernels have variants for some launches only; their conditions go to a side file, which -o "
                   "FILE writes beside the module"),
           output.module->source, session);
    return {};
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {}; // a device, which can have no side file
  const std::string side_file = launch::side_file_path(path);
  if (!output.side_file.empty()) return write_file(side_file, output.side_file);
  if (std::filesystem::exists(side_file, ignored))
    show(warning("left over from another module: this one has no variants"), SourceFile(side_file, ""), session);
  return {};
}

int rewrite(const OptOptions& options, const transforms::Pipeline& pipeline, const std::string& path,
            const Session& session, nlohmann::ordered_json& report) {
  std::unique_ptr<ir::Module> module =
      options.extract ? extract_input(path, options.extracted, session) : read_input(path, session);
  if (!module || !check_selection(*module, options.pipeline.kernels, session)) return exit_diagnostics;
  const std::string destination = output_path(options, path);
  Status status;
  if (options.no_ssa) {
    std::string text;
    ir::print(*module, text);
    status = write_file(destination, text);
  } else {
    std::optional<Optimised> output = rewritten_output(options, pipeline, std::move(module), session, report);
    if (!output) return exit_diagnostics;
    status = write_output(*output, destination, session);
  }
  if (!status) {
    show(status.error(), session);
    return exit_diagnostics;
  }
  return exit_ok;
}

// Like `rewrite`, but messages for standard error go to the report.
int rewrite_with_report(const OptOptions& options, const transforms::Pipeline& pipeline, const std::string& path,
                        const Session& session, nlohmann::ordered_json& reports) {
  std::vector<CollectedDiagnostic> collected;
  Session quiet = session;
  quiet.collected = &collected;
  nlohmann::ordered_json report = {{"file", path == "-" ? "<stdin>" : path}};
  const int code = rewrite(options, pipeline, path, quiet, report);
  report["diagnostics"] = diagnostics_json(collected);
  reports.push_back(std::move(report));
  return code;
}

int run_opt(OptOptions& options, const Session& session) {
  if (options.list_passes) {
    if (!load_pass_libraries(options.pipeline.libraries)) return exit_diagnostics;
    return list_passes(options.json);
  }
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("opt", wrong);
  // ptxas needs a target: a machine name is replaced by the machine's target.
  if (std::string& gpu = options.pipeline.gpu; !gpu.empty() && !ir::first_version_of_target(gpu)) {
    if (gpu.starts_with("sm_") || gpu.starts_with("compute_"))
      return usage_error("opt", "--gpu: no version of PTX has the target '" + gpu + "'");
    const MachineChoice choice = find_machine("opt", gpu, session);
    if (choice.code != exit_ok) return choice.code;
    gpu = "sm_" + std::to_string(choice.machine->compute_capability);
  }
  std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
  if (!pipeline) return exit_usage;
  int code = exit_ok;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  for (const std::string& path : options.files)
    if (options.json) {
      code = std::max(code, rewrite_with_report(options, *pipeline, path, session, reports));
    } else {
      nlohmann::ordered_json none;
      code = std::max(code, rewrite(options, *pipeline, path, session, none));
    }
  if (options.json) std::fprintf(stderr, "%s\n", json_text(reports).c_str());
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<OptOptions>();
  command.add_option("FILE", options->files, "PTX files; - is standard input");
  add_pipeline_options(command, options->pipeline);
  add_effort_option(command, options->pipeline);
  command
      .add_option("-o,--output", options->output,
                  "where to write; an existing folder takes a file per input; standard output if not given")
      .sets(options->output_given)
      .type_name("FILE");
  command.add_flag("-i,--in-place", options->in_place, "write each result over its input");
  command
      .add_option("--gpu", options->pipeline.gpu,
                  "the GPU that -O chooses for: sm_90, h200, FILE.toml ...; with --stats, show ptxas's code size and "
                  "registers of each function for it")
      .type_name("GPU");
  command
      .add_flag(
          "--extract{0}", options->extracted,
          "the files are cubins, fat binaries or programs: take the PTX inside; --extract=2: of the second module")
      .sets(options->extract);
  command.add_flag("--no-ssa", options->no_ssa, "parse and print only");
  command.add_flag("--explain", options->report.explain,
                   "print rewrites, refusals and assumptions, with source lines (standard error)");
  command.add_flag("--stats", options->report.statistics, "print the statistics of the passes (standard error)");
  command.add_flag("--time-passes", options->report.times, "print the time of each pass (standard error)");
  command.add_flag("--json", options->json, "print --explain, --stats, --time-passes and --list-passes as JSON");
  command.add_flag("--list-passes", options->list_passes, "list the passes and their options");
  command.add_option("--print-before", options->print_before.names, "print functions before these passes, or all")
      .type_name("PASS")
      .delimiter(',')
      .one_each();
  command.add_option("--print-after", options->print_after.names, "print functions after these passes, or all")
      .type_name("PASS")
      .delimiter(',')
      .one_each();
  command.add_flag("--print-changed", options->print_changed, "print functions after each pass that changed them");
  command
      .add_option("-j,--jobs", options->jobs,
                  "rewrite the kernels of a module in N processes, with the same result (default 1; 0: one for each "
                  "hardware thread)")
      .type_name("N");
  command.add_option("--stop-after", options->stop_after, "run only the first N passes, counted over all functions")
      .type_name("N");
  return [options, &session] { return run_opt(*options, session); };
}

const RegisterCommand
    registration({.name = "opt",
                  .about = "run passes over PTX and write PTX",
                  .example = "ptxrewrite opt kernel.ptx -p r2d2 -o rewritten.ptx\n"
                             "  nvcc -ptx kernel.cu -o - | ptxrewrite opt -O - | ptxas -arch=sm_90 -o kernel.cubin -\n"
                             "Without passes the text goes into SSA form and out of it.",
                  .place = 10,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::opt_command
