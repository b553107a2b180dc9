// A rewritten kernel that does not run in every launch: it stands beside its original, and says when it may run.
//
//     //@ PASS original k                the kernel in whose place this one runs
//     //@ PASS requires <e>              one line for each launch predicate; all must hold
//     //@ PASS parameter u64 <e>         one line for each further parameter, in order, computed at launch
//     //@ PASS grid persistent           as many blocks as the device runs at once
//     //@ PASS block producer            the block's threads in one row, and one warp more
//
// Who launches `k` evaluates the expressions (launch/predicate.h says what they may be). The side file says the same.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

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
  std::vector<LaunchParameter> parameters; // of those that add_parameter has made, in order
  bool persistent = false;
  bool producer = false; // a warp more

  bool needs_original() const { return !requirements.empty() || !parameters.empty() || persistent || producer; }
};

// The kernel that `function` is a variant of; nothing if it is none.
std::optional<std::string> original_of(const ir::Function& function);

// Why the kernel cannot become a variant: it is one already, a function in the module has the variant's name, or the
// module itself launches or calls it and would not choose. Empty if it can.
std::string why_no_variant(const ir::Function& function, std::string_view pass, PassContext& context);

// Further parameters of a variant, in order, as its annotations describe them; none for other functions.
std::vector<LaunchParameter> added_parameters_of(const ir::Function& function);

// Why the kernel cannot rest on conditions that a launcher checks. A variant can: it gets further requirements and
// parameters, unless its grid or block is not the original's, which conditions do not describe. The original of a
// variant cannot: a kernel has one variant. Empty if it can.
std::string why_no_launch_terms(const ir::Function& function, std::string_view pass, PassContext& context);

// A scalar kernel parameter behind those that are there.
ir::VariableId add_parameter(ir::Function& function, ir::ScalarType type);

// Renames `function` to `<kernel>__<pass>`, writes its terms in front of its first instruction, and keeps `original`, a
// copy from before the rewriting and in SSA form, under the kernel's own name.
void make_variant(ir::Function& function, std::unique_ptr<ir::Function> original, const VariantTerms& terms,
                  PassContext& context);

// Writes further terms into a kernel that is a variant already.
void extend_variant(ir::Function& variant, const VariantTerms& terms, PassContext& context);

} // namespace ptxrewrite::transforms
