// `ptxrewrite opt`: runs passes over PTX and writes PTX.
#include "cli/json_text.h"
#include "cli/module_input.h"
#include "cli/passes.h"
#include "cli/pipeline_options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "ir/print.h"
#include "support/file_io.h"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

namespace ptxrewrite::cli {

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
  ReportSelection report;
  transforms::StageFilter print_before;
  transforms::StageFilter print_after;
  bool print_changed = false;
  std::optional<uint64_t> stop_after;
};

transforms::RunOptions run_options(const OptOptions& options) {
  transforms::RunOptions run = make_run_options(options.pipeline);
  run.print_before = options.print_before;
  run.print_after = options.print_after;
  run.print_changed = options.print_changed;
  if (options.stop_after) run.stop_after = *options.stop_after;
  run.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  return run;
}

// Where the result for `input` goes. A folder given with -o takes one file per input.
std::string output_path(const OptOptions& options, const std::string& input) {
  if (options.in_place) return input;
  std::error_code ignored;
  if (options.output != "-" && std::filesystem::is_directory(options.output, ignored))
    return (std::filesystem::path(options.output) /
            (input == "-" ? std::filesystem::path("stdin.ptx") : std::filesystem::path(input).filename()))
        .string();
  return options.output;
}

// Nothing if the options fit together, else what does not.
std::string contradiction(const OptOptions& options) {
  if (options.files.empty()) return "FILE is missing (- is standard input)";
  if (options.in_place && options.output_given) return "--in-place and -o exclude each other";
  bool has_stdin = std::find(options.files.begin(), options.files.end(), "-") != options.files.end();
  if (options.in_place && has_stdin) return "--in-place cannot write back to standard input";
  std::error_code ignored;
  if (options.files.size() > 1 && !options.in_place && !std::filesystem::is_directory(options.output, ignored))
    return "several files need --in-place, or -o with an existing folder";
  if (options.no_ssa && (options.pipeline.optimise || options.pipeline.passes_given))
    return "--no-ssa only parses and prints: it excludes -p and -O";
  return "";
}

int rewrite(const OptOptions& options, const transforms::Pipeline& pipeline, const std::string& path,
            const Session& session, nlohmann::ordered_json& reports) {
  std::unique_ptr<ir::Module> module = read_input(path, session);
  if (!module || !check_selection(*module, options.pipeline.kernels, session)) return exit_diagnostics;
  if (!options.no_ssa) {
    Result<transforms::PipelineReport> report = run_pipeline(*module, pipeline, run_options(options));
    if (!report) {
      show(report.error(), module->source, session);
      return exit_diagnostics;
    }
    spdlog::debug("{}: {} pass executions over {} functions", path, report->executions, report->functions.size());
    if (options.json) {
      reports.push_back(report_json(*report, module->source, options.report));
    } else if (options.report.any()) {
      std::string text = report_text(*report, module->source, options.report, use_colour(session, stderr));
      std::fwrite(text.data(), 1, text.size(), stderr);
    }
  }
  std::string out;
  ir::print(*module, out);
  if (Status status = write_file(output_path(options, path), out); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return exit_ok;
}

int run_opt(const OptOptions& options, const Session& session) {
  if (options.list_passes) {
    if (!load_pass_libraries(options.pipeline.libraries)) return exit_diagnostics;
    return list_passes(options.json);
  }
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("opt", wrong);
  std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
  if (!pipeline) return exit_usage;
  int code = exit_ok;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  for (const std::string& path : options.files) code = std::max(code, rewrite(options, *pipeline, path, session, reports));
  if (options.json) std::fprintf(stderr, "%s\n", json_text(reports).c_str());
  return code;
}

} // namespace

void add_opt_command(CLI::App& application, Session& session) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = add_command(
      application, session, "opt", "run passes over PTX and write PTX",
      "ptxrewrite opt kernel.ptx -p r2d2 -o rewritten.ptx\n"
      "  nvcc -ptx kernel.cu -o - | ptxrewrite opt -O - | ptxas -arch=sm_90 -o kernel.cubin -\n"
      "Without passes the text goes into SSA form and out of it.");
  command->add_option("FILE", options->files, "PTX files; - is standard input");
  add_pipeline_options(*command, options->pipeline);
  command
      ->add_option_function<std::string>(
          "-o,--output",
          [options](const std::string& path) {
            options->output = path;
            options->output_given = true;
          },
          "where to write; an existing folder takes a file per input; standard output if not given")
      ->type_name("FILE");
  command->add_flag("-i,--in-place", options->in_place, "write each result over its input");
  command->add_flag("--no-ssa", options->no_ssa, "parse and print only");
  command->add_flag("--explain", options->report.explain,
                    "say what was done, refused and assumed, with source lines (standard error)");
  command->add_flag("--stats", options->report.statistics, "print what the passes counted (standard error)");
  command->add_flag("--time-passes", options->report.times, "print the time of each pass (standard error)");
  command->add_flag("--json", options->json, "print --explain, --stats, --time-passes and --list-passes as JSON");
  command->add_flag("--list-passes", options->list_passes, "list the passes and their options");
  command->add_option("--print-before", options->print_before.names, "print functions before these passes, or all")
      ->type_name("PASS")
      ->delimiter(',')
      ->expected(1);
  command->add_option("--print-after", options->print_after.names, "print functions after these passes, or all")
      ->type_name("PASS")
      ->delimiter(',')
      ->expected(1);
  command->add_flag("--print-changed", options->print_changed, "print functions after each pass that changed them");
  command->add_option("--stop-after", options->stop_after, "run only the first N passes, counted over all functions")
      ->type_name("N");
  command->callback([options, &session] { session.action = [options, &session] { return run_opt(*options, session); }; });
}

} // namespace ptxrewrite::cli
