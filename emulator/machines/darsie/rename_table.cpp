#include "emulator/machines/darsie/rename_table.h"

namespace ptxrewrite::emulator {

void RenameTable::clear() {
  versions_ = {};
  used_ = 0;
  free_ = register_count;
}

std::optional<VersionId> RenameTable::allocate(uint32_t value, unsigned registers) {
  if (registers > free_) return std::nullopt;
  const auto version = static_cast<VersionId>(std::countr_one(used_)); // exists: each version has a register
  versions_[version] = {value, static_cast<uint8_t>(registers), true, 0};
  used_ |= 1u << version;
  free_ -= registers;
  return version;
}

unsigned RenameTable::versions_of(uint32_t value) const {
  unsigned count = 0;
  for (uint32_t used = used_; used; used &= used - 1)
    count += versions_[static_cast<size_t>(std::countr_zero(used))].value == value;
  return count;
}

void RenameTable::hold(VersionId version, unsigned warp) {
  drop(versions_[version].value, warp);
  versions_[version].holders |= 1u << warp;
}

void RenameTable::release(VersionId version) {
  versions_[version].in_table = false;
  free_if_unused(version);
}

unsigned RenameTable::drop(uint32_t value, unsigned warp) {
  unsigned registers = 0;
  for (uint32_t used = used_; used; used &= used - 1) {
    const auto version = static_cast<VersionId>(std::countr_zero(used));
    if (versions_[version].value != value || !(versions_[version].holders >> warp & 1)) continue;
    registers += versions_[version].registers;
    let_go(version, warp);
  }
  return registers;
}

unsigned RenameTable::held(uint32_t value, unsigned warp) const {
  for (uint32_t used = used_; used; used &= used - 1) {
    const Version& version = versions_[static_cast<size_t>(std::countr_zero(used))];
    if (version.value == value && (version.holders >> warp & 1)) return version.registers;
  }
  return 0;
}

unsigned RenameTable::drop_all(unsigned warp) {
  unsigned registers = 0;
  for (uint32_t used = used_; used; used &= used - 1) {
    const auto version = static_cast<VersionId>(std::countr_zero(used));
    if (!(versions_[version].holders >> warp & 1)) continue;
    registers += versions_[version].registers;
    let_go(version, warp);
  }
  return registers;
}

unsigned RenameTable::left_behind_by(unsigned warp) const {
  unsigned registers = 0;
  for (uint32_t used = used_; used; used &= used - 1) {
    const Version& version = versions_[static_cast<size_t>(std::countr_zero(used))];
    if (!(version.holders >> warp & 1)) registers += version.registers;
  }
  return registers;
}

void RenameTable::let_go(VersionId version, unsigned warp) {
  versions_[version].holders &= ~(1u << warp);
  free_if_unused(version);
}

void RenameTable::free_if_unused(VersionId version) {
  Version& freed = versions_[version];
  if (freed.in_table || freed.holders || !(used_ >> version & 1)) return;
  used_ &= ~(1u << version);
  free_ += freed.registers;
}

} // namespace ptxrewrite::emulator
