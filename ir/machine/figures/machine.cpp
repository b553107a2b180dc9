// The rows of machines.def joined, and looked up by name and target.
#include "ir/machine/figures/machine.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

namespace ptxrewrite::ir {

namespace {

// How the rows spell a figure.
constexpr Figure guess(double number) {
  return Figure(number, true);
}
constexpr Figure none;

struct ChipRow {
  std::string_view name, chip;
  uint32_t compute_capability, sms, clock_mhz, schedulers;
  Figure issue_rate;
  bool uniform_datapath;
};
struct OccupancyRow {
  std::string_view name;
  OccupancyFacts facts;
};
struct MemoryRow {
  std::string_view name;
  MemoryFacts facts;
};
struct ThroughputRow {
  std::string_view name;
  ThroughputFacts facts;
};
struct LatencyRow {
  std::string_view name;
  LatencyFacts facts;
};
struct LaunchRow {
  std::string_view name;
  LaunchFacts facts;
};

#define MACHINE_CHIP(name, chip, capability, sms, mhz, schedulers, rate, uniform)                                      \
  ChipRow{name, chip, capability, sms, mhz, schedulers, rate, uniform != 0},
#define MACHINE_OCCUPANCY(name, ...)
#define MACHINE_MEMORY(name, ...)
#define MACHINE_THROUGHPUT(name, ...)
#define MACHINE_LATENCY(name, ...)
#define MACHINE_LAUNCH(name, ...)
constexpr std::array chips{
#include "ir/machine/figures/machines.def"
};
#undef MACHINE_CHIP
#define MACHINE_CHIP(name, ...)

#undef MACHINE_OCCUPANCY
#define MACHINE_OCCUPANCY(name, ...) OccupancyRow{name, {__VA_ARGS__}},
constexpr std::array occupancies{
#include "ir/machine/figures/machines.def"
};
#undef MACHINE_OCCUPANCY
#define MACHINE_OCCUPANCY(name, ...)

#undef MACHINE_MEMORY
#define MACHINE_MEMORY(name, ...) MemoryRow{name, {__VA_ARGS__}},
constexpr std::array memories{
#include "ir/machine/figures/machines.def"
};
#undef MACHINE_MEMORY
#define MACHINE_MEMORY(name, ...)

#undef MACHINE_THROUGHPUT
#define MACHINE_THROUGHPUT(name, ...) ThroughputRow{name, {__VA_ARGS__}},
constexpr std::array throughputs{
#include "ir/machine/figures/machines.def"
};
#undef MACHINE_THROUGHPUT
#define MACHINE_THROUGHPUT(name, ...)

#undef MACHINE_LATENCY
#define MACHINE_LATENCY(name, ...) LatencyRow{name, {__VA_ARGS__}},
constexpr std::array latencies{
#include "ir/machine/figures/machines.def"
};
#undef MACHINE_LATENCY
#define MACHINE_LATENCY(name, ...)

#undef MACHINE_LAUNCH
#define MACHINE_LAUNCH(name, ...) LaunchRow{name, {__VA_ARGS__}},
constexpr std::array launches{
#include "ir/machine/figures/machines.def"
};
#undef MACHINE_LAUNCH
#undef MACHINE_LATENCY
#undef MACHINE_CHIP
#undef MACHINE_OCCUPANCY
#undef MACHINE_MEMORY
#undef MACHINE_THROUGHPUT

consteval bool same_machines(const auto& rows) {
  if (rows.size() != chips.size()) return false;
  for (size_t i = 0; i < chips.size(); ++i)
    if (rows[i].name != chips[i].name) return false;
  return true;
}
static_assert(same_machines(occupancies) && same_machines(memories) && same_machines(throughputs) &&
              same_machines(latencies) && same_machines(launches));

constexpr std::array machines = [] {
  std::array<Machine, chips.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    const ChipRow& chip = chips[i];
    all[i] = {chip.name,
              chip.chip,
              chip.compute_capability,
              chip.sms,
              chip.clock_mhz,
              chip.schedulers,
              chip.issue_rate,
              chip.uniform_datapath,
              occupancies[i].facts,
              memories[i].facts,
              throughputs[i].facts,
              latencies[i].facts,
              launches[i].facts};
  }
  return all;
}();

std::string folded(std::string_view name) {
  std::string key;
  for (unsigned char c : name)
    if (c != ' ' && c != '-' && c != '_') key += static_cast<char>(std::tolower(c));
  return key;
}

// Insertions, deletions and replacements that make one word of the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

} // namespace

std::span<const Machine> all_machines() {
  return machines;
}

const Machine* find_machine(std::string_view name) {
  std::string key = folded(name);
  for (const Machine& machine : machines)
    if (folded(machine.name) == key) return &machine;
  return nullptr;
}

std::string unknown_machine(std::string_view name) {
  std::string key = folded(name);
  std::vector<std::string> names;
  for (const Machine& machine : machines)
    names.push_back(folded(machine.name));
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
  std::string message = "unknown machine '" + std::string(name) + "'; there are ";
  for (size_t i = 0; i < names.size(); ++i)
    message += (i ? ", " : "") + names[i];
  return message;
}

const Machine& machine_for(uint32_t compute_capability) {
  const Machine* best = &machines.front();
  for (const Machine& machine : machines)
    if (machine.compute_capability <= compute_capability && machine.compute_capability > best->compute_capability)
      best = &machine;
  return *best;
}

uint32_t compute_capability_of(std::string_view architecture) {
  size_t underscore = architecture.find('_');
  if (underscore == std::string_view::npos) return 0;
  uint32_t number = 0;
  std::from_chars(architecture.data() + underscore + 1, architecture.data() + architecture.size(), number);
  return number;
}

} // namespace ptxrewrite::ir
