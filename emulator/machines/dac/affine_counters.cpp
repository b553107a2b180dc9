#include "emulator/machines/dac/affine_counters.h"

#include <algorithm>
#include <span>

namespace ptxrewrite::emulator {
namespace {

struct CounterRow {
  std::string_view name;
  uint64_t AffineCounters::*number;
  bool is_maximum = false;
};

constexpr CounterRow rows[] = {
    {"affine_instructions", &AffineCounters::affine},
    {"body_instructions", &AffineCounters::body},
    {"baseline_instructions", &AffineCounters::baseline},
    {"batches", &AffineCounters::batches},
    {"checked", &AffineCounters::checked},
    {"loads", &AffineCounters::loads},
    {"early_loads", &AffineCounters::early_loads},
    {"tuples", &AffineCounters::tuples},
    {"addresses", &AffineCounters::addresses},
    {"predicates", &AffineCounters::predicates},
    {"comparisons", &AffineCounters::comparisons},
    {"block_starts", &AffineCounters::block_starts},
    {"lines", &AffineCounters::lines},
    {"adjustments", &AffineCounters::adjustments},
    {"adjusted_lines", &AffineCounters::adjusted_lines},
    {"requested_lines", &AffineCounters::requested_lines},
    {"locked_lines", &AffineCounters::locked_lines},
    {"unlockable_lines", &AffineCounters::unlockable_lines},
    {"most_locked", &AffineCounters::most_locked, true},
    {"tuple_queue_full", &AffineCounters::tuple_queue_full},
    {"waits_for_given", &AffineCounters::waits_for_given},
    {"warp_queue_full", &AffineCounters::warp_queue_full},
    {"barrier_holds", &AffineCounters::barrier_holds},
    {"lock_stalls", &AffineCounters::lock_stalls},
    {"queue_empty", &AffineCounters::queue_empty},
    {"data_not_there", &AffineCounters::data_not_there},
    {"given_full", &AffineCounters::given_full},
    {"lead", &AffineCounters::lead},
    {"most_lead", &AffineCounters::most_lead, true},
    {"deepest_stack", &AffineCounters::deepest_stack, true},
    {"stack_warp_updates", &AffineCounters::stack_warp_updates},
    {"stack_lane_updates", &AffineCounters::stack_lane_updates},
    {"conditions", &AffineCounters::conditions},
    {"most_tuples", &AffineCounters::most_tuples, true},
    {"fallbacks", &AffineCounters::fallbacks},
};

void add_each(std::vector<uint64_t>& to, std::span<const uint64_t> from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    to[i] += from[i];
}

} // namespace

AffineCounters& AffineCounters::operator+=(const AffineCounters& other) {
  for (const CounterRow& row : rows) {
    uint64_t& sum = this->*row.number;
    sum = row.is_maximum ? std::max(sum, other.*row.number) : sum + other.*row.number;
  }
  for (size_t i = 0; i < predicate_cases.size(); ++i)
    predicate_cases[i] += other.predicate_cases[i];
  if (fallback_reason.empty()) fallback_reason = other.fallback_reason;
  add_each(executions, other.executions);
  add_each(lanes, other.lanes);
  return *this;
}

std::vector<NamedAffineCount> named_counts(const AffineCounters& counters) {
  std::vector<NamedAffineCount> list;
  for (const CounterRow& row : rows)
    list.push_back({row.name, counters.*row.number});
  constexpr std::string_view cases[] = {"predicates_scalar", "predicates_ends", "predicates_lanes"};
  for (size_t i = 0; i < counters.predicate_cases.size(); ++i)
    list.push_back({cases[i], counters.predicate_cases[i]});
  return list;
}

} // namespace ptxrewrite::emulator
