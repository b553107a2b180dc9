// Two lines that stand for each other, with the words in which they differ marked: HTML for a page.
#pragma once

#include <string>
#include <string_view>

namespace ptxrewrite::evaluate {

// Escaped; what the other line does not have stands in <mark>.
struct MarkedWords {
  std::string left, right;
};
// Words are runs of letters, digits and _ $ % . (as PTX has them), anything else is a word of its own.
MarkedWords mark_words(std::string_view left, std::string_view right);

} // namespace ptxrewrite::evaluate
