#include "emulator/machines/darsie/skip_table.h"

namespace ptxrewrite::emulator {

SkipEntry* SkipTable::find(uint32_t pc, uint64_t history) {
  for (SkipEntry& entry : entries_)
    if (entry.in_use && !entry.is_done() && entry.pc == pc && entry.history == history) return &entry;
  return nullptr;
}

SkipEntry* SkipTable::make(Eviction eviction, uint64_t& evicted) {
  SkipEntry* chosen = nullptr;
  auto is_better = [&](const SkipEntry& entry) {
    if (!chosen || !chosen->in_use) return !chosen;
    if (!entry.in_use) return true;
    if (entry.is_done() != chosen->is_done()) return entry.is_done();
    return entry.age < chosen->age;
  };
  for (SkipEntry& entry : entries_)
    if (is_better(entry)) chosen = &entry;
  if (!chosen) return nullptr; // a table without entries
  if (chosen->in_use) {
    if (!chosen->is_done() && eviction == Eviction::done_only) return nullptr;
    ++evicted;
    remove(*chosen);
  }
  *chosen = {};
  chosen->in_use = true;
  chosen->age = ++made_;
  return chosen;
}

void SkipTable::let_versions_go(SkipEntry& entry) {
  for (VersionId version : entry.versions)
    registers_->release(version);
  entry.versions.clear();
}

void SkipTable::remove(SkipEntry& entry) {
  let_versions_go(entry);
  entry.in_use = false;
}

void SkipTable::clear() {
  for (SkipEntry& entry : entries_)
    if (entry.in_use) remove(entry);
}

void SkipTable::pass(SkipEntry& entry, unsigned warp) {
  entry.followers &= ~(1u << warp);
  if (entry.is_done()) let_versions_go(entry);
}

} // namespace ptxrewrite::emulator
