#include "emulator/memory/memory.h"

#include "support/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace ptxrewrite::emulator {
namespace {
constexpr uint64_t granularity = 256;
constexpr uint64_t page_bytes = 4096;
// The preferred host address of managed memory: far from the host's own mappings and from device addresses.
std::atomic<uint64_t> next_managed{0x2000'0000'0000};
// A gap between allocations, so that an access past the end never hits the next one.
constexpr uint64_t gap = 256;
constexpr uint64_t smallest_reservation = uint64_t(64) << 20;
constexpr uint64_t most_addresses = uint64_t(1) << 44;
} // namespace

DeviceMemory::DeviceMemory(uint64_t limit) : budget_(limit) {
  // Released ranges are reused, but not every request fits into one: there are more addresses than bytes. A limited
  // address space must leave room for the rest of the process.
  uint64_t wanted = std::min(saturating_add(saturating_multiply(limit, 2), smallest_reservation), most_addresses);
  if (const uint64_t free = free_address_space(); free != UINT64_MAX) wanted = std::min(wanted, free / 2);
  for (wanted = wanted / granularity * granularity; wanted >= granularity;
       wanted = wanted / 2 / granularity * granularity) {
    void* memory = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    host_ = static_cast<std::byte*>(memory);
    // Pages are allocated at the first write, often by a kernel: huge pages make that rare. A hint only: it may fail.
    (void)madvise(memory, wanted, MADV_HUGEPAGE);
    capacity_ = wanted;
    return;
  }
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [address, allocation] : allocations_)
    if (allocation.owned) unmap(address, allocation);
  if (host_) munmap(host_, capacity_);
}

// Placed memory has the same offset in its first page as its address.
void DeviceMemory::unmap(uint64_t address, const Allocation& allocation) const {
  const uint64_t before = address % page_bytes;
  munmap(allocation.attached - before, align_up(allocation.size + before, page_bytes));
}

Result<uint64_t> DeviceMemory::take_addresses(uint64_t bytes, std::string_view name) {
  const uint64_t rounded = saturating_add(align_up(bytes, granularity), gap);
  if (auto found = free_.lower_bound(rounded); found != free_.end()) {
    const uint64_t address = found->second;
    if (found->first > rounded) free_.emplace(found->first - rounded, address + rounded);
    free_.erase(found);
    std::memset(host_ + (address - global_base), 0, bytes);
    return address;
  }
  if (!contains(0, capacity_, next_ - global_base, rounded))
    return Error{fmt::format("no room for '{}' ({} bytes): {} bytes of addresses could be reserved for the emulated "
                             "device (ulimit -v), of which {} are in use",
                             name, bytes, capacity_, next_ - global_base),
                 {}};
  const uint64_t address = next_;
  next_ += rounded;
  return address;
}

Result<uint64_t> DeviceMemory::take(uint64_t bytes, std::string_view name) {
  if (Status status = budget_.take(bytes, fmt::format("'{}'", name)); !status) return status.error();
  Result<uint64_t> address = take_addresses(bytes, name);
  if (!address) {
    budget_.give_back(bytes);
    return address;
  }
  allocations_[*address] = {bytes, std::string(name), false};
  allocated_ += bytes;
  return address;
}

// Placed memory has a mapping of its own, at any address.
Result<uint64_t> DeviceMemory::take_at(uint64_t address, uint64_t bytes, std::string_view name) {
  const auto overlaps = [&](uint64_t other, uint64_t other_size) {
    return address < saturating_add(other, other_size) && other < saturating_add(address, bytes);
  };
  const auto after = allocations_.lower_bound(address);
  const bool in_arena = overlaps(global_base, capacity_);
  const bool is_released =
      std::ranges::any_of(free_, [&](const auto& range) { return overlaps(range.second, range.first); });
  if (bytes == 0 || address == 0 || saturating_add(address, bytes) == UINT64_MAX ||
      overlaps(shared_window, global_base - shared_window) || is_released || (in_arena && has_heap_) ||
      (after != allocations_.end() && overlaps(after->first, after->second.size)) ||
      (after != allocations_.begin() && overlaps(std::prev(after)->first, std::prev(after)->second.size)))
    return Error{
        fmt::format("'{}': {} bytes at {:#x} overlap what the emulated device has there", name, bytes, address), {}};
  if (Status status = budget_.take(bytes, fmt::format("'{}'", name)); !status) return status.error();
  const uint64_t before = address % page_bytes;
  void* memory = mmap(nullptr, align_up(bytes + before, page_bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    budget_.give_back(bytes);
    return Error{fmt::format("no room for '{}' ({} bytes)", name, bytes), {}};
  }
  if (in_arena) next_ = std::max(next_, align_up(address + bytes, granularity) + gap);
  allocations_[address] = {.size = bytes,
                           .name = std::string(name),
                           .attached = static_cast<std::byte*>(memory) + before,
                           .owned = true,
                           .placed = true};
  return address;
}

uint64_t DeviceMemory::take_place(std::string_view name) {
  const auto found = places_.find(name);
  if (found == places_.end()) return 0;
  const uint64_t address = found->second;
  places_.erase(found);
  return address;
}

Result<uint64_t> DeviceMemory::allocate(uint64_t bytes, std::string_view name) {
  std::lock_guard lock(mutex_);
  return take(bytes, name);
}

Result<uint64_t> DeviceMemory::allocate_variable(uint64_t bytes, std::string_view name, bool managed) {
  std::lock_guard lock(mutex_);
  if (const uint64_t place = take_place(name)) return take_at(place, bytes, name);
  return managed ? take_managed(bytes, name) : take(bytes, name);
}

Status DeviceMemory::allocate_at(uint64_t address, uint64_t bytes, std::string_view name) {
  std::lock_guard lock(mutex_);
  Result<uint64_t> made = take_at(address, bytes, name);
  return made ? Status() : Status(made.error());
}

void DeviceMemory::place(std::string_view name, uint64_t address) {
  std::lock_guard lock(mutex_);
  places_[std::string(name)] = address;
}

std::vector<DeviceMemory::Extent> DeviceMemory::extents() const {
  std::lock_guard lock(mutex_);
  std::vector<Extent> all;
  for (const auto& [address, allocation] : allocations_)
    all.push_back({address, {bytes_of(address, allocation), allocation.size}, allocation.name, allocation.from_device});
  return all;
}

Status DeviceMemory::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.from_device || (found->second.attached && !found->second.placed))
    return Error{fmt::format("nothing was allocated at {:#x}", address), {}};
  if (found->second.placed) {
    budget_.give_back(found->second.size);
    unmap(address, found->second);
    allocations_.erase(found);
    return {};
  }
  allocated_ -= found->second.size;
  budget_.give_back(found->second.size);
  free_.emplace(align_up(found->second.size, granularity) + gap, address);
  allocations_.erase(found);
  return {};
}

Status DeviceMemory::attach_locked(std::span<std::byte> bytes, std::string_view name, bool owned) {
  const auto begin = reinterpret_cast<uint64_t>(bytes.data());
  const uint64_t size = bytes.size();
  const auto overlaps = [&](uint64_t other, uint64_t other_size) {
    return begin < saturating_add(other, other_size) && other < saturating_add(begin, size);
  };
  if (size == 0) return Error{fmt::format("no bytes for '{}'", name), {}};
  // The windows of generic addressing are below the device's own addresses.
  if (overlaps(shared_window, global_base - shared_window) || overlaps(global_base, capacity_))
    return Error{fmt::format("'{}': the emulated device uses the addresses {:#x} for something else", name, begin), {}};
  auto after = allocations_.lower_bound(begin);
  if ((after != allocations_.end() && overlaps(after->first, after->second.size)) ||
      (after != allocations_.begin() && overlaps(std::prev(after)->first, std::prev(after)->second.size)))
    return Error{fmt::format("'{}': the memory at {:#x} is known to the device already", name, begin), {}};
  allocations_[begin] = {.size = size, .name = std::string(name), .attached = bytes.data(), .owned = owned};
  return {};
}

Status DeviceMemory::attach(std::span<std::byte> bytes, std::string_view name) {
  std::lock_guard lock(mutex_);
  return attach_locked(bytes, name, false);
}

Status DeviceMemory::detach(const std::byte* begin) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(reinterpret_cast<uint64_t>(begin));
  if (found == allocations_.end() || !found->second.attached)
    return Error{fmt::format("no memory of the host at {} is known to the device", fmt::ptr(begin)), {}};
  if (found->second.owned) {
    budget_.give_back(found->second.size);
    unmap(found->first, found->second);
  }
  allocations_.erase(found);
  return {};
}

Result<uint64_t> DeviceMemory::allocate_managed(uint64_t bytes, std::string_view name) {
  std::lock_guard lock(mutex_);
  return take_managed(bytes, name);
}

Result<uint64_t> DeviceMemory::take_managed(uint64_t bytes, std::string_view name) {
  if (Status status = budget_.take(bytes, fmt::format("'{}'", name)); !status) return status.error();
  const uint64_t mapped = align_up(bytes, page_bytes);
  void* wish = reinterpret_cast<void*>(next_managed.fetch_add(saturating_add(mapped, page_bytes)));
  void* memory = mmap(wish, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    budget_.give_back(bytes);
    return Error{fmt::format("no room for '{}' ({} bytes)", name, bytes), {}};
  }
  Status status = attach_locked({static_cast<std::byte*>(memory), bytes}, name, true);
  if (!status) {
    budget_.give_back(bytes);
    munmap(memory, mapped);
    return status.error();
  }
  return reinterpret_cast<uint64_t>(memory);
}

bool DeviceMemory::is_host_memory(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  --after;
  return address - after->first < after->second.size && after->second.attached;
}

Status DeviceMemory::prepare_heap() {
  std::lock_guard lock(mutex_);
  if (has_heap_) return {};
  if (Status status = budget_.take(heap_bytes_, "the kernels' heap"); !status) return status;
  Result<uint64_t> address = take_addresses(heap_bytes_, "the kernels' heap");
  if (!address) {
    budget_.give_back(heap_bytes_);
    return address.error();
  }
  heap_ = KernelHeap(*address, heap_bytes_);
  has_heap_ = true;
  return {};
}

uint64_t DeviceMemory::allocate_on_device(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t address = heap_.take(bytes);
  if (!address) return 0;
  std::memset(host_ + (address - global_base), 0, bytes);
  allocations_[address] = {bytes, "malloc", true};
  return address;
}

bool DeviceMemory::release_on_device(uint64_t address) {
  if (address == 0) return true;
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end() || !found->second.from_device) return false;
  heap_.give_back(address, found->second.size);
  allocations_.erase(found);
  return true;
}

struct DeviceMemory::Snapshot {
  explicit Snapshot(MemoryBudget& budget) : share(budget) {}

  MemoryShare share; // of bytes
  std::map<uint64_t, Allocation> allocations;
  std::multimap<uint64_t, uint64_t> free;
  uint64_t allocated = 0;
  uint64_t next = 0;
  bool has_heap = false;
  KernelHeap heap;
  std::vector<std::byte> bytes; // of all allocations, in sequence
};

Result<std::shared_ptr<const DeviceMemory::Snapshot>> DeviceMemory::snapshot() {
  std::lock_guard lock(mutex_);
  auto snapshot = std::make_shared<Snapshot>(budget_);
  uint64_t bytes = 0;
  for (const auto& [address, allocation] : allocations_)
    bytes += allocation.size;
  if (!snapshot->share.try_grow(bytes)) return budget_.refusal(bytes, "a copy of all buffers");
  snapshot->bytes.reserve(bytes);
  snapshot->allocations = allocations_;
  snapshot->free = free_;
  snapshot->allocated = allocated_;
  snapshot->next = next_;
  snapshot->has_heap = has_heap_;
  snapshot->heap = heap_;
  for (const auto& [address, allocation] : allocations_) {
    const std::byte* host = bytes_of(address, allocation);
    snapshot->bytes.insert(snapshot->bytes.end(), host, host + allocation.size);
  }
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

void DeviceMemory::restore(const Snapshot& snapshot) {
  std::lock_guard lock(mutex_);
  // Memory allocated since the snapshot is cleared for its next owner.
  if (next_ > snapshot.next) std::memset(host_ + (snapshot.next - global_base), 0, next_ - snapshot.next);
  for (const auto& [address, allocation] : allocations_)
    if (allocation.from_device) std::memset(host_ + (address - global_base), 0, allocation.size);
  if (has_heap_ && !snapshot.has_heap) budget_.give_back(heap_bytes_);
  has_heap_ = snapshot.has_heap;
  heap_ = snapshot.heap;
  allocations_ = snapshot.allocations;
  free_ = snapshot.free;
  allocated_ = snapshot.allocated;
  next_ = snapshot.next;
  const std::byte* bytes = snapshot.bytes.data();
  for (const auto& [address, allocation] : allocations_) {
    std::memcpy(bytes_of(address, allocation), bytes, allocation.size);
    bytes += allocation.size;
  }
}

MemoryRange DeviceMemory::find(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  --after;
  if (address - after->first >= after->second.size) return {};
  return {after->first, after->second.size, bytes_of(after->first, after->second)};
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
