#include "transforms/common/target.h"

#include "ir/machine/figures/machine.h"

namespace ptxrewrite::transforms {

uint32_t target_capability(const ir::Module& module) {
  for (Symbol target : module.targets)
    if (const uint32_t capability = ir::compute_capability_of(module.text(target))) return capability;
  return 80;
}

} // namespace ptxrewrite::transforms
