// Connects the interposed driver with the passes: rewriting of a program's modules, and the report at exit. This file
// is linked into the library that programs load.
#include "cuda/interpose/rewriter.h"
#include "cuda/interpose/programs.h"
#include "evaluate/common/program_rewrite.h"
#include "evaluate/common/specialised_kernel.h"
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
  std::unique_ptr<ir::Module> original = grammar::read_module(SourceFile(label, ptx), diagnostics);
  if (!original) {
    for (const Diagnostic& diagnostic : diagnostics.list())
      if (diagnostic.severity == Severity::error) return Error{diagnostic.message, diagnostic.range};
    return Error{"cannot be read", {}};
  }
  RewrittenProgram program;
  if (!passes.empty()) {
    Result<RewrittenModule> made = rewrite_for_program(*original, passes);
    if (!made) return made.error();
    program.module = std::move(made->module);
    program.text = std::move(made->text);
    program.changed = std::move(made->changed);
  }
  program.original = std::move(original);
  return program;
}

Result<cuda::interpose::SpecialisedProgram> specialise_on_gpu(const ir::Module& original, const std::string& kernel,
                                                              const std::string& key, const std::string& passes) {
  Result<SpecialisedKernel> made = specialised_kernel(original, kernel, key, passes);
  if (!made) return made.error();
  return cuda::interpose::SpecialisedProgram{std::move(made->module), std::move(made->text), std::move(made->variants)};
}

// Calls `add(name, kernel)` for each kernel that was launched, with the kernel locked.
template <class Add> void for_each_launched(Programs& programs, Add&& add) {
  for (const cuda::interpose::Program* program : programs.all())
    for (const auto& [name, kernel] : program->kernels) {
      std::lock_guard lock(kernel->mutex);
      if (kernel->rewritten + kernel->original > 0) add(name, *kernel);
    }
}

std::vector<LaunchCounts> counts_of(Programs& programs) {
  std::vector<LaunchCounts> all;
  for_each_launched(programs, [&](const std::string& name, const cuda::interpose::InterposedKernel& kernel) {
    all.push_back({name, kernel.rewritten, kernel.original, {kernel.reasons.begin(), kernel.reasons.end()}});
  });
  return all;
}

std::vector<SpecialisedCounts> specialised_counts_of(Programs& programs) {
  std::vector<SpecialisedCounts> all;
  for_each_launched(programs, [&](const std::string& name, const cuda::interpose::InterposedKernel& kernel) {
    all.push_back({name, kernel.rewritten + kernel.original, kernel.specialised, kernel.made, kernel.not_made});
  });
  return all;
}

[[maybe_unused]] const bool is_set =
    (cuda::interpose::set_rewriter(rewrite_on_gpu), cuda::interpose::set_specialiser(specialise_on_gpu), true);

[[gnu::destructor]] void report() {
  Programs& programs = Programs::get();
  const cuda::interpose::GpuSettings& settings = programs.settings();
  std::vector<std::string> members;
  if (!settings.passes.empty()) {
    const std::vector<LaunchCounts> counts = counts_of(programs);
    std::fputs(launch_counts_text(settings.passes, counts).c_str(), stderr);
    members.push_back("\"rewriting\": " + launch_counts_json(settings.passes, counts));
  }
  if (settings.specialise) {
    const std::vector<SpecialisedCounts> counts = specialised_counts_of(programs);
    std::fputs(specialised_counts_text(settings.specialise, counts).c_str(), stderr);
    members.push_back("\"specialising\": " + specialised_counts_json(settings.specialise, counts));
  }
  if (members.empty() || settings.report.empty()) return;
  std::FILE* const file = std::fopen(settings.report.c_str(), "w");
  const std::string text = fmt::format("{{{}}}\n", fmt::join(members, ", "));
  if (!file || std::fputs(text.c_str(), file) < 0 || std::fclose(file) != 0)
    fmt::print(stderr, "ptxrewrite: error: cannot write {}\n", settings.report);
}

} // namespace
} // namespace ptxrewrite::evaluate
