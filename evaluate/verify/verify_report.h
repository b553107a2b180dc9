// Verifications as JSON, and names of their verdicts.
#pragma once

#include "evaluate/verify/verify.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace ptxrewrite::evaluate {

const char* verdict_word(Verdict verdict); // "identical"
// [{"passes", "form", "result", "shapes", "launches", "fallbacks", ...}]
nlohmann::ordered_json cases_json(const std::vector<CaseResult>& cases);
// {"warp_instructions", "thread_instructions"}: of the original in its own shape; 0 on a GPU, or if it failed
nlohmann::ordered_json original_json(const Verifier& verifier);
// [{"shape", "reason"}]
nlohmann::ordered_json skipped_json(const std::vector<SkippedShape>& shapes);

} // namespace ptxrewrite::evaluate
