#include "emulator/memory/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace ptxrewrite::emulator {
namespace {

// The smallest limit of this process's control group and its parents (cgroup v2).
uint64_t control_group_limit() {
  uint64_t limit = UINT64_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
      std::ifstream file("/sys/fs/cgroup" + path + "/memory.max");
      if (uint64_t allowed = 0; file >> allowed) limit = std::min(limit, allowed);
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return limit;
}

uint64_t bytes_of_a_page() {
  const long size = sysconf(_SC_PAGE_SIZE);
  return size > 0 ? static_cast<uint64_t>(size) : 4096;
}

} // namespace

uint64_t free_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const uint64_t used = pages * bytes_of_a_page();
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t default_memory_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const uint64_t machine = pages > 0 ? static_cast<uint64_t>(pages) * bytes_of_a_page() : UINT64_MAX;
  return std::min({machine, control_group_limit(), free_address_space()}) / 4 * 3;
}

bool MemoryBudget::try_take(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

Error MemoryBudget::refusal(uint64_t bytes, std::string_view what) const {
  const uint64_t in_use = used();
  return {fmt::format("{} asks for {} bytes of the host's memory; of the {} bytes that a launch may take (--memory) {} "
                      "are left",
                      what, bytes, limit_, limit_ - std::min(limit_, in_use)),
          {}};
}

Status MemoryBudget::take(uint64_t bytes, std::string_view what) {
  if (try_take(bytes)) return {};
  return refusal(bytes, what);
}

} // namespace ptxrewrite::emulator
