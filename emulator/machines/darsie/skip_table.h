// The PC skip table of one block (darsie §4.3.2): which instructions a leader has executed for the warps that come
// after it.
//
// An entry is found by its pc and by the leader's history of branches: the same pc in another trip of a loop is another
// instance, which hardware tells by the versions of registers.
#pragma once

#include "emulator/machines/darsie/rename_table.h"

#include <array>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

// How far a warp has come since all warps of the path were at one place: blocks entered, then place in the block.
struct Progress {
  uint64_t blocks = 0;
  uint32_t place = 0;
  auto operator<=>(const Progress&) const = default;
};

struct SkipEntry {
  uint32_t pc = 0;
  uint64_t history = 0;
  Progress progress;
  uint32_t followers = 0; // warps of the majority path that are to come
  bool is_load = false;
  bool may_be_global = false; // of a load
  bool leader_written_back = false;
  bool is_stale = false; // IGNORE-STORE: a load before a store
  uint64_t fences = 0;   // of a load that may be global: fences and atomics of the SM before it
  uint64_t age = 0;
  std::vector<VersionId> versions; // in the order of the instruction's results
  bool in_use = false;

  bool is_done() const { return followers == 0; }
};

// Whom to sacrifice for a ninth pc.
enum class Eviction : uint8_t {
  done_only, // the oldest entry that nobody is to come for; if there is none, the new pc gets none
  oldest,    // one that nobody is to come for, else the oldest
};

class SkipTable {
public:
  static constexpr unsigned entry_count = 8;

  explicit SkipTable(RenameTable& registers) : registers_(&registers) {}

  // Null: nobody leads there. Entries that nobody is to come for are not found.
  SkipEntry* find(uint32_t pc, uint64_t history);
  // An empty entry, in use from now on; `evicted` counts who made room for it. Null: all are needed.
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
