#include "emulator/machines/darsie/skip_counters.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

enum class Adding : uint8_t { sum, most };

struct Row {
  std::string_view name;
  uint64_t SkipCounters::*number;
  Adding adding = Adding::sum;
};

constexpr Row rows[] = {
    {"skipped loads", &SkipCounters::skipped_loads},
    {"led", &SkipCounters::led},
    {"executed off the path", &SkipCounters::off_path},
    {"executed without table entry", &SkipCounters::no_entry},
    {"executed without register", &SkipCounters::no_register},
    {"executed alone", &SkipCounters::alone},
    {"branch syncs", &SkipCounters::branch_syncs},
    {"warps waiting in them", &SkipCounters::branch_waits},
    {"register syncs", &SkipCounters::register_syncs},
    {"forced syncs", &SkipCounters::forced_syncs},
    {"warps that left the path", &SkipCounters::left_path},
    {"registers copied back", &SkipCounters::copied},
    {"evictions", &SkipCounters::evictions},
    {"loads dropped by stores", &SkipCounters::dropped_by_store},
    {"loads dropped by fences", &SkipCounters::dropped_by_fence},
    {"renames", &SkipCounters::renames},
    {"most renamed registers", &SkipCounters::most_registers, Adding::most},
    {"most versions of a register", &SkipCounters::most_versions, Adding::most},
    {"table probes", &SkipCounters::probes},
    {"port accesses", &SkipCounters::port_accesses},
    {"port conflicts", &SkipCounters::port_conflicts},
    {"stale loads skipped", &SkipCounters::stale},
    {"stale loads that were wrong", &SkipCounters::stale_wrong},
};

} // namespace

std::string_view spelling(SkipVariant variant) {
  switch (variant) {
  case SkipVariant::standard:
    return "standard";
  case SkipVariant::ignore_store:
    return "ignore-store";
  case SkipVariant::no_branch_sync:
    return "no-cf-sync";
  case SkipVariant::paper_marks:
    break;
  }
  return "paper-marks";
}

SkipCounters& SkipCounters::operator+=(const SkipCounters& other) {
  executed += other.executed;
  for (size_t kind = 0; kind < skipped.size(); ++kind)
    skipped[kind] += other.skipped[kind];
  for (const Row& row : rows)
    if (row.adding == Adding::sum)
      this->*row.number += other.*row.number;
    else
      this->*row.number = std::max(this->*row.number, other.*row.number);
  if (skipped_by_instruction.size() < other.skipped_by_instruction.size())
    skipped_by_instruction.resize(other.skipped_by_instruction.size());
  for (size_t i = 0; i < other.skipped_by_instruction.size(); ++i)
    skipped_by_instruction[i] += other.skipped_by_instruction[i];
  return *this;
}

std::vector<NamedCount> named_counts(const SkipCounters& counters) {
  std::vector<NamedCount> named = {{"executed", counters.executed},
                                   {"skipped uniform", counters.skipped[0]},
                                   {"skipped affine", counters.skipped[1]},
                                   {"skipped unstructured", counters.skipped[2]}};
  for (const Row& row : rows)
    named.push_back({row.name, counters.*row.number});
  return named;
}

} // namespace ptxrewrite::emulator
