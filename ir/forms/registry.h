// The rules of all hardware forms (forms.def), so that reader and verifier need not name the forms.
#pragma once

#include "ir/forms/finding.h"

#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// A finding and the form whose rule is violated: `sections`, `crf`, `dac`.
struct FormRuleFinding {
  std::string_view rule;
  FormFinding finding;
};

// Checks a kernel's body and its affine stream. The successor edges of both must be set. Returns no findings for a
// kernel without a hardware form.
std::vector<FormRuleFinding> check_forms(const Function& kernel);

} // namespace ptxrewrite::ir
