// Choice among ways to rewrite one kernel: by what ptxas makes of them, or by the static machine model.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/figures/figures.h"
#include "support/result.h"
#include "transforms/manager/assemblies.h"
#include "transforms/manager/pass.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal {

// What one form of a kernel costs.
struct KernelCost {
  double weighted = 0;       // machine instructions by the model, times 10 for each loop around
  uint32_t instructions = 0; // by the model, as they stand in the machine code: copies of loop bodies, too
  // By architecture, in the order in which they were asked for; empty: by the model alone, or not yet known.
  FiguresByArchitecture figures;
};

// By the model alone. `function` in SSA form.
KernelCost model_cost_of(const ir::Function& function);
// Of a candidate. Without architectures ptxas is not asked, and nothing can fail. With them, figures that are not known
// yet (transforms/manager/assemblies.h) are left out: the choice by the model is then a guess, which is looked at
// again. Errors: ptxas refuses the kernel for one of them, crashes on it or does not end in time, or no assembly is
// left.
Result<KernelCost> cost_of(const ir::Function& function, const std::vector<std::string>& architectures,
                           PassContext& context);
// Of the function that the pass was run on: what the model says is kept with its analyses. Where ptxas cannot assemble
// it, `architectures` are given up, with a remark. Nothing: no assembly is left, and the function should stay.
std::optional<KernelCost> cost_of_original(const ir::Function& function, std::vector<std::string>& architectures,
                                           PassContext& context);

// Does the rewritten kernel win? Where both have figures, they decide: at no architecture may it spill more, lose
// occupancy or take more instructions, and somewhere it must take fewer. By the model, a kernel that takes the
// original's place must save something, one that stands beside it four instructions and a twentieth; and the machine
// code may not grow, as it does where a loop that has become short enough is copied.
bool wins(const KernelCost& after, const KernelCost& before, bool is_variant);
// Is the rewritten kernel worse at any architecture: more instructions, more spills, fewer warps on an SM? By the model
// alone: more instructions.
bool loses(const KernelCost& after, const KernelCost& before);
// Which of two winners is better: the smaller sum of relative instruction counts, then of registers.
bool is_better(const KernelCost& a, const KernelCost& b, const KernelCost& before);

// "sm_80: 32 to 29 instructions, 18 to 16 registers; ..."
std::string comparison(const KernelCost& after, const KernelCost& before);

// The module's own target, and sm_90 if that is newer.
std::vector<std::string> default_architectures(const ir::Module& module);

// For which architectures ptxas is asked, by the options `cost` and `architectures`; none: the model decides.
std::vector<std::string> architectures_to_ask(const ir::Module& module, const PassContext& context);
PassOptionDescription cost_option();
PassOptionDescription architectures_option();

// The words of "a+b+c".
std::vector<std::string> split_words(std::string_view text);

} // namespace ptxrewrite::transforms::legal
