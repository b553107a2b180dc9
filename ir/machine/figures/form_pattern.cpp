// Parses the words and targets of a table's row, see form_pattern.h.
#include "ir/machine/figures/form_pattern.h"

#include <algorithm>
#include <charconv>

namespace ptxrewrite::ir {

namespace {

// Removes the text up to `separator` from the front and returns it.
std::string_view take(std::string_view& text, char separator) {
  size_t end = text.find(separator);
  std::string_view head = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return head;
}

uint32_t target_number(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data() + 3, text.data() + text.size(), number); // after "sm_"
  return number;
}

} // namespace

bool FormPattern::WordGroup::fits(const Form& form, bool literal) const {
  if (place == Place::literal) return literal;
  return std::ranges::any_of(alternatives, [&](Modifier word) {
    if (place == Place::anywhere) return form.has(word);
    return static_cast<ScalarType>(word) == form.type(place == Place::first_type ? 0 : 1);
  });
}

FormPattern::FormPattern(std::string_view words, std::string_view targets) {
  while (!words.empty()) {
    std::string_view group = take(words, ' ');
    WordGroup parsed;
    if (group.starts_with("dtype=")) parsed.place = Place::first_type;
    if (group.starts_with("atype=")) parsed.place = Place::second_type;
    if (parsed.place != Place::anywhere) group.remove_prefix(6);
    if (group == "imm") {
      parsed.place = Place::literal;
      group = {};
    }
    while (!group.empty())
      parsed.alternatives.push_back(parse_modifier(take(group, '|')).value());
    groups_.push_back(std::move(parsed));
  }
  if (targets.empty()) return;
  first_target_ = target_number(targets);
  if (size_t dots = targets.find(".."); dots != std::string_view::npos)
    last_target_ = target_number(targets.substr(dots + 2));
}

bool FormPattern::fits(const Form& form, uint32_t compute_capability, bool literal) const {
  return first_target_ <= compute_capability && compute_capability <= last_target_ &&
         std::ranges::all_of(groups_, [&](const WordGroup& group) { return group.fits(form, literal); });
}

} // namespace ptxrewrite::ir
