// Runs the check of each form in forms.def.
#include "ir/forms/registry.h"

#include "ir/core/module.h"
#include "ir/forms/composite.h"
#include "ir/forms/dac.h"
#include "ir/forms/sections.h"

namespace ptxrewrite::ir {

namespace {

struct FormRule {
  std::string_view name;
  std::vector<FormFinding> (*check)(const Function& kernel);
};

constexpr FormRule form_rules[] = {
#define FORM(rule, check) {#rule, check},
#include "ir/forms/forms.def"
#undef FORM
};

} // namespace

std::vector<FormRuleFinding> check_forms(const Function& kernel) {
  std::vector<FormRuleFinding> findings;
  if (!kernel.module().hardware_form && !kernel.affine_stream) return findings;
  for (const FormRule& rule : form_rules)
    for (FormFinding& finding : rule.check(kernel))
      findings.push_back({rule.name, std::move(finding)});
  return findings;
}

} // namespace ptxrewrite::ir
