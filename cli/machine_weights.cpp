#include "cli/machine_weights.h"

#include "ir/ssa.h"

namespace ptxrewrite::cli {

const ir::Lowering& MachineWeights::lowering(const ir::Function& function) {
  if (auto known = known_.find(&function); known != known_.end()) return known->second;
  ir::Function copy(function);
  if (!copy.is_ssa) (void)ir::construct_ssa(copy);
  return known_.emplace(&function, ir::lower(copy, capability_)).first->second;
}

} // namespace ptxrewrite::cli
