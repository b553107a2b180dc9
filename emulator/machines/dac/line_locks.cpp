#include "emulator/machines/dac/line_locks.h"

#include <algorithm>

namespace ptxrewrite::emulator {

LineLocks::Outcome LineLocks::lock(std::vector<uint64_t>& lines, unsigned& fresh) {
  std::unordered_map<unsigned, unsigned> own; // lines of this request, by set
  std::erase_if(lines, [&](uint64_t line) { return ++own[set_of(line)] > lockable_ways_; });
  std::unordered_map<unsigned, unsigned> needed; // ways, by set
  fresh = 0;
  for (uint64_t line : lines)
    if (!is_locked(line)) {
      ++fresh;
      if (locked_[set_of(line)] + ++needed[set_of(line)] > lockable_ways_) return Outcome::full;
    }
  for (uint64_t line : lines)
    if (counts_[line]++ == 0) ++locked_[set_of(line)];
  return Outcome::locked;
}

void LineLocks::unlock(std::span<const uint64_t> lines) {
  for (uint64_t line : lines) {
    const auto found = counts_.find(line);
    if (--found->second > 0) continue;
    --locked_[set_of(line)];
    counts_.erase(found);
  }
}

} // namespace ptxrewrite::emulator
