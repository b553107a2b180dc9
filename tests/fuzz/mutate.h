// Deterministic mutations of PTX text for fuzzing: the same seed and number give the same bytes everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

// A small generator of our own: the standard distributions differ between library versions.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Uniform enough in [0, bound); 0 when bound is 0.
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(next() % bound); }
  bool one_in(size_t n) { return below(n) == 0; }

private:
  uint64_t state_;
};

// Pieces of a text: identifiers, numbers, single other characters, runs of blanks. Concatenated they are the text.
std::vector<std::string_view> split_tokens(std::string_view text);

struct Mutation {
  std::string text;
  std::string name; // what was done, for the report
};

// Mutates one of `seeds` (not empty) in one to four steps.
Mutation mutate(const std::vector<std::string>& seeds, uint64_t seed, uint64_t number);

} // namespace ptxrewrite::fuzz
