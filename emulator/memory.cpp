#include "emulator/memory.h"

#include <fmt/format.h>

#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace ptxrewrite::emulator {
namespace {
constexpr uint64_t granularity = 256;
// Between allocations, so that a step over an end never lands in the neighbour.
constexpr uint64_t gap = 256;
} // namespace

DeviceMemory::DeviceMemory(uint64_t capacity) {
  void* memory = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return; // capacity stays 0: every allocation fails
  host_ = static_cast<std::byte*>(memory);
  // A page is made when it is first written, often by a kernel: big ones make that rare. Only advice: it may fail.
  (void)madvise(memory, capacity, MADV_HUGEPAGE);
  capacity_ = capacity;
}

DeviceMemory::~DeviceMemory() {
  if (host_) munmap(host_, capacity_);
}

Result<uint64_t> DeviceMemory::take(uint64_t bytes, std::string_view name, bool from_device) {
  if (bytes > capacity_)
    return Error{fmt::format("'{}' asks for {} bytes; the emulated device has {}", name, bytes, capacity_), {}};
  const uint64_t rounded = (bytes + granularity - 1) / granularity * granularity + gap;
  uint64_t address = 0;
  if (auto found = free_.lower_bound(rounded); found != free_.end()) {
    address = found->second;
    if (found->first > rounded) free_.emplace(found->first - rounded, address + rounded);
    free_.erase(found);
    std::memset(host_ + (address - global_base), 0, bytes);
  } else {
    if (next_ - global_base + rounded > capacity_)
      return Error{fmt::format("no room for '{}' ({} bytes): {} of {} bytes of the emulated device are in use", name,
                               bytes, allocated_, capacity_),
                   {}};
    address = next_;
    next_ += rounded;
  }
  allocations_[address] = {bytes, std::string(name), from_device};
  allocated_ += bytes;
  return address;
}

Result<uint64_t> DeviceMemory::allocate(uint64_t bytes, std::string_view name) {
  std::lock_guard lock(mutex_);
  return take(bytes, name, false);
}

Status DeviceMemory::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end()) return Error{fmt::format("nothing was allocated at {:#x}", address), {}};
  const uint64_t rounded = (found->second.size + granularity - 1) / granularity * granularity + gap;
  allocated_ -= found->second.size;
  free_.emplace(rounded, address);
  allocations_.erase(found);
  return {};
}

uint64_t DeviceMemory::allocate_on_device(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  Result<uint64_t> address = take(bytes, "malloc", true);
  return address ? *address : 0;
}

bool DeviceMemory::release_on_device(uint64_t address) {
  if (address == 0) return true;
  {
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address);
    if (found == allocations_.end() || !found->second.from_device) return false;
  }
  return release(address).ok();
}

struct DeviceMemory::Snapshot {
  std::map<uint64_t, Allocation> allocations;
  std::multimap<uint64_t, uint64_t> free;
  uint64_t allocated = 0;
  uint64_t next = 0;
  std::vector<std::byte> bytes; // of all allocations, one behind the other
};

std::shared_ptr<const DeviceMemory::Snapshot> DeviceMemory::snapshot() const {
  std::lock_guard lock(mutex_);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->allocations = allocations_;
  snapshot->free = free_;
  snapshot->allocated = allocated_;
  snapshot->next = next_;
  for (const auto& [address, allocation] : allocations_) {
    const std::byte* host = host_ + (address - global_base);
    snapshot->bytes.insert(snapshot->bytes.end(), host, host + allocation.size);
  }
  return snapshot;
}

void DeviceMemory::restore(const Snapshot& snapshot) {
  std::lock_guard lock(mutex_);
  // What was allocated since is zero again for whoever gets it next.
  if (next_ > snapshot.next) std::memset(host_ + (snapshot.next - global_base), 0, next_ - snapshot.next);
  allocations_ = snapshot.allocations;
  free_ = snapshot.free;
  allocated_ = snapshot.allocated;
  next_ = snapshot.next;
  const std::byte* bytes = snapshot.bytes.data();
  for (const auto& [address, allocation] : allocations_) {
    std::memcpy(host_ + (address - global_base), bytes, allocation.size);
    bytes += allocation.size;
  }
}

MemoryRange DeviceMemory::find(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  --after;
  if (address - after->first >= after->second.size) return {};
  return {after->first, after->second.size, host_ + (after->first - global_base)};
}

Status DeviceMemory::write(uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  MemoryRange range = find(address);
  if (!range.contains(address, bytes.size()))
    return Error{fmt::format("copy of {} bytes to {:#x}: {}", bytes.size(), address, describe(address)), {}};
  std::memcpy(range.at(address), bytes.data(), bytes.size());
  return {};
}

Status DeviceMemory::read(uint64_t address, std::span<std::byte> bytes) const {
  if (bytes.empty()) return {};
  MemoryRange range = find(address);
  if (!range.contains(address, bytes.size()))
    return Error{fmt::format("copy of {} bytes from {:#x}: {}", bytes.size(), address, describe(address)), {}};
  std::memcpy(bytes.data(), range.at(address), bytes.size());
  return {};
}

std::string DeviceMemory::describe(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  std::string text;
  if (after != allocations_.begin()) {
    const auto& [begin, allocation] = *std::prev(after);
    const uint64_t end = begin + allocation.size;
    if (address < end)
      return fmt::format("byte {} of '{}' ({} bytes)", address - begin, allocation.name, allocation.size);
    text = fmt::format("{} bytes behind the end of '{}' ({} bytes)", address - end, allocation.name, allocation.size);
    if (after == allocations_.end() || address - end <= after->first - address) return text;
  }
  if (after == allocations_.end()) return "nothing is allocated";
  return fmt::format("{} bytes in front of '{}' ({} bytes)", after->first - address, after->second.name,
                     after->second.size);
}

} // namespace ptxrewrite::emulator
