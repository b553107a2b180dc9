#include "emulator/timing/traffic.h"

#include "emulator/timing/ratio.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

namespace ptxrewrite::timing {
namespace {

using emulator::AccessKind;

constexpr unsigned sectors_in_a_line = line_bytes / sector_bytes;
constexpr double sectors_of_line = sectors_in_a_line;
constexpr unsigned l1_ways = 4, l2_ways = 16; // as in simulators of these machines
// Half of L2 may be dirty: at the end of kernels of set A (tests/silicon, Quadro GV100), 88,000 to 104,000 written
// sectors are not in DRAM yet, of 196,608 sectors in L2 (walsh_global, sgemm, srad, adjust_weights).
constexpr unsigned l2_dirty_ways = l2_ways / 2;

// The remaining accesses of one warp.
struct Stream {
  const Access* at = nullptr;
  const Access* end = nullptr;
  size_t block = 0;                        // in Recording::accesses
  std::span<const uint32_t> barriers = {}; // ahead of it: places in the block's accesses
  bool waits = false;                      // at the first of them
};

struct Sm {
  std::vector<size_t> waiting; // blocks, the next one last
  std::vector<Stream> active;
  std::vector<std::pair<size_t, uint32_t>> live; // numbers of unfinished streams of resident blocks
  size_t turn = 0;
  SectoredCache* l1 = nullptr;
};

class Simulation {
public:
  Simulation(const Recording& recording, const MemorySystem& memory, CacheState& state)
      : recording_(recording), memory_(memory), state_(state), lines_(state.lines), l2_(state.l2) {
    lines_.reset();
  }

  Traffic run() {
    if (memory_.cold) state_.forget();
    traffic_.levels.resize(recording_.sites.size());
    slices_.assign(memory_.l2_slices, 0);
    traffic_.sectors.resize(recording_.sites.size());
    for (const Site& site : recording_.sites)
      bypass_.push_back(memory_.bypasses_l1 && site.function && memory_.bypasses_l1(site));
    distribute();
    count_lines();
    take_l2();
    const uint64_t written_back = l2_.written_back();
    access_all();
    traffic_.dirty_written_back = l2_.written_back() - written_back;
    traffic_.hottest_slice = hottest_slice();
    leave_l2();
    return std::move(traffic_);
  }

private:
  // Whether the whole launch was looked at, so that L2 can be followed line by line on the whole machine.
  bool is_whole() const { return recording_.is_complete() && traffic_.simulated_l2_bytes == memory_.l2_bytes; }

  void take_l2() {
    if (!state_.holds_lines || !is_whole()) l2_.reset(traffic_.simulated_l2_bytes, l2_ways, l2_dirty_ways);
    covers_.assign(recording_.allocations.size() + 1, nullptr);
    if (state_.is_exact && is_whole()) return;
    for (size_t i = 0; i < recording_.allocations.size(); ++i)
      for (const Cover& cover : state_.covers)
        if (cover.lines() == recording_.allocations[i]) covers_[i] = &cover;
  }

  // Lines that the launch touched are in L2 as far as they fit; older lines keep the rest of the room.
  void leave_l2() {
    const auto lines = memory_.l2_bytes / line_bytes;
    const auto room = static_cast<double>(lines);
    double old_lines = 0;
    for (const Cover& cover : state_.covers)
      old_lines += cover.lines_there();
    const double of_new = std::min(ratio(room, traffic_.lines_all), 1.0);
    const double of_old = std::clamp(ratio(room - traffic_.lines_all, old_lines), 0.0, 1.0);
    for (Cover& cover : state_.covers)
      cover.scale(of_old);
    for (size_t i = 0; i < recording_.allocations.size(); ++i) {
      const LineRange& range = recording_.allocations[i];
      auto known =
          std::ranges::find_if(state_.covers, [&](const Cover& cover) { return cover.lines().first == range.first; });
      if (known == state_.covers.end()) known = state_.covers.insert(known, Cover(range));
      // The size of local memory depends on the launch.
      if (known->lines() != range) *known = Cover(range);
      known->add(touches_[i].lines_by_part, touches_[i].growth, of_new);
    }
    state_.is_exact = state_.is_exact && is_whole();
    state_.holds_lines = is_whole();
  }

  void access_all() {
    for (bool any = true; any;) {
      any = false;
      for (Sm& sm : sms_)
        any = step(sm) || any;
    }
  }

  void distribute() {
    std::vector<size_t> index(recording_.all_sms);
    for (size_t i = 0; i < recording_.sms.size(); ++i)
      index[recording_.sms[i]] = i;
    sms_.clear();
    sms_.resize(std::max<size_t>(recording_.sms.size(), 1));
    for (size_t i = recording_.accesses.size(); i-- > 0;)
      sms_[index[recording_.accesses[i].block % recording_.all_sms]].waiting.push_back(i);
    if (state_.l1s.size() < sms_.size()) state_.l1s.resize(sms_.size());
    for (size_t i = 0; i < sms_.size(); ++i) {
      Sm& sm = sms_[i];
      sm.l1 = &state_.l1s[i];
      sm.l1->reset(memory_.l1_bytes, l1_ways);
      for (uint32_t block = 0; block < memory_.resident_blocks; ++block)
        start_block(sm);
    }
  }

  void start_block(Sm& sm) {
    while (!sm.waiting.empty()) {
      const size_t block = sm.waiting.back();
      sm.waiting.pop_back();
      const BlockAccesses& accesses = recording_.accesses[block];
      uint32_t begin = 0, streams = 0;
      for (size_t warp = 0; warp < accesses.warp_ends.size(); ++warp) {
        const uint32_t end = accesses.warp_ends[warp];
        if (end > begin) {
          sm.active.push_back({accesses.accesses.data() + begin, accesses.accesses.data() + end, block});
          if (memory_.active_warps > 0) sm.active.back().barriers = barriers_of(accesses, warp);
          ++streams;
        }
        begin = end;
      }
      if (streams == 0) continue;
      sm.live.emplace_back(block, streams);
      return;
    }
  }

  // Touches of one allocation.
  struct Touches {
    double lines = 0;
    double sectors = 0, by_sm = 0, by_windows = 0; // sums over SMs, and over odd and even windows
    double growth = 1;                             // factor from the recording to the whole launch
    std::vector<double> lines_by_part;
  };

  void count_lines() {
    for (size_t number = 0; number < sms_.size(); ++number) {
      if (number % 256 == 0) recent_.fill(UINT64_MAX); // its touches keep only 8 bits of `number`
      for (size_t block : sms_[number].waiting)
        touch_lines(recording_.accesses[block], static_cast<uint16_t>(number));
      for (const auto& [block, streams] : sms_[number].live)
        touch_lines(recording_.accesses[block], static_cast<uint16_t>(number));
    }
    const std::vector<LineRange>& ranges = recording_.allocations;
    touches_.resize(ranges.size() + 1); // the last: lines outside of allocations
    std::vector<Cover> parts(ranges.begin(), ranges.end());
    for (size_t i = 0; i < ranges.size(); ++i)
      touches_[i].lines_by_part.resize(parts[i].parts());
    size_t last = ranges.size();
    lines_.for_each([&](const LineTable::Line& line) {
      last = LineTable::range_of(ranges, line.line(), last);
      Touches& touches = touches_[last];
      ++touches.lines;
      touches.sectors += std::popcount((line.windows | line.windows >> 4) & 0xfu);
      touches.by_sm += line.by_sm;
      touches.by_windows += std::popcount(line.windows);
      if (last < ranges.size()) ++touches.lines_by_part[parts[last].part_of(line.line())];
    });
    for (size_t i = 0; i < touches_.size(); ++i)
      extrapolate(touches_[i], i < ranges.size() ? static_cast<double>(ranges[i].size()) * sectors_of_line : HUGE_VAL);
    const double growth = traffic_.lines_seen > 0 ? lines_of_all_sms_ / traffic_.lines_seen : 1;
    traffic_.simulated_l2_bytes = static_cast<uint64_t>(static_cast<double>(memory_.l2_bytes) / growth);
  }

  void touch_lines(const BlockAccesses& block, uint16_t sm) {
    for (const Access& access : block.accesses) {
      if (is_absent(access)) continue;
      for (uint64_t word : recording_.patterns[access.pattern]) {
        const LineRequest request = AccessPatterns::line_of(access, word);
        // Warps return to their lines: most touches are recent ones.
        const uint64_t touch =
            request.line << 13 | uint64_t(request.sectors) << 9 | (sm & 0xffu) << 1 | access.odd_window;
        uint64_t& recent = recent_[request.line % recent_.size()];
        if (recent == touch) continue;
        recent = touch;
        lines_[request.line].touch(request.sectors, sm, access.odd_window);
      }
    }
  }

  bool is_absent(const Access& access) const { return !memory_.absent.empty() && memory_.absent[access.number]; }

  // `most`: the sectors of the allocation.
  void extrapolate(Touches& touches, double most) {
    const auto some = static_cast<double>(sms_.size());
    const auto looked_at = static_cast<double>(std::max<uint64_t>(recording_.blocks_looked_at, 1));
    const double all = some * static_cast<double>(recording_.blocks) / looked_at;
    const double seen = recording_.share_seen();
    const double sectors = touches.sectors;
    const double ever = extrapolate_lines(touches.by_windows / 2, sectors, 2, 2 / seen);
    const double one = touches.by_sm / some * std::max(ratio(ever, sectors), 1.0);
    const double of_all = std::max(std::min(extrapolate_lines(one, ever, some, all), most), sectors);
    if (sectors > 0) touches.growth = of_all / sectors;
    miss_share_.push_back(sectors > 0 ? std::min(touches.growth * some * seen / std::max(all, some), 1.0) : 1);
    traffic_.lines_seen += touches.lines;
    traffic_.lines_all += touches.lines * touches.growth;
    const double of_windows =
        std::max(std::min(extrapolate_lines(touches.by_sm / some, sectors, some, all), most), sectors);
    lines_of_all_sms_ += touches.lines * (sectors > 0 ? of_windows / sectors : 1);
  }

  static std::span<const uint32_t> barriers_of(const BlockAccesses& accesses, size_t warp) {
    if (warp >= accesses.barrier_ends.size()) return {};
    const uint32_t begin = warp ? accesses.barrier_ends[warp - 1] : 0;
    return std::span(accesses.barriers).subspan(begin, accesses.barrier_ends[warp] - begin);
  }

  // Whether the stream has come to a barrier at which other warps of its block are missing. The last one to come
  // releases them all.
  bool waits_at_barrier(Sm& sm, Stream& stream) {
    if (stream.waits) return true;
    const Access* const first = recording_.accesses[stream.block].accesses.data();
    while (!stream.barriers.empty() && stream.at == first + stream.barriers.front()) {
      stream.waits = true;
      for (const Stream& other : sm.active)
        if (other.block == stream.block && !other.waits) return true;
      for (Stream& other : sm.active)
        if (other.block == stream.block) {
          other.waits = false;
          other.barriers = other.barriers.subspan(1);
        }
    }
    return false;
  }

  // The next of the active warps: of those that do not wait, the oldest.
  size_t turn_of_active(Sm& sm) {
    size_t first = sm.active.size(), active = 0;
    for (size_t i = 0; i < sm.active.size() && active < memory_.active_warps; ++i) {
      if (waits_at_barrier(sm, sm.active[i])) continue;
      ++active;
      if (i >= sm.turn) return i;
      first = std::min(first, i);
    }
    if (first < sm.active.size()) return first;
    // Counts of barriers differ where warps ended early: the oldest goes on.
    sm.active.front().waits = false;
    sm.active.front().barriers = {};
    return 0;
  }

  // Simulates one access. Returns false if the SM has no accesses left.
  bool step(Sm& sm) {
    if (sm.active.empty()) return false;
    if (memory_.active_warps > 0)
      sm.turn = turn_of_active(sm);
    else if (sm.turn >= sm.active.size())
      sm.turn = 0;
    Stream& stream = sm.active[sm.turn];
    const Access& next = *stream.at++;
    if (!is_absent(next)) access(sm, next);
    if (stream.at < stream.end) {
      ++sm.turn;
      return true;
    }
    const size_t block = stream.block;
    sm.active.erase(sm.active.begin() + static_cast<ptrdiff_t>(sm.turn));
    const auto live = std::find_if(sm.live.begin(), sm.live.end(), [&](const auto& one) { return one.first == block; });
    if (--live->second == 0) {
      sm.live.erase(live);
      start_block(sm);
    }
    return true;
  }

  void access(Sm& sm, const Access& access) {
    if (access.access_kind() == AccessKind::store)
      for (uint64_t word : recording_.patterns[access.pattern]) {
        const LineRequest request = AccessPatterns::line_of(access, word);
        lines_[request.line].sectors |= request.sectors;
        write(sm, request, traffic_.sectors[access.number]);
      }
    else
      load(sm, access);
  }

  void write(const Sm& sm, const LineRequest& request, SectorCounts& sectors) {
    const auto written = static_cast<unsigned>(std::popcount(request.sectors));
    ++sectors.write_lines;
    sectors.writes += written;
    sectors.l1_write_hits += sm.l1->present(request.line) != 0;
    if (l2_.write(request.line, request.sectors)) sectors.l2_write_hits += written;
  }

  // The requests of one load or atomic to L2.
  struct Misses {
    uint64_t lines = 0, sectors = 0;
    bool any_from_dram = false, any_first_touch = false;
    double cold = 0; // the probability that one of them is the first of all
  };

  void load(Sm& sm, const Access& access) {
    SectorCounts& sectors = traffic_.sectors[access.number];
    const bool is_atomic = access.access_kind() == AccessKind::atomic;
    SectoredCache* const l1 = is_atomic || bypass_[access.number] ? nullptr : sm.l1;
    const std::span<const uint64_t> words = recording_.patterns[access.pattern];
    Misses misses;
    for (uint64_t word : words) {
      const LineRequest request = AccessPatterns::line_of(access, word);
      uint8_t missing = request.sectors;
      if (l1) missing = static_cast<uint8_t>(missing & ~l1->read(request.line, request.sectors));
      if (missing) load_from_l2(request, missing, sectors, misses);
      if (is_atomic) write(sm, request, sectors);
    }
    const uint64_t wanted = recording_.patterns.sectors(access.pattern);
    sectors.reads += wanted;
    sectors.l1_hits += wanted - misses.sectors;
    sectors.read_lines += words.size();
    sectors.l1_hit_lines += words.size() - misses.lines;
    LoadLevels& levels = traffic_.levels[access.number];
    ++levels.loads;
    levels.miss_lines += misses.lines;
    ++(misses.any_from_dram ? levels.slowest_dram : misses.lines ? levels.slowest_l2 : levels.slowest_l1);
    levels.first_touches += misses.any_first_touch;
    levels.cold += misses.cold;
  }

  // As many consecutive lines as there are slices are in different slices; their order varies by group.
  void count_slice(uint64_t line, unsigned sectors) {
    const uint64_t count = slices_.size();
    if (count == 0) return;
    const uint64_t group = line / count;
    slices_[(line + 5 * group + 3 * (group / count)) % count] += sectors;
  }

  double hottest_slice() const {
    uint64_t most = 0, sum = 0;
    for (uint64_t sectors : slices_) {
      most = std::max(most, sectors);
      sum += sectors;
    }
    return ratio(static_cast<double>(most), static_cast<double>(sum));
  }

  // `missing`: the requested sectors that are not in L1.
  void load_from_l2(const LineRequest& request, uint8_t missing, SectorCounts& sectors, Misses& misses) {
    const auto asked_for = static_cast<unsigned>(std::popcount(missing));
    ++misses.lines;
    misses.sectors += asked_for;
    count_slice(request.line, asked_for);
    const auto absent = static_cast<uint8_t>(missing & ~l2_.read(request.line, missing));
    sectors.l2_hits += asked_for - static_cast<unsigned>(std::popcount(absent));
    if (!absent) return;
    misses.any_from_dram = true;
    uint8_t& touched = lines_[request.line].sectors;
    const auto fresh = static_cast<uint8_t>(absent & ~touched);
    touched |= request.sectors;
    sectors.dram += static_cast<unsigned>(std::popcount(absent)) - static_cast<unsigned>(std::popcount(fresh));
    if (!fresh) return;
    misses.any_first_touch = true;
    last_range_ = LineTable::range_of(recording_.allocations, request.line, last_range_);
    const Cover* const cover = covers_[last_range_];
    const double probably = miss_share_[last_range_] * (cover ? 1 - cover->share_at(request.line) : 1);
    misses.cold = std::max(misses.cold, probably);
    sectors.first_touches += static_cast<unsigned>(std::popcount(fresh));
    sectors.cold += probably * static_cast<unsigned>(std::popcount(fresh));
  }

  const Recording& recording_;
  const MemorySystem& memory_;
  CacheState& state_;
  LineTable& lines_;
  // By allocation, and for lines outside of allocations.
  std::vector<Touches> touches_;
  std::vector<double> miss_share_;   // of first touches in the recording: those that are the first of the launch
  std::vector<const Cover*> covers_; // left by earlier launches; nullptr: nothing
  size_t last_range_ = 0;
  std::array<uint64_t, 1024> recent_; // touches: line, SM's bits, window
  SectoredCache& l2_;
  double lines_of_all_sms_ = 0;  // U of all SMs in the windows that were looked at
  std::vector<uint64_t> slices_; // of L2: sectors read
  std::vector<Sm> sms_;
  std::vector<bool> bypass_;
  Traffic traffic_;
};

} // namespace

Cover::Cover(const LineRange& lines) : lines_(lines) {
  // Divides the lines into fewer than 64 parts of at least 64 lines.
  constexpr uint64_t most_parts = 64;
  for (shift_ = 6; (lines.size() >> shift_) >= most_parts;)
    ++shift_;
  shares_.resize((lines.size() >> shift_) + 1);
}

double Cover::size_of(size_t part) const {
  const uint64_t first = uint64_t(part) << shift_;
  return static_cast<double>(std::min(lines_.size() - first, uint64_t(1) << shift_));
}

double Cover::lines_there() const {
  double sum = 0;
  for (size_t part = 0; part < shares_.size(); ++part)
    sum += shares_[part] * size_of(part);
  return sum;
}

void Cover::scale(double factor) {
  for (double& share : shares_)
    share *= factor;
}

// Scales touches to the whole launch within the parts touched; lines that exceed a part are spread over the others.
void Cover::add(const std::vector<double>& touched, double growth, double there) {
  std::vector<double> lines(shares_.size());
  double beyond = 0, room = 0;
  for (size_t part = 0; part < lines.size(); ++part) {
    lines[part] = std::min(touched[part] * growth, size_of(part));
    beyond += touched[part] * growth - lines[part];
    room += size_of(part) - lines[part];
  }
  const double filled = std::min(ratio(beyond, room), 1.0);
  for (size_t part = 0; part < lines.size(); ++part) {
    if (size_of(part) <= 0) continue;
    const double share = (lines[part] + filled * (size_of(part) - lines[part])) / size_of(part);
    shares_[part] = std::max(shares_[part], there * share);
  }
}

double extrapolate_lines(double one, double some_lines, double some, double all) {
  if (all <= some || some <= 1) return all > some ? some_lines * all / std::max(some, 1.0) : some_lines;
  const double each_more = (some_lines - one) / (some - 1);
  return some_lines + each_more * (all - some);
}

Traffic simulate(const Recording& recording, const MemorySystem& memory, CacheState* state) {
  CacheState none;
  return Simulation(recording, memory, state ? *state : none).run();
}

} // namespace ptxrewrite::timing
