#include "emulator/timing/traffic.h"

#include "emulator/timing/cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace ptxrewrite::timing {
namespace {

using emulator::AccessKind;

constexpr unsigned l1_ways = 4, l2_ways = 16; // as simulators of these machines have them

// All lines of a recording: which SMs touch them, and which sectors have been touched so far.
class LineTable {
public:
  struct Line {
    uint64_t tag = 0; // line + 1
    uint64_t sms = 0; // a bit each; where there are more than 64, some share one
    uint8_t sectors = 0;
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
  // Lines by SM, summed up.
  uint64_t touches() const {
    uint64_t sum = 0;
    for (const Line& line : places_)
      sum += static_cast<unsigned>(std::popcount(line.sms));
    return sum;
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

uint64_t words_of(const Recording& recording) {
  uint64_t words = 0;
  for (const BlockAccesses& block : recording.accesses)
    words += block.words.size();
  return words;
}

class Simulation {
public:
  Simulation(const Recording& recording, const MemorySystem& memory)
      : recording_(&recording), memory_(memory), lines_(1024), l2_(0, 1) {}

  Traffic run(const Recording* before) {
    prepare();
    distribute();
    count_lines();
    const Recording& recording = *recording_;
    const Traffic counted = traffic_;
    // A cache eight times as large as all that is accessed holds it all; making a larger one takes longer than its use.
    const uint64_t accessed = words_of(recording) + (before ? words_of(*before) : 0);
    l2_ = SectoredCache(std::min(counted.simulated_l2_bytes, 8 * std::max<uint64_t>(accessed, 1024) * line_bytes),
                        l2_ways);
    if (before) {
      recording_ = before;
      prepare();
      distribute();
      access_all();
      recording_ = &recording;
      prepare();
      distribute();
    }
    traffic_.lines_seen = counted.lines_seen;
    traffic_.lines_all = counted.lines_all;
    traffic_.first_touch_share = counted.first_touch_share;
    traffic_.simulated_l2_bytes = counted.simulated_l2_bytes;
    const uint64_t written_back = l2_.written_back();
    access_all();
    traffic_.dirty_written_back = l2_.written_back() - written_back;
    return std::move(traffic_);
  }

private:
  // For counting the accesses of recording_.
  void prepare() {
    traffic_ = {};
    traffic_.levels.resize(recording_->sites.size());
    traffic_.sectors.resize(recording_->sites.size());
    bypass_.clear();
    for (const Site& site : recording_->sites)
      bypass_.push_back(memory_.bypasses_l1 && site.function && memory_.bypasses_l1(site));
  }

  void access_all() {
    for (bool any = true; any;) {
      any = false;
      for (Sm& sm : sms_)
        any = step(sm) || any;
    }
  }

  void distribute() {
    std::vector<size_t> index(recording_->all_sms);
    for (size_t i = 0; i < recording_->sms.size(); ++i)
      index[recording_->sms[i]] = i;
    sms_.clear();
    sms_.resize(std::max<size_t>(recording_->sms.size(), 1));
    for (size_t i = recording_->accesses.size(); i-- > 0;)
      sms_[index[recording_->accesses[i].block % recording_->all_sms]].waiting.push_back(i);
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
      const BlockAccesses& accesses = recording_->accesses[block];
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
      auto visit = [&](const BlockAccesses& block) {
        for (size_t at = 0; at < block.words.size();) {
          const AccessHead head = decode_head(block.words[at++]);
          for (uint32_t i = 0; i < head.lines; ++i)
            lines_[decode_line(block.words[at++]).line].sms |= bit;
        }
      };
      for (size_t block : sms_[number].waiting)
        visit(recording_->accesses[block]);
      for (const auto& [block, streams] : sms_[number].live)
        visit(recording_->accesses[block]);
    }
    const auto some = static_cast<double>(sms_.size());
    const double looked_at = static_cast<double>(std::max<uint64_t>(recording_->blocks_looked_at, 1));
    const double all = some * static_cast<double>(recording_->blocks) / looked_at;
    const double one = static_cast<double>(lines_.touches()) / std::min(some, 64.0);
    traffic_.lines_seen = static_cast<double>(lines_.size());
    traffic_.lines_all = extrapolate_lines(one, traffic_.lines_seen, some, all);
    traffic_.lines_all =
        std::max(std::min(traffic_.lines_all, static_cast<double>(recording_->allocated_lines)), traffic_.lines_seen);
    const double growth = traffic_.lines_seen > 0 ? traffic_.lines_all / traffic_.lines_seen : 1;
    traffic_.first_touch_share = growth * some / std::max(all, some);
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
          first_touch = first_touch || fresh;
          touched |= request.sectors;
          sectors.first_touches += static_cast<unsigned>(std::popcount(fresh));
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
  }

  const Recording* recording_; // whose accesses are made
  const MemorySystem& memory_;
  LineTable lines_;
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

Traffic simulate(const Recording& recording, const MemorySystem& memory, const Recording* before) {
  return Simulation(recording, memory).run(before);
}

} // namespace ptxrewrite::timing
