#include "support/text/near_names.h"

#include <algorithm>

namespace ptxrewrite {

namespace {

constexpr size_t longest_compared = 200;
constexpr size_t most_listed = 12;

// Number of edits (insert, remove, replace one character, swap two neighbours) that turn a into b.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::move(last);
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

} // namespace

std::string near_names(std::string_view name, std::span<const std::string> known) {
  if (known.empty()) return {};
  const std::string* nearest = nullptr;
  // Up to a third of the name may differ, but never all of it.
  size_t least = std::min(std::max<size_t>(1, name.size() / 3) + 1, name.size());
  if (name.size() <= longest_compared)
    for (const std::string& candidate : known) {
      if (candidate.size() > longest_compared) continue;
      size_t edits = distance(name, candidate);
      // A candidate that contains the name also counts as similar.
      if (name.size() >= 3 && candidate.find(name) != std::string::npos) edits = std::min<size_t>(edits, 1);
      if (edits < least) least = edits, nearest = &candidate;
    }
  if (nearest) return "; did you mean '" + *nearest + "'?";
  std::string list;
  for (size_t i = 0; i < known.size() && i < most_listed; ++i)
    list += (i ? ", " : "") + known[i];
  return "; there " + std::string(known.size() == 1 ? "is: " : "are: ") + list +
         (known.size() > most_listed ? ", ..." : "");
}

} // namespace ptxrewrite
