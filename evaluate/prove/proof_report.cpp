#include "evaluate/prove/proof_report.h"

#include <nlohmann/json.hpp>

namespace ptxrewrite::prove {

const char* word(Outcome outcome) {
  switch (outcome) {
  case Outcome::identical:
    return "identical";
  case Outcome::proved:
    return "proved";
  case Outcome::refuted:
    return "not equal";
  case Outcome::unknown:
    break;
  }
  return "not proved";
}

nlohmann::ordered_json proof_json(const std::string& file, const KernelProof& proof) {
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const Problem& problem : proof.problems)
    problems.push_back({{"outcome", word(problem.outcome)}, {"text", problem.text}, {"detail", problem.detail}});
  return {{"file", file},
          {"kernel", proof.kernel},
          {"changed", proof.changed},
          {"verdict", proof.changed ? word(proof.outcome()) : "unchanged"},
          {"identical", proof.identical},
          {"proved", proof.proved},
          {"assumptions", proof.assumptions},
          {"problems", problems},
          {"seconds", proof.seconds}};
}

} // namespace ptxrewrite::prove
