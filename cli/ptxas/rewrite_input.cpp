#include "cli/ptxas/rewrite_input.h"

#include "evaluate/common/rewrite.h"
#include "grammar/reader.h"
#include "launch/variants.h"

namespace ptxrewrite::cli {
namespace {

// Returns the kernels that have variants with launch conditions.
Result<std::vector<std::string>> with_variants(const ir::Module& original, const ir::Module& rewritten) {
  Result<launch::Variants> variants = launch::Variants::of(rewritten, nullptr);
  if (!variants) return variants.error();
  std::vector<std::string> kernels;
  for (const auto& function : original.functions)
    if (const std::string name(original.text(function->name)); !variants->of_kernel(name).empty())
      kernels.push_back(name);
  return kernels;
}

} // namespace

Result<std::string> rewrite_input(const std::string& path, const std::string& text, const std::string& passes,
                                  bool run_ptxas) {
  // Marks in comments are meaningless for ptxas: an empty pipeline changes nothing.
  if (Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes); !pipeline) return pipeline.error();
  if (passes.empty()) return std::string();
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> original = grammar::read_module(SourceFile(path, text), diagnostics);
  if (!original) return std::string();
  transforms::RunOptions options;
  options.run_ptxas = run_ptxas;
  Result<evaluate::Rewritten> result = evaluate::rewrite(*original, passes, transforms::OutputForm::legal, options);
  if (!result) return result.error();
  if (!result->module) return std::string();
  Result<std::vector<std::string>> conditional = with_variants(*original, *result->module);
  if (!conditional) return conditional.error();
  if (!conditional->empty()) {
    options.excluded = *std::move(conditional);
    result = evaluate::rewrite(*original, passes, transforms::OutputForm::legal, options);
    if (!result) return result.error();
  }
  return result->module ? std::move(result->text) : std::string();
}

} // namespace ptxrewrite::cli
