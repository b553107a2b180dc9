// `ptxrewrite opt`: runs passes over PTX and writes PTX.
#include "cli/cmd_passes.h"
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/report.h"
#include "evaluate/machines/machine_figures.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "launch/side_file.h"
#include "launch/variants.h"
#include "support/file_io.h"
#include "support/log.h"
#include "support/text/json_text.h"
#include "support/text/terminal.h"
#include "transforms/manager/text_insertion.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

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
  ReportSelection report;
  transforms::StageFilter print_before;
  transforms::StageFilter print_after;
  bool print_changed = false;
  std::optional<uint64_t> stop_after;
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

// A module after its passes.
struct Rewritten {
  std::unique_ptr<ir::Module> module;
  transforms::PipelineReport report;
  std::string text;
};

std::optional<Rewritten> run_passes(std::unique_ptr<ir::Module> module, const transforms::Pipeline& pipeline,
                                    const transforms::RunOptions& options, const Session& session) {
  if (only_annotates(pipeline, options.form)) {
    transforms::AnnotatedText annotated = annotated_text(*module, pipeline, options);
    return Rewritten{std::move(module), std::move(annotated.report), std::move(annotated.text)};
  }
  Result<transforms::PipelineReport> report = run_pipeline(*module, pipeline, options);
  if (!report) {
    show(report.error(), module->source, session);
    return std::nullopt;
  }
  log(LogLevel::debug, module->source.name() + ": " + std::to_string(report->executions) + " pass executions over " +
                           std::to_string(report->functions.size()) + " functions");
  Rewritten result{std::move(module), *std::move(report), {}};
  ir::print(*result.module, result.text);
  return result;
}

bool changed(const transforms::PipelineReport& report, const transforms::Pipeline& pipeline) {
  return std::ranges::any_of(report.times, [&](const transforms::StageTime& time) {
    return time.changes != 0 && std::ranges::any_of(pipeline.steps, [&](const transforms::PipelineStep& step) {
             return step.pass.name == time.stage;
           });
  });
}

struct Figures {
  ir::FiguresByFunction before, after;
  std::string failure; // why there are none

  std::string text() const { return failure.empty() ? figures_text(before, after) : "none: " + failure + '\n'; }
  nlohmann::ordered_json json() const {
    return failure.empty() ? figures_json(before, after) : nlohmann::ordered_json(failure);
  }
};

// What the assembler makes of the source and of the result. Under -O, functions that lost are given back: the source is
// read again and the passes leave them out. Nothing without ptxas, with a remark that says so.
bool weigh(const OptOptions& options, const transforms::Pipeline& pipeline, const Session& session, Rewritten& result,
           Figures& figures) {
  const SourceFile source = result.module->source;
  auto give_up = [&](const Error& error) {
    transforms::Remark remark("not weighed: " + error.message);
    remark.pass = "ptxas";
    remark.function = "-";
    result.report.remarks.push_back(std::move(remark));
    figures.failure = error.message;
    return true;
  };
  Result<ir::FiguresByFunction> before = ir::machine_figures(source.text(), options.pipeline.gpu);
  if (!before) return give_up(before.error());
  Result<ir::FiguresByFunction> after = ir::machine_figures(result.text, options.pipeline.gpu);
  if (!after) return give_up(after.error());
  std::vector<std::string> lost = ir::worse_functions(*before, *after);
  if (options.pipeline.optimise && !lost.empty()) {
    Diagnostics ignored; // the same text was read before
    transforms::RunOptions again = run_options(options);
    again.excluded = lost;
    std::optional<Rewritten> second = run_passes(grammar::read_module(source, ignored), pipeline, again, session);
    if (!second) return false;
    for (const std::string& name : lost) {
      transforms::Remark remark("left as it was: " + std::to_string(before->at(name).instructions) +
                                " machine instructions would have become " +
                                std::to_string(after->at(name).instructions));
      remark.pass = "ptxas";
      remark.function = name;
      second->report.remarks.push_back(std::move(remark));
    }
    result = *std::move(second);
    after = ir::machine_figures(result.text, options.pipeline.gpu);
    if (!after) return give_up(after.error());
  }
  figures = {*std::move(before), *std::move(after), {}};
  return true;
}

// What `opt` writes for one input.
struct Output {
  std::string text;
  std::string side_file; // "": no kernel has variants
};

// Reads, runs the passes and weighs the outcome; nothing after an error was shown.
std::optional<Output> rewritten_output(const OptOptions& options, const transforms::Pipeline& pipeline,
                                       std::unique_ptr<ir::Module> module, const Session& session,
                                       nlohmann::ordered_json& report) {
  std::optional<Rewritten> result = run_passes(std::move(module), pipeline, run_options(options), session);
  if (!result) return std::nullopt;
  Figures figures;
  bool show_figures = options.report.statistics && !options.pipeline.gpu.empty();
  if (options.pipeline.no_ptxas)
    figures.failure = "--no-ptxas";
  else if (show_figures || (options.pipeline.optimise && changed(result->report, pipeline)))
    if (!weigh(options, pipeline, session, *result, figures)) return std::nullopt;
  if (options.json) {
    report = report_json(result->report, result->module->source, options.report);
    if (show_figures) report["figures"] = figures.json();
  } else if (options.report.any()) {
    std::string text = report_text(result->report, result->module->source, options.report, use_colour(session, stderr));
    if (show_figures) text += result->module->source.name() + ": on " + options.pipeline.gpu + '\n' + figures.text();
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  if (!options.pipeline.specialise.empty() && !result->report.statistics.contains("darsie.specialised"))
    show(warning("no kernel was specialised; --explain says why"), result->module->source, session);
  Output output{std::move(result->text), {}};
  if (Result<launch::Variants> variants = launch::Variants::of(*result->module, nullptr)) {
    std::vector<launch::LeftOut> left_out;
    if (launch::SideFile side_file = variants->as_side_file(left_out); !side_file.kernels.empty())
      output.side_file = launch::write_side_file(side_file);
    for (const launch::LeftOut& variant : left_out)
      show(warning("kernel '" + variant.kernel + "': the variant '" + variant.entry +
                   "' is left out of the side file, by which the original runs: " + variant.reason),
           result->module->source, session);
  }
  return output;
}

// What a launcher needs stands beside the module. A side file of another module would be taken for this one's.
Status write_output(const Output& output, const std::string& path, const Session& session) {
  if (Status status = write_file(path, output.text); !status || path == "-") return status;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {}; // a device: nothing lies beside it
  const std::string side_file = launch::side_file_path(path);
  if (!output.side_file.empty()) return write_file(side_file, output.side_file);
  if (std::filesystem::exists(side_file, ignored))
    show(warning("left over from another module: this one has no variants"), SourceFile(side_file, ""), session);
  return {};
}

int rewrite(const OptOptions& options, const transforms::Pipeline& pipeline, const std::string& path,
            const Session& session, nlohmann::ordered_json& report) {
  std::unique_ptr<ir::Module> module = read_input(path, session);
  if (!module || !check_selection(*module, options.pipeline.kernels, session)) return exit_diagnostics;
  const std::string destination = output_path(options, path);
  Status status;
  if (options.no_ssa) {
    std::string text;
    ir::print(*module, text);
    status = write_file(destination, text);
  } else {
    std::optional<Output> output = rewritten_output(options, pipeline, std::move(module), session, report);
    if (!output) return exit_diagnostics;
    status = write_output(*output, destination, session);
  }
  if (!status) {
    show(status.error(), session);
    return exit_diagnostics;
  }
  return exit_ok;
}

// The same as `rewrite`; what would be text on standard error is in the report.
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
  // ptxas knows targets: a machine stands for its own.
  if (std::string& gpu = options.pipeline.gpu; !gpu.empty() && ir::compute_capability_of(gpu) == 0) {
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
  command
      .add_option("-o,--output", options->output,
                  "where to write; an existing folder takes a file per input; standard output if not given")
      .sets(options->output_given)
      .type_name("FILE");
  command.add_flag("-i,--in-place", options->in_place, "write each result over its input");
  command
      .add_option("--gpu", options->pipeline.gpu,
                  "the GPU that -O chooses for: sm_90, h200, FILE.toml ...; with --stats, show what ptxas makes of "
                  "each function for it")
      .type_name("GPU");
  command.add_flag("--no-ssa", options->no_ssa, "parse and print only");
  command.add_flag("--explain", options->report.explain,
                   "say what was done, refused and assumed, with source lines (standard error)");
  command.add_flag("--stats", options->report.statistics, "print what the passes counted (standard error)");
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
