// Pass `composite`: replaces groups of dependent integer instructions by fewer instructions.
//
// Hardware form (composite-hpca13 §3): a pair of them is one composite instruction, whose intermediate result stays in
// a separate register file: composite_hardware.cpp. Legal form, for existing GPUs: PTX instructions that compute such
// pairs and triples, see transforms/composite/composite_form.h. There is no annotated form.
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
