// Static figures of each kernel as ptxas assembles it (instructions, registers, spills): the cost by which -O and the
// legal forms choose.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct MachineFigures {
  uint32_t instructions = 0;  // of the machine, static
  uint32_t registers = 0;     // per thread
  uint32_t spilled_bytes = 0; // moved by spill stores and loads
  bool operator==(const MachineFigures&) const = default;
};

using FiguresByFunction = std::map<std::string, MachineFigures, std::less<>>;

// Assembles the text for `architecture` ("sm_90"; "" = the text's own target). Errors: no ptxas, or it refuses the
// text. The last few hundred results are remembered for the whole process, by text and architecture: passes ask again
// for the text they started from. May be called from several threads.
Result<FiguresByFunction> machine_figures(std::string_view ptx, const std::string& architecture);

// Did the rewrite lose? More spilling, or more instructions, or as many of them and more registers.
bool is_worse(const MachineFigures& after, const MachineFigures& before);
// Names of the functions of both that are worse in `after`.
std::vector<std::string> worse_functions(const FiguresByFunction& before, const FiguresByFunction& after);

} // namespace ptxrewrite::ir
