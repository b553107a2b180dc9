// Energy of scored kernels under every set of coefficients, and its sensitivity to guessed figures.
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

// The same kernel in the other versions, in their order; nullptr where a version does not have it.
std::vector<const ScoredKernel*> in_versions(const ScoredFile& file, const std::string& kernel);

// The set of a user's machine, by its name; else the one that was fitted to the chip nearest in generation: QV100 from
// Volta on, GTX480 from Fermi to Pascal, QuadroFX5600 before. The others are of other chips.
const timing::EnergySet& applying_set(const ir::Machine& machine);

// Do all sets agree on the sign of the difference to the baseline?
enum class SignVerdict { same, less_everywhere, more_everywhere, disagree };
SignVerdict energy_sign(const ScoredKernel& baseline, const ScoredKernel& version);
std::string_view spelling(SignVerdict verdict);

// One row by set, one column by version; the last row says whether signs survive.
std::string energy_text(const ScoredFile& file, const std::string& kernel);
nlohmann::ordered_json energy_json(const ScoredKernel& kernel);

// With changed_machines() of the file's machine: by guess, the times at less and more of it, and whether the order of
// the versions stays.
std::string sensitivity_text(const ScoredFile& file, const std::string& kernel);
nlohmann::ordered_json sensitivity_json(const ScoredFile& file, const std::string& kernel);

} // namespace ptxrewrite::evaluate
