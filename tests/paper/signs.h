// Two versions of one kernel: whether the estimate and ptxas agree on the longer one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct VersionPair {
  std::string version; // the change
  std::string kernel;
  int64_t real_before = 0, real_after = 0; // machine instructions by ptxas
  int64_t estimated_before = 0, estimated_after = 0;

  int64_t real_change() const { return real_after - real_before; }
  int64_t estimated_change() const { return estimated_after - estimated_before; }
};

// Versions by the pass `schedule`: the same instructions in another order.
bool is_only_order(const VersionPair& pair);

struct SignCounts {
  unsigned changed = 0; // ptxas sees a difference
  unsigned right = 0;   // of these, the estimate's has the same sign
  unsigned missed = 0;  // of these, the estimate shows no difference
  unsigned alike = 0;   // ptxas sees no difference
  unsigned alarms = 0;  // of these, the estimate shows one
  void add(const VersionPair& pair);
  unsigned seen() const { return changed + alarms; } // base of the strict share: a difference on either side
};

// Spearman's rank correlation of the relative changes, over the pairs with a difference on either side.
double rank_correlation(const std::vector<VersionPair>& pairs);

// A line for each kind of version, one for all, one for all except those that only reorder instructions, and for those
// that differ by more than 1, 2 and 5 %; followed by the wrong pairs if requested.
void print_signs(const std::vector<VersionPair>& pairs, bool wrong);

} // namespace ptxrewrite::tests
