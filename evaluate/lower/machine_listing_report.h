// A machine listing as text and JSON.
#pragma once

#include "evaluate/lower/machine_listing.h"

#include <nlohmann/json_fwd.hpp>

namespace ptxrewrite::evaluate {

// The mnemonics of a line's machine instructions, at most eight; the rest, and instructions without known names, are
// counted: "MUFU.RCP +7".
std::string machine_names_text(const MachineListingLine& line);

// `target`: "sm_80". `assembler`: "ptxas 13.0", the source of `listing.ptxas`; empty if there is none.
std::string machine_listing_text(const MachineListing& listing, const ir::Machine& machine, const std::string& target,
                                 const std::string& assembler);
nlohmann::ordered_json machine_listing_json(const MachineListing& listing, const ir::Machine& machine,
                                            const std::string& target, const std::string& assembler);

} // namespace ptxrewrite::evaluate
