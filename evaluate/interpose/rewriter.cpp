// Connects the interposed driver with the passes: rewriting of a program's modules, and the report at exit. This file
// is linked into the library that programs load.
#include "cuda/interpose/rewriter.h"
#include "cuda/interpose/programs.h"
#include "evaluate/common/program_rewrite.h"
#include "grammar/reader.h"
#include "support/diagnostic.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>

namespace ptxrewrite::evaluate {
namespace {

using cuda::interpose::Programs;
using cuda::interpose::RewrittenProgram;

Result<RewrittenProgram> rewrite_on_gpu(const std::string& ptx, const std::string& label, const std::string& passes) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> original = grammar::read_module(SourceFile(label, ptx), diagnostics);
  if (!original) {
    for (const Diagnostic& diagnostic : diagnostics.list())
      if (diagnostic.severity == Severity::error) return Error{diagnostic.message, diagnostic.range};
    return Error{"cannot be read", {}};
  }
  Result<RewrittenModule> made = rewrite_for_program(*original, passes);
  if (!made) return made.error();
  return RewrittenProgram{std::move(made->module), std::move(made->text), std::move(made->changed)};
}

std::vector<LaunchCounts> counts_of(Programs& programs) {
  std::vector<LaunchCounts> all;
  for (const cuda::interpose::Program* program : programs.all())
    for (const auto& [name, kernel] : program->kernels) {
      std::lock_guard lock(kernel->mutex);
      if (kernel->rewritten + kernel->original > 0)
        all.push_back({name, kernel->rewritten, kernel->original, {kernel->reasons.begin(), kernel->reasons.end()}});
    }
  return all;
}

[[maybe_unused]] const bool is_set = (cuda::interpose::set_rewriter(rewrite_on_gpu), true);

[[gnu::destructor]] void report() {
  Programs& programs = Programs::get();
  const std::string& passes = programs.settings().passes;
  if (passes.empty()) return;
  const std::vector<LaunchCounts> counts = counts_of(programs);
  std::fputs(launch_counts_text(passes, counts).c_str(), stderr);
  if (programs.settings().report.empty()) return;
  std::FILE* const file = std::fopen(programs.settings().report.c_str(), "w");
  const std::string text = fmt::format("{{\"rewriting\": {}}}\n", launch_counts_json(passes, counts));
  if (!file || std::fputs(text.c_str(), file) < 0 || std::fclose(file) != 0)
    fmt::print(stderr, "ptxrewrite: error: cannot write {}\n", programs.settings().report);
}

} // namespace
} // namespace ptxrewrite::evaluate
