// The rules of all hardware forms (forms.def), for the reader and the verifier, which name none of them.
#pragma once

#include "ir/forms/finding.h"

#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// A finding and the form whose rule it breaks: `sections`, `crf`, `dac`.
struct FormRuleFinding {
  std::string_view rule;
  FormFinding finding;
};

// Checks a kernel's body and its affine stream. The successor edges of both must be known. Nothing for a kernel that is
// in no hardware form.
std::vector<FormRuleFinding> check_forms(const Function& kernel);

} // namespace ptxrewrite::ir
