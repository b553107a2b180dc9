// Pass `composite`: dependent integer instructions become fewer.
//
// Hardware form (composite-hpca13 §3): a pair of them is one composite instruction, whose intermediate result stays in
// a register file of its own: composite_hardware.cpp. Legal form, for today's GPUs: what PTX has for such pairs and
// triples, see transforms/composite/composite_form.h. There is nothing to annotate.
#include "transforms/composite/composite.h"
#include "transforms/composite/composite_form.h"

namespace ptxrewrite::transforms {

namespace {

Change run(ir::Function& function, PassContext& context) {
  switch (context.form) {
  case OutputForm::hardware:
    return run_hardware_composite(function, context);
  case OutputForm::legal:
    return run_legal_composite(function, context);
  case OutputForm::annotated:
    break;
  }
  return Change::unchanged;
}

const RegisterPass registration({"composite", "fuse dependent integer instructions", run, legal_composite_options()});

} // namespace

} // namespace ptxrewrite::transforms
