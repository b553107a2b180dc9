#include "cli/rewrite.h"

#include "grammar/reader.h"
#include "ir/print.h"

#include <algorithm>

namespace ptxrewrite::cli {
const char* form_word(transforms::OutputForm form) {
  switch (form) {
  case transforms::OutputForm::legal:
    return "legal";
  case transforms::OutputForm::annotated:
    return "annotated";
  case transforms::OutputForm::hardware:
    break;
  }
  return "hardware";
}

namespace {

bool changed(const transforms::PipelineReport& report, const transforms::Pipeline& pipeline) {
  return std::ranges::any_of(report.times, [&](const transforms::StageTime& time) {
    return time.changes != 0 && std::ranges::any_of(pipeline.steps, [&](const transforms::PipelineStep& step) {
             return step.pass.name == time.stage;
           });
  });
}

} // namespace

Result<Rewritten> rewrite(const ir::Module& original, const std::string& passes, transforms::OutputForm form,
                          transforms::RunOptions options) {
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes);
  if (!pipeline) return pipeline.error();
  Diagnostics diagnostics; // the same text was read before
  std::unique_ptr<ir::Module> module = grammar::read_module(original.source, diagnostics);
  if (!module) return Error{"the original cannot be read again", {}};
  options.form = form;
  Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
  if (!report) return Error{"the passes failed: " + report.error().message, {}};
  Rewritten result;
  if (!pipeline->steps.empty() && !changed(*report, *pipeline)) return result;
  ir::print(*module, result.text);
  const std::string name =
      original.source.name() + " after " + (passes.empty() ? "no pass" : passes) + " (" + form_word(form) + ")";
  diagnostics = {};
  result.module = grammar::read_module(SourceFile(name, result.text), diagnostics);
  if (result.module) return result;
  return Error{"the result cannot be read: " +
                   (diagnostics.list().empty() ? std::string("no reason known") : diagnostics.list()[0].message),
               {}};
}

} // namespace ptxrewrite::cli
