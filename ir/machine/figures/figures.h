// Static figures of each kernel as assembled by ptxas (instructions, registers, spills): the cost by which -O and the
// legal forms select.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct MachineFigures {
  uint32_t instructions = 0;  // machine instructions, static
  uint32_t registers = 0;     // per thread
  uint32_t spilled_bytes = 0; // moved by spill stores and loads
  bool operator==(const MachineFigures&) const = default;
};

using FiguresByFunction = std::map<std::string, MachineFigures, std::less<>>;

// Assembles the text for `architecture` ("sm_90"; "" = the text's own target). Returns an error if there is no ptxas or
// it rejects the text. The last few hundred results are cached per process, by text and architecture, because passes
// repeatedly request the figures of their input. Thread-safe.
Result<FiguresByFunction> machine_figures(std::string_view ptx, const std::string& architecture);

// True if the rewrite is a loss: more spilling, or more instructions, or equally many and more registers.
bool is_worse(const MachineFigures& after, const MachineFigures& before);
// Names of the functions in both maps that are worse in `after`.
std::vector<std::string> worse_functions(const FiguresByFunction& before, const FiguresByFunction& after);

} // namespace ptxrewrite::ir
