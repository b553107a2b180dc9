#include "tests/fuzz/kernels/oracle_memory.h"

#include <algorithm>
#include <cstdio>

namespace ptxrewrite::fuzz {

void OracleMemory::add_region(uint64_t base, std::vector<uint8_t> contents, Sharing sharing, bool has_contents,
                              uint32_t copies) {
  Region region;
  region.base = base;
  region.size = contents.size();
  region.sharing = sharing;
  region.has_contents = has_contents;
  for (uint32_t i = 0; i < copies; ++i)
    region.bytes.insert(region.bytes.end(), contents.begin(), contents.end());
  region.written.assign(region.bytes.size(), has_contents);
  if (sharing == Sharing::grid || sharing == Sharing::block) {
    region.writer.assign(region.size, nobody);
    region.reader.assign(region.size, nobody);
    region.atomic.assign(region.size, nobody);
  }
  regions_.push_back(std::move(region));
}

std::vector<uint8_t>& OracleMemory::contents(uint64_t base) {
  return std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) { return r.base == base; })->bytes;
}

void OracleMemory::begin_block() {
  barrier();
  for (Region& region : regions_)
    if (region.sharing == Sharing::block || region.sharing == Sharing::thread)
      std::fill(region.written.begin(), region.written.end(), region.has_contents);
}

void OracleMemory::barrier() {
  for (Region& region : regions_) {
    if (region.sharing != Sharing::block) continue;
    for (auto* marks : {&region.writer, &region.reader, &region.atomic})
      std::fill(marks->begin(), marks->end(), nobody);
  }
}

void OracleMemory::complain(const std::string& what, uint64_t address, uint32_t thread) {
  if (!problem_.empty()) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s at 0x%llx by thread %u", what.c_str(), static_cast<unsigned long long>(address),
                thread);
  problem_ = text;
}

OracleMemory::Region* OracleMemory::find(uint64_t address, unsigned bytes) {
  for (Region& region : regions_)
    if (address >= region.base && address - region.base < region.size && address - region.base + bytes <= region.size)
      return &region;
  return nullptr;
}

// A race: two threads access a byte without a barrier in between, one of them writes, not both are atomic.
void OracleMemory::touch(Region& region, uint64_t at, unsigned bytes, uint32_t thread, bool writes, bool is_atomic) {
  if (region.writer.empty()) return;
  const uint32_t self = thread + 1;
  const auto other = [self](uint32_t mark) { return mark != nobody && mark != self; };
  const auto mark = [self](uint32_t& by) { by = by == nobody || by == self ? self : several; };
  for (uint64_t byte = at; byte < at + bytes; ++byte) {
    const bool conflicts = other(region.writer[byte]) || (!is_atomic && other(region.atomic[byte])) ||
                           ((writes || is_atomic) && other(region.reader[byte]));
    if (conflicts) complain("data race", region.base + byte, thread);
    mark(is_atomic ? region.atomic[byte] : writes ? region.writer[byte] : region.reader[byte]);
  }
}

uint64_t OracleMemory::load(uint64_t address, unsigned bytes, uint32_t thread, uint32_t local, bool is_atomic) {
  Region* region = find(address, bytes);
  if (region == nullptr || address % bytes != 0) {
    complain(region == nullptr ? "load out of bounds" : "misaligned load", address, thread);
    return 0;
  }
  const uint64_t at = address - region->base;
  touch(*region, at, bytes, thread, false, is_atomic);
  const uint64_t place = at + (region->sharing == Sharing::thread ? local * region->size : 0);
  uint64_t value = 0;
  for (unsigned byte = 0; byte < bytes; ++byte) {
    if (!region->written[place + byte]) complain("load of memory without contents", address, thread);
    value |= uint64_t(region->bytes[place + byte]) << (8 * byte);
  }
  return value;
}

void OracleMemory::store(uint64_t address, unsigned bytes, uint64_t value, uint32_t thread, uint32_t local,
                         bool is_atomic) {
  Region* region = find(address, bytes);
  if (region == nullptr || address % bytes != 0 || region->sharing == Sharing::constant) {
    complain(region == nullptr ? "store out of bounds" : "misaligned or forbidden store", address, thread);
    return;
  }
  const uint64_t at = address - region->base;
  touch(*region, at, bytes, thread, true, is_atomic);
  const uint64_t place = at + (region->sharing == Sharing::thread ? local * region->size : 0);
  for (unsigned byte = 0; byte < bytes; ++byte) {
    region->bytes[place + byte] = static_cast<uint8_t>(value >> (8 * byte));
    region->written[place + byte] = 1;
  }
}

} // namespace ptxrewrite::fuzz
