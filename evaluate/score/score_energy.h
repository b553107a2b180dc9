// Energy of scored kernels under every set of coefficients, and sensitivity to guessed figures.
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

// The same kernel in the other versions, in their order; nullptr if a version does not have it.
std::vector<const ScoredKernel*> in_versions(const ScoredFile& file, const std::string& kernel);

// The set of a user's machine, by name; otherwise the one that was fitted to the chip of the closest generation: QV100
// from Volta on, GTX480 from Fermi to Pascal, QuadroFX5600 before. The remaining sets belong to other chips.
const timing::EnergySet& applying_set(const ir::Machine& machine);

// Do all sets agree on the sign of the difference to the baseline?
enum class SignVerdict { same, less_everywhere, more_everywhere, disagree };
SignVerdict energy_sign(const ScoredKernel& baseline, const ScoredKernel& version);
std::string_view spelling(SignVerdict verdict);

// One row per set, one column per version; the last row tells whether the signs agree.
std::string energy_text(const ScoredFile& file, const std::string& kernel);
nlohmann::ordered_json energy_json(const ScoredKernel& kernel);

// For changed_machines() of the file's machine: for each guessed figure, the times with a smaller and a larger value,
// and whether the order of the versions is the same.
std::string sensitivity_text(const ScoredFile& file, const std::string& kernel);
nlohmann::ordered_json sensitivity_json(const ScoredFile& file, const std::string& kernel);

} // namespace ptxrewrite::evaluate
