// The function that rewrites the modules of a program on a GPU. evaluate/interpose implements it and registers it when
// the library is loaded.
#pragma once

#include "ir/core/module.h"
#include "launch/variants.h"
#include "support/result.h"

#include <memory>
#include <set>
#include <string>

namespace ptxrewrite::cuda::interpose {

struct RewrittenProgram {
  std::unique_ptr<ir::Module> original; // as the program has it
  std::unique_ptr<ir::Module> module; // the original's kernels and their variants; nullptr if the passes change nothing
  std::string text;                   // of `module`
  std::set<std::string> changed;      // kernels that were rewritten for all launches
};

// `passes`: a pipeline as for `opt -p`, or empty. Fails if the text cannot be parsed or a pass fails.
using Rewriter = Result<RewrittenProgram> (*)(const std::string& ptx, const std::string& label,
                                              const std::string& passes);
void set_rewriter(Rewriter rewriter);
// Fails if no rewriter is set.
Result<RewrittenProgram> rewrite_program(const std::string& ptx, const std::string& label, const std::string& passes);

// One kernel and its variant for one launch.
struct SpecialisedProgram {
  std::unique_ptr<ir::Module> module;
  std::string text;
  launch::Variants variants;
};

// `key`: of launch::LaunchKeys. Fails if such a kernel is not possible, or does not save instructions.
using Specialiser = Result<SpecialisedProgram> (*)(const ir::Module& original, const std::string& kernel,
                                                   const std::string& key, const std::string& passes);
void set_specialiser(Specialiser specialiser);
// Fails if no specialiser is set.
Result<SpecialisedProgram> specialised_program(const ir::Module& original, const std::string& kernel,
                                               const std::string& key, const std::string& passes);

} // namespace ptxrewrite::cuda::interpose
