// Writes a pipeline as files for the command line: NAME.ptx, NAME.toml and the buffers' contents, with the expected
// ones of the output. A GPU can run it, too (`ptxrewrite run --device cuda`, `record`).
#pragma once

#include "support/result.h"
#include "tests/fuzz/pipelines/run_case.h"

#include <string>

namespace ptxrewrite::fuzz::pipelines {

// The folder is created if it does not exist.
Status write_case(const Case& launched, const std::string& name, const std::string& folder);

} // namespace ptxrewrite::fuzz::pipelines
