// `ptxrewrite verify`: compares original and rewritten kernels, with the same inputs, in several launch shapes.
#include "cli/cmd_passes.h"
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "evaluate/common/rewrite.h"
#include "evaluate/verify/verify_report.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

namespace ptxrewrite::cli::verify_command {

namespace {

using json = nlohmann::ordered_json;

struct VerifyOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  PipelineOptions pipeline;
  DeviceOptions device;
  const ir::Machine* machine = nullptr; // selected by `device`
  bool given_shapes_only = false;
  size_t most_differences = 10;
  bool json = false;
  bool explain = false;

  bool all_passes() const { return pipeline.passes == "all"; }
};

// Results for one file.
struct FileReport {
  std::string file;
  std::string size;
  size_t original_findings = 0;
  json original; // its instructions
  std::vector<SkippedShape> skipped;
  std::vector<CaseResult> cases;
  std::vector<CaseResult> gpu_cases; // on the GPU, if one is used
  std::vector<CaseResult> devices;   // with a GPU: the original on the emulator compared with the original on the GPU
};

std::vector<VerifyCase> cases_of(const VerifyOptions& options) {
  if (!options.all_passes()) return {{options.pipeline.passes, make_run_options(options.pipeline).form}};
  using transforms::OutputForm;
  std::vector<VerifyCase> cases = {{"", OutputForm::legal}};
  for (const transforms::PassDescription& pass : transforms::all_passes())
    for (OutputForm form : {OutputForm::legal, OutputForm::annotated, OutputForm::hardware})
      cases.push_back({std::string(pass.name), form});
  if (options.pipeline.persistent) cases.push_back({"r2d2(persistent)", OutputForm::legal});
  return cases;
}

std::string count_text(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The fraction that DARSIE's machine skipped in a marked module; "" for other modules.
std::string skipping_text(const CaseResult& result) {
  const uint64_t all = result.executed + result.skipped;
  if (all == 0) return "";
  const uint64_t permille = (1000 * result.skipped + all / 2) / all;
  std::string text = "; skipping " + std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
  return text;
}

// The instructions executed on DAC's machine, in per cent of the original; "" if it did not run.
std::string affine_text(const CaseResult& result) {
  const emulator::AffineCounters& counts = result.affine;
  if (counts.baseline == 0) return "";
  const double baseline = static_cast<double>(counts.baseline);
  return fmt::format("; {:.1f} % of the warp instructions, {:.1f} of them on the affine warp",
                     100 * static_cast<double>(counts.affine + counts.body) / baseline,
                     100 * static_cast<double>(counts.affine) / baseline);
}

std::string verdict_text(const CaseResult& result) {
  switch (result.verdict) {
  case Verdict::identical: {
    std::string text = "identical in " + count_text(result.shapes, "shape");
    if (result.fallbacks > 0)
      text += "; the original ran in " + std::to_string(result.fallbacks) + " of " + std::to_string(result.launches) +
              (result.launches == 1 ? " launch" : " launches");
    if (result.regions > 0)
      text += "; staged in " + std::to_string(result.least_entries) + " entries too, " +
              count_text(result.regions, "region");
    text += skipping_text(result) + affine_text(result);
    if (result.ordered_shapes > 0)
      text += ", where the order of warps matters in " + count_text(result.ordered_shapes, "shape");
    return text;
  }
  case Verdict::unchanged:
    return "unchanged";
  case Verdict::not_run:
    return "not run: " + result.reason;
  case Verdict::differs:
    break;
  }
  if (!result.reason.empty()) return "FAILS: " + result.reason;
  return "DIFFERS in " + std::to_string(result.differences.size()) + " of " + count_text(result.shapes, "shape");
}

std::string case_name(const VerifyCase& what) {
  return what.passes.empty() ? "no pass" : what.passes;
}

void append_differences(const FileReport& report, const CaseResult& result, std::string& out) {
  for (const ShapeDifference& difference : result.differences) {
    out += '\n' + report.file + ", " + case_name(result.what) + ", " + form_word(result.what.form) + " form, shape '" +
           difference.shape + "':\n";
    if (difference.failure)
      out += "the rewritten kernel fails, the original does not\n" +
             render(difference.failure->to_diagnostic(), result.module->source);
    for (const emulator::Finding& finding : difference.findings)
      out += "found in the rewritten kernel, not in the original\n" +
             render(finding.to_diagnostic(result.module->source), result.module->source);
    for (const cuda::BufferComparison& buffer : difference.buffers) {
      out += "buffer '" + buffer.buffer + "': " + std::to_string(buffer.differing) + " of " +
             count_text(buffer.elements, "element") + (buffer.differing == 1 ? " differs\n" : " differ\n");
      TextTable table{{{"element", true}, {"original"}, {"rewritten"}}, {}};
      for (const cuda::ElementDifference& element : buffer.first)
        table.rows.push_back({std::to_string(element.index), element.original, element.rewritten});
      out += table.text();
    }
  }
}

// Forms of a pass with the same result share one row.
void append_rows(const std::vector<CaseResult>& cases, const std::string& where, TextTable& table) {
  for (const CaseResult& result : cases) {
    const std::string name = case_name(result.what) + where, verdict = verdict_text(result);
    if (!table.rows.empty() && table.rows.back()[0] == name && table.rows.back()[2] == verdict)
      table.rows.back()[1] += std::string(", ") + form_word(result.what.form);
    else
      table.rows.push_back({name, form_word(result.what.form), verdict});
  }
}

std::string report_text(const FileReport& report, const VerifyOptions& options) {
  std::string out = report.file + (report.size.empty() ? "" : ", size " + report.size) + '\n';
  TextTable table{{{"passes"}, {"forms"}, {"result"}}, {}};
  append_rows(report.cases, "", table);
  append_rows(report.gpu_cases, " on the GPU", table);
  append_rows(report.devices, "", table);
  out += table.text();
  if (report.original_findings > 0)
    out += "the original is not clean: " + count_text(report.original_findings, "finding") +
           " of check mode; see ptxrewrite run --check\n";
  if (options.explain) {
    for (const SkippedShape& shape : report.skipped)
      out += "shape '" + shape.shape + "' left out, the original does not run clean with it: " + shape.reason + '\n';
    for (const CaseResult& result : report.cases)
      for (const std::string& reason : result.reasons)
        out +=
            case_name(result.what) + ", " + form_word(result.what.form) + " form: the original ran: " + reason + '\n';
  }
  for (const std::vector<CaseResult>* cases : {&report.cases, &report.gpu_cases, &report.devices}) {
    const ir::Module* shown = nullptr;
    for (const CaseResult& result : *cases) {
      if (!result.module || result.module.get() != shown) append_differences(report, result, out);
      shown = result.module.get();
    }
  }
  return out;
}

json report_json(const FileReport& report) {
  json document = {{"file", report.file},
                   {"size", report.size},
                   {"original", report.original},
                   {"original_findings", report.original_findings},
                   {"skipped_shapes", skipped_json(report.skipped)},
                   {"cases", cases_json(report.cases)}};
  if (!report.gpu_cases.empty()) document["gpu_cases"] = cases_json(report.gpu_cases);
  if (!report.devices.empty()) document["emulator_against_gpu"] = cases_json(report.devices);
  return document;
}

// Runs the original, then all cases; returns the exit code.
int verify_on_device(Verifier& verifier, const VerifyOptions& options, const LaunchInput& input,
                     const std::vector<VerifyCase>& cases, const Session& session,
                     const std::function<void(size_t)>& progress, std::vector<CaseResult>& results) {
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  if (Status status = verifier.run_original(place); !status) {
    show_session_error(status.error(), place, input, session);
    return exit_diagnostics;
  }
  if (verifier.original_failure()) {
    show(verifier.original_failure()->to_diagnostic(), input.module->source, session);
    return exit_fault;
  }
  int code = exit_ok;
  for (size_t i = 0; i < cases.size(); ++i) {
    progress(i);
    results.push_back(verifier.verify(cases[i]));
    const Verdict verdict = results.back().verdict;
    if (verdict == Verdict::differs) code = exit_differs;
    // A form that was requested explicitly must be verified.
    if (verdict == Verdict::not_run && !options.all_passes()) code = std::max<int>(code, exit_diagnostics);
  }
  return code;
}

// Verifies on the emulator, and then on the GPU if there is one.
int verify_file(const VerifyOptions& options, const std::string& path, const std::vector<VerifyCase>& cases,
                cuda::Device* gpu, const Session& session, const std::function<void(size_t)>& progress,
                FileReport& report) {
  std::optional<LaunchInput> input = read_launch_input(path, options.input, session);
  if (!input) return exit_diagnostics;
  report.size = input->plan.size;
  VerifySettings settings;
  settings.run = make_run_options(options.pipeline);
  // Runs one block after the other: in derived shapes, blocks may write the same location, and both kernels must then
  // use the same order.
  settings.host_threads = std::max(1u, options.device.host_threads);
  settings.machine = options.machine;
  settings.derived_shapes = !options.given_shapes_only;
  settings.most_differences = options.most_differences;
  Verifier verifier(*input, settings);
  int code = verify_on_device(verifier, options, *input, cases, session, progress, report.cases);
  report.original = original_json(verifier);
  report.original_findings = verifier.original_findings();
  report.skipped = verifier.skipped();
  if (!gpu || report.cases.empty()) return code;
  settings.gpu = gpu;
  settings.gpu_shapes = verifier.clean_shapes();
  std::vector<VerifyCase> gpu_cases = cases;
  std::erase_if(gpu_cases, [](const VerifyCase& one) { return one.form == transforms::OutputForm::hardware; });
  Verifier gpu_verifier(*input, settings);
  code =
      std::max(code, verify_on_device(gpu_verifier, options, *input, gpu_cases, session, progress, report.gpu_cases));
  // Shown, but not a failure of a pass, because approximate instructions differ between the two devices.
  if (!gpu_verifier.original_failure()) report.devices.push_back(verifier.compare_original(gpu_verifier));
  return code;
}

std::string summary(const std::vector<FileReport>& reports) {
  size_t counts[4] = {};
  for (const FileReport& report : reports)
    for (const std::vector<CaseResult>* cases : {&report.cases, &report.gpu_cases})
      for (const CaseResult& result : *cases)
        ++counts[static_cast<size_t>(result.verdict)];
  std::string text = count_text(reports.size(), "file") + ": ";
  const char* separator = "";
  for (Verdict verdict : {Verdict::identical, Verdict::unchanged, Verdict::not_run, Verdict::differs})
    if (size_t count = counts[static_cast<size_t>(verdict)]; count > 0 || verdict == Verdict::differs) {
      text += separator + std::to_string(count) + " " + verdict_word(verdict);
      separator = ", ";
    }
  return text + '\n';
}

// Describes a contradiction between the options; "" if there is none.
std::string contradiction(const VerifyOptions& options) {
  if (!options.pipeline.passes_given && !options.pipeline.optimise) return "say which passes: -p PIPELINE or -p all";
  return contradiction_of_files(options.files, options.input);
}

int run_verify(VerifyOptions& options, const Session& session) {
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("verify", wrong);
  if (options.input.direct.any()) options.input.kernels = options.pipeline.kernels; // PTX may have several kernels
  Result<std::unique_ptr<cuda::Device>> gpu = open_gpu(options.device);
  if (!gpu) {
    show(gpu.error());
    return exit_no_gpu;
  }
  const MachineChoice choice = machine_of(options.device, "verify", session);
  if (choice.code != exit_ok) return choice.code;
  options.machine = choice.machine;
  if (options.all_passes()) {
    if (!load_pass_libraries(options.pipeline.libraries)) return exit_diagnostics;
  } else {
    std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
    if (!pipeline) return exit_usage;
    options.pipeline.passes = transforms::to_string(*pipeline);
  }
  const std::vector<VerifyCase> cases = cases_of(options);
  int code = exit_ok;
  json document = json::array();
  std::vector<FileReport> reports;
  Progress progress(options.files.size() * cases.size());
  for (size_t i = 0; i < options.files.size(); ++i) {
    FileReport report;
    report.file = options.files[i];
    auto show_progress = [&](size_t done) { progress.show(i * cases.size() + done, report.file); };
    show_progress(0);
    code = std::max(code, verify_file(options, report.file, cases, gpu->get(), session, show_progress, report));
    progress.clear();
    if (report.cases.empty()) continue;
    if (options.json)
      document.push_back(report_json(report));
    else
      std::printf("%s%s", reports.empty() ? "" : "\n", report_text(report, options).c_str());
    std::fflush(stdout);
    reports.push_back(std::move(report));
  }
  if (options.json)
    std::puts(json_text(document).c_str());
  else if (reports.size() > 1)
    std::printf("\n%s", summary(reports).c_str());
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<VerifyOptions>();
  command.add_option("FILE", options->files, "launch files, or PTX files with --grid, --block and --arg");
  add_launch_input_options(command, options->input);
  add_limit_options(command);
  add_direct_launch_options(command, options->input.direct);
  add_pipeline_options(command, options->pipeline);
  add_device_options(command, options->device);
  add_machine_option(command, options->device, "none: registers always suffice, so that all that can run does");
  command.add_flag("--given-shapes", options->given_shapes_only, "only shapes of the launch file");
  command.add_flag("--explain", options->explain, "say which shapes were left out, and why originals ran");
  command.add_option("--differences", options->most_differences, "differences to show of each buffer (default 10)")
      .type_name("N");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_verify(*options, session); };
}

const RegisterCommand
    registration({.name = "verify",
                  .about = "run original and rewritten kernels on the same data and compare the results",
                  .example = "ptxrewrite verify samples/*/*.toml -p all\n"
                             "-p all: each pass alone, in all its forms. Check mode is on. Shapes are those of the "
                             "launch file, and\nfurther ones with which the original runs clean; one host thread "
                             "unless told otherwise. Exit "
                             "code 4 when "
                             "something differs.",
                  .place = 50,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::verify_command
