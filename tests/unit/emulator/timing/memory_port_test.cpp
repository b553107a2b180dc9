// Lines, sectors and port clocks of one access: against brute force over bytes, against the published law for Hopper,
// and for strides with known bank conflicts.
#include "emulator/timing/memory_port.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>

namespace ptxrewrite::tests::memory_port_test {

using namespace ptxrewrite;
using namespace ptxrewrite::timing;

namespace {

constexpr PortLaw hopper{.block_tags = true};
constexpr PortLaw volta{};

std::array<uint64_t, 32> strided(uint64_t start, uint64_t stride) {
  std::array<uint64_t, 32> addresses;
  for (unsigned lane = 0; lane < 32; ++lane)
    addresses[lane] = start + lane * stride;
  return addresses;
}

uint32_t clocks(const PortLaw& law, const std::array<uint64_t, 32>& addresses, uint64_t bytes,
                uint32_t mask = 0xffffffff) {
  const LaneAddresses lanes{addresses.data(), mask, bytes};
  return global_port_clocks(law, lanes, WarpLines(lanes).get());
}

// Byte by byte.
std::map<uint64_t, uint8_t> lines_by_bytes(const std::array<uint64_t, 32>& addresses, uint32_t mask, uint64_t bytes) {
  std::map<uint64_t, uint8_t> lines;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (uint64_t byte = 0; (mask >> lane & 1) && byte < bytes; ++byte) {
      const uint64_t address = addresses[lane] + byte;
      lines[address / 128] |= static_cast<uint8_t>(1u << (address % 128 / 32));
    }
  return lines;
}

// The definition: different words per bank, for one part of the warp at a time.
uint32_t degree_by_sets(const std::array<uint64_t, 32>& addresses, uint32_t mask, uint64_t bytes) {
  const unsigned together = bytes > 8 ? 8 : bytes > 4 ? 16 : 32;
  uint32_t sum = 0;
  for (unsigned first = 0; first < 32; first += together) {
    std::array<std::set<uint64_t>, 32> banks;
    for (unsigned lane = first; lane < first + together; ++lane)
      for (uint64_t byte = 0; (mask >> lane & 1) && byte < bytes; ++byte)
        banks[(addresses[lane] + byte) / 4 % 32].insert((addresses[lane] + byte) / 4);
    size_t most = 0;
    for (const auto& words : banks)
      most = std::max(most, words.size());
    sum += static_cast<uint32_t>(most);
  }
  return std::max(sum, 1u);
}

} // namespace

TEST_CASE("a warp's lines, sectors and bank degree are those that its bytes say") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    const uint64_t bytes = uint64_t(1) << random() % 5;
    const uint64_t spread = uint64_t(64) << random() % 10;
    const auto mask = static_cast<uint32_t>(random() % 3 ? 0xffffffff : random() | 1);
    std::array<uint64_t, 32> addresses;
    for (uint64_t& address : addresses)
      address = 4096 + random() % spread / bytes * bytes;
    const LaneAddresses lanes{addresses.data(), mask, bytes};
    const WarpLines found(lanes);
    std::map<uint64_t, uint8_t> lines;
    for (const LineRequest& line : found.get())
      CHECK(lines.emplace(line.line, line.sectors).second);
    CHECK(lines == lines_by_bytes(addresses, mask, bytes));
    CHECK(bank_degree(volta, lanes) == degree_by_sets(addresses, mask, bytes));
  }
}

TEST_CASE("strides: bank conflicts as the programming guide has them, and the law for Hopper") {
  // Neighbouring words, one word for all: no conflict. A stride of s words hits each bank gcd(s, 32) times.
  CHECK(clocks(hopper, strided(0, 4), 4) == 1);
  CHECK(clocks(hopper, strided(512, 0), 4) == 1);
  CHECK(clocks(hopper, strided(0, 8), 4) == 2);
  CHECK(clocks(hopper, strided(0, 128), 4) == 32);
  // 33 words: no conflict, 32 lines in 8 blocks of 512 bytes: min(8, 32 / 4 + 1).
  CHECK(clocks(hopper, strided(0, 132), 4) == 8);
  // 32 lines far apart, no conflict: only the lines count: 32 / 4 + 1.
  CHECK(clocks(hopper, strided(0, 4096 + 4), 4) == 9);
  // 8 and 16 bytes of neighbours: two halves, four quarters.
  CHECK(clocks(hopper, strided(0, 8), 8) == 2);
  CHECK(clocks(hopper, strided(0, 16), 16) == 4);
  // Before Hopper: one pass by line.
  CHECK(clocks(volta, strided(0, 4), 4) == 1);
  CHECK(clocks(volta, strided(0, 8), 4) == 2);
  CHECK(clocks(volta, strided(0, 132), 4) == 32);
  CHECK(clocks(volta, strided(64, 4), 4) == 2);
}

TEST_CASE("shared memory of the first generation: 16 banks, half a warp at a time") {
  const PortLaw old = port_law(*ir::find_machine("fx5800"));
  const auto neighbours = strided(0, 4), pairs = strided(0, 8), columns = strided(0, 64);
  auto shared = [&](const PortLaw& law, const std::array<uint64_t, 32>& addresses) {
    return shared_passes(law, {addresses.data(), 0xffffffff, 4});
  };
  CHECK(shared(old, neighbours) == 2);
  CHECK(shared(old, pairs) == 4);
  CHECK(shared(old, columns) == 32);
  CHECK(shared(volta, columns) == 16);
  CHECK(port_law(*ir::find_machine("rtx2080ti")).pass_clocks == 2); // 64 bytes in a clock, GA10x 128
  CHECK(port_law(*ir::find_machine("rtx3090")).pass_clocks == 1);
  CHECK(port_law(*ir::find_machine("h200")).block_tags);
  CHECK_FALSE(port_law(*ir::find_machine("a100")).block_tags);
}

} // namespace ptxrewrite::tests::memory_port_test
