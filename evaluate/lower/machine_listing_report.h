// A machine listing as text and JSON.
#pragma once

#include "evaluate/lower/machine_listing.h"

#include <nlohmann/json_fwd.hpp>

namespace ptxrewrite::evaluate {

// The names of a line's machine instructions; those without a name are counted: "MUFU.RCP +7".
std::string machine_names_text(const MachineListingLine& line);

// `target`: "sm_80". `assembler`: "ptxas 13.0", for what the listing has of it; empty where there is none.
std::string machine_listing_text(const MachineListing& listing, const ir::Machine& machine, const std::string& target,
                                 const std::string& assembler);
nlohmann::ordered_json machine_listing_json(const MachineListing& listing, const ir::Machine& machine,
                                            const std::string& target, const std::string& assembler);

} // namespace ptxrewrite::evaluate
