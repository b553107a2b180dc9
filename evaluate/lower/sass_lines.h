// The assembler's own machine instructions beside the lines of PTX that they stand for.
#pragma once

#include "evaluate/lower/machine_listing.h"
#include "support/disassembler.h"

#include <map>

namespace ptxrewrite::evaluate {

using SassByFunction = std::map<std::string, std::vector<SassInstruction>, std::less<>>;

// Assembles the text for `architecture` ("sm_90") with line numbers and disassembles it, without what ptxas appends to
// fill up the code. Errors: ptxas or nvdisasm is missing, or refuses.
Result<SassByFunction> sass_of(std::string_view ptx, const std::string& architecture);

// Puts each machine instruction beside the first instruction of PTX in its line.
void add_sass(MachineListing& listing, const std::vector<SassInstruction>& sass);

} // namespace ptxrewrite::evaluate
