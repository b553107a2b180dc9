#include "emulator/machines/regless/staging_ports.h"

#include <algorithm>

namespace ptxrewrite::emulator {

uint64_t BankPorts::read(uint64_t now) {
  while (!data_.is_free(now) || !tags_.is_free(now))
    ++now;
  data_.use(now);
  tags_.use(now);
  return now;
}

uint64_t BankPorts::write(uint64_t now) {
  while (!data_.is_free(now))
    ++now;
  data_.use(now);
  return now;
}

void L1Ports::request(uint64_t now, uint64_t requests) {
  free_ = std::max(free_, now) + requests;
}

uint64_t L1Ports::arrival(uint64_t now, uint64_t line, bool misses, StagingCounters& counters) {
  const uint64_t start = std::max(free_, now);
  if (!misses) {
    const auto coming = std::ranges::find(misses_, line, &Miss::line);
    return std::max(start + l1_cycles, coming == misses_.end() ? 0 : coming->until);
  }
  Miss& miss = *std::ranges::min_element(misses_, {}, &Miss::until);
  const uint64_t begin = std::max(start, miss.until);
  counters.miss_register_waits += begin - start;
  miss = {line, begin + memory_cycles};
  return miss.until;
}

} // namespace ptxrewrite::emulator
