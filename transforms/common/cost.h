// The cost of legal candidates: machine instructions of each PTX instruction, weighted by loop depth, for choosing
// among whole kernels; and the readers of each value, which show which instructions a candidate makes superfluous.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/edit/dead_code.h"
#include "ir/flow/loops.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/select/lowering_store.h"
#include "transforms/common/address_forms.h"
#include "transforms/common/choice.h"
#include "transforms/manager/analyses.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace ptxrewrite::transforms::legal {

// The machine that kernels are weighed for: the module's target. Older ones are weighed as sm_80, which runs them too.
inline uint32_t weighed_capability(const ir::Module& module) {
  constexpr uint32_t oldest = 80;
  return std::max(ir::target_capability(module, oldest), oldest);
}

// Machine instructions times 10 for each enclosing loop. Instructions added later have no entry and cost nothing.
class InstructionCosts {
public:
  InstructionCosts(const ir::Function& function, const ir::LoopForest& loops,
                   std::shared_ptr<const ir::Lowering> lowering)
      : function_(function), loops_(loops), lowering_(std::move(lowering)), size_(function.instructions.size()) {}
  InstructionCosts(const ir::Function& function, AnalysisCache& analyses)
      : InstructionCosts(function, analyses.of<ir::LinearForms>(function).loops(), lowering_of(function, analyses)) {}

  double of(ir::InstructionId id) const {
    if (id.index() >= size_) return 0;
    const ir::InstructionCost& cost = lowering_->cost(id);
    return (cost.weight + cost.uniform) * execution_weight(loops_, function_.instructions[id].block);
  }

private:
  static std::shared_ptr<const ir::Lowering> lowering_of(const ir::Function& function, AnalysisCache& analyses) {
    const ModelCost* weighed = analyses.known<ModelCost>(function);
    if (weighed && weighed->lowering) return weighed->lowering;
    return analyses.lowerings().of(function, weighed_capability(function.module()));
  }

  const ir::Function& function_;
  const ir::LoopForest& loops_;
  std::shared_ptr<const ir::Lowering> lowering_;
  size_t size_;
};

// The instructions that contribute to an observable effect.
struct NeededCode {
  NeededCode(const ir::Function& function, AnalysisCache& analyses)
      : forms(analyses.of<ir::LinearForms>(function)),
        result(ir::Liveliness(function, forms.control_flow(), forms.def_use().definitions()).compute()) {}

  const ir::LinearForms& forms;
  ir::Liveliness::Result result;
};

// The number of needed readers of each value.
struct NeededReaders {
  NeededReaders(const ir::Function& function, AnalysisCache& analyses)
      : counts(function, analyses.of<NeededCode>(function).forms.def_use(), analyses.of<NeededCode>(function).result) {}

  ir::ReaderCounts counts;
};

// A copy, which a candidate decrements.
inline ir::ReaderCounts reader_counts(const ir::Function& function, AnalysisCache& analyses) {
  return analyses.of<NeededReaders>(function).counts;
}

} // namespace ptxrewrite::transforms::legal
