// Variants of one kernel (files, and versions of each) in the order of their predicted times: `score --rank`.
//
// What picking one may cost follows from how far the model errs between variants of one kernel. If the logarithm of
// each variant's true time is normally distributed around that of its prediction with standard deviation s,
// independently, then variant i is the fastest with the probability that no other's draw is below its own, and picking
// it costs exp(x_i - min x_j) - 1 more than the best choice, on average.
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// s: of ln(model / silicon) among 88 variants of a convolution on an A100 (tests/silicon, set D) it is 0.25 in the half
// that may be looked at and 0.31 in the unseen one.
inline constexpr double rank_error = 0.32;

struct PickStatistics {
  double chance = 0; // to be the fastest
  double regret = 0; // expected: how much longer than the fastest, relative
};
// `times`: positive, in any unit. `error`: s, positive. One for each time.
std::vector<PickStatistics> pick_statistics(std::span<const double> times, double error);

struct RankedVariant {
  const ScoredFile* file = nullptr;
  const ScoredVersion* version = nullptr;
  double seconds = 0;          // all launches of all kernels
  timing::CauseClocks stack{}; // likewise, clocks
  PickStatistics pick;
};

struct Ranking {
  std::string machine;
  std::vector<RankedVariant> variants;        // the fastest first; of equal ones the first
  std::vector<RankedVariant> same_as_another; // versions that are no variant of their own: ScoredVersion::remark
};
// One by machine, in the order in which they come. They point into `files`.
std::vector<Ranking> rankings_of(std::span<const ScoredFile> files);

std::string rank_text(const Ranking& ranking);
nlohmann::ordered_json rank_json(const Ranking& ranking);

} // namespace ptxrewrite::evaluate
