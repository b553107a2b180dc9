// The legal form of `composite`.
#include "transforms/legal/composite_form.h"

namespace ptxrewrite::transforms {

Change run_legal_composite(ir::Function& function, PassContext& context) {
  (void)function, (void)context;
  return Change::unchanged;
}

} // namespace ptxrewrite::transforms
