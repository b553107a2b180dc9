// Locations of the repository's files for tests.
#pragma once

#include <string>

namespace ptxrewrite::tests {

// Absolute path of a file given by its path from the project root, e.g. "samples/vecadd/vecadd.ptx".
std::string source_path(const std::string& relative);

} // namespace ptxrewrite::tests
