// Two versions of one kernel: does the estimate say which of them is longer, as ptxas has it?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct VersionPair {
  std::string version; // what was done
  std::string kernel;
  int64_t real_before = 0, real_after = 0; // machine instructions by ptxas
  int64_t estimated_before = 0, estimated_after = 0;

  int64_t real_change() const { return real_after - real_before; }
  int64_t estimated_change() const { return estimated_after - estimated_before; }
};

struct SignCounts {
  unsigned changed = 0; // ptxas sees a difference
  unsigned right = 0;   // of these, the estimate's has the same sign
  unsigned missed = 0;  // of these, the estimate sees no difference
  unsigned alike = 0;   // ptxas sees no difference
  unsigned alarms = 0;  // of these, the estimate sees one
  void add(const VersionPair& pair);
  unsigned seen() const { return changed + alarms; } // what the strict share is of: either side sees a difference
};

// Spearman's rank correlation of the relative changes, of the pairs in which either side sees one.
double rank_correlation(const std::vector<VersionPair>& pairs);

// A line for each kind of version, one for all, one for all but those that only put instructions in another order, and
// those that differ by more than 1, 2 and 5 %; the wrong pairs behind them if asked for.
void print_signs(const std::vector<VersionPair>& pairs, bool wrong);

} // namespace ptxrewrite::tests
