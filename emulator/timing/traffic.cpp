#include "emulator/timing/traffic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

namespace ptxrewrite::timing {
namespace {

using emulator::AccessKind;

constexpr unsigned l1_ways = 4, l2_ways = 16; // as simulators of these machines have them

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// All lines of a recording: which SMs touch them, and which sectors have been touched so far.
class LineTable {
public:
  struct Line {
    uint64_t tag = 0; // line + 1
    uint64_t sms = 0; // a bit each; where there are more than 64, some share one
    uint8_t sectors = 0;
    uint8_t windows = 0; // bit 0: an even one, 1: an odd one
  };
  explicit LineTable(size_t most) : places_(std::bit_ceil(most * 2 + 16)) {}

  Line& operator[](uint64_t line) {
    size_t at = static_cast<size_t>((line * 0x9e3779b97f4a7c15u) >> 20) & (places_.size() - 1);
    while (places_[at].tag && places_[at].tag != line + 1)
      at = (at + 1) & (places_.size() - 1);
    if (!places_[at].tag) {
      places_[at].tag = line + 1;
      if (++used_ * 2 > places_.size()) return grow(line);
    }
    return places_[at];
  }
  size_t size() const { return used_; }
  // By range, in their order, and of all other lines behind them.
  struct Touches {
    uint64_t lines = 0, by_sm = 0, by_windows = 0; // SMs and kinds of windows that touch one are summed up
  };
  std::vector<Touches> count(const std::vector<LineRange>& ranges) const {
    std::vector<Touches> counts(ranges.size() + 1);
    size_t last = ranges.size();
    for (const Line& line : places_) {
      if (!line.tag) continue;
      last = range_of(ranges, line.tag - 1, last);
      ++counts[last].lines;
      counts[last].by_sm += static_cast<unsigned>(std::popcount(line.sms));
      counts[last].by_windows += static_cast<unsigned>(std::popcount(line.windows));
    }
    return counts;
  }
  // Mostly it is `last` again.
  static size_t range_of(const std::vector<LineRange>& ranges, uint64_t line, size_t last) {
    auto holds = [&](const LineRange& range) { return line >= range.first && line < range.past; };
    if (last < ranges.size() && holds(ranges[last])) return last;
    return static_cast<size_t>(std::ranges::find_if(ranges, holds) - ranges.begin());
  }

private:
  Line& grow(uint64_t line) {
    std::vector<Line> old(places_.size() * 2);
    old.swap(places_);
    used_ = 0;
    for (const Line& one : old)
      if (one.tag) (*this)[one.tag - 1] = one;
    return (*this)[line];
  }
  std::vector<Line> places_;
  size_t used_ = 0;
};

// The accesses of one warp that are still to come.
struct Stream {
  const uint64_t* at = nullptr;
  const uint64_t* end = nullptr;
  size_t block = 0; // in Recording::accesses
};

struct Sm {
  std::vector<size_t> waiting; // blocks, the next one last
  std::vector<Stream> active;
  std::vector<std::pair<size_t, uint32_t>> live; // streams of resident blocks
  size_t turn = 0;
  std::optional<SectoredCache> l1;
};

class Simulation {
public:
  Simulation(const Recording& recording, const MemorySystem& memory, CacheState* state)
      : recording_(recording), memory_(memory), state_(state), lines_(1024), l2_(0, 1) {}

  Traffic run() {
    traffic_.levels.resize(recording_.sites.size());
    traffic_.sectors.resize(recording_.sites.size());
    for (const Site& site : recording_.sites)
      bypass_.push_back(memory_.bypasses_l1 && site.function && memory_.bypasses_l1(site));
    distribute();
    count_lines();
    take_l2();
    const uint64_t written_back = l2_.written_back();
    access_all();
    traffic_.dirty_written_back = l2_.written_back() - written_back;
    if (state_) leave_l2();
    return std::move(traffic_);
  }

private:
  void take_l2() {
    const bool fits = recording_.is_complete() && traffic_.simulated_l2_bytes == memory_.l2_bytes;
    if (state_ && state_->l2 && fits)
      l2_ = std::move(*state_->l2);
    else
      l2_ = SectoredCache(traffic_.simulated_l2_bytes, l2_ways);
    if (!state_ || (state_->is_exact && fits)) return;
    for (size_t i = 0; i < recording_.allocations.size(); ++i)
      for (const CacheState::Cover& cover : state_->covers)
        if (cover.lines.first == recording_.allocations[i].first) miss_share_[i] *= 1 - cover.share;
  }

  // What the launch touched is there as far as there is room, and of what was there before, what then has room.
  void leave_l2() {
    const double room = static_cast<double>(memory_.l2_bytes / line_bytes);
    double old_lines = 0;
    for (const CacheState::Cover& cover : state_->covers)
      old_lines += cover.share * static_cast<double>(cover.lines.size());
    const double of_new = std::min(ratio(room, traffic_.lines_all), 1.0);
    const double of_old = std::clamp(ratio(room - traffic_.lines_all, old_lines), 0.0, 1.0);
    for (CacheState::Cover& cover : state_->covers)
      cover.share *= of_old;
    for (size_t i = 0; i < recording_.allocations.size(); ++i) {
      const LineRange& range = recording_.allocations[i];
      const double share = of_new * lines_all_of_[i] / static_cast<double>(range.size());
      const auto known = std::find_if(state_->covers.begin(), state_->covers.end(),
                                      [&](const auto& cover) { return cover.lines.first == range.first; });
      if (known == state_->covers.end())
        state_->covers.push_back({range, share});
      else
        known->share = std::max(known->share, share);
    }
    const bool is_whole = recording_.is_complete() && traffic_.simulated_l2_bytes == memory_.l2_bytes;
    state_->is_exact = state_->is_exact && is_whole;
    state_->l2.reset();
    if (is_whole) state_->l2 = std::move(l2_);
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
    for (Sm& sm : sms_) {
      sm.l1.emplace(memory_.l1_bytes, l1_ways);
      for (uint32_t i = 0; i < memory_.resident_blocks; ++i)
        start_block(sm);
    }
  }

  void start_block(Sm& sm) {
    while (!sm.waiting.empty()) {
      const size_t block = sm.waiting.back();
      sm.waiting.pop_back();
      const BlockAccesses& accesses = recording_.accesses[block];
      uint32_t begin = 0, streams = 0;
      for (uint32_t end : accesses.warp_ends) {
        if (end > begin) {
          sm.active.push_back({accesses.words.data() + begin, accesses.words.data() + end, block});
          ++streams;
        }
        begin = end;
      }
      if (streams == 0) continue;
      sm.live.emplace_back(block, streams);
      return;
    }
  }

  void count_lines() {
    for (size_t number = 0; number < sms_.size(); ++number) {
      const uint64_t bit = uint64_t(1) << (number % 64);
      const auto sm = static_cast<uint32_t>(number);
      auto visit = [&](const BlockAccesses& block) {
        for (size_t at = 0; at < block.words.size();) {
          const AccessHead head = decode_head(block.words[at++]);
          for (uint32_t i = 0; i < head.lines; ++i) {
            const uint64_t of = decode_line(block.words[at++]).line;
            // Warps come back to their lines: mostly it is known already.
            Recent& recent = recent_[of % recent_.size()];
            if (recent.line == of && recent.sm == sm && recent.odd_window == head.odd_window) continue;
            recent = {of, sm, head.odd_window};
            LineTable::Line& line = lines_[of];
            line.sms |= bit;
            line.windows |= head.odd_window ? 2 : 1;
          }
        }
      };
      for (size_t block : sms_[number].waiting)
        visit(recording_.accesses[block]);
      for (const auto& [block, streams] : sms_[number].live)
        visit(recording_.accesses[block]);
    }
    const auto some = static_cast<double>(sms_.size());
    const double looked_at = static_cast<double>(std::max<uint64_t>(recording_.blocks_looked_at, 1));
    const double all = some * static_cast<double>(recording_.blocks) / looked_at;
    const double seen = recording_.share_seen();
    const std::vector<LineTable::Touches> counts = lines_.count(recording_.allocations);
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto lines = static_cast<double>(counts[i].lines);
      const double ever = extrapolate_lines(static_cast<double>(counts[i].by_windows) / 2, lines, 2, 2 / seen);
      const double one =
          static_cast<double>(counts[i].by_sm) / std::min(some, 64.0) * std::max(ratio(ever, lines), 1.0);
      double of_all = std::max(extrapolate_lines(one, ever, some, all), lines);
      // No allocation has more lines than it has.
      if (i < recording_.allocations.size())
        of_all = std::max(std::min(of_all, static_cast<double>(recording_.allocations[i].size())), lines);
      lines_all_of_.push_back(of_all);
      miss_share_.push_back(lines > 0 ? std::min(of_all / lines * some * seen / std::max(all, some), 1.0) : 1);
      traffic_.lines_seen += lines;
      traffic_.lines_all += of_all;
    }
    const double growth = traffic_.lines_seen > 0 ? traffic_.lines_all / traffic_.lines_seen : 1;
    traffic_.simulated_l2_bytes = static_cast<uint64_t>(static_cast<double>(memory_.l2_bytes) / growth);
  }

  // One access; false: the SM has nothing more to do.
  bool step(Sm& sm) {
    if (sm.active.empty()) return false;
    if (sm.turn >= sm.active.size()) sm.turn = 0;
    Stream& stream = sm.active[sm.turn];
    const AccessHead head = decode_head(*stream.at++);
    access(sm, head, stream.at);
    stream.at += head.lines;
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

  void write(const Sm& sm, const LineRequest& request, SectorCounts& sectors) {
    const auto written = static_cast<unsigned>(std::popcount(request.sectors));
    ++sectors.write_lines;
    sectors.writes += written;
    sectors.l1_write_hits += sm.l1->present(request.line) != 0;
    if (l2_.write(request.line, request.sectors)) sectors.l2_write_hits += written;
  }

  void access(Sm& sm, const AccessHead& head, const uint64_t* words) {
    SectorCounts& sectors = traffic_.sectors[head.number];
    const bool load = head.kind == AccessKind::load;
    bool from_l2 = false, from_dram = false, first_touch = false;
    double cold = 0;
    uint64_t miss_lines = 0;
    for (uint32_t i = 0; i < head.lines; ++i) {
      const LineRequest request = decode_line(words[i]);
      const auto wanted = static_cast<unsigned>(std::popcount(request.sectors));
      if (head.kind == AccessKind::store) {
        lines_[request.line].sectors |= request.sectors;
        write(sm, request, sectors);
        continue;
      }
      sectors.reads += wanted;
      uint8_t missing = request.sectors;
      if (load && !bypass_[head.number])
        missing = static_cast<uint8_t>(missing & ~sm.l1->read(request.line, request.sectors));
      sectors.l1_hits += wanted - static_cast<unsigned>(std::popcount(missing));
      if (missing) {
        ++miss_lines;
        from_l2 = true;
        const auto absent = static_cast<uint8_t>(missing & ~l2_.read(request.line, missing));
        sectors.l2_hits += static_cast<unsigned>(std::popcount(missing)) - static_cast<unsigned>(std::popcount(absent));
        if (absent) {
          from_dram = true;
          uint8_t& touched = lines_[request.line].sectors;
          const auto fresh = static_cast<uint8_t>(absent & ~touched);
          touched |= request.sectors;
          if (fresh) {
            first_touch = true;
            last_range_ = LineTable::range_of(recording_.allocations, request.line, last_range_);
            const double misses = miss_share_[last_range_];
            cold = std::max(cold, misses);
            sectors.first_touches += static_cast<unsigned>(std::popcount(fresh));
            sectors.cold += misses * static_cast<unsigned>(std::popcount(fresh));
          }
          sectors.dram += static_cast<unsigned>(std::popcount(absent)) - static_cast<unsigned>(std::popcount(fresh));
        }
      }
      ++sectors.read_lines;
      sectors.l1_hit_lines += missing == 0;
      if (head.kind == AccessKind::atomic) write(sm, request, sectors);
    }
    if (head.kind == AccessKind::store) return;
    LoadLevels& levels = traffic_.levels[head.number];
    ++levels.loads;
    levels.miss_lines += miss_lines;
    ++(from_dram ? levels.slowest_dram : from_l2 ? levels.slowest_l2 : levels.slowest_l1);
    levels.first_touches += first_touch;
    levels.cold += cold;
  }

  const Recording& recording_;
  const MemorySystem& memory_;
  CacheState* state_;
  LineTable lines_;
  // By allocation, and of all that is elsewhere.
  std::vector<double> lines_all_of_; // in the whole launch
  std::vector<double> miss_share_;   // of first touches in the recording: those that do miss L2
  size_t last_range_ = 0;
  struct Recent {
    uint64_t line = UINT64_MAX;
    uint32_t sm = 0;
    bool odd_window = false;
  };
  std::array<Recent, 1024> recent_;
  SectoredCache l2_;
  std::vector<Sm> sms_;
  std::vector<bool> bypass_;
  Traffic traffic_;
};

} // namespace

double extrapolate_lines(double one, double some_lines, double some, double all) {
  if (all <= some || some <= 1) return all > some ? some_lines * all / std::max(some, 1.0) : some_lines;
  const double each_more = (some_lines - one) / (some - 1);
  return some_lines + each_more * (all - some);
}

Traffic simulate(const Recording& recording, const MemorySystem& memory, CacheState* state) {
  return Simulation(recording, memory, state).run();
}

} // namespace ptxrewrite::timing
