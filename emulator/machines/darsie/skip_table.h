// The PC skip table of one block (darsie §4.3.2): the instructions that a leader has executed for later
// warps.
//
// An entry is identified by its pc and the leader's history of branches: the same pc in another trip of a loop is
// another instance, which hardware distinguishes by the versions of registers.
#pragma once

#include "emulator/machines/darsie/rename_table.h"

#include <array>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

// The progress of a warp since all warps of the path were at one place: blocks entered, then place in the block.
struct Progress {
  uint64_t blocks = 0;
  uint32_t place = 0;
  auto operator<=>(const Progress&) const = default;
};

struct SkipEntry {
  uint32_t pc = 0;
  uint64_t history = 0;
  Progress progress;
  uint32_t followers = 0; // warps of the majority path that have not passed the entry
  bool is_load = false;
  bool may_be_global = false; // for a load
  bool leader_written_back = false;
  bool is_stale = false; // IGNORE-STORE: a load executed before a store
  uint64_t fences = 0;   // for a load that may be global: fences and atomics of the SM before it
  uint64_t age = 0;
  std::vector<VersionId> versions; // in the order of the instruction's results
  bool in_use = false;

  bool is_done() const { return followers == 0; }
};

// The entry to evict for a ninth pc.
enum class Eviction : uint8_t {
  done_only, // the oldest entry without expected followers; if there is none, the new pc gets no entry
  oldest,    // an entry without expected followers, else the oldest one
};

class SkipTable {
public:
  static constexpr unsigned entry_count = 8;

  explicit SkipTable(RenameTable& registers) : registers_(&registers) {}

  // Returns nullptr if there is no leader. Entries without expected followers are not found.
  SkipEntry* find(uint32_t pc, uint64_t history);
  // Returns an empty entry, now in use; `evicted` counts evictions. Returns nullptr if all entries are needed.
  SkipEntry* make(Eviction eviction, uint64_t& evicted);
  void remove(SkipEntry& entry);
  void clear();
  // A follower has passed the entry.
  void pass(SkipEntry& entry, unsigned warp);
  template <class Visit> void for_each(Visit&& visit) {
    for (SkipEntry& entry : entries_)
      if (entry.in_use) visit(entry);
  }

private:
  void let_versions_go(SkipEntry& entry);

  RenameTable* registers_;
  std::array<SkipEntry, entry_count> entries_;
  uint64_t made_ = 0;
};

} // namespace ptxrewrite::emulator
