#include "evaluate/common/rewrite.h"

#include "grammar/reader.h"
#include "ir/core/print.h"
#include "transforms/manager/text_insertion.h"

#include <algorithm>

namespace ptxrewrite::evaluate {
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

namespace {

Result<Rewritten> read_back(const ir::Module& original, const std::string& after, Rewritten result) {
  Diagnostics diagnostics;
  result.module =
      grammar::read_module(SourceFile(original.source.name() + " after " + after, result.text), diagnostics);
  if (result.module) return result;
  return Error{"the result cannot be read: " +
                   (diagnostics.list().empty() ? std::string("no reason known") : diagnostics.list()[0].message),
               {}};
}

} // namespace

Result<Rewritten> rewrite(const ir::Module& original, const std::string& passes, transforms::OutputForm form,
                          transforms::RunOptions options) {
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes);
  if (!pipeline) return pipeline.error();
  Diagnostics diagnostics; // the same text was parsed before
  std::unique_ptr<ir::Module> module = grammar::read_module(original.source, diagnostics);
  if (!module) return Error{"the original cannot be read again", {}};
  options.form = form;
  const std::string name = (passes.empty() ? "no pass" : passes) + " (" + form_word(form) + ")";
  Rewritten result;
  if (only_annotates(*pipeline, form)) { // as in opt
    transforms::AnnotatedText annotated = annotated_text(*module, *pipeline, options);
    result.text = std::move(annotated.text);
    result.remarks = std::move(annotated.report.remarks);
    if (result.text == original.source.text()) return result;
    return read_back(original, name, std::move(result));
  }
  Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
  if (!report) return Error{"the passes failed: " + report.error().message, {}};
  if (!pipeline->steps.empty() && !changed(*report, *pipeline)) return result;
  ir::print(*module, result.text);
  return read_back(original, name, std::move(result));
}

} // namespace ptxrewrite::evaluate
