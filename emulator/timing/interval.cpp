#include "emulator/timing/interval.h"

#include <algorithm>
#include <cmath>

namespace ptxrewrite::timing {

double issue_probability(double issued, double stalls) {
  return issued + stalls > 0 ? issued / (issued + stalls) : 1;
}

double hidden_instructions(Policy policy, double stall, const Company& company) {
  const double others = std::max(company.warps - 1, 0.0);
  if (policy == Policy::round_robin) return others * company.issue_probability;
  return std::min(stall * company.issue_probability, 1.0) * others * company.mean_issued;
}

double others_issue_clocks(Policy policy, double issued, double rate, const Company& company) {
  const double others = std::max(company.warps - 1, 0.0);
  return others * (policy == Policy::round_robin ? issued : company.mean_issued) / rate;
}

double exposed_stall(double stall, double hidden, double rate) {
  return std::max(stall - hidden / rate, 0.0);
}

double smooth_sum(std::span<const double> terms, double q) {
  const double largest = terms.empty() ? 0 : *std::max_element(terms.begin(), terms.end());
  if (largest <= 0) return 0;
  double sum = 0;
  for (double term : terms)
    sum += std::pow(std::max(term, 0.0) / largest, q);
  return largest * std::pow(sum, 1 / q);
}

double beyond(double whole, double part, double q) {
  if (whole <= part || whole <= 0) return 0;
  return whole * std::pow(1 - std::pow(std::max(part, 0.0) / whole, q), 1 / q);
}

double further_batches(double misses, double capacity) {
  if (misses <= 0 || capacity <= 0) return 0;
  return std::max(std::ceil(misses / capacity) - 1, 0.0);
}

double launch_clocks(double blocks, double per_block, double constant) {
  return per_block * blocks + constant;
}

} // namespace ptxrewrite::timing
