#include "emulator/timing/recorder.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

using emulator::AccessKind;
using emulator::Space;
using emulator::warp_size;

constexpr uint64_t few_blocks = 16;
constexpr uint64_t one_block_in = 16;
constexpr double same_profile = 0.05; // of the instructions

// The local memory of lanes lies word by word: the first word of all lanes of the warp, then the second one (CUDA
// programming guide, Local Memory). Somewhere no allocation is.
constexpr uint64_t local_base = uint64_t(1) << 56;

std::vector<uint32_t> profile_of(const std::vector<Step>& steps, size_t sites) {
  std::vector<uint32_t> counts(sites);
  for (const Step& step : steps)
    ++counts[step.number];
  return counts;
}

// Executions that one of the two has and the other has not, as a share of the longer one.
double distance(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  uint64_t differences = 0, sum_a = 0, sum_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    differences += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
    sum_a += a[i];
    sum_b += b[i];
  }
  const uint64_t longer = std::max({sum_a, sum_b, uint64_t(1)});
  return static_cast<double>(differences) / static_cast<double>(longer);
}

} // namespace

uint64_t encode(const AccessHead& head) {
  return uint64_t(head.number) | uint64_t(head.lines) << 32 | static_cast<uint64_t>(head.kind) << 40;
}

AccessHead decode_head(uint64_t word) {
  return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32 & 0xff),
          static_cast<AccessKind>(word >> 40 & 0xf)};
}

std::vector<uint32_t> sampled_sms(uint64_t blocks, uint32_t sms) {
  const uint64_t used = std::min<uint64_t>(blocks, sms);
  const uint64_t target = std::max(few_blocks, blocks / one_block_in);
  const uint64_t blocks_per_sm = std::max<uint64_t>((blocks + sms - 1) / sms, 1);
  uint64_t count = std::max<uint64_t>((target + blocks_per_sm - 1) / blocks_per_sm, 2);
  std::vector<uint32_t> chosen;
  if (count >= used) {
    for (uint32_t sm = 0; sm < used; ++sm)
      chosen.push_back(sm);
    return chosen;
  }
  const uint64_t pairs = (count + 1) / 2;
  for (uint64_t pair = 0; pair < pairs; ++pair)
    for (uint64_t sm = pair * used / pairs; sm <= pair * used / pairs + 1; ++sm)
      if (sm < used && (chosen.empty() || chosen.back() < sm)) chosen.push_back(static_cast<uint32_t>(sm));
  return chosen;
}

void Recorder::prepare(const emulator::Block& block) {
  prepared_ = true;
  const emulator::KernelImage& image = *block.image;
  recording_.blocks = block.launch->request->grid.count();
  recording_.warps_per_block = block.launch->warps;
  recording_.shared_bytes = block.shared_bytes;
  recording_.sms = sampled_sms(recording_.blocks, options_.sms);
  recording_.all_sms = options_.sms;
  local_stride_ = block.local_stride;
  wanted_.resize(options_.sms);
  for (uint32_t sm : recording_.sms)
    wanted_[sm] = true;
  recording_.sites.resize(image.instruction_count);
  for (const auto& function : image.functions)
    for (uint32_t i = 0; i < function->source->instructions.size(); ++i)
      if (function->first_instruction + i < recording_.sites.size())
        recording_.sites[function->first_instruction + i] = {function->source, ir::InstructionId(i),
                                                             i < function->section_of.size() ? function->section_of[i]
                                                                                             : uint8_t(0)};
  recording_.executions.resize(image.instruction_count);
  recording_.global.resize(image.instruction_count);
  recording_.shared.resize(image.instruction_count);
}

bool Recorder::wants(const emulator::Block& block) {
  if (!prepared_) prepare(block);
  if (!wanted_[block.linear % options_.sms]) return false;
  if (words_ > options_.most_words) {
    recording_.is_cut = true;
    return false;
  }
  return true;
}

Recorder::BlockState& Recorder::state_of(const emulator::Block& block) {
  if (block.linear == current_block_) return *current_;
  std::unique_ptr<BlockState>& place = running_[block.linear];
  if (!place) {
    if (spare_.empty()) {
      place = std::make_unique<BlockState>();
    } else {
      place = std::move(spare_.back());
      spare_.pop_back();
    }
    place->warps.resize(recording_.warps_per_block);
  }
  current_ = place.get();
  current_block_ = block.linear;
  return *current_;
}

void Recorder::note(const emulator::Block& block, const emulator::Warp& warp, Step step) {
  WarpState& state = state_of(block).warps[warp.index];
  if (const uint8_t section = recording_.sites[step.number].section; section && section < most_sections) {
    if (recording_.blocks_looked_at == 0 && warp.index == 0 && current_block_ == block.linear) {
      recording_.sections[section].steps.push_back(step);
      ++recording_.sections[section].length;
    }
    return;
  }
  state.hash = (state.hash ^ (uint64_t(step.number) << 1 | step.guarded_off)) * 0x9e3779b97f4a7c15u;
  state.hash ^= state.hash >> 29;
  if (state.length++ < longest_sequence) state.steps.push_back(step);
}

void Recorder::before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) {
  ++recording_.executions[op.instruction];
  note(block, warp, {.number = op.instruction & 0x7fffffff, .guarded_off = 0});
}

void Recorder::passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) {
  note(block, warp, {.number = op.instruction & 0x7fffffff, .guarded_off = 1});
}

void Recorder::accessed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op,
                        const emulator::ObservedAccess& access) {
  LaneAddresses lanes{access.addresses, warp.mask, access.bytes};
  uint64_t moved[warp_size];
  switch (access.space) {
  case Space::shared: {
    AccessCounts& counts = recording_.shared[op.instruction];
    ++counts.accesses;
    counts.port_clocks += shared_port_clocks(options_.port, lanes);
    return;
  }
  case Space::global:
    break;
  case Space::local:
    for (unsigned lane = 0; lane < warp_size; ++lane)
      moved[lane] = local_base +
                    (block.linear * recording_.warps_per_block + warp.index) * warp_size * (local_stride_ + 4) +
                    access.addresses[lane] / 4 * 4 * warp_size + lane * 4 + access.addresses[lane] % 4;
    lanes.addresses = moved;
    break;
  case Space::generic: // lanes in several windows: those in global memory
    for (uint32_t rest = lanes.mask; rest; rest &= rest - 1)
      if (emulator::split_generic(access.addresses[std::countr_zero(rest)]).space != Space::global)
        lanes.mask &= ~(rest & -rest);
    if (lanes.mask == 0) return;
    break;
  default: // constant memory has a cache of its own, and parameters are in it
    return;
  }
  const WarpLines lines(lanes);
  AccessCounts& counts = recording_.global[op.instruction];
  ++counts.accesses;
  counts.port_clocks += global_port_clocks(options_.port, lanes, lines.get());
  std::vector<uint64_t>& words = state_of(block).warps[warp.index].words;
  words.push_back(encode({op.instruction, static_cast<uint32_t>(lines.get().size()), access.kind}));
  for (const LineRequest& line : lines.get()) {
    ++counts.lines;
    counts.sectors += static_cast<unsigned>(std::popcount(line.sectors));
    words.push_back(line.line << 4 | line.sectors);
  }
  words_ += 1 + lines.get().size();
}

uint8_t Recorder::cluster_of(const WarpState& warp) {
  const auto [known, is_new] = cluster_of_hash_.try_emplace(warp.hash, uint8_t(0));
  if (!is_new) return known->second;
  std::vector<uint32_t> profile = profile_of(warp.steps, recording_.sites.size());
  size_t nearest = 0;
  double least = 2;
  for (size_t i = 0; i < profiles_.size(); ++i)
    if (const double apart = distance(profile, profiles_[i]); apart < least) {
      nearest = i;
      least = apart;
    }
  if (least > same_profile && profiles_.size() < most_clusters) {
    nearest = profiles_.size();
    profiles_.push_back(std::move(profile));
    recording_.clusters.push_back({warp.steps, warp.length, 0});
  }
  return known->second = static_cast<uint8_t>(nearest);
}

void Recorder::block_ended(emulator::Block& block) {
  BlockState& state = state_of(block);
  BlockAccesses accesses;
  accesses.block = block.linear;
  std::vector<uint16_t> kind;
  for (WarpState& warp : state.warps) {
    const uint8_t cluster = cluster_of(warp);
    ++recording_.clusters[cluster].warps;
    kind.push_back(cluster);
    accesses.words.insert(accesses.words.end(), warp.words.begin(), warp.words.end());
    accesses.warp_ends.push_back(static_cast<uint32_t>(accesses.words.size()));
    warp.steps.clear();
    warp.words.clear();
    warp.length = warp.hash = 0;
  }
  count_allocations(block, accesses.words);
  ++recording_.block_kinds[kind];
  ++recording_.blocks_looked_at;
  recording_.accesses.push_back(std::move(accesses));
  const auto place = running_.find(block.linear);
  spare_.push_back(std::move(place->second));
  running_.erase(place);
  current_ = nullptr;
  current_block_ = UINT64_MAX;
}

// Allocations that the block touches, if they are new.
void Recorder::count_allocations(const emulator::Block& block, const std::vector<uint64_t>& words) {
  for (size_t at = 0; at < words.size();) {
    const AccessHead head = decode_head(words[at++]);
    for (uint32_t i = 0; i < head.lines; ++i, ++at) {
      const uint64_t address = decode_line(words[at]).line * line_bytes;
      const uint64_t past = address + line_bytes;
      if (past > last_range_.begin && address < last_range_.end) continue;
      const auto known = std::find_if(ranges_.begin(), ranges_.end(), [&](const emulator::MemoryRange& range) {
        return past > range.begin && address < range.end;
      });
      if (known != ranges_.end()) {
        last_range_ = *known;
        continue;
      }
      if (address >= local_base) { // local memory grows with the blocks
        last_range_ = {local_base, UINT64_MAX, nullptr};
        recording_.allocated_lines = UINT64_MAX;
      } else {
        last_range_ = block.launch->memory->find(address);
        if (last_range_.begin == last_range_.end) last_range_ = block.launch->memory->find(past - 1);
        if (last_range_.begin == last_range_.end) continue;
        if (recording_.allocated_lines != UINT64_MAX)
          recording_.allocated_lines += (last_range_.end - 1) / line_bytes - last_range_.begin / line_bytes + 1;
      }
      ranges_.push_back(last_range_);
    }
  }
}

Recording Recorder::finish() {
  std::sort(recording_.accesses.begin(), recording_.accesses.end(),
            [](const BlockAccesses& a, const BlockAccesses& b) { return a.block < b.block; });
  return std::move(recording_);
}

} // namespace ptxrewrite::timing
