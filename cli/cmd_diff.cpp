// `ptxrewrite diff`: shows the changes that passes make to a file, or the differences of two files.
#include "cli/command.h"
#include "cli/machine_choice.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/diff/compare.h"
#include "evaluate/diff/machine_difference.h"
#include "ir/core/print.h"
#include "support/file_io.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace ptxrewrite::cli::diff_command {

namespace {

struct DiffOptions {
  std::vector<std::string> files;
  PipelineOptions pipeline;
  bool side_by_side = false;
  bool whole = false;
  bool summary = false;
  bool json = false;
  unsigned context = 3;
  unsigned width = 0;
  std::string html;
  bool machine = false;
  std::string gpu;
};

std::string describe(const PipelineOptions& options, const transforms::Pipeline& pipeline, const std::string& path) {
  std::string text = transforms::to_string(pipeline);
  return path + " after " + (text.empty() ? "SSA form" : text) +
         (options.form == "legal" ? "" : " (" + options.form + " form)");
}

// The difference, unless other output is requested, followed by `summary`.
std::string report_text(const DiffOptions& options, const DifferenceReport& report, const std::string& summary,
                        const Palette& palette) {
  std::string out;
  const unsigned context = options.whole ? whole_context : options.context;
  if (!options.summary && options.html.empty()) {
    out = options.side_by_side
              ? side_by_side_text(report, context, options.width ? options.width : terminal_width(), palette)
              : unified_text(report, context, palette);
    if (!out.empty()) out += '\n';
  }
  return out + summary;
}

int write_report(const std::string& text) {
  const Status status = write_file("-", text);
  if (!status) show(status.error());
  return status ? exit_ok : exit_diagnostics;
}

int print_report(const DiffOptions& options, const DifferenceReport& report, const Session& session) {
  if (!options.html.empty()) {
    if (Status status = write_file(options.html, difference_html(report)); !status) {
      show(status.error());
      return exit_diagnostics;
    }
    if (options.html == "-") return exit_ok;
  }
  if (options.json) return write_report(json_text(difference_json(report)) + '\n');
  const Palette palette(use_colour(session, stdout));
  return write_report(report_text(options, report, summary_text(report, palette), palette));
}

// With --machine: compares both sides as the model lowers them.
int print_machine_report(const DiffOptions& options, const ir::Module& left, const ir::Module& right,
                         const DifferenceReport& names, const Session& session) {
  int code = exit_ok;
  const CodeTarget target = code_target("diff", options.gpu, left, session, code);
  if (!target.machine) return code;
  const std::vector<MachinePair> pairs =
      pair_machine_listings(left, right, options.pipeline.kernels, *target.machine, target.capability);
  DifferenceReport report = machine_difference(pairs);
  const std::string on = " on " + std::string(target.machine->name) + ", " + target.name();
  report.left_name = names.left_name + on;
  report.right_name = names.right_name + on;
  if (options.json) return write_report(json_text(machine_difference_json(pairs, report)) + '\n');
  const Palette palette(use_colour(session, stdout));
  return write_report(report_text(options, report, machine_summary_text(pairs, palette), palette));
}

// Describes an error in the options; empty if there is none.
std::string objection(const DiffOptions& options) {
  const bool has_pipeline = options.pipeline.passes_given || options.pipeline.optimise;
  if (options.files.empty() || options.files.size() > 2) return "give one file and passes, or two files";
  if (options.files.size() == 2 && has_pipeline) return "passes run over one file, not over two";
  if (options.files.size() == 2 && options.files[0] == "-" && options.files[1] == "-")
    return "standard input can be read once only";
  if (options.machine && !options.html.empty()) return "--machine has no page: leave --html out";
  if (!options.gpu.empty() && !options.machine) return "--gpu says what --machine is about: give both";
  return {};
}

int diff_files(const DiffOptions& options, const ir::Module& left, const Session& session) {
  const std::unique_ptr<ir::Module> right = read_input(options.files[1], session);
  if (!right) return exit_diagnostics;
  DifferenceReport report;
  if (!options.machine)
    report = compare_files(list_module(left, options.pipeline.kernels), list_module(*right, options.pipeline.kernels));
  report.left_name = left.source.name();
  report.right_name = right->source.name();
  return options.machine ? print_machine_report(options, left, *right, std::move(report), session)
                         : print_report(options, report, session);
}

int diff_passes(const DiffOptions& options, ir::Module& module, const transforms::Pipeline& pipeline,
                const Session& session) {
  ModuleListing before = list_module(module, "*");
  const SourceFile source = module.source;
  const Result<transforms::PipelineReport> run = run_pipeline(module, pipeline, make_run_options(options.pipeline));
  if (!run) {
    show(run.error(), module.source, session);
    return exit_diagnostics;
  }
  DifferenceReport report;
  if (!options.machine)
    report = compare_rewritten(std::move(before), list_module(module, "*"), options.pipeline.kernels);
  report.left_name = module.source.name();
  report.right_name = describe(options.pipeline, pipeline, module.source.name());
  if (!options.machine) return print_report(options, report, session);
  // Both sides are parsed from text, so that instructions made by a pass have source lines, too.
  const std::unique_ptr<ir::Module> left = read_module_text(source, session);
  const std::unique_ptr<ir::Module> right = read_module_text(SourceFile(report.right_name, ir::print(module)), session);
  if (!left || !right) return exit_diagnostics;
  return print_machine_report(options, *left, *right, std::move(report), session);
}

int run_diff(const DiffOptions& options, const Session& session) {
  if (const std::string wrong = objection(options); !wrong.empty()) return usage_error("diff", wrong);
  const std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
  if (!pipeline) return exit_usage;
  const std::unique_ptr<ir::Module> left = read_input(options.files[0], session);
  if (!left || !check_selection(*left, options.pipeline.kernels, session)) return exit_diagnostics;
  return options.files.size() == 2 ? diff_files(options, *left, session)
                                   : diff_passes(options, *left, *pipeline, session);
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<DiffOptions>();
  command.add_option("FILE", options->files, "one PTX file and passes, or two PTX files; - is standard input");
  add_pipeline_options(command, options->pipeline);
  add_effort_option(command, options->pipeline);
  command.add_flag("-y,--side-by-side", options->side_by_side, "two columns");
  command.add_option("-U,--context", options->context, "lines shown around a change (3)").type_name("N");
  command.add_flag("--whole", options->whole, "show equal parts too");
  command.add_option("--width", options->width, "columns of --side-by-side (the terminal's)")
      .range(40u, 1000u)
      .type_name("N");
  command.add_flag("--summary", options->summary, "print only the table of counts");
  command.add_option("--html", options->html, "write one self-contained page instead").type_name("FILE");
  command.add_flag("--machine", options->machine,
                   "compare the machine instructions that the model counts for each line, and their sums by unit");
  command
      .add_option("--gpu", options->gpu, "the machine of --machine: h200, sm_80, FILE.toml ... (the text's own target)")
      .type_name("NAME");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_diff(*options, session); };
}

const RegisterCommand registration(
    {.name = "diff",
     .about = "show the changes that passes make, or the difference of two files",
     .example =
         "ptxrewrite diff kernel.ptx -p r2d2 --form hardware\n  ptxrewrite diff old.ptx new.ptx --side-by-side\n  "
         "ptxrewrite diff kernel.ptx -p composite --machine --gpu a100",
     .place = 20,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::diff_command
