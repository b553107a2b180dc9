#include "emulator/access/address_pattern.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

constexpr uint8_t longest_backoff = 63;

// Are the bytes of the active lanes `step` apart, starting with the first active lane?
bool are_apart(const AddressPattern& pattern, unsigned first, int64_t step) {
  for (unsigned lane = first; lane < warp_size; ++lane)
    if (pattern.active[lane] && pattern.host_distance[lane] != (int64_t(lane) - first) * step) return false;
  return true;
}

// The same check within each run of lanes; all lanes are active.
bool are_apart_in_runs(const AddressPattern& pattern, unsigned run, int64_t step) {
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if (pattern.host_distance[lane] != pattern.host_distance[lane / run * run] + (lane % run) * step) return false;
  return true;
}

void classify(AddressPattern& pattern, unsigned first, int64_t size) {
  pattern.kind = LanePattern::scattered;
  pattern.run = 0;
  if (are_apart(pattern, first, size)) pattern.kind = LanePattern::consecutive;
  if (are_apart(pattern, first, 0)) pattern.kind = LanePattern::same;
  if (pattern.kind != LanePattern::scattered || pattern.mask != full_mask) return;
  for (uint8_t run : {16, 8, 4}) {
    const bool consecutive = are_apart_in_runs(pattern, run, size);
    if (!consecutive && !are_apart_in_runs(pattern, run, 0)) continue;
    pattern.kind = consecutive ? LanePattern::consecutive_runs : LanePattern::same_runs;
    pattern.run = run;
    return;
  }
}

} // namespace

void forget_pattern(AccessSite& site) {
  site.backoff = site.held ? 0 : static_cast<uint8_t>(std::min<unsigned>(2u * site.backoff + 1, longest_backoff));
  site.wait = site.backoff;
  site.pattern = nullptr;
}

void remember_pattern(Warp& warp, const MicroOp& op, uint64_t size, const WarpAccess& access) {
  Block& block = *warp.block;
  AccessSite& site = block.sites[op.auxiliary];
  if (site.pattern) return;
  if (site.wait) return (void)--site.wait;
  if (block.cluster && access.space != Space::global) return;
  if (!site.storage) {
    if (!block.take_memory(sizeof(AddressPattern))) return;
    site.storage = std::make_unique<AddressPattern>();
  }
  AddressPattern& pattern = *site.storage;
  const uint64_t lane_step = access.space == Space::local ? block.local_stride : 0;
  pattern.lowest = pattern.highest = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const bool is_active = (warp.mask >> lane) & 1;
    // For local memory, `addresses` include the distance between the lanes' memories (step_to_own_local).
    const auto own = static_cast<int64_t>(uint64_t(lane - access.first) * lane_step);
    const auto host = is_active ? static_cast<int64_t>(access.addresses[lane] - access.addresses[access.first]) : 0;
    const int64_t distance = is_active ? host - own : 0;
    if (host != static_cast<int32_t>(host) || distance != static_cast<int32_t>(distance)) return;
    pattern.distance[lane] = distance;
    pattern.narrow_distance[lane] = static_cast<int32_t>(distance);
    pattern.host_distance[lane] = static_cast<int32_t>(host);
    pattern.active[lane] = is_active ? -1 : 0;
    pattern.lowest = std::min(pattern.lowest, distance);
    pattern.highest = std::max(pattern.highest, distance);
  }
  pattern.mask = warp.mask;
  pattern.in_local = access.space == Space::local;
  classify(pattern, access.first, static_cast<int64_t>(size));
  site.pattern = &pattern;
  site.held = false;
}

} // namespace ptxrewrite::emulator
