// Spelling and reading of type and state space words.
#include "ir/isa/types.h"

#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

std::string_view without_dot(std::string_view word) {
  if (!word.empty() && word.front() == '.') word.remove_prefix(1);
  return word;
}

constexpr std::string_view space_spellings[] = {
    "",      "reg",          "sreg",        "const",  "global",      "local",
    "param", "param::entry", "param::func", "shared", "shared::cta", "shared::cluster",
    "tex",   "generic",
};

} // namespace

std::optional<ScalarType> parse_type(std::string_view word) {
  static const std::unordered_map<std::string_view, ScalarType> words = [] {
    std::unordered_map<std::string_view, ScalarType> map;
    for (unsigned i = 1; i < scalar_type_count; ++i)
      map.emplace(spelling(ScalarType(i)), ScalarType(i));
    return map;
  }();
  auto found = words.find(without_dot(word));
  if (found == words.end()) return std::nullopt;
  return found->second;
}

std::string_view spelling(StateSpace space) {
  return space_spellings[static_cast<unsigned>(space)];
}

std::optional<StateSpace> parse_state_space(std::string_view word) {
  word = without_dot(word);
  if (word.empty()) return std::nullopt;
  for (unsigned i = 1; i < std::size(space_spellings); ++i)
    if (space_spellings[i] == word) return StateSpace(i);
  return std::nullopt;
}

} // namespace ptxrewrite::ir
