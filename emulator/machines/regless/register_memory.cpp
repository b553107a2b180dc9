#include "emulator/machines/regless/register_memory.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

constexpr unsigned half = 16;

RegisterLanes lanes_of(std::array<uint32_t, 2> bases, uint32_t stride, bool by_halves) {
  RegisterLanes words;
  for (unsigned lane = 0; lane < words.size(); ++lane)
    words[lane] = by_halves ? bases[lane / half] + stride * (lane % half) : bases[0] + stride * lane;
  return words;
}

} // namespace

RegisterLanes CompressedRegister::expanded() const {
  switch (form) {
  case CompressedForm::stride_1:
    return lanes_of(bases, 1, false);
  case CompressedForm::stride_4:
    return lanes_of(bases, 4, false);
  case CompressedForm::half_stride_1:
    return lanes_of(bases, 1, true);
  case CompressedForm::half_stride_4:
    return lanes_of(bases, 4, true);
  default:
    return lanes_of(bases, 0, false);
  }
}

CompressedRegister compressed(const RegisterLanes& words) {
  for (CompressedForm form : {CompressedForm::constant, CompressedForm::stride_1, CompressedForm::stride_4,
                              CompressedForm::half_stride_1, CompressedForm::half_stride_4}) {
    const CompressedRegister candidate{form, {words[0], words[half]}};
    if (candidate.expanded() == words) return candidate;
  }
  return {};
}

RegisterL1::Line* RegisterL1::find(uint64_t line) {
  Line* set = &lines_[line % sets * ways];
  for (uint32_t way = 0; way < ways; ++way)
    if (set[way].tag == line) return &set[way];
  return nullptr;
}

RegisterL1::Result RegisterL1::access(uint64_t line, bool writes) {
  ++now_;
  Result result;
  Line* place = find(line);
  result.hit = place != nullptr;
  if (!place) {
    Line* set = &lines_[line % sets * ways];
    place = std::min_element(set, set + ways, [](const Line& a, const Line& b) { return a.used < b.used; });
    result.gave_up_dirty = place->dirty;
    *place = {line, 0, false};
  }
  place->used = now_;
  place->dirty |= writes;
  return result;
}

void RegisterL1::drop(uint64_t line) {
  if (Line* place = find(line)) *place = {};
}

RegisterMemory::RegisterMemory(uint32_t warps, uint32_t registers, const StagingSettings& settings,
                               StagingCounters& counters)
    : warps_(warps), counters_(&counters), cells_(size_t(warps) * registers),
      group_members_((size_t(registers) * ((warps + staging_shards - 1) / staging_shards) / compressed_per_line + 1) *
                     staging_shards) {
  for (std::vector<InternalLine>& lines : internal_)
    lines.resize(settings.compressor_lines);
}

uint64_t RegisterMemory::group_of(uint32_t warp, uint32_t number) const {
  const uint32_t per_shard = (warps_ + staging_shards - 1) / staging_shards;
  const uint64_t in_shard = uint64_t(number) * per_shard + warp / staging_shards;
  return in_shard / compressed_per_line * staging_shards + warp % staging_shards;
}

// A request to L1: returns true if a line was fetched from, or written back to, the level below.
bool RegisterMemory::request(uint64_t line, bool writes) {
  ++(writes ? counters_->l1_stores : counters_->l1_loads);
  const RegisterL1::Result result = l1_.access(line, writes);
  const bool fetched_below = !result.hit && !writes;
  counters_->below_l1 += fetched_below + result.gave_up_dirty;
  counters_->read_below_l1 += fetched_below;
  return fetched_below;
}

// Brings a line of compressed registers into the compressor. Returns true if it was there.
bool RegisterMemory::open_internal_line(uint32_t shard, uint64_t group, bool writes, bool& from_memory) {
  std::vector<InternalLine>& lines = internal_[shard];
  const uint64_t behind = cells_.size();
  auto place = std::ranges::find(lines, group, &InternalLine::group);
  const bool hit = place != lines.end();
  if (!hit) {
    place = std::ranges::min_element(lines, {}, &InternalLine::used);
    if (place->dirty && group_members_[place->group] > 0) request(behind + place->group, true);
    *place = {group, 0, false};
    if (group_members_[group] > 0) from_memory = request(behind + group, false);
  }
  place->used = ++now_;
  place->dirty |= writes;
  return hit;
}

RegisterMemory::Fetched RegisterMemory::fetch(uint32_t warp, uint32_t number) {
  const Cell& from = cell(warp, number);
  Fetched fetched;
  fetched.content.lanes = from.content.lanes;
  bool from_memory = false;
  if (from.compressed.form != CompressedForm::none) {
    const bool hit = open_internal_line(warp % staging_shards, group_of(warp, number), false, from_memory);
    fetched.content.words = from.compressed.expanded();
    fetched.line = cells_.size() + group_of(warp, number);
    fetched.source = hit ? PreloadSource::compressor : from_memory ? PreloadSource::memory : PreloadSource::l1;
    return fetched;
  }
  fetched.content.words = from.content.words;
  fetched.line = line_of(warp, number);
  from_memory = request(fetched.line, false);
  fetched.source = from_memory ? PreloadSource::memory : PreloadSource::l1;
  return fetched;
}

void RegisterMemory::store(uint32_t warp, uint32_t number, const RegisterContent& content) {
  drop(warp, number); // an older copy may have another form
  Cell& to = cell(warp, number);
  to.present = true;
  to.content = content;
  const uint32_t shard = warp % staging_shards;
  if (!internal_[shard].empty()) to.compressed = compressed(content.words);
  if (to.compressed.form == CompressedForm::none) {
    request(line_of(warp, number), true);
    return;
  }
  to.content.words = {}; // stored in compressed form only
  ++counters_->compressed;
  bool from_memory = false;
  const uint64_t group = group_of(warp, number);
  open_internal_line(shard, group, true, from_memory);
  ++group_members_[group];
}

void RegisterMemory::drop(uint32_t warp, uint32_t number) {
  Cell& here = cell(warp, number);
  if (!here.present) return;
  if (here.compressed.form != CompressedForm::none)
    --group_members_[group_of(warp, number)];
  else
    l1_.drop(line_of(warp, number));
  here.present = false;
  here.compressed = {};
}

} // namespace ptxrewrite::emulator
