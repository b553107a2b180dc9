// Versions of one PTX text with the same meaning, or nearly: what an estimate of costs has to put in the right order.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct Version {
  std::string name;
  std::string text;
};

// Those that change something in the text.
std::vector<Version> versions_of(const std::string& text);

// The kernel that `kernel` of a version was made from: legal forms leave the kernel k as it is and add k__r2d2.
std::string original_of(const std::string& kernel, const std::function<bool(const std::string&)>& is_original);

} // namespace ptxrewrite::tests
