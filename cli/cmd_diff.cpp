// `ptxrewrite diff`: shows what passes do to a file, or how two files differ.
#include "cli/command.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/diff/compare.h"
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
};

std::string describe(const PipelineOptions& options, const transforms::Pipeline& pipeline, const std::string& path) {
  std::string text = transforms::to_string(pipeline);
  return path + " after " + (text.empty() ? "SSA form" : text) +
         (options.form == "legal" ? "" : " (" + options.form + " form)");
}

int print_report(const DiffOptions& options, const DifferenceReport& report, const Session& session) {
  if (!options.html.empty()) {
    if (Status status = write_file(options.html, difference_html(report)); !status) {
      show(status.error());
      return exit_diagnostics;
    }
    if (options.html == "-") return exit_ok;
  }
  Palette palette(use_colour(session, stdout));
  std::string out;
  if (options.json) {
    out = json_text(difference_json(report)) + '\n';
  } else {
    unsigned context = options.whole ? whole_context : options.context;
    if (!options.summary && options.html.empty()) {
      out = options.side_by_side
                ? side_by_side_text(report, context, options.width ? options.width : terminal_width(), palette)
                : unified_text(report, context, palette);
      if (!out.empty()) out += '\n';
    }
    out += summary_text(report, palette);
  }
  if (Status status = write_file("-", out); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return exit_ok;
}

int run_diff(const DiffOptions& options, const Session& session) {
  bool has_pipeline = options.pipeline.passes_given || options.pipeline.optimise;
  if (options.files.empty() || options.files.size() > 2)
    return usage_error("diff", "give one file and passes, or two files");
  if (options.files.size() == 2 && has_pipeline) return usage_error("diff", "passes run over one file, not over two");
  if (options.files.size() == 2 && options.files[0] == "-" && options.files[1] == "-")
    return usage_error("diff", "standard input can be read once only");
  std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
  if (!pipeline) return exit_usage;

  std::unique_ptr<ir::Module> left = read_input(options.files[0], session);
  if (!left || !check_selection(*left, options.pipeline.kernels, session)) return exit_diagnostics;
  ModuleListing left_listing = list_module(*left, options.files.size() == 2 ? options.pipeline.kernels : "*");
  DifferenceReport report;
  if (options.files.size() == 2) {
    std::unique_ptr<ir::Module> right = read_input(options.files[1], session);
    if (!right) return exit_diagnostics;
    report = compare_files(std::move(left_listing), list_module(*right, options.pipeline.kernels));
    report.right_name = right->source.name();
  } else {
    Result<transforms::PipelineReport> run = run_pipeline(*left, *pipeline, make_run_options(options.pipeline));
    if (!run) {
      show(run.error(), left->source, session);
      return exit_diagnostics;
    }
    report = compare_rewritten(std::move(left_listing), list_module(*left, "*"), options.pipeline.kernels);
    report.right_name = describe(options.pipeline, *pipeline, left->source.name());
  }
  report.left_name = left->source.name();
  return print_report(options, report, session);
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<DiffOptions>();
  command.add_option("FILE", options->files, "one PTX file and passes, or two PTX files; - is standard input");
  add_pipeline_options(command, options->pipeline);
  add_effort_option(command, options->pipeline);
  command.add_flag("-y,--side-by-side", options->side_by_side, "two columns");
  command.add_option("-U,--context", options->context, "lines shown around a change (3)").type_name("N");
  command.add_flag("--whole", options->whole, "show what is equal too");
  command.add_option("--width", options->width, "columns of --side-by-side (the terminal's)")
      .range(40u, 1000u)
      .type_name("N");
  command.add_flag("--summary", options->summary, "print only the table of counts");
  command.add_option("--html", options->html, "write one self-contained page instead").type_name("FILE");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_diff(*options, session); };
}

const RegisterCommand registration(
    {.name = "diff",
     .about = "show what passes change, or how two files differ",
     .example = "ptxrewrite diff kernel.ptx -p r2d2 --form hardware\n  ptxrewrite diff old.ptx new.ptx --side-by-side",
     .place = 20,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::diff_command
