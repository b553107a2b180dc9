// The section of a study's report on composite-hpca13: register files, their energy, 16-bit values.
#pragma once

#include "emulator/machines/composite/composite_registers.h"
#include "emulator/observe/datapath_study.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

double redundant_share(const emulator::DatapathCounts& counts); // of instructions: with the same result in all lanes
double stall_share(const emulator::DatapathCounts& counts);     // of instructions: 16-bit ones with wider results
// Saved by both units, relative to the energy of the register file without them.
double register_energy_saved(const emulator::DatapathCounts& counts);

// `composites`: of the hardware form, all zero if it did not run.
std::string datapath_text(const emulator::DatapathCounts& counts, const emulator::CompositeCounts& composites);
nlohmann::ordered_json datapath_json(const emulator::DatapathCounts& counts,
                                     const emulator::CompositeCounts& composites);

} // namespace ptxrewrite::evaluate
