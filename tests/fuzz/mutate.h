// Deterministic mutations of PTX text for fuzzing: the same seed and number give the same bytes everywhere.
#pragma once

#include "tests/fuzz/random.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

// Pieces of a text: identifiers, numbers, single other characters, runs of blanks. Concatenated they are the text.
std::vector<std::string_view> split_tokens(std::string_view text);

struct Mutation {
  std::string text;
  std::string name; // the mutation, for the report
};

// Mutates one of `seeds` (not empty) in one to four steps.
Mutation mutate(const std::vector<std::string>& seeds, uint64_t seed, uint64_t number);

} // namespace ptxrewrite::fuzz
