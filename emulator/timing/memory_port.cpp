// The port law of H200 comes from published measurements of 46 patterns (max(D, T); cycles within 3 %); older machines
// make one pass per 128-byte line.
#include "emulator/timing/memory_port.h"

#include "emulator/core/micro_op.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

using emulator::warp_size;

constexpr uint64_t word_bytes = 4;

// The sectors of a line touched by its bytes [first, last].
uint8_t sectors_between(uint64_t first, uint64_t last) {
  const auto low = static_cast<unsigned>(first / sector_bytes), high = static_cast<unsigned>(last / sector_bytes);
  return static_cast<uint8_t>(((1u << (high + 1)) - 1) & ~((1u << low) - 1));
}

// The largest number of distinct words in one bank that lanes [first, past) access.
uint32_t degree_of_part(const PortLaw& law, const LaneAddresses& lanes, unsigned first, unsigned past) {
  std::array<std::array<uint64_t, warp_size>, 2 * warp_size> words; // by bank: the in_bank distinct words
  std::array<uint8_t, warp_size> in_bank{};
  uint32_t most = 0;
  for (unsigned lane = first; lane < past; ++lane) {
    if (!(lanes.mask >> lane & 1)) continue;
    const uint64_t begin = lanes.addresses[lane] / word_bytes;
    const uint64_t last = (lanes.addresses[lane] + std::min<uint64_t>(lanes.bytes, 16) - 1) / word_bytes;
    for (uint64_t word = begin; word <= last; ++word) {
      const uint64_t bank = word & (law.banks - 1);
      size_t known = 0;
      while (known < in_bank[bank] && words[known][bank] != word)
        ++known;
      if (known < in_bank[bank]) continue;
      words[known][bank] = word;
      in_bank[bank] = static_cast<uint8_t>(known + 1);
      most = std::max<uint32_t>(most, in_bank[bank]);
    }
  }
  return most;
}

// A full warp at consecutive addresses, or at one address: no part has bank conflicts.
bool is_plain(const LaneAddresses& lanes) {
  const uint64_t bytes = lanes.bytes;
  if (lanes.mask != 0xffffffffu || (bytes != 4 && bytes != 8 && bytes != 16)) return false;
  uint64_t apart = 0, different = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    apart |= lanes.addresses[lane] ^ (lanes.addresses[0] + lane * bytes);
    different |= lanes.addresses[lane] ^ lanes.addresses[0];
  }
  return (apart == 0 || different == 0) && lanes.addresses[0] % bytes == 0;
}

} // namespace

WarpLines::WarpLines(const LaneAddresses& lanes) {
  for (uint32_t rest = lanes.mask; rest; rest &= rest - 1) {
    const uint64_t first = lanes.addresses[std::countr_zero(rest)];
    const uint64_t last = first + std::min<uint64_t>(std::max<uint64_t>(lanes.bytes, 1), line_bytes) - 1;
    const uint64_t line = first / line_bytes, last_line = last / line_bytes;
    if (line == last_line) {
      add(line, sectors_between(first % line_bytes, last % line_bytes));
    } else {
      add(line, sectors_between(first % line_bytes, line_bytes - 1));
      add(last_line, sectors_between(0, last % line_bytes));
    }
  }
}

void WarpLines::add(uint64_t line, uint8_t sectors) {
  // Addresses mostly ascend: a line above all lines so far is new.
  if (count_ == 0 || line > highest_) {
    highest_ = line;
    lines_[count_++] = {line, sectors};
    return;
  }
  for (size_t i = count_; i-- > 0;)
    if (lines_[i].line == line) {
      lines_[i].sectors |= sectors;
      return;
    }
  lines_[count_++] = {line, sectors};
}

PortLaw port_law(const ir::Machine& machine) {
  if (machine.compute_capability < 20) return {.banks = 16, .lanes_at_a_time = 16};
  // Volta: two lanes load each element of A and B (Raihan et al., ISPASS 2019).
  if (machine.compute_capability >= 70 && machine.compute_capability < 75) return {.fragment_copies = 2};
  // Turing's shared memory moves 64 bytes in a clock, half of its 32 banks (the white paper of GA102, from memory,
  // which compares its own 128 bytes with it).
  if (machine.compute_capability == 75) return {.pass_clocks = 2};
  return {.block_tags = machine.compute_capability >= 90};
}

uint32_t bank_degree(const PortLaw& law, const LaneAddresses& lanes) {
  const auto words = static_cast<unsigned>(std::clamp<uint64_t>((lanes.bytes + word_bytes - 1) / word_bytes, 1, 4));
  const unsigned together = law.lanes_at_a_time / std::bit_ceil(words);
  if (is_plain(lanes)) return warp_size / together;
  uint32_t sum = 0;
  for (unsigned first = 0; first < warp_size; first += together)
    sum += degree_of_part(law, lanes, first, first + together);
  return std::max(sum, 1u);
}

uint32_t tag_clocks(const PortLaw& law, std::span<const LineRequest> lines) {
  const auto count = static_cast<uint32_t>(lines.size());
  if (!law.block_tags) return std::max(count, 1u);
  std::array<uint64_t, 64> blocks;
  size_t distinct = 0;
  for (const LineRequest& line : lines) {
    const uint64_t block = line.line / 4;
    if (distinct && blocks[distinct - 1] == block) continue;
    const auto end = blocks.begin() + static_cast<ptrdiff_t>(distinct);
    if (std::find(blocks.begin(), end, block) == end) blocks[distinct++] = block;
  }
  return std::max(std::min(static_cast<uint32_t>(distinct), (count + 3) / 4 + 1), 1u);
}

uint32_t shared_passes(const PortLaw& law, const LaneAddresses& lanes) {
  return bank_degree(law, lanes);
}

uint32_t global_port_clocks(const PortLaw& law, const LaneAddresses& lanes, std::span<const LineRequest> lines) {
  // Before Hopper only the passes per line count.
  return law.block_tags ? std::max(bank_degree(law, lanes), tag_clocks(law, lines)) : tag_clocks(law, lines);
}

} // namespace ptxrewrite::timing
