// The output of `ptxrewrite analyze`: each instruction with classes and forms of its results, then the obligations.
#pragma once

#include "ir/core/function.h"

#include <string>

namespace ptxrewrite::ir {

// Listing for people. The function must be in SSA form; otherwise the listing is one line that says so.
std::string analyze_report(const Function& function);
// The same as JSON: {"function", "instructions": [{"text", "line", "definitions": [{"name", "class", "form", ...}]}],
// "obligations": [...]}.
std::string analyze_report_json(const Function& function);

} // namespace ptxrewrite::ir
