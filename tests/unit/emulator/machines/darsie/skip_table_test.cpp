// The tables of DARSIE's machine (darsie section 4.3) alone: evictions, and the release of registers.
#include "emulator/machines/darsie/skip_table.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::skip_table_test {

using namespace ptxrewrite::emulator;

namespace {

SkipEntry& fill(SkipTable& table, uint32_t pc, uint32_t followers, uint64_t& evicted) {
  SkipEntry* entry = table.make(Eviction::done_only, evicted);
  REQUIRE(entry);
  entry->pc = pc;
  entry->history = 7;
  entry->followers = followers;
  return *entry;
}

} // namespace

TEST_CASE("skip table: eight pcs; the ninth takes the place of the oldest that nobody is to come for, or none") {
  RenameTable registers;
  SkipTable table(registers);
  uint64_t evicted = 0;
  for (uint32_t pc = 0; pc < 8; ++pc)
    fill(table, pc, 0b10, evicted);
  CHECK(evicted == 0);
  CHECK(table.make(Eviction::done_only, evicted) == nullptr);
  table.pass(*table.find(5, 7), 1);
  table.pass(*table.find(3, 7), 1);
  CHECK(table.find(3, 7) == nullptr); // no followers are expected, so there is no leader
  fill(table, 8, 0b10, evicted);      // evicts the older one of 3 and 5, which is 3
  fill(table, 9, 0b10, evicted);      // evicts 5
  CHECK(evicted == 2);
  CHECK(table.make(Eviction::done_only, evicted) == nullptr);
  for (uint32_t pc : {0, 1, 2, 4, 6, 7, 8, 9})
    CHECK(table.find(pc, 7) != nullptr);
  CHECK(table.make(Eviction::oldest, evicted) != nullptr);
  CHECK(table.find(0, 7) == nullptr);
  CHECK(evicted == 3);
}

TEST_CASE("skip table: another history of branches is another instance") {
  RenameTable registers;
  SkipTable table(registers);
  uint64_t evicted = 0;
  fill(table, 4, 0b110, evicted);
  CHECK(table.find(4, 7) != nullptr);
  CHECK(table.find(4, 8) == nullptr);
  CHECK(table.find(5, 7) == nullptr);
  table.clear();
  CHECK(table.find(4, 7) == nullptr);
}

TEST_CASE("renaming: registers are free when neither the table nor a warp holds the version") {
  RenameTable registers;
  SkipTable table(registers);
  uint64_t evicted = 0;
  SkipEntry& entry = fill(table, 0, 0b100, evicted);
  const VersionId first = *registers.allocate(11, 2);
  entry.versions.push_back(first);
  registers.hold(first, 0);
  CHECK(registers.free_registers() == 30);
  CHECK(registers.held(11, 0) == 2);
  CHECK(registers.held(11, 1) == 0);
  // The leader writes the register again for all: two versions, as in Figure 5.
  const VersionId second = *registers.allocate(11, 2);
  registers.hold(second, 0);
  CHECK(registers.versions_of(11) == 2);
  CHECK(registers.left_behind_by(0) == 2);
  CHECK(registers.free_registers() == 28);
  registers.hold(first, 2); // the last follower of the first
  table.pass(entry, 2);
  CHECK(registers.free_registers() == 28);
  registers.hold(second, 2); // and continues with the second
  CHECK(registers.versions_of(11) == 1);
  CHECK(registers.free_registers() == 30);
  registers.release(second);
  CHECK(registers.drop_all(0) == 2);
  CHECK(registers.free_registers() == 30);
  CHECK(registers.drop(11, 2) == 2);
  CHECK(registers.free_registers() == 32);
}

TEST_CASE("renaming: 32 registers and no more") {
  RenameTable registers;
  for (uint32_t value = 0; value < 15; ++value)
    REQUIRE(registers.allocate(value, 2));
  CHECK_FALSE(registers.allocate(99, 4));
  REQUIRE(registers.allocate(99, 1));
  CHECK_FALSE(registers.allocate(99, 2));
  CHECK(registers.used_registers() == 31);
  registers.clear();
  for (uint32_t value = 0; value < 32; ++value)
    REQUIRE(registers.allocate(value, 1));
  CHECK_FALSE(registers.allocate(99, 1));
}

} // namespace ptxrewrite::tests::skip_table_test
