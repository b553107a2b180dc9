#include "ir/machine/figures/target.h"

#include "ir/machine/figures/machine.h"

namespace ptxrewrite::ir {

uint32_t target_capability(const Module& module, uint32_t otherwise) {
  for (Symbol target : module.targets)
    if (const uint32_t capability = compute_capability_of(module.text(target))) return capability;
  return otherwise;
}

} // namespace ptxrewrite::ir
