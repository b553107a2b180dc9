// Where registers are that the operand staging unit has no room for (RegLess §5.2.3, §5.3): a compressor with a few
// lines of its own in each shard, behind it the L1 cache, behind that memory, each register of each warp a line of 128
// bytes. Data accesses bypass the L1 cache; register lines are written back, and never fetched to be written.
#pragma once

#include "emulator/machines/regless/staging_counters.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::emulator {

using RegisterLanes = std::array<uint32_t, 32>;

// A register of a warp, as far as it has been written: of lanes outside of `lanes` nothing is known.
struct RegisterContent {
  alignas(64) RegisterLanes words{};
  uint32_t lanes = 0;
};

enum class CompressedForm : uint8_t { none, constant, stride_1, stride_4, half_stride_1, half_stride_4 };

struct CompressedRegister {
  CompressedForm form = CompressedForm::none;
  std::array<uint32_t, 2> bases{}; // of each half of the warp
  RegisterLanes expanded() const;
};
// `none` if no pattern matches. Of several, the first in the order above.
CompressedRegister compressed(const RegisterLanes& words);

// Least recently used of six, 48 KB of lines of 128 bytes.
class RegisterL1 {
public:
  struct Result {
    bool hit = false;
    bool gave_up_dirty = false; // a line that went to memory for this one
  };
  RegisterL1() : lines_(sets * ways) {}
  Result access(uint64_t line, bool writes);
  void drop(uint64_t line);

private:
  static constexpr uint32_t sets = 64, ways = 6;
  struct Line {
    uint64_t tag = UINT64_MAX;
    uint64_t used = 0;
    bool dirty = false;
  };
  Line* find(uint64_t line);
  std::vector<Line> lines_;
  uint64_t now_ = 0;
};

// Of an SM. `warp` is a number below the SM's warps, shard the one that holds it.
class RegisterMemory {
public:
  RegisterMemory(uint32_t warps, uint32_t registers, const StagingSettings& settings, StagingCounters& counters);

  // What the fetch cost, to be had behind it: where it was found, requests to L1.
  struct Fetched {
    PreloadSource source = PreloadSource::l1;
    RegisterContent content;
  };
  bool holds(uint32_t warp, uint32_t number) const { return cell(warp, number).present; }
  bool is_compressed(uint32_t warp, uint32_t number) const {
    return holds(warp, number) && cell(warp, number).compressed.form != CompressedForm::none;
  }
  Fetched fetch(uint32_t warp, uint32_t number);
  void store(uint32_t warp, uint32_t number, const RegisterContent& content);
  void drop(uint32_t warp, uint32_t number);

private:
  static constexpr uint32_t compressed_per_line = 15;
  struct Cell {
    bool present = false;
    CompressedRegister compressed; // else `content` holds it
    RegisterContent content;
  };
  struct InternalLine {
    uint64_t group = UINT64_MAX;
    uint64_t used = 0;
    bool dirty = false;
  };
  Cell& cell(uint32_t warp, uint32_t number) { return cells_[size_t(number) * warps_ + warp]; }
  const Cell& cell(uint32_t warp, uint32_t number) const { return cells_[size_t(number) * warps_ + warp]; }
  uint64_t line_of(uint32_t warp, uint32_t number) const { return uint64_t(number) * warps_ + warp; }
  // Registers of one shard's warps share lines. Compressed lines lie behind all others.
  uint64_t group_of(uint32_t warp, uint32_t number) const;
  bool request(uint64_t line, bool writes);
  bool open_internal_line(uint32_t shard, uint64_t group, bool writes, bool& from_memory);

  uint32_t warps_;
  StagingCounters* counters_;
  std::vector<Cell> cells_;
  std::vector<uint32_t> group_members_; // present compressed registers, by group
  std::array<std::vector<InternalLine>, staging_shards> internal_;
  RegisterL1 l1_;
  uint64_t now_ = 0;
};

} // namespace ptxrewrite::emulator
