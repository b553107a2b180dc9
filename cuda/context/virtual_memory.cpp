#include "cuda/context/virtual_memory.h"

#include "support/sizes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace ptxrewrite::cuda {

struct PhysicalMemory {
  int file = -1; // memfd
  uint64_t bytes = 0;
  uint64_t owners = 1; // the handle and its mappings

  ~PhysicalMemory() { close(file); }
};

namespace {

struct Mapping {
  uint64_t bytes = 0;
  PhysicalMemory* memory = nullptr;
  int access = 0;
};

struct Tables {
  std::map<uint64_t, uint64_t> reserved; // address -> bytes
  std::map<uint64_t, Mapping> mapped;    // by address
  std::map<uint64_t, uint64_t> attached; // contiguous accessible mappings, as attached to the device
  std::set<PhysicalMemory*> memory;
};

Tables& tables() {
  static auto* made = new Tables;
  return *made;
}

std::byte* pointer(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

bool is_granular(uint64_t a, uint64_t b) {
  return (a | b) % mapping_granularity == 0 && b != 0;
}

bool is_reserved(uint64_t address, uint64_t bytes) {
  auto after = tables().reserved.upper_bound(address);
  if (after == tables().reserved.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return emulator::contains(begin, size, address, bytes);
}

void give_up(PhysicalMemory* memory) {
  if (--memory->owners) return;
  tables().memory.erase(memory);
  delete memory;
}

// Returns the mappings that cover exactly this range; empty if they do not.
std::vector<uint64_t> mappings_in(uint64_t address, uint64_t bytes) {
  std::vector<uint64_t> found;
  uint64_t at = address;
  for (auto next = tables().mapped.find(address); next != tables().mapped.end() && next->first == at; ++next) {
    found.push_back(at);
    at += next->second.bytes;
    if (at - address >= bytes) break;
  }
  if (at - address != bytes) found.clear();
  return found;
}

// Attaches adjacent mappings to the device as one range, because a copy may cross their boundary.
Code attach_runs(Context& context) {
  for (const auto& [address, bytes] : std::exchange(tables().attached, {}))
    (void)context.unregister_host(pointer(address));
  std::map<uint64_t, uint64_t> runs;
  for (const auto& [address, mapping] : tables().mapped) {
    if (!mapping.access) continue;
    if (!runs.empty() && runs.rbegin()->first + runs.rbegin()->second == address)
      runs.rbegin()->second += mapping.bytes;
    else
      runs[address] = mapping.bytes;
  }
  for (const auto& [address, bytes] : runs) {
    if (const Code code = context.attach_mapped({pointer(address), bytes}); code != Code::success) return code;
    tables().attached[address] = bytes;
  }
  return Code::success;
}

// The mapping that contains `address`.
Mapping* mapping_at(uint64_t address) {
  auto after = tables().mapped.upper_bound(address);
  if (after == tables().mapped.begin()) return nullptr;
  auto& [begin, mapping] = *std::prev(after);
  return address - begin < mapping.bytes ? &mapping : nullptr;
}

void* map_nothing(uint64_t wanted, uint64_t bytes, int flags) {
  return mmap(pointer(wanted), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

} // namespace

Code reserve_range(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t& address) {
  alignment = std::max(alignment, mapping_granularity);
  if (!is_granular(wanted, bytes) || (alignment & (alignment - 1))) return Code::invalid_value;
  const uint64_t with_room = saturating_add(bytes, alignment);
  void* got = map_nothing(wanted, with_room, 0); // `wanted` is only a hint
  if (got == MAP_FAILED) return Code::out_of_memory;
  const auto begin = reinterpret_cast<uint64_t>(got);
  address = align_up(begin, alignment);
  if (address != begin) munmap(got, address - begin);
  if (const uint64_t rest = begin + with_room - (address + bytes)) munmap(pointer(address + bytes), rest);
  tables().reserved[address] = bytes;
  return Code::success;
}

Code free_range(uint64_t address, uint64_t bytes) {
  auto found = tables().reserved.find(address);
  if (found == tables().reserved.end() || found->second != bytes) return Code::invalid_value;
  const auto inside = tables().mapped.lower_bound(address);
  if (inside != tables().mapped.end() && inside->first - address < bytes) return Code::invalid_value;
  munmap(pointer(address), bytes);
  tables().reserved.erase(found);
  return Code::success;
}

Code create_physical(Context& context, uint64_t bytes, PhysicalMemory*& made) {
  if (!is_granular(0, bytes)) return Code::invalid_value;
  uint64_t taken = 0;
  for (const PhysicalMemory* memory : tables().memory)
    taken += memory->bytes;
  if (bytes > context.free_bytes() || taken > context.free_bytes() - bytes) return Code::out_of_memory;
  const int file = memfd_create("CUDA device memory", MFD_CLOEXEC);
  if (file < 0) return Code::out_of_memory;
  made = new PhysicalMemory{file, bytes};
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    delete made;
    return Code::out_of_memory;
  }
  tables().memory.insert(made);
  return Code::success;
}

Code release_physical(PhysicalMemory* memory) {
  if (!is_physical(memory)) return Code::invalid_value;
  give_up(memory);
  return Code::success;
}

bool is_physical(const PhysicalMemory* memory) {
  return tables().memory.contains(const_cast<PhysicalMemory*>(memory));
}

Code map_physical(uint64_t address, uint64_t bytes, uint64_t offset, PhysicalMemory* memory) {
  if (!is_physical(memory) || !is_granular(address | offset, bytes) || !is_reserved(address, bytes) ||
      !emulator::contains(0, memory->bytes, offset, bytes))
    return Code::invalid_value;
  const auto next = tables().mapped.lower_bound(address);
  if (mapping_at(address) || (next != tables().mapped.end() && next->first - address < bytes))
    return Code::invalid_value;
  if (mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file,
           static_cast<off_t>(offset)) == MAP_FAILED)
    return Code::out_of_memory;
  ++memory->owners;
  tables().mapped[address] = {bytes, memory, 0};
  return Code::success;
}

Code unmap_range(Context& context, uint64_t address, uint64_t bytes) {
  const std::vector<uint64_t> mappings = mappings_in(address, bytes);
  if (mappings.empty()) return Code::invalid_value;
  std::vector<PhysicalMemory*> given_up;
  for (uint64_t begin : mappings) {
    given_up.push_back(tables().mapped[begin].memory);
    tables().mapped.erase(begin);
  }
  const Code code = attach_runs(context);
  (void)map_nothing(address, bytes, MAP_FIXED); // the addresses stay reserved
  for (PhysicalMemory* memory : given_up)
    give_up(memory);
  return code;
}

Code set_access(Context& context, uint64_t address, uint64_t bytes, int access) {
  const std::vector<uint64_t> mappings = mappings_in(address, bytes);
  if (mappings.empty()) return Code::invalid_value;
  for (uint64_t begin : mappings)
    tables().mapped[begin].access = access;
  return attach_runs(context);
}

bool is_memory_shared() {
  std::set<const PhysicalMemory*> seen;
  return std::ranges::any_of(tables().mapped, [&](const auto& entry) {
    return entry.second.access && !seen.insert(entry.second.memory).second;
  });
}

Code access_of(uint64_t address, int& access) {
  const Mapping* mapping = mapping_at(address);
  if (!mapping) return Code::invalid_value;
  access = mapping->access;
  return Code::success;
}

Code retain_physical(uint64_t address, PhysicalMemory*& memory) {
  const Mapping* mapping = mapping_at(address);
  if (!mapping) return Code::invalid_value;
  memory = mapping->memory;
  ++memory->owners;
  return Code::success;
}

} // namespace ptxrewrite::cuda
