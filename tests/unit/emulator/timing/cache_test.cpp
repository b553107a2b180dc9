// The cache against a plain list of lines in order of use, the footprint against counting all SMs, and traffic computed
// by hand.
#include "emulator/timing/cache.h"
#include "emulator/timing/memory_port.h"
#include "emulator/timing/traffic.h"

#include <doctest/doctest.h>

#include <bit>
#include <list>
#include <random>

namespace ptxrewrite::tests::cache_test {

using namespace ptxrewrite;
using namespace ptxrewrite::timing;

namespace {

// One set of a few ways: a list, the latest used line first.
struct LeastRecentlyUsed {
  struct Line {
    uint64_t line;
    uint8_t valid, dirty;
  };
  size_t ways, dirty_ways;
  std::list<Line> lines = {};
  uint64_t written_back = 0;

  Line& use(uint64_t line) {
    auto found = std::find_if(lines.begin(), lines.end(), [&](const Line& one) { return one.line == line; });
    if (found == lines.end()) {
      lines.push_front({line, 0, 0});
      if (lines.size() > ways) {
        written_back += static_cast<unsigned>(std::popcount(lines.back().dirty));
        lines.pop_back();
      }
    } else {
      lines.splice(lines.begin(), lines, found);
    }
    return lines.front();
  }

  // If there are too many dirty lines, the least recently used one becomes clean.
  void clean() {
    const auto dirty =
        static_cast<size_t>(std::ranges::count_if(lines, [](const Line& one) { return one.dirty != 0; }));
    if (dirty <= dirty_ways) return;
    const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const Line& one) { return one.dirty != 0; });
    written_back += static_cast<unsigned>(std::popcount(last->dirty));
    last->dirty = 0;
  }
};

// One block on one SM, one warp, that accesses lines [first, past) one after the other.
Recording lines_in_turn(uint64_t first, uint64_t past, emulator::AccessKind kind, int times) {
  Recording recording;
  recording.blocks = recording.blocks_looked_at = 1;
  recording.sms = {0};
  recording.warps_per_block = 1;
  recording.sites.resize(1);
  const LineRequest whole_line{0, 0xf};
  const uint32_t pattern = recording.patterns.add({&whole_line, 1});
  BlockAccesses block;
  for (int time = 0; time < times; ++time)
    for (uint64_t line = first; line < past; ++line)
      block.accesses.push_back({.first_line = line, .pattern = pattern, .kind = static_cast<uint32_t>(kind) & 0xf});
  block.warp_ends.push_back(static_cast<uint32_t>(block.accesses.size()));
  recording.accesses.push_back(block);
  return recording;
}

} // namespace

TEST_CASE("one set replaces the least recently used line, sector by sector") {
  std::mt19937 random(2);
  for (const auto& [ways, dirty_ways] :
       std::initializer_list<std::pair<size_t, size_t>>{{1, 1}, {2, 2}, {7, 7}, {16, 16}, {2, 1}, {7, 3}, {16, 8}}) {
    SectoredCache cache;
    cache.reset(ways * line_bytes, static_cast<unsigned>(ways), static_cast<unsigned>(dirty_ways));
    LeastRecentlyUsed expected{ways, dirty_ways};
    for (int round = 0; round < 20000; ++round) {
      const uint64_t line = random() % (ways + 3);
      const auto sectors = static_cast<uint8_t>(1 + random() % 15);
      if (random() % 3 == 0) {
        cache.write(line, sectors);
        LeastRecentlyUsed::Line& one = expected.use(line);
        one.valid |= sectors, one.dirty |= sectors;
        expected.clean();
      } else {
        LeastRecentlyUsed::Line& one = expected.use(line);
        CHECK(cache.read(line, sectors) == (one.valid & sectors));
        one.valid |= sectors;
      }
    }
    CHECK(cache.written_back() == expected.written_back);
    uint64_t dirty = 0;
    for (const auto& line : expected.lines)
      dirty += static_cast<unsigned>(std::popcount(line.dirty));
    CHECK(cache.dirty_sectors() == dirty);
  }
}

TEST_CASE("no cache, no hit; a cache of many sets holds what fits it") {
  SectoredCache none(0, 4);
  CHECK(none.read(1, 0xf) == 0);
  CHECK(none.read(1, 0xf) == 0);
  none.write(1, 0x3);
  CHECK(none.written_back() == 2);
  SectoredCache cache(1 << 20, 16); // 8192 lines
  for (int round = 0; round < 2; ++round) {
    unsigned hits = 0;
    for (uint64_t line = 0; line < 4096; ++line)
      hits += cache.read(line, 0xf) == 0xf;
    // Half of its capacity: hashing fills some sets, but hardly any beyond 16 lines.
    CHECK(hits >= (round ? 4050u : 0u));
    CHECK(hits <= (round ? 4096u : 0u));
  }
}

TEST_CASE("a cache that is used again is an empty one, of whatever size") {
  std::mt19937 random(4);
  SectoredCache used;
  for (int round = 0; round < 20; ++round) {
    const uint64_t bytes = random() % 3000 * line_bytes;
    const unsigned ways = 1 + random() % 16;
    SectoredCache fresh(bytes, ways);
    used.reset(bytes, ways);
    CHECK(used.dirty_sectors() == 0);
    for (int access = 0; access < 3000; ++access) {
      const uint64_t line = random() % 4000;
      const auto sectors = static_cast<uint8_t>(1 + random() % 15);
      if (random() % 2)
        CHECK(used.read(line, sectors) == fresh.read(line, sectors));
      else
        CHECK(used.write(line, sectors) == fresh.write(line, sectors));
    }
    CHECK(used.written_back() == fresh.written_back());
    CHECK(used.dirty_sectors() == fresh.dirty_sectors());
  }
}

TEST_CASE("how many lines all SMs touch, from some") {
  // All private: proportional. All shared: no more.
  CHECK(extrapolate_lines(100, 400, 4, 80) == doctest::Approx(8000));
  CHECK(extrapolate_lines(100, 100, 4, 80) == doctest::Approx(100));
  // 60 shared, 40 each.
  CHECK(extrapolate_lines(100, 60 + 4 * 40, 4, 80) == doctest::Approx(60 + 80 * 40));
  CHECK(extrapolate_lines(100, 400, 4, 4) == doctest::Approx(400));
  CHECK(extrapolate_lines(100, 100, 1, 10) == doctest::Approx(1000));
}

TEST_CASE("loads go to L1, L2 and DRAM as the caches hold them") {
  using emulator::AccessKind;
  const MemorySystem memory{.l1_bytes = 64 * 128, .l2_bytes = 4096 * 128, .resident_blocks = 1, .bypasses_l1 = {}};
  // 32 lines, four times: the first time from DRAM, then from L1.
  Traffic traffic = simulate(lines_in_turn(0, 32, AccessKind::load, 4), memory);
  CHECK(traffic.sectors[0].reads == 4 * 32 * 4);
  CHECK(traffic.sectors[0].first_touches == 32 * 4);
  CHECK(traffic.sectors[0].dram == 0);
  CHECK(traffic.levels[0].slowest_dram == 32);
  CHECK(traffic.levels[0].slowest_l1 >= 80); // sets of four ways, by hash
  // 512 lines: too many for L1, not for L2.
  traffic = simulate(lines_in_turn(0, 512, AccessKind::load, 4), memory);
  CHECK(traffic.levels[0].slowest_dram <= 512 + 60);
  CHECK(traffic.levels[0].slowest_l2 >= 3 * 512 - 60 - 100);
  // 16384 lines in turn: too many for both.
  traffic = simulate(lines_in_turn(0, 16384, AccessKind::load, 2), memory);
  CHECK(traffic.sectors[0].first_touches == 16384 * 4);
  CHECK(traffic.sectors[0].dram >= 16384 * 4 * 9 / 10);
  // Stores do not fetch; lines that L2 cannot hold are written back, and at most half of its lines are dirty.
  traffic = simulate(lines_in_turn(0, 16384, AccessKind::store, 1), memory);
  CHECK(traffic.sectors[0].writes == 16384 * 4);
  CHECK(traffic.dirty_written_back == (16384 - 4096 / 2) * 4);
  CHECK(traffic.levels[0].loads == 0);
}

// One block of as many warps as there are lists, each of which loads these lines, and waits at a barrier where it has
// `meet`.
constexpr uint64_t meet = UINT64_MAX;
Recording warps_load(const std::vector<std::vector<uint64_t>>& warps) {
  Recording recording = lines_in_turn(0, 0, emulator::AccessKind::load, 1);
  recording.warps_per_block = static_cast<uint32_t>(warps.size());
  recording.steps_seen = recording.steps_all = 1;
  BlockAccesses block;
  for (const std::vector<uint64_t>& lines : warps) {
    for (uint64_t line : lines)
      if (line == meet)
        block.barriers.push_back(static_cast<uint32_t>(block.accesses.size()));
      else
        block.accesses.push_back({.first_line = line});
    block.warp_ends.push_back(static_cast<uint32_t>(block.accesses.size()));
    block.barrier_ends.push_back(static_cast<uint32_t>(block.barriers.size()));
  }
  recording.accesses = {block};
  return recording;
}

TEST_CASE("fewer active warps: each finds its own lines again") {
  // Four warps read three lines each, twice; L2 holds four lines.
  std::vector<std::vector<uint64_t>> warps;
  for (uint64_t warp = 0; warp < 4; ++warp)
    warps.push_back({warp * 8, warp * 8 + 1, warp * 8 + 2, warp * 8, warp * 8 + 1, warp * 8 + 2});
  MemorySystem memory{.l1_bytes = 0, .l2_bytes = 4 * 128, .resident_blocks = 1, .bypasses_l1 = {}};
  const Recording recording = warps_load(warps);
  const auto from_l2 = [&](uint32_t active) {
    memory.active_warps = active;
    return simulate(recording, memory).levels[0].slowest_l2;
  };
  CHECK(from_l2(0) == 0); // between a warp's two reads of a line there are eleven other lines
  CHECK(from_l2(4) == 0);
  CHECK(from_l2(2) == 0);  // five
  CHECK(from_l2(1) == 12); // two
}

TEST_CASE("fewer active warps: a barrier brings the block's warps together") {
  // One active warp. Without barriers the first warp reads all of its lines before the second one starts.
  MemorySystem memory{.l1_bytes = 0, .l2_bytes = 128, .resident_blocks = 1, .active_warps = 1, .bypasses_l1 = {}};
  const auto from_l2 = [&](const std::vector<std::vector<uint64_t>>& warps) {
    return simulate(warps_load(warps), memory).levels[0].slowest_l2;
  };
  CHECK(from_l2({{1, 2}, {1, 2}}) == 0);                            // 1 2 1 2
  CHECK(from_l2({{1, meet, 2}, {1, meet, 2}}) == 2);                // 1 1 2 2
  CHECK(from_l2({{1, meet, meet, 2}, {1, meet, 1, meet, 2}}) == 3); // 1 1 1 2 2
  CHECK(from_l2({{1, meet, 2}, {1}, {meet, 2}}) == 2);              // 1 1 2 2; the second warp has ended
}

TEST_CASE("fewer active warps than blocks hold: every access is made, in whatever order") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<uint64_t>> warps(1 + random() % 8);
    uint64_t loads = 0;
    for (std::vector<uint64_t>& lines : warps)
      for (uint32_t count = random() % 30; count > 0; --count) {
        lines.push_back(random() % 4 ? random() % 40 : meet); // counts of barriers differ
        loads += lines.back() != meet;
      }
    MemorySystem memory{.l1_bytes = 0, .l2_bytes = 16 * 128, .resident_blocks = 1, .bypasses_l1 = {}};
    for (memory.active_warps = 0; memory.active_warps < 9; ++memory.active_warps)
      CHECK(simulate(warps_load(warps), memory).levels[0].loads == loads);
  }
}

// Two SMs of four, with a block each: both load lines [first, past), with different sectors.
Recording half_of_sms(uint64_t first, uint64_t past, uint8_t sectors_of_first, uint8_t sectors_of_second) {
  Recording recording;
  recording.blocks = recording.all_sms = 4;
  recording.blocks_looked_at = 2;
  recording.sms = {0, 1};
  recording.warps_per_block = 1;
  recording.steps_seen = recording.steps_all = 1;
  recording.sites.resize(1);
  recording.allocations = {{0, 8192}};
  for (uint64_t block = 0; block < 2; ++block) {
    const LineRequest line{0, block ? sectors_of_second : sectors_of_first};
    const uint32_t pattern = recording.patterns.add({&line, 1});
    BlockAccesses& accesses = recording.accesses.emplace_back();
    accesses.block = block;
    for (uint64_t at = first; at < past; ++at)
      accesses.accesses.push_back({.first_line = at, .pattern = pattern});
    accesses.warp_ends.push_back(static_cast<uint32_t>(accesses.accesses.size()));
  }
  return recording;
}

TEST_CASE("SMs that share lines but no sectors bring each their own") {
  const MemorySystem memory{.l1_bytes = 0, .l2_bytes = uint64_t(1) << 22, .resident_blocks = 1, .bypasses_l1 = {}};
  // The same sectors: the two SMs that are not looked at find them in L2, too; half of the recorded first touches are
  // the first touches of all SMs.
  const Traffic same = simulate(half_of_sms(0, 1000, 0x3, 0x3), memory);
  CHECK(same.sectors[0].first_touches == 2000);
  CHECK(same.sectors[0].cold == doctest::Approx(1000));
  // Other sectors: all of them are.
  const Traffic own = simulate(half_of_sms(0, 1000, 0x3, 0xc), memory);
  CHECK(own.sectors[0].first_touches == 4000);
  CHECK(own.sectors[0].cold == doctest::Approx(4000));
}

TEST_CASE("lines lie in slices of L2 by turns, and one line is in one slice") {
  using emulator::AccessKind;
  MemorySystem memory{.l1_bytes = 0, .l2_bytes = uint64_t(1) << 22, .resident_blocks = 1, .bypasses_l1 = {}};
  CHECK(simulate(lines_in_turn(0, 320, AccessKind::load, 1), memory).hottest_slice == 0);
  for (uint32_t slices : {8, 10, 32}) {
    memory.l2_slices = slices;
    CHECK(simulate(lines_in_turn(0, 320, AccessKind::load, 2), memory).hottest_slice == doctest::Approx(1.0 / slices));
    CHECK(simulate(lines_in_turn(77, 78, AccessKind::load, 50), memory).hottest_slice == 1);
  }
}

TEST_CASE("of an allocation that was touched in one place, that place is in L2") {
  const MemorySystem memory{.l1_bytes = 0, .l2_bytes = uint64_t(1) << 22, .resident_blocks = 1, .bypasses_l1 = {}};
  // All SMs share the first half.
  CacheState state;
  simulate(half_of_sms(0, 4096, 0xf, 0xf), memory, &state);
  const double again = simulate(half_of_sms(0, 4096, 0xf, 0xf), memory, &state).sectors[0].cold;
  CHECK(again == doctest::Approx(0));
  state = {};
  simulate(half_of_sms(0, 4096, 0xf, 0xf), memory, &state);
  const double behind = simulate(half_of_sms(4160, 8192, 0xf, 0xf), memory, &state).sectors[0].cold;
  const double alone = simulate(half_of_sms(4160, 8192, 0xf, 0xf), memory).sectors[0].cold;
  CHECK(behind == doctest::Approx(alone));
}

TEST_CASE("a launch finds in L2 what the one before left there, and nothing in L1") {
  using emulator::AccessKind;
  const MemorySystem memory{.l1_bytes = 64 * 128, .l2_bytes = 4096 * 128, .resident_blocks = 1, .bypasses_l1 = {}};
  const Recording load = lines_in_turn(0, 32, AccessKind::load, 1), store = lines_in_turn(0, 32, AccessKind::store, 1);
  const Recording others = lines_in_turn(100000, 116384, AccessKind::load, 1);
  CHECK(simulate(load, memory).levels[0].slowest_dram == 32);
  for (const Recording& before : {load, store}) {
    CacheState state;
    simulate(before, memory, &state);
    const Traffic traffic = simulate(load, memory, &state);
    CHECK(traffic.levels[0].slowest_l2 == 32);
    CHECK(traffic.sectors[0].first_touches == 0);
    CHECK(traffic.sectors[0].reads == 32 * 4);
  }
  CacheState state;
  simulate(others, memory, &state);
  CHECK(simulate(load, memory, &state).levels[0].slowest_dram == 32);
  // Data written by the previous launch go to DRAM when this one needs the room.
  state = {};
  simulate(store, memory, &state);
  CHECK(simulate(others, memory, &state).dirty_written_back == 32 * 4);
}

} // namespace ptxrewrite::tests::cache_test
