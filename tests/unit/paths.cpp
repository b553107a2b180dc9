#include "tests/unit/paths.h"

namespace ptxrewrite::tests {

std::string source_path(const std::string& relative) {
  return std::string(PTXREWRITE_SOURCE_DIR) + '/' + relative;
}

} // namespace ptxrewrite::tests
