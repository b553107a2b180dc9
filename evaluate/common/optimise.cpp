#include "evaluate/common/optimise.h"

#include "evaluate/common/parallel_pipeline.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "launch/side_file.h"
#include "launch/variants.h"
#include "support/log.h"
#include "transforms/manager/text_insertion.h"

#include <algorithm>

namespace ptxrewrite::evaluate {

const char* const optimising_pipeline = "memory,narrow,warp,packed,divisor,r2d2,composite";

namespace {

Result<Optimised> run_passes(std::unique_ptr<ir::Module> module, const transforms::Pipeline& pipeline,
                             const transforms::RunOptions& options, unsigned jobs) {
  Optimised result;
  if (only_annotates(pipeline, options.form)) {
    transforms::AnnotatedText annotated = annotated_text(*module, pipeline, options);
    result.report = std::move(annotated.report);
    result.text = std::move(annotated.text);
  } else if (jobs > 1 && can_share_out(*module, pipeline, options)) {
    Result<transforms::PipelineReport> report = run_shared_out(*module, pipeline, options, jobs, result.text);
    if (!report) return report.error();
    result.report = *std::move(report);
    result.is_shared_out = true;
    log(LogLevel::debug, module->source.name() + ": " + std::to_string(jobs) + " processes have shared " +
                             std::to_string(result.report.functions.size()) + " kernels");
  } else {
    Result<transforms::PipelineReport> report = run_pipeline(*module, pipeline, options);
    if (!report) return report.error();
    log(LogLevel::debug, module->source.name() + ": " + std::to_string(report->executions) + " pass executions over " +
                             std::to_string(report->functions.size()) + " functions");
    result.report = *std::move(report);
    ir::print(*module, result.text);
  }
  result.module = std::move(module);
  return result;
}

bool changed(const transforms::PipelineReport& report, const transforms::Pipeline& pipeline) {
  return std::ranges::any_of(report.times, [&](const transforms::StageTime& time) {
    return time.changes != 0 && std::ranges::any_of(pipeline.steps, [&](const transforms::PipelineStep& step) {
             return step.pass.name == time.stage;
           });
  });
}

// Did ptxas evaluate each step, starting from the original? Then no function is worse.
bool is_weighed(const transforms::PipelineReport& report, const OptimiseSettings& settings) {
  return settings.architecture.empty() && report.assemblies > 0 && !report.ptxas_refused;
}

transforms::Remark remark_of_ptxas(std::string text, std::string function) {
  transforms::Remark remark(std::move(text));
  remark.pass = "ptxas";
  remark.function = std::move(function);
  return remark;
}

// Assembles the source and the result. Functions that became worse are restored: the source is parsed again and the
// passes skip them. Without ptxas, only adds a remark.
Status weigh(const transforms::Pipeline& pipeline, const OptimiseSettings& settings, Optimised& result) {
  const SourceFile source = result.module->source;
  auto give_up = [&](const Error& error) {
    result.report.remarks.push_back(remark_of_ptxas("not weighed: " + error.message, "-"));
    result.no_figures = error.message;
    return Status();
  };
  Result<ir::FiguresByFunction> before = ir::machine_figures(source.text(), settings.architecture);
  if (!before) return give_up(before.error());
  Result<ir::FiguresByFunction> after = ir::machine_figures(result.text, settings.architecture);
  if (!after) return give_up(after.error());
  std::vector<std::string> lost = ir::worse_functions(*before, *after);
  if (settings.gives_back && !lost.empty()) {
    Diagnostics ignored; // the same text was parsed before
    transforms::RunOptions again = settings.run;
    again.excluded = lost;
    Result<Optimised> second = run_passes(grammar::read_module(source, ignored), pipeline, again, settings.jobs);
    if (!second) return second.error();
    for (const std::string& name : lost)
      second->report.remarks.push_back(
          remark_of_ptxas("left as it was: " + std::to_string(before->at(name).instructions) +
                              " machine instructions would have become " + std::to_string(after->at(name).instructions),
                          name));
    result = *std::move(second);
    after = ir::machine_figures(result.text, settings.architecture);
    if (!after) return give_up(after.error());
  }
  result.before = *std::move(before);
  result.after = *std::move(after);
  return {};
}

void write_conditions(Optimised& result) {
  std::unique_ptr<ir::Module> read_again; // conditions are annotations of kernels
  if (result.is_shared_out) {
    if (result.text.find("//@") == std::string::npos) return;
    Diagnostics ignored;
    read_again = grammar::read_module(SourceFile(result.module->source.name(), result.text), ignored);
    if (!read_again) return;
  }
  Result<launch::Variants> variants = launch::Variants::of(read_again ? *read_again : *result.module, nullptr);
  if (!variants) return;
  std::vector<launch::LeftOut> left_out;
  if (launch::SideFile side_file = variants->as_side_file(left_out); !side_file.kernels.empty())
    result.side_file = launch::write_side_file(side_file);
  for (const launch::LeftOut& variant : left_out)
    result.warnings.push_back({Severity::warning,
                               {},
                               "kernel '" + variant.kernel + "': the variant '" + variant.entry +
                                   "' is left out of the side file, by which the original runs: " + variant.reason,
                               {}});
}

} // namespace

Result<Optimised> optimise(std::unique_ptr<ir::Module> module, const transforms::Pipeline& pipeline,
                           const OptimiseSettings& settings) {
  Result<Optimised> result = run_passes(std::move(module), pipeline, settings.run, settings.jobs);
  if (!result) return result;
  if (!settings.may_run_ptxas)
    result->no_figures = "--no-ptxas";
  else if (settings.wants_figures ||
           (settings.gives_back && changed(result->report, pipeline) && !is_weighed(result->report, settings)))
    if (Status status = weigh(pipeline, settings, *result); !status) return status.error();
  write_conditions(*result);
  return result;
}

} // namespace ptxrewrite::evaluate
