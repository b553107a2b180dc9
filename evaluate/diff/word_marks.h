// Marks the words in which two corresponding lines differ, as HTML.
#pragma once

#include <string>
#include <string_view>

namespace ptxrewrite::evaluate {

// Escaped text; words that the other line lacks are inside <mark>.
struct MarkedWords {
  std::string left, right;
};
// Words are runs of letters, digits and _ $ % . (as in PTX); any other character is a word of its own.
MarkedWords mark_words(std::string_view left, std::string_view right);

} // namespace ptxrewrite::evaluate
