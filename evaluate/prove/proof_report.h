// Proofs as JSON, and names of their outcomes.
#pragma once

#include "evaluate/prove/prover.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::prove {

const char* word(Outcome outcome); // "proved"
// {"file", "kernel", "changed", "verdict", "identical", "proved", "assumptions", "problems": [...], "seconds"}
nlohmann::ordered_json proof_json(const std::string& file, const KernelProof& proof);

} // namespace ptxrewrite::prove
