#include "emulator/timing/recorder.h"

#include "ir/machine/figures/matrix_work.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace ptxrewrite::timing {
namespace {

using emulator::AccessKind;
using emulator::Space;
using emulator::warp_size;

constexpr uint32_t lines_like_a_step = 2; // an access of this many lines takes as long to record as a step
constexpr double same_profile = 0.05;     // share of the instructions

// The local memory of lanes is interleaved by words: the first word of all lanes of the warp, then the second one (CUDA
// programming guide, Local Memory). This base is outside of all allocations.
constexpr uint64_t local_base = uint64_t(1) << 56;

// Executions by number, extrapolated from the known steps to `length` steps.
std::vector<uint32_t> profile_of(const std::vector<Step>& steps, uint64_t length, size_t sites) {
  std::vector<uint32_t> counts(sites);
  for (const Step& step : steps)
    ++counts[step.number];
  if (length > steps.size())
    for (uint32_t& count : counts)
      count = static_cast<uint32_t>(std::min<uint64_t>(uint64_t(count) * length / steps.size(), UINT32_MAX));
  return counts;
}

constexpr unsigned warps_of_group = 4, shared_bytes_per_clock = 128;

bool is_async_product(const Site& site) {
  return site.function && site.function->instructions[site.instruction].kind == ir::InstructionKind::real &&
         ir::is_async_product(site.function->form_of(site.instruction));
}

// The number of different addresses: constant memory reads one at a time (CUDA programming guide, Constant Memory).
uint32_t different_addresses(const LaneAddresses& lanes) {
  std::array<uint64_t, warp_size> known;
  uint32_t count = 0;
  for (uint32_t rest = lanes.mask; rest; rest &= rest - 1) {
    const uint64_t address = lanes.addresses[std::countr_zero(rest)];
    if (std::find(known.begin(), known.begin() + count, address) == known.begin() + count) known[count++] = address;
  }
  return count;
}

bool is_texture(const Site& site) {
  const ir::InstructionClass kind = site.function->form_of(site.instruction).kind;
  return kind == ir::InstructionClass::texture || kind == ir::InstructionClass::surface;
}

// A fragment of A or B of 16-bit elements.
bool is_half_fragment(const Site& site) {
  if (!site.function || site.function->instructions[site.instruction].kind != ir::InstructionKind::real) return false;
  const ir::Form& form = site.function->form_of(site.instruction);
  return form.opcode == ir::Opcode::wmma && (form.has(ir::Modifier::a) || form.has(ir::Modifier::b)) &&
         form.has(ir::Modifier::load) && ir::bit_width(form.type()) == 16;
}

bool is_barrier(const Site& site) {
  return site.function && site.function->instructions[site.instruction].kind == ir::InstructionKind::real &&
         site.function->form_of(site.instruction).kind == ir::InstructionClass::barrier;
}

constexpr uint64_t odd_factor = 0x9e3779b97f4a7c15u;

uint64_t mixed(uint64_t hash, uint64_t with) {
  hash = (hash ^ with) * odd_factor;
  return hash ^ hash >> 29;
}

// Hashes pairs of steps in four independent chains, so that the multiplications overlap.
uint64_t hash_of(std::span<const Step> steps) {
  static_assert(sizeof(Step) == sizeof(uint32_t));
  constexpr size_t places = 4, together = 2 * places;
  std::array<uint64_t, places> hashes = {1, 2, 3, 4}, words = {};
  size_t at = 0;
  for (; at + together <= steps.size(); at += together) {
    std::memcpy(words.data(), &steps[at], sizeof words);
    for (size_t i = 0; i < places; ++i)
      hashes[i] = mixed(hashes[i], words[i]);
  }
  uint64_t all = steps.size();
  for (; at < steps.size(); ++at)
    all = mixed(all, std::bit_cast<uint32_t>(steps[at]));
  for (uint64_t hash : hashes)
    all = mixed(all, hash);
  return all;
}

// Whether the line at `address` overlaps the range.
bool touches(const emulator::MemoryRange& range, uint64_t address) {
  return emulator::contains(range.begin, range.size, address, 1) ||
         emulator::contains(address, line_bytes - 1, range.begin, 0);
}

// The length in windows of the gap after window number `window`.
uint64_t gap_behind(uint64_t window, uint64_t longest) {
  return std::min(uint64_t(1) << std::min<uint64_t>(window, 32), longest);
}

// Executions that differ between two profiles, as a share of the longer one.
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

uint32_t AccessPatterns::add(std::span<const LineRequest> lines) {
  if (words_.capacity() == 0) words_.reserve(size_t(1) << 15); // untouched memory costs nothing
  Pattern pattern{.begin = words_.size(), .count = static_cast<uint32_t>(lines.size())};
  // Lines before the first lane's line wrap around; as signed numbers they are in order.
  int64_t low = 0, high = 0;
  for (const LineRequest& line : lines) {
    words_.push_back(line.line << sector_bits | line.sectors);
    low = std::min(low, static_cast<int64_t>(line.line));
    high = std::max(high, static_cast<int64_t>(line.line));
    pattern.sectors += static_cast<unsigned>(std::popcount(line.sectors));
  }
  pattern.low = static_cast<uint64_t>(low);
  pattern.high = static_cast<uint64_t>(high);
  patterns_.push_back(pattern);
  return static_cast<uint32_t>(patterns_.size() - 1);
}

void AccessPatterns::clear() {
  words_.clear();
  patterns_.clear();
}

Recorder::Recorder(const RecorderOptions& options, Recorder&& before)
    : options_(options), memo_(std::move(before.memo_)), launch_(before.launch_ + 1), spare_(std::move(before.spare_)),
      spare_accesses_(std::move(before.spare_accesses_)) {
  recording_.patterns = std::move(before.recording_.patterns);
  recording_.patterns.clear();
}

void Recorder::reuse(Recording&& recording) {
  recording_.patterns = std::move(recording.patterns);
  recording_.patterns.clear();
  for (BlockAccesses& block : recording.accesses) {
    spare_accesses_.push_back(std::move(block));
    spare_accesses_.back().accesses.clear();
    spare_accesses_.back().warp_ends.clear();
    spare_accesses_.back().barriers.clear();
    spare_accesses_.back().barrier_ends.clear();
  }
}

std::vector<uint32_t> sampled_sms(uint64_t blocks, uint32_t sms, uint64_t target) {
  const uint64_t used = std::min<uint64_t>(blocks, sms);
  const uint64_t blocks_per_sm = std::max<uint64_t>((blocks + sms - 1) / sms, 1);
  uint64_t count = std::max<uint64_t>((target + blocks_per_sm - 1) / blocks_per_sm, 2);
  std::vector<uint32_t> chosen;
  if (count >= used) {
    for (uint32_t sm = 0; sm < used; ++sm)
      chosen.push_back(sm);
    return chosen;
  }
  const uint64_t pairs = (count + 1) / 2;
  for (uint64_t pair = 0; pair < pairs; ++pair) {
    const uint64_t begin = pair * used / pairs, room = (pair + 1) * used / pairs - begin;
    // Varies the position within the part: a fixed one would often be the same column of a two-dimensional grid.
    constexpr double golden_ratio = 0.618033988749895;
    const double place = static_cast<double>(pair) * golden_ratio;
    const uint64_t moved =
        room > 2 ? static_cast<uint64_t>((place - std::floor(place)) * static_cast<double>(room - 1)) : 0;
    for (uint64_t sm = begin + moved; sm <= begin + moved + 1; ++sm)
      if (sm < used && (chosen.empty() || chosen.back() < sm)) chosen.push_back(static_cast<uint32_t>(sm));
  }
  return chosen;
}

void Recorder::choose_sms(uint64_t few_blocks) {
  const uint64_t target =
      options_.everything ? recording_.blocks : std::max(few_blocks, recording_.blocks / options_.rules.one_block_in);
  recording_.sms = has_choice() ? options_.chosen_sms : sampled_sms(recording_.blocks, options_.sms, target);
  wanted_.assign(options_.sms, false);
  for (uint32_t sm : recording_.sms)
    wanted_[sm] = true;
}

// After the first block, if no other one has started: reduces the sample according to the length and accesses of the
// block. Looking at a block takes several times as long as running it, which would dominate long launches.
void Recorder::choose_again(const emulator::Block& first) {
  const SampleRules& rules = options_.rules;
  const uint64_t work = std::max<uint64_t>(recording_.steps_seen + lines_ / lines_like_a_step, 1);
  uint64_t affordable = rules.steps_of_few / work;
  if (work * recording_.blocks > rules.steps_of_all)
    affordable = std::min(affordable, recording_.blocks / rules.one_of_few_in);
  if (options_.sampled) affordable = std::max(affordable, rules.fewest_sampled);
  if (has_choice() || options_.everything || running_.size() > 1 || affordable >= rules.few_blocks) return;
  choose_sms(affordable);
  if (!wanted_[first.linear % options_.sms]) choose_sms(rules.few_blocks);
}

void Recorder::prepare(const emulator::Block& block) {
  prepared_ = true;
  const emulator::KernelImage& image = *block.image;
  recording_.blocks = block.launch->request->grid.count();
  recording_.warps_per_block = block.launch->warps;
  recording_.shared_bytes = block.shared_bytes;
  choose_sms(options_.rules.few_blocks);
  const SampleRules& rules = options_.rules;
  window_ = std::clamp(rules.window_of_block / std::max(recording_.warps_per_block, 1u), rules.shortest_window,
                       rules.longest_window);
  recording_.all_sms = options_.sms;
  local_stride_ = block.local_stride;
  if (image.textures) textures_ = emulator::TextureLayout(*image.textures);
  recording_.sites.resize(image.instruction_count);
  for (const auto& function : image.functions) {
    const bool is_stream = function->stream_of != nullptr;
    const auto stream = static_cast<uint8_t>(1 + static_cast<size_t>(ir::SectionKind::dac_affine));
    for (uint32_t i = 0; i < function->source->instructions.size(); ++i)
      if (function->first_instruction + i < recording_.sites.size())
        recording_.sites[function->first_instruction + i] = {function->source, ir::InstructionId(i),
                                                             is_stream                         ? stream
                                                             : i < function->section_of.size() ? function->section_of[i]
                                                                                               : uint8_t(0)};
  }
  copies_.assign(recording_.sites.size(), 1);
  if (options_.port.fragment_copies > 1)
    for (size_t number = 0; number < recording_.sites.size(); ++number)
      if (is_half_fragment(recording_.sites[number]))
        copies_[number] = static_cast<uint8_t>(options_.port.fragment_copies);
  for (const Site& site : recording_.sites)
    products_.push_back(is_async_product(site));
  for (const Site& site : recording_.sites)
    kinds_.push_back(site.section && site.section < most_sections ? SiteKind::in_section
                     : is_barrier(site)                           ? SiteKind::barrier
                                                                  : SiteKind::plain);
  has_barriers_ = std::ranges::find(kinds_, SiteKind::barrier) != kinds_.end();
  recording_.executions.resize(image.instruction_count);
  recording_.global.resize(image.instruction_count);
  recording_.shared.resize(image.instruction_count);
  recording_.constant.resize(image.instruction_count);
}

// The first block always runs: its length determines the number of other blocks.
bool Recorder::runs(uint64_t number) {
  const bool does = !options_.sampled || !prepared_ || wanted_[number % options_.sms];
  recording_.blocks_run += does;
  return does;
}

bool Recorder::wants(const emulator::Block& block) {
  if (!prepared_) prepare(block);
  if (!wanted_[block.linear % options_.sms]) return false;
  if (lines_ > options_.most_lines && !options_.everything) {
    recording_.is_cut = true;
    return false;
  }
  return true;
}

Recorder::BlockState& Recorder::state_of(const emulator::Block& block) {
  if (block.linear == current_block_) return *current_;
  current_warp_ = nullptr;
  std::unique_ptr<BlockState>& place = running_[block.linear];
  if (!place) {
    if (spare_.empty()) {
      place = std::make_unique<BlockState>();
    } else {
      place = std::move(spare_.back());
      spare_.pop_back();
    }
    begin(*place);
  }
  current_ = place.get();
  current_block_ = block.linear;
  return *current_;
}

Recorder::WarpState& Recorder::state_of(const emulator::Block& block, const emulator::Warp& warp) {
  if (&warp == current_warp_) return *current_warp_state_;
  current_warp_state_ = &state_of(block).warps[warp.index];
  current_warp_ = &warp;
  return *current_warp_state_;
}

void Recorder::begin(BlockState& block) const {
  block.phases.clear();
  block.windows = block.since = 0;
  block.warps.resize(recording_.warps_per_block);
  for (WarpState& warp : block.warps) {
    warp.steps.clear();
    warp.accesses.clear();
    warp.barriers.clear();
    warp.unseen = warp.beyond = warp.hash_of_beyond = warp.window = warp.phase = 0;
    warp.begin_phase();
  }
}

void Recorder::WarpState::begin_phase() {
  phase_begins = true;
  window_left = 0;
}

void Recorder::WarpState::pass_barrier() {
  barriers.push_back(static_cast<uint32_t>(accesses.size()));
  ++phase;
  begin_phase();
}

// Windows are measured in the mean length of the block's warps: a warp that executes more than the others is looked at
// for longer.
bool Recorder::BlockState::is_seen(uint64_t phase, uint64_t window, uint64_t longest_gap) {
  if (phases.size() > phase) return phases[phase];
  uint64_t length = 0;
  for (const WarpState& warp : warps)
    length += warp.length();
  length /= warps.size();
  while (phases.size() <= phase) {
    const bool before = phases.empty() || phases.back();
    const uint64_t until = before ? window : window * gap_behind(windows - 1, longest_gap);
    const bool changes = !phases.empty() && length - since >= until;
    if (changes) since = length;
    if (changes && before) ++windows;
    phases.push_back(changes ? !before : before);
  }
  return phases[phase];
}

// Whether the next instruction is looked at. At the end of a window, skips the gap.
bool Recorder::is_seen(BlockState& block, WarpState& warp) {
  const uint64_t longest_gap = options_.rules.one_window_in - 1;
  if (warp.phase_begins) {
    warp.phase_begins = false;
    warp.window = 0;
    warp.in_gap = true;
    warp.gap_left = options_.everything || block.is_seen(warp.phase, window_, longest_gap) ? 0 : UINT64_MAX;
  }
  if (warp.gap_left) { // after a switch to another warp
    ++warp.unseen;
    if (--warp.gap_left) leave_out(warp.gap_left);
    return false;
  }
  if (warp.in_gap) warp.window_left = static_cast<int64_t>(window_);
  warp.in_gap = false;
  if (--warp.window_left > 0) return true;
  warp.in_gap = true;
  warp.window_left = 0;
  if (options_.everything) return true;
  warp.gap_left = window_ * gap_behind(warp.window++, longest_gap);
  leave_out(warp.gap_left);
  return true;
}

// Leaving out ends at barriers (and, harmlessly, where a warp spins).
void Recorder::left_out(emulator::Block& block, emulator::Warp& warp, uint64_t instructions) {
  WarpState& state = state_of(block).warps[warp.index];
  state.unseen += instructions;
  state.gap_left -= instructions;
  if (state.gap_left == 0 || !has_barriers_) return;
  state.pass_barrier();
}

// Fast path for steps inside a window; everything else about them is computed at the end of the block.
inline void Recorder::note(const emulator::Block& block, const emulator::Warp& warp, Step step) {
  WarpState& state = state_of(block, warp);
  if (state.window_left <= 1 || kinds_[step.number] != SiteKind::plain) [[unlikely]]
    return note_other(block, warp, step);
  --state.window_left;
  seen_ = true;
  keep(state, step);
}

void Recorder::note_other(const emulator::Block& block, const emulator::Warp& warp, Step step) {
  const SiteKind kind = kinds_[step.number];
  if (kind == SiteKind::in_section) {
    seen_ = true;
    recording_.executions[step.number] += !step.guarded_off;
    return note_section(block, warp, step);
  }
  WarpState& state = state_of(block, warp);
  seen_ = is_seen(*current_, state);
  if (kind == SiteKind::barrier && !step.guarded_off) state.pass_barrier();
  if (seen_) keep(state, step);
}

inline void Recorder::keep(WarpState& warp, Step step) {
  if (warp.steps.size() < longest_sequence) [[likely]] {
    warp.steps.push_back(step);
    return;
  }
  ++warp.beyond;
  recording_.executions[step.number] += !step.guarded_off;
  warp.hash_of_beyond = mixed(warp.hash_of_beyond, std::bit_cast<uint32_t>(step));
}

// Sections are the same in all blocks: only those of the first warp are stored.
void Recorder::note_section(const emulator::Block& block, const emulator::Warp& warp, Step step) {
  if (recording_.blocks_looked_at != 0 || warp.index != 0 || current_block_ != block.linear) return;
  Cluster& section = recording_.sections[recording_.sites[step.number].section];
  section.steps.push_back(step);
  ++section.length;
}

void Recorder::before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) {
  note(block, warp, {.number = op.instruction & 0x7fffffff, .guarded_off = 0});
}

void Recorder::passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) {
  note(block, warp, {.number = op.instruction & 0x7fffffff, .guarded_off = 1});
}

void Recorder::accessed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op,
                        const emulator::ObservedAccess& access) {
  if (!seen_ || (!options_.textures && is_texture(recording_.sites[op.instruction]))) return;
  LaneAddresses lanes{access.addresses, warp.mask, access.bytes};
  uint64_t moved[warp_size];
  switch (access.space) {
  case Space::shared:
  case Space::cluster: { // another block's shared memory costs the same
    AccessCounts& counts = recording_.shared[op.instruction];
    ++counts.accesses;
    // Tensor cores read eight rows of 16 bytes at once, which their layouts spread over the banks.
    if (products_[op.instruction])
      counts.port_clocks += static_cast<unsigned>(std::popcount(lanes.mask)) * access.bytes / shared_bytes_per_clock;
    else
      counts.port_clocks += copies_[op.instruction] * memo_.cost(lanes, true, op.instruction).port_clocks;
    return;
  }
  case Space::global:
    if (textures_.has_arrays() && is_texture(recording_.sites[op.instruction])) {
      for (uint32_t rest = lanes.mask; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        moved[lane] = textures_.stored_at(access.addresses[lane]);
      }
      lanes.addresses = moved;
    }
    break;
  case Space::local:
    for (unsigned lane = 0; lane < warp_size; ++lane)
      moved[lane] = local_base + local_bytes(block.linear * recording_.warps_per_block + warp.index) +
                    access.addresses[lane] / 4 * 4 * warp_size + lane * 4 + access.addresses[lane] % 4;
    lanes.addresses = moved;
    break;
  case Space::generic: // lanes in several windows: those in global memory
    for (uint32_t rest = lanes.mask; rest; rest &= rest - 1)
      if (emulator::split_generic(access.addresses[std::countr_zero(rest)]).space != Space::global)
        lanes.mask &= ~(rest & -rest);
    if (lanes.mask == 0) return;
    break;
  case Space::constant: {
    AccessCounts& counts = recording_.constant[op.instruction];
    ++counts.accesses;
    counts.port_clocks += different_addresses(lanes);
    return;
  }
  default: // parameters are in constant memory, all lanes read one address
    return;
  }
  AccessCost& cost = memo_.cost(lanes, false, op.instruction);
  AccessCounts& counts = recording_.global[op.instruction];
  ++counts.accesses;
  counts.port_clocks += cost.port_clocks;
  counts.lines += cost.lines.size();
  counts.sectors += cost.sectors;
  WarpState& state = state_of(block, warp);
  const auto lines = static_cast<uint32_t>(cost.lines.size());
  state.accesses.push_back({.first_line = AccessMemo::first_line(lanes),
                            .pattern = pattern_of(cost),
                            .number = op.instruction & 0x7ffffff,
                            .kind = static_cast<uint32_t>(access.kind) & 0xf,
                            .odd_window = static_cast<uint32_t>(current_->windows + state.window) & 1});
  lines_ += 1 + lines;
  state.window_left -= lines / lines_like_a_step;
}

void Recorder::multiplied(emulator::Block&, emulator::Warp&, const emulator::MicroOp& op, uint64_t multiplications) {
  if (!seen_) return;
  recording_.multiplications.resize(recording_.sites.size());
  recording_.multiplications[op.instruction] += multiplications;
}

uint32_t Recorder::pattern_of(AccessCost& cost) {
  if (cost.kept_in != launch_) {
    cost.kept_in = launch_;
    cost.kept_as = recording_.patterns.add(cost.lines);
  }
  return cost.kept_as;
}

void Recorder::stream_executed(const emulator::Block& first, uint32_t number) {
  if (affine_batch_ == UINT64_MAX) affine_batch_ = first.linear;
  if (affine_batch_ != first.linear) return;
  Cluster& stream = recording_.sections[1 + static_cast<size_t>(ir::SectionKind::dac_affine)];
  if (stream.length++ < longest_sequence) stream.steps.push_back({.number = number & 0x7fffffff, .guarded_off = 0});
}

uint8_t Recorder::cluster_of(const WarpState& warp) {
  const auto [known, is_new] =
      cluster_of_hash_.try_emplace(mixed(hash_of(warp.steps) ^ warp.hash_of_beyond, warp.length()), uint8_t(0));
  if (!is_new) return known->second;
  std::vector<uint32_t> profile = profile_of(warp.steps, warp.length(), recording_.sites.size());
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
    recording_.clusters.push_back({warp.steps, warp.length(), 0});
  }
  return known->second = static_cast<uint8_t>(nearest);
}

void Recorder::block_ended(emulator::Block& block) {
  BlockState& state = state_of(block);
  BlockAccesses accesses;
  if (!spare_accesses_.empty()) {
    accesses = std::move(spare_accesses_.back());
    spare_accesses_.pop_back();
  }
  accesses.block = block.linear;
  accesses.accesses.reserve(
      std::accumulate(state.warps.begin(), state.warps.end(), size_t(0),
                      [](size_t sum, const WarpState& warp) { return sum + warp.accesses.size(); }));
  std::vector<uint16_t> kind;
  for (const WarpState& warp : state.warps) {
    const uint8_t cluster = cluster_of(warp);
    ++recording_.clusters[cluster].warps;
    for (const Step& step : warp.steps)
      recording_.executions[step.number] += !step.guarded_off;
    kind.push_back(cluster);
    const auto before = static_cast<uint32_t>(accesses.accesses.size());
    for (uint32_t place : warp.barriers)
      accesses.barriers.push_back(before + place);
    accesses.barrier_ends.push_back(static_cast<uint32_t>(accesses.barriers.size()));
    accesses.accesses.insert(accesses.accesses.end(), warp.accesses.begin(), warp.accesses.end());
    accesses.warp_ends.push_back(static_cast<uint32_t>(accesses.accesses.size()));
    recording_.steps_seen += warp.seen();
    recording_.steps_all += warp.length();
  }
  add_to_samples(state, accesses.accesses);
  count_allocations(block, accesses.accesses);
  ++recording_.block_kinds[kind];
  if (++recording_.blocks_looked_at == 1) choose_again(block);
  recording_.accesses.push_back(std::move(accesses));
  const auto place = running_.find(block.linear);
  spare_.push_back(std::move(place->second));
  running_.erase(place);
  current_ = nullptr;
  current_warp_ = nullptr;
  current_block_ = UINT64_MAX;
}

void Recorder::add_to_samples(const BlockState& block, const std::vector<Access>& accesses) {
  if (!options_.sampled) return;
  double instructions = 0, sectors = 0;
  for (const WarpState& warp : block.warps)
    instructions += static_cast<double>(warp.length());
  for (const Access& access : accesses)
    sectors += static_cast<double>(recording_.patterns.sectors(access.pattern));
  recording_.instructions_by_block.add(instructions);
  recording_.sectors_by_block.add(sectors);
}

// Records the allocations that the block touches, unless they are known.
void Recorder::count_allocations(const emulator::Block& block, const std::vector<Access>& accesses) {
  for (const Access& access : accesses) {
    const auto [low, high] = recording_.patterns.extent(access);
    const emulator::MemoryRange* const range = range_of(low * line_bytes);
    if (range && touches(*range, high * line_bytes)) continue; // the range contains all lines between
    for (uint64_t word : recording_.patterns[access.pattern]) {
      const uint64_t address = AccessPatterns::line_of(access, word).line * line_bytes;
      if (!range_of(address)) add_range(block, address);
    }
  }
}

// Returns the known allocation that overlaps the line at `address`, or nullptr; the latest one is tried first.
const emulator::MemoryRange* Recorder::range_of(uint64_t address) {
  if (last_range_ < ranges_.size() && touches(ranges_[last_range_], address)) return &ranges_[last_range_];
  for (last_range_ = 0; last_range_ < ranges_.size(); ++last_range_)
    if (touches(ranges_[last_range_], address)) return &ranges_[last_range_];
  return nullptr;
}

void Recorder::add_range(const emulator::Block& block, uint64_t address) {
  emulator::MemoryRange range;
  if (address >= local_base) {
    range = {local_base, local_bytes(recording_.blocks * recording_.warps_per_block), nullptr};
  } else {
    range = block.launch->memory->find(address);
    if (range.size == 0) range = block.launch->memory->find(address + line_bytes - 1);
    if (range.size == 0) return;
  }
  ranges_.push_back(range);
}

Recording Recorder::finish() {
  if (!options_.sampled) recording_.blocks_run = recording_.blocks;
  std::sort(recording_.accesses.begin(), recording_.accesses.end(),
            [](const BlockAccesses& a, const BlockAccesses& b) { return a.block < b.block; });
  for (const emulator::MemoryRange& range : ranges_)
    recording_.allocations.push_back({range.begin / line_bytes, (range.begin + range.size - 1) / line_bytes + 1});
  // Each warp of a group reports all columns of B, which the tensor cores read once for all four.
  for (size_t number = 0; number < recording_.sites.size(); ++number)
    if (products_[number] &&
        recording_.sites[number].function->is_opcode(recording_.sites[number].instruction, ir::Opcode::wgmma))
      recording_.shared[number].port_clocks /= warps_of_group;
  std::sort(recording_.allocations.begin(), recording_.allocations.end(),
            [](const LineRange& a, const LineRange& b) { return a.first < b.first; });
  return std::move(recording_);
}

} // namespace ptxrewrite::timing
