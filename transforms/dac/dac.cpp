// Pass `dac`: addresses and conditions that are affine in the thread index are computed ahead of the other
// instructions.
//
// Hardware form (paper 4): two instruction streams, an affine one and the rest, see transforms/dac/dac_hardware.h.
// Legal form, for existing GPUs: loads in loops are issued a few trips ahead of their use, see
// transforms/dac/run_ahead.h.
#include "transforms/dac/dac_hardware.h"
#include "transforms/dac/run_ahead.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

namespace {

Change run(ir::Function& function, PassContext& context) {
  if (context.form == OutputForm::legal) return legal::run_ahead(function, context);
  if (context.form == OutputForm::hardware) return dac::split_streams(function, context);
  context.remarks.emplace_back("left as it is: DAC has no annotated form");
  return Change::unchanged;
}

std::vector<PassOptionDescription> options() {
  std::vector<PassOptionDescription> list = legal::run_ahead_options();
  for (const PassOptionDescription& option : dac::hardware_options())
    list.push_back(option);
  return list;
}

const RegisterPass registration({"dac", "affine addresses and conditions are computed ahead of the rest (DAC)", run,
                                 options()});

} // namespace

} // namespace ptxrewrite::transforms
