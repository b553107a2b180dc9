// Functions of `passes` for other commands.
#pragma once

#include "cli/command.h"

#include <string>
#include <vector>

namespace ptxrewrite::cli {

// Prints all passes; returns the exit code.
int list_passes(bool json);

// Loads libraries for --load-pass. Shows the first error and returns false.
bool load_pass_libraries(const std::vector<std::string>& paths);

} // namespace ptxrewrite::cli
