// A rewritten kernel that is not valid for every launch: it is kept beside its original and states its conditions.
//
//     //@ PASS original k                the kernel that this one replaces
//     //@ PASS requires <e>              one line for each launch predicate; all must hold
//     //@ PASS parameter u64 <e>         one line for each added parameter, in order, computed at launch
//     //@ PASS grid persistent           the number of blocks that are resident at once
//     //@ PASS block producer            the block's threads in one row, plus one warp
//
// The launcher of `k` evaluates the expressions (launch/predicate.h defines them). The side file has the same content.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"
#include "transforms/manager/variant_terms.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms {

struct LaunchParameter {
  ir::ScalarType type = ir::ScalarType::none;
  std::string value; // an expression over the original's launch
};

struct VariantTerms {
  std::string_view pass;
  std::vector<std::string> requirements;
  std::vector<LaunchParameter> parameters; // added by add_parameter, in order
  bool persistent = false;
  bool producer = false; // one additional warp

  bool needs_original() const { return !requirements.empty() || !parameters.empty() || persistent || producer; }
};

// Why the kernel cannot become a variant: it already is one, a function in the module has the variant's name, or the
// module itself launches or calls it, without choosing variants. Empty if it can.
std::string why_no_variant(const ir::Function& function, std::string_view pass, PassContext& context);

// The added parameters of a variant, in order, from its annotations; empty for other functions.
std::vector<LaunchParameter> added_parameters_of(const ir::Function& function);

// Why the kernel cannot depend on conditions that a launcher checks. A variant can: it gets additional requirements and
// parameters, unless its grid or block differs from the original's, which conditions do not describe. The original of a
// variant cannot: it is the form for all launches. Empty if it can.
std::string why_no_launch_terms(const ir::Function& function, std::string_view pass, PassContext& context);

// Appends a scalar kernel parameter.
ir::VariableId add_parameter(ir::Function& function, ir::ScalarType type);

// Renames `function` to `<kernel>__<pass>`, writes its terms before its first instruction, and keeps `original`, a copy
// from before the rewriting and in SSA form, under the kernel's own name.
void make_variant(ir::Function& function, std::unique_ptr<ir::Function> original, const VariantTerms& terms,
                  PassContext& context);

// Adds a rewritten copy of a kernel to the context as a further variant, `<kernel>__<pass>_<suffix>`. Launchers try
// variants in text order, this one after the variant that took the kernel's place.
void add_further_variant(std::unique_ptr<ir::Function> variant, std::string_view suffix, const VariantTerms& terms,
                         PassContext& context);

// Adds terms to a kernel that already is a variant.
void extend_variant(ir::Function& variant, const VariantTerms& terms, PassContext& context);

} // namespace ptxrewrite::transforms
