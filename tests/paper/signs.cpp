// Counts signs and prints them, see signs.h.
#include "tests/paper/signs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

namespace ptxrewrite::tests {
namespace {

int sign(int64_t value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

bool is_right(const VersionPair& pair) {
  return sign(pair.real_change()) == sign(pair.estimated_change());
}

// Equal values share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    for (size_t i = begin; i < end; ++i)
      result[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return result;
}

double percent(unsigned part, unsigned whole) {
  return whole ? 100.0 * part / whole : 100.0;
}

void print_line(const char* name, const SignCounts& counts, double correlation) {
  std::printf("  %-34s right in %u of %u that ptxas changes (%.1f %%), strictly in %u of %u (%.1f %%), ", name,
              counts.right, counts.changed, percent(counts.right, counts.changed), counts.right, counts.seen(),
              percent(counts.right, counts.seen()));
  std::printf("%u unseen; a change in %u of %u that it does not change; ranks %.2f\n", counts.missed, counts.alarms,
              counts.alike, correlation);
}

void print_group(const char* name, const std::vector<VersionPair>& pairs) {
  SignCounts counts;
  for (const VersionPair& pair : pairs)
    counts.add(pair);
  print_line(name, counts, rank_correlation(pairs));
}

// Pairs whose versions differ by more than a given share of the code.
void print_by_size(const std::vector<VersionPair>& pairs) {
  for (const double least : {0.01, 0.02, 0.05}) {
    SignCounts counts;
    for (const VersionPair& pair : pairs)
      if (std::abs(static_cast<double>(pair.real_change())) > least * static_cast<double>(pair.real_before))
        counts.add(pair);
    std::printf("  by more than %.0f %%: right in %u of %u\n", 100 * least, counts.right, counts.changed);
  }
}

} // namespace

bool is_only_order(const VersionPair& pair) {
  return pair.version.starts_with("schedule");
}

void SignCounts::add(const VersionPair& pair) {
  if (pair.real_change() == 0) {
    ++alike;
    alarms += pair.estimated_change() != 0;
    return;
  }
  ++changed;
  right += is_right(pair);
  missed += pair.estimated_change() == 0;
}

double rank_correlation(const std::vector<VersionPair>& pairs) {
  std::vector<double> real, estimated;
  for (const VersionPair& pair : pairs) {
    if (pair.real_change() == 0 && pair.estimated_change() == 0) continue;
    real.push_back(static_cast<double>(pair.real_change()) / static_cast<double>(pair.real_before));
    estimated.push_back(static_cast<double>(pair.estimated_change()) / static_cast<double>(pair.estimated_before));
  }
  const std::vector<double> a = ranks(real), b = ranks(estimated);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double both = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    squares_a += (a[i] - mean) * (a[i] - mean);
    squares_b += (b[i] - mean) * (b[i] - mean);
  }
  return squares_a > 0 && squares_b > 0 ? both / std::sqrt(squares_a * squares_b) : 1;
}

void print_signs(const std::vector<VersionPair>& pairs, bool wrong) {
  std::map<std::string, std::vector<VersionPair>> by_version;
  for (const VersionPair& pair : pairs)
    by_version[pair.version].push_back(pair);
  for (const auto& [name, group] : by_version)
    print_group(name.c_str(), group);
  if (pairs.empty()) return;
  print_group("all", pairs);
  std::vector<VersionPair> others = pairs;
  if (std::erase_if(others, is_only_order) > 0 && !others.empty()) print_group("all but those of order alone", others);
  print_by_size(pairs);
  if (!wrong) return;
  for (const VersionPair& pair : pairs)
    if (!is_right(pair))
      std::printf("  wrong: %-30s %-70s %+5d of %d by ptxas, %+5d of %d estimated\n", pair.version.c_str(),
                  pair.kernel.c_str(), static_cast<int>(pair.real_change()), static_cast<int>(pair.real_before),
                  static_cast<int>(pair.estimated_change()), static_cast<int>(pair.estimated_before));
}

} // namespace ptxrewrite::tests
