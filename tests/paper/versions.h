// Versions of one PTX text with the same meaning, or nearly: a cost estimate should order them correctly.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct Version {
  std::string name;
  std::string text;
};

// The versions that change the text.
std::vector<Version> versions_of(const std::string& text);

// The original of a version's `kernel`: legal forms leave the kernel k unchanged and add k__r2d2.
std::string original_of(const std::string& kernel, const std::function<bool(const std::string&)>& is_original);

} // namespace ptxrewrite::tests
