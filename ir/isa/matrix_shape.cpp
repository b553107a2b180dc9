#include "ir/isa/matrix_shape.h"

#include <charconv>

namespace ptxrewrite::ir {
namespace {

// The number after `letter` in a word like m16n8k16.
uint16_t number_behind(std::string_view word, char letter) {
  uint16_t number = 0;
  const size_t at = word.find(letter);
  if (at != std::string_view::npos) std::from_chars(word.data() + at + 1, word.data() + word.size(), number);
  return number;
}

} // namespace

MatrixShape matrix_shape(const Form& form) {
  for (Modifier word : form.modifiers) {
    const std::string_view text = spelling(word);
    if (text.size() < 6 || text.front() != 'm' || text.find('k') == std::string_view::npos) continue;
    const MatrixShape shape{number_behind(text, 'm'), number_behind(text, 'n'), number_behind(text, 'k')};
    if (shape.m && shape.n && shape.k) return shape;
  }
  return {};
}

} // namespace ptxrewrite::ir
