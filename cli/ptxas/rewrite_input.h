// Rewrites an input of ptxas, as far as the result is valid for every launch.
#pragma once

#include "support/result.h"

#include <string>

namespace ptxrewrite::cli {

// `text` is the content of the input, `path` its name in messages. Returns an empty text if the passes change nothing,
// or if we cannot parse the text, so that ptxas reports the error. Kernels whose rewriting would depend on a launch
// predicate are not changed, because ptxas's output cannot store it. `run_ptxas`: passes may weigh their candidates
// with it. Fails for an invalid pipeline, or if a pass fails.
Result<std::string> rewrite_input(const std::string& path, const std::string& text, const std::string& passes,
                                  bool run_ptxas);

} // namespace ptxrewrite::cli
