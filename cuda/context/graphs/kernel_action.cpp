// Arguments of kernel nodes, as the graph API reads them back.
#include "cuda/context/graphs/kernel_action.h"

namespace ptxrewrite::cuda {

void** KernelAction::arguments() {
  pointers_.clear(); // a copied action has pointers into the original's bytes
  for (const launch::Parameter& parameter : kernel_->signature.parameters)
    pointers_.push_back(bytes_.data() + parameter.offset);
  return pointers_.data();
}

KernelAction* kernel_action_of(GraphNode* node) {
  return node ? node->action.target<KernelAction>() : nullptr;
}

} // namespace ptxrewrite::cuda
