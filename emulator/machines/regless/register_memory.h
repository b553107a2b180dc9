// The storage for registers that do not fit into the operand staging unit (RegLess §5.2.3, §5.3): a compressor with a
// few lines in each shard, then the L1 cache, then memory, with one line of 128 bytes for each register of each warp.
// Data accesses bypass the L1 cache; register lines are written back, and never fetched for a write.
#pragma once

#include "emulator/machines/regless/staging_counters.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::emulator {

using RegisterLanes = std::array<uint32_t, 32>;

// The written part of a warp's register: lanes outside of `lanes` are undefined.
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
// The first matching pattern in the order above, or `none`.
CompressedRegister compressed(const RegisterLanes& words);

// The L1 cache: LRU in six ways, 48 KB of 128-byte lines.
class RegisterL1 {
public:
  struct Result {
    bool hit = false;
    bool gave_up_dirty = false; // a line was written to memory to make room
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

// The memory of one SM. `warp` is its number on the SM, shard the shard that holds it.
class RegisterMemory {
public:
  RegisterMemory(uint32_t warps, uint32_t registers, const StagingSettings& settings, StagingCounters& counters);

  // The source of a fetched register, which determines the latency, and its content.
  struct Fetched {
    PreloadSource source = PreloadSource::l1;
    uint64_t line = 0; // if it comes from L1 or below
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
    CompressedRegister compressed; // if compressed; otherwise in `content`
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
  // Registers of one shard's warps share lines. Compressed lines follow all others.
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
