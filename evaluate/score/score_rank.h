// Variants of one kernel (files, and versions of each) in the order of their predicted times: `score --rank`.
//
// The expected cost of a choice follows from the model's error between variants of one kernel. If the logarithm of each
// variant's true time is normally distributed around that of its prediction with standard deviation s, independently,
// then variant i is the fastest with the probability that its sample is the smallest, and choosing it costs on average
// exp(x_i - min x_j) - 1 more than the best choice.
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// s: the standard deviation of ln(model / silicon) for 88 variants of a convolution on an A100 (tests/silicon, set D)
// is 0.25 in the half that may be inspected and 0.31 in the held-out half.
inline constexpr double rank_error = 0.32;

struct PickStatistics {
  double chance = 0; // probability of being the fastest
  double regret = 0; // expected relative excess over the fastest
};
// `times`: positive, in any unit. `error`: s, positive. Returns one element for each time.
std::vector<PickStatistics> pick_statistics(std::span<const double> times, double error);

struct RankedVariant {
  const ScoredFile* file = nullptr;
  const ScoredVersion* version = nullptr;
  double seconds = 0;          // sum over all launches of all kernels
  timing::CauseClocks stack{}; // likewise, in clocks
  PickStatistics pick;
};

struct Ranking {
  std::string machine;
  std::vector<RankedVariant> variants;        // the fastest first; on a tie, the first one
  std::vector<RankedVariant> same_as_another; // versions that equal another one: ScoredVersion::remark
};
// One ranking per machine, in the order of first occurrence. They refer to `files`.
std::vector<Ranking> rankings_of(std::span<const ScoredFile> files);

std::string rank_text(const Ranking& ranking);
nlohmann::ordered_json rank_json(const Ranking& ranking);

} // namespace ptxrewrite::evaluate
