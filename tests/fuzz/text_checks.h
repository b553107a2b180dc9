// Checks for any input of the reader: it gives a diagnostic that renders, or a module that verifies, prints to a fixed
// point and survives SSA and back.
#pragma once

#include <cstdint>
#include <string>

namespace ptxrewrite::fuzz {

struct TextTally {
  uint64_t modules = 0;
  uint64_t diagnostics = 0;
  uint64_t ssa_functions = 0;
};

// The first failed check, or an empty string.
std::string check_text(const std::string& text, TextTally& tally);

} // namespace ptxrewrite::fuzz
