// Versions of one PTX text with the same meaning, or nearly: what an estimate of costs has to put in the right order.
#pragma once

#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct Version {
  std::string name;
  std::string text;
};

// Those that change something in the text.
std::vector<Version> versions_of(const std::string& text);

} // namespace ptxrewrite::tests
