// RegLess's operand staging units, one for each scheduler of an SM (RegLess §5.1, §5.2): eight banks of lines each,
// which hold registers of active regions; the remaining lines cache registers that may be evicted. Warp w belongs to
// shard w mod 4 and is number w / 4 there; its register r is in bank (w / 4 + r) mod 8.
//
// The unit only executes annotations: a request for a register that is not staged is an error of its caller.
#pragma once

#include "emulator/machines/regless/register_memory.h"
#include "emulator/machines/regless/staging_counters.h"
#include "ir/machine/registers/register_program.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace ptxrewrite::emulator {

inline constexpr uint32_t staging_warps = 64;             // of an SM
inline constexpr uint32_t banks_of_staging = 8;           // of a shard
using BankCounts = std::array<uint8_t, banks_of_staging>; // of a warp's registers r, by r mod 8

class StagingUnit {
public:
  StagingUnit(uint32_t registers, const StagingSettings& settings, StagingCounters& counters);

  uint32_t lines_per_bank() const { return lines_per_bank_; }

  // --- the capacity reserved for a region ---
  bool has_room(uint32_t warp, const BankCounts& need) const;
  void reserve(uint32_t warp, const BankCounts& need);
  void give_back(uint32_t warp, const BankCounts& need);

  // --- registers of a region ---
  // Makes the register active. `drops`: its stored copy is dropped.
  PreloadSource preload(uint32_t warp, uint32_t number, bool drops);
  // The line of the last preload that came from L1 or below.
  uint64_t fetched_line() const { return fetched_line_; }
  // In 0 .. 31: eight for each shard.
  static uint32_t bank_index(uint32_t warp, uint32_t number) {
    return warp % staging_shards * banks_of_staging + (warp / staging_shards + number) % banks_of_staging;
  }
  // Whether the copy outside, if any, is compressed.
  bool is_compressed(uint32_t warp, uint32_t number) const { return memory_.is_compressed(warp, number); }
  // Returns nullptr if the register is not staged.
  const RegisterContent* active(uint32_t warp, uint32_t number) const;
  // The register's content for writing; takes a line if it is not staged.
  RegisterContent& written(uint32_t warp, uint32_t number);
  // The register leaves its region: for good, or to be needed again. `later`: a result is pending (finish).
  void erase(uint32_t warp, uint32_t number, bool later);
  void evict(uint32_t warp, uint32_t number, bool later);
  void finish(uint32_t warp, uint32_t number);
  // Drops all copies outside of regions.
  void invalidate(uint32_t warp, uint32_t number);

  // Registers in entries of active regions; registers with a copy outside; registers ever written.
  const ir::RegisterSet& staged(uint32_t warp) const { return warps_[warp].staged; }
  const ir::RegisterSet& stored(uint32_t warp) const { return warps_[warp].stored; }
  const ir::RegisterSet& ever_written(uint32_t warp) const { return warps_[warp].ever_written; }
  // The warp has ended: drops its stored registers.
  void forget(uint32_t warp);
  // Starts a new warp.
  void start(uint32_t warp);

private:
  static constexpr int32_t nowhere = -1;
  enum class Use : uint8_t { free, active, leaving_free, leaving_evicted, clean, dirty };
  struct Line {
    RegisterContent content;
    uint32_t warp = 0, number = 0;
    Use use = Use::free;
    bool is_dirty = false; // differs from the copy in memory, or there is none
  };
  struct Bank {
    std::deque<int32_t> free, clean, dirty; // the first element is taken first
    uint32_t reserved = 0;
  };
  struct WarpRegisters {
    ir::RegisterSet staged, stored, ever_written;
    std::array<int32_t, 256> line;
  };

  Bank& bank_of(uint32_t warp, uint32_t number) { return banks_[bank_index(warp, number)]; }
  Line& take_line(uint32_t warp, uint32_t number);
  void put_free(int32_t line);
  void remove_from_list(int32_t line);

  uint32_t lines_per_bank_;
  StagingCounters* counters_;
  std::vector<Line> lines_;
  std::vector<Bank> banks_;
  std::vector<WarpRegisters> warps_;
  RegisterMemory memory_;
  uint64_t fetched_line_ = 0;
};

} // namespace ptxrewrite::emulator
