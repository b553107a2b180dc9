// The assembler's own machine instructions for each line of PTX.
#pragma once

#include "evaluate/lower/machine_listing.h"
#include "support/disassembler.h"

#include <map>

namespace ptxrewrite::evaluate {

using SassByFunction = std::map<std::string, std::vector<SassInstruction>, std::less<>>;

// Assembles the text for `architecture` ("sm_90") with line numbers and disassembles it, without the padding that ptxas
// appends. Fails if ptxas or nvdisasm is missing, or rejects its input.
Result<SassByFunction> sass_of(std::string_view ptx, const std::string& architecture);

// Assigns each machine instruction to the first PTX instruction in its line.
void add_sass(MachineListing& listing, const std::vector<SassInstruction>& sass);

} // namespace ptxrewrite::evaluate
