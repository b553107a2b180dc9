#include "emulator/timing/access_memo.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

// Tags are looked up by blocks of 512 bytes; banks repeat more often.
constexpr uint64_t phase_bytes = 512;

uint64_t first_address(const LaneAddresses& lanes) {
  return lanes.addresses[std::countr_zero(lanes.mask)];
}

} // namespace

uint64_t AccessMemo::first_line(const LaneAddresses& lanes) {
  return first_address(lanes) / line_bytes;
}

bool AccessMemo::Pattern::is(const LaneAddresses& lanes, uint64_t first, uint64_t its_phase, bool is_shared) const {
  if (mask != lanes.mask || phase != its_phase || bytes != lanes.bytes || shared != is_shared) return false;
  uint64_t apart = 0;
  if (mask == 0xffffffffu)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      apart |= (lanes.addresses[lane] - first) ^ offsets[lane];
  else
    for (unsigned lane = 0; lane < warp_size; ++lane)
      apart |= ((lanes.addresses[lane] - first) & in_mask[lane]) ^ offsets[lane];
  return apart == 0;
}

void AccessMemo::Pattern::keep(const LaneAddresses& lanes, uint64_t first) {
  for (unsigned lane = 0; lane < warp_size; ++lane)
    offsets[lane] = lanes.addresses[lane] - first;
  if (mask == 0xffffffffu) return;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    in_mask[lane] = mask >> lane & 1 ? ~uint64_t(0) : 0;
    offsets[lane] &= in_mask[lane];
  }
}

void AccessMemo::find_out(const LaneAddresses& lanes, uint64_t first, bool shared, AccessCost& cost) const {
  cost.lines.clear();
  cost.sectors = 0;
  cost.kept_in = 0;
  if (shared) {
    cost.port_clocks = shared_port_clocks(law_, lanes);
    return;
  }
  const WarpLines lines(lanes);
  cost.port_clocks = global_port_clocks(law_, lanes, lines.get());
  for (const LineRequest& line : lines.get()) {
    cost.lines.push_back({line.line - first / line_bytes, line.sectors});
    cost.sectors += static_cast<unsigned>(std::popcount(line.sectors));
  }
}

AccessCost& AccessMemo::cost(const LaneAddresses& lanes, bool shared) {
  const uint64_t first = first_address(lanes), phase = first % phase_bytes;
  const auto last = static_cast<unsigned>(31 - std::countl_zero(lanes.mask));
  uint64_t hash = (lanes.addresses[last] - first) * 0x9e3779b97f4a7c15u ^ phase ^ lanes.bytes << 10;
  hash = (hash ^ lanes.mask ^ uint64_t(shared) << 40) * 0xd6e8feb86659fd93u;
  Set& set = sets_[hash >> 32 & (set_count - 1)];
  const auto tag = static_cast<uint32_t>(hash >> 41);
  for (size_t way = 0; way < ways; ++way)
    if (set.tags[way] == tag && set.patterns[way] && set.patterns[way]->is(lanes, first, phase, shared))
      return set.patterns[way]->cost;
  if (std::ranges::find(set.seen_once, tag) == set.seen_once.end()) {
    set.seen_once[set.oldest_seen++ % ways] = tag;
    find_out(lanes, first, shared, not_kept_);
    return not_kept_;
  }
  const size_t way = set.oldest++ % ways;
  set.tags[way] = tag;
  std::unique_ptr<Pattern>& place = set.patterns[way];
  if (!place) place = std::make_unique<Pattern>();
  place->mask = lanes.mask;
  place->shared = shared;
  place->bytes = lanes.bytes;
  place->phase = phase;
  place->keep(lanes, first);
  find_out(lanes, first, shared, place->cost);
  return place->cost;
}

} // namespace ptxrewrite::timing
