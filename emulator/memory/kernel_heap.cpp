#include "emulator/memory/kernel_heap.h"

#include "support/sizes.h"

#include <iterator>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t heap_granularity = 16;
// A gap between allocations, so that an access past the end does not hit the next one.
constexpr uint64_t heap_gap = 16;

uint64_t taken_bytes(uint64_t bytes) {
  return saturating_add(align_up(bytes, heap_granularity), heap_gap);
}

} // namespace

uint64_t KernelHeap::take(uint64_t bytes) {
  const uint64_t wanted = taken_bytes(bytes);
  const auto found = by_bytes_.lower_bound({wanted, 0});
  if (found == by_bytes_.end()) return 0;
  const auto [size, address] = *found;
  remove(parts_.find(address));
  if (size > wanted) put(address + wanted, size - wanted);
  return address;
}

void KernelHeap::give_back(uint64_t address, uint64_t bytes) {
  uint64_t begin = address, size = taken_bytes(bytes);
  auto after = parts_.lower_bound(address);
  if (after != parts_.begin())
    if (const auto before = std::prev(after); before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      remove(before);
    }
  if (after != parts_.end() && after->first == begin + size) {
    size += after->second;
    remove(after);
  }
  put(begin, size);
}

void KernelHeap::put(uint64_t address, uint64_t bytes) {
  parts_.emplace(address, bytes);
  by_bytes_.emplace(bytes, address);
}

void KernelHeap::remove(std::map<uint64_t, uint64_t>::iterator part) {
  by_bytes_.erase({part->second, part->first});
  parts_.erase(part);
}

} // namespace ptxrewrite::emulator
