#include "emulator/timing/access_memo.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

// Tags are looked up by blocks of 512 bytes. Bank conflicts do not depend on the word that an access starts at.
constexpr uint64_t phase_bytes = 512, word_bytes = 4;

uint64_t first_address(const LaneAddresses& lanes) {
  return lanes.addresses[std::countr_zero(lanes.mask)];
}

} // namespace

uint64_t AccessMemo::first_line(const LaneAddresses& lanes) {
  return first_address(lanes) / line_bytes;
}

bool AccessMemo::Pattern::is(const LaneAddresses& lanes, uint64_t first, uint64_t its_phase, bool is_shared) const {
  if (mask != lanes.mask || phase != its_phase || bytes != lanes.bytes || shared != is_shared) return false;
  auto differ = [&](unsigned lane) {
    return (lanes.addresses[lane] - first) ^ static_cast<uint64_t>(int64_t(offsets[lane]));
  };
  uint64_t apart = 0;
  if (mask == 0xffffffffu)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      apart |= differ(lane);
  else
    for (unsigned lane = 0; lane < warp_size; ++lane)
      apart |= differ(lane) & (0 - uint64_t(mask >> lane & 1));
  return apart == 0;
}

void AccessMemo::find_out(const LaneAddresses& lanes, uint64_t first, bool shared, AccessCost& cost) const {
  cost.lines.clear();
  cost.sectors = 0;
  cost.kept_in = 0;
  if (shared) {
    cost.port_clocks = shared_passes(law_, lanes);
    return;
  }
  const WarpLines lines(lanes);
  cost.port_clocks = global_port_clocks(law_, lanes, lines.get());
  for (const LineRequest& line : lines.get()) {
    cost.lines.push_back({line.line - first / line_bytes, line.sectors});
    cost.sectors += static_cast<unsigned>(std::popcount(line.sectors));
  }
}

AccessCost& AccessMemo::cost(const LaneAddresses& lanes, bool shared, uint32_t asker) {
  const uint64_t first = first_address(lanes), phase = first % (shared ? word_bytes : phase_bytes);
  if (asker >= last_of_.size()) last_of_.resize(asker + 1);
  Pattern*& last = last_of_[asker];
  if (last && last->is(lanes, first, phase, shared)) return last->cost;
  if (Pattern* const found = find(lanes, first, phase, shared)) {
    last = found;
    return found->cost;
  }
  find_out(lanes, first, shared, not_kept_);
  return not_kept_;
}

// Returns nullptr if the pattern occurs for the first time, or if an offset does not fit 32 bits.
AccessMemo::Pattern* AccessMemo::find(const LaneAddresses& lanes, uint64_t first, uint64_t phase, bool shared) {
  const auto last = static_cast<unsigned>(31 - std::countl_zero(lanes.mask));
  uint64_t hash = (lanes.addresses[last] - first) * 0x9e3779b97f4a7c15u ^ phase ^ lanes.bytes << 10;
  hash = (hash ^ lanes.mask ^ uint64_t(shared) << 40) * 0xd6e8feb86659fd93u;
  Set& set = sets_[hash >> 32 & (set_count - 1)];
  const auto tag = static_cast<uint32_t>(hash >> 41);
  for (size_t way = 0; way < ways; ++way)
    if (set.tags[way] == tag && set.patterns[way] && set.patterns[way]->is(lanes, first, phase, shared))
      return set.patterns[way].get();
  if (std::ranges::find(set.seen_once, tag) == set.seen_once.end()) {
    set.seen_once[set.oldest_seen++ % ways] = tag;
    return nullptr;
  }
  const size_t way = set.oldest++ % ways;
  std::unique_ptr<Pattern>& place = set.patterns[way];
  if (!place) place = std::make_unique<Pattern>();
  place->mask = 0; // empty until it is filled in
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const auto offset = static_cast<int64_t>(lanes.addresses[lane] - first);
    place->offsets[lane] = static_cast<int32_t>(offset);
    if (place->offsets[lane] != offset && (lanes.mask >> lane & 1)) return nullptr;
  }
  set.tags[way] = tag;
  place->mask = lanes.mask;
  place->shared = shared;
  place->bytes = lanes.bytes;
  place->phase = phase;
  find_out(lanes, first, shared, place->cost);
  return place.get();
}

} // namespace ptxrewrite::timing
