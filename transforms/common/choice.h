// Chooses among rewritten forms of one kernel: by the results of ptxas, or by the static machine model.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/figures/figures.h"
#include "support/result.h"
#include "transforms/manager/assemblies.h"
#include "transforms/manager/pass.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal {

// The cost of one form of a kernel.
struct KernelCost {
  double weighted = 0;       // machine instructions by the model, times 10 for each enclosing loop
  uint32_t instructions = 0; // static count by the model, including copies of unrolled loop bodies
  // By architecture, in request order; empty if only the model was used or the figures are not known yet.
  FiguresByArchitecture figures;
};

// Cost by the model alone, of a function in SSA form.
struct ModelCost : KernelCost {
  ModelCost(const ir::Function& function, ir::LoweringStore& lowerings);
  ModelCost(const ir::Function& function, AnalysisCache& analyses) : ModelCost(function, analyses.lowerings()) {}

  std::shared_ptr<const ir::Lowering> lowering; // of the function; nullptr if another text of it is weighed
  std::vector<double> by_instruction;           // the summands of `weighted`, by InstructionId
  std::vector<double> executions;               // by BlockId: 10 for each enclosing loop
};
// The same without a store of lowerings.
KernelCost model_cost_of(const ir::Function& function);
// Cost of a candidate. Without architectures, ptxas is not used and the call cannot fail. Otherwise, figures that are
// not known yet (transforms/manager/assemblies.h) are left out; the choice by the model is then provisional and is
// repeated later. Fails if ptxas refuses the kernel for one of the architectures, crashes or does not terminate in
// time, or if the budget allows no further assembly.
Result<KernelCost> cost_of(const ir::Function& function, const std::vector<std::string>& architectures,
                           PassContext& context);
// Cost of the function that the pass runs on; the model's result is cached with the function's analyses. If ptxas
// cannot assemble it, clears `architectures` and adds a remark. Returns nothing if no assembly is left in the budget;
// the function should then stay as it is.
std::optional<KernelCost> cost_of_original(const ir::Function& function, std::vector<std::string>& architectures,
                                           PassContext& context);

// The least gain by the model, as a part of the kernel's weight, at which a kernel is replaced: ptxas schedules and
// combines instructions anew and turns some smaller gains into losses. The first bound is for passes that replace
// single instructions, the second for one that changes their widths, so that ptxas folds other additions into
// addresses, the third for those that compute addresses or whole expressions in another way. Fitted to half of the
// kernels of a public collection of benchmarks (docs/transforms/r2d2.md).
inline constexpr double least_local_gain = 0.005, least_gain_of_other_widths = 0.0125,
                        least_gain_of_other_expressions = 0.02;
// `least_gain` of wins(): no bound if ptxas is asked, where the model only chooses the candidates to assemble.
inline double least_gain_by(const std::vector<std::string>& architectures, double bound_of_model) {
  return architectures.empty() ? bound_of_model : 0;
}

// The saving of `weighted` that wins() requires by the model: the fraction `least_gain` for a kernel that replaces the
// original; four instructions and 5 percent for a variant beside it.
double needed_saving(const KernelCost& before, bool is_variant, double least_gain);
// Is the rewritten kernel better? If both have figures of ptxas, these decide: it must not spill more, lose occupancy
// or take more instructions on any architecture, and must take fewer on at least one. By the model, it must save
// needed_saving(), and the static code size may not grow, as it does if a loop becomes short enough to be unrolled.
bool wins(const KernelCost& after, const KernelCost& before, bool is_variant, double least_gain);
// Is the rewritten kernel worse on any architecture: more instructions, more spills, fewer warps on an SM? By the model
// alone: more instructions.
bool loses(const KernelCost& after, const KernelCost& before);
// Which of two accepted kernels is better: the smaller sum of relative instruction counts, then of registers.
bool is_better(const KernelCost& a, const KernelCost& b, const KernelCost& before);

// "cannot save 4.8 of 96 machine instructions, weighted by loop depth, by the model"
std::string too_small_gain(double needed, const KernelCost& before);

// "sm_80: 32 to 29 instructions, 18 to 16 registers; ..."
std::string comparison(const KernelCost& after, const KernelCost& before);

// The module's own target, and sm_90 if that is newer.
std::vector<std::string> default_architectures(const ir::Module& module);

// The architectures for which ptxas is used, from the options `cost` and `architectures`; if empty, the model decides.
std::vector<std::string> architectures_to_ask(const ir::Module& module, const PassContext& context);
PassOptionDescription cost_option();
PassOptionDescription architectures_option();

// Splits "a+b+c" into its words.
std::vector<std::string> split_words(std::string_view text);

} // namespace ptxrewrite::transforms::legal
