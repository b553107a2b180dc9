// Pass `dac`: addresses and conditions that are affine in the thread index are computed ahead of everything else.
//
// Legal form, for today's GPUs: loads in loops are issued a few trips ahead of their use, see
// transforms/legal/run_ahead.h.
#include "transforms/legal/run_ahead.h"
#include "transforms/pass.h"

namespace ptxrewrite::transforms {

namespace {

Change run(ir::Function& function, PassContext& context) {
  if (context.form == OutputForm::legal) return legal::run_ahead(function, context);
  context.remarks.emplace_back("left as it is: only the legal form is there");
  return Change::unchanged;
}

const RegisterPass registration({"dac", "affine addresses and conditions are computed ahead of the rest (DAC)", run,
                                 legal::run_ahead_options()});

} // namespace

} // namespace ptxrewrite::transforms
