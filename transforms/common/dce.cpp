// Pass `dce`: removes instructions and block parameters whose values are never read.
#include "ir/edit/dead_code.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

namespace {

Change run(ir::Function& function, PassContext& context) {
  size_t removed = ir::remove_dead_code(function);
  if (removed == 0) return Change::unchanged;
  context.statistics["dce.removed"] += static_cast<int64_t>(removed);
  return Change::changed;
}

const RegisterPass registration({"dce", "remove instructions and block parameters without uses", run});

} // namespace

} // namespace ptxrewrite::transforms
