// An input of ptxas through passes, as far as the result holds for every launch.
#pragma once

#include "support/result.h"

#include <string>

namespace ptxrewrite::cli {

// `text` is the content of the input, `path` its name in messages. Empty: the passes change nothing, or we cannot parse
// the text, which is then ptxas's to judge. Kernels whose rewriting
// would rest on a launch predicate stay as they are: ptxas has no place to keep it. `run_ptxas`: passes may weigh their
// candidates with it. Errors: a pipeline that is none, passes that fail.
Result<std::string> rewrite_input(const std::string& path, const std::string& text, const std::string& passes,
                                  bool run_ptxas);

} // namespace ptxrewrite::cli
