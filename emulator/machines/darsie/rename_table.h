// Renamed vector registers of one block (darsie §4.3.1): combines the rename, version and free lists.
//
// A version is one result that a leader wrote for the block: as many registers of 32 lanes of 32 bits as the PTX
// register is wide (a predicate takes one, too). A warp holds the version that it reads instead of a register of its
// own; the table's entry holds it while followers are expected. A version without holders is freed.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptxrewrite::emulator {

using VersionId = uint8_t;

class RenameTable {
public:
  static constexpr unsigned register_count = 32;
  static constexpr unsigned widest = 4; // registers of a 128-bit value

  void clear();
  unsigned free_registers() const { return free_; }
  unsigned used_registers() const { return register_count - free_; }
  // Makes a new version of the PTX register `value`, held by the table. Returns nullopt if too few registers are free.
  std::optional<VersionId> allocate(uint32_t value, unsigned registers);
  // The shared lanes of a version.
  std::byte* lanes(VersionId version) { return lanes_[version].data(); }
  const std::byte* lanes(VersionId version) const { return lanes_[version].data(); }
  uint32_t value(VersionId version) const { return versions_[version].value; }
  unsigned versions_of(uint32_t value) const;

  // The warp reads this version from now on, and no other version of the same register.
  void hold(VersionId version, unsigned warp);
  // The table's entry no longer holds the version.
  void release(VersionId version);
  // The warp has its own register again (it wrote it), or no longer needs the value. Returns the number of registers
  // that it held: a partial write has to copy them first.
  unsigned drop(uint32_t value, unsigned warp);
  unsigned held(uint32_t value, unsigned warp) const;
  // Drops all versions of the warp; returns the number of their registers.
  unsigned drop_all(unsigned warp);
  template <class Needed> void keep_only(unsigned warp, Needed&& needed) {
    for (uint32_t used = used_; used; used &= used - 1) {
      const auto version = static_cast<VersionId>(std::countr_zero(used));
      if ((versions_[version].holders >> warp & 1) && !needed(versions_[version].value)) let_go(version, warp);
    }
  }
  // Registers of versions that `warp` does not hold: they would be free if all warps were at its place.
  unsigned left_behind_by(unsigned warp) const;

private:
  struct Version {
    uint32_t value = 0;
    uint8_t registers = 0;
    bool in_table = false;
    uint32_t holders = 0; // warps
  };
  void let_go(VersionId version, unsigned warp);
  void free_if_unused(VersionId version);

  std::array<Version, register_count> versions_{};
  std::array<std::array<std::byte, widest * 128>, register_count> lanes_;
  uint32_t used_ = 0; // versions
  unsigned free_ = register_count;
};

} // namespace ptxrewrite::emulator
