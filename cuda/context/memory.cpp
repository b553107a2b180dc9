// Device, host and managed memory of the emulated context, and copies between them.
#include "cuda/context/context.h"
#include "cuda/context/log.h"

#include "support/sizes.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::cuda {

Code Context::allocate(uint64_t bytes, uint64_t& address) {
  Result<uint64_t> made = memory_.allocate(bytes, fmt::format("allocation {}", ++allocation_number_));
  if (!made) {
    log(LogLevel::info, "{}", made.error().message);
    return Code::out_of_memory;
  }
  address = *made;
  allocations_[address] = {MemoryKind::device, address, bytes, 0};
  return Code::success;
}

Code Context::allocate_host(uint64_t bytes, MemoryKind kind, unsigned flags, uint64_t& address) {
  Result<uint64_t> made = memory_.allocate_managed(
      bytes,
      fmt::format("{} {}", kind == MemoryKind::managed ? "managed memory" : "host memory", ++allocation_number_));
  if (!made) {
    log(LogLevel::info, "{}", made.error().message);
    return Code::out_of_memory;
  }
  address = *made;
  allocations_[address] = {kind, address, bytes, flags};
  return Code::success;
}

Code Context::release(uint64_t address) {
  auto found = allocations_.find(address);
  if (found == allocations_.end()) return Code::invalid_value;
  const Status status = found->second.kind == MemoryKind::device
                            ? memory_.release(address)
                            : memory_.detach(reinterpret_cast<const std::byte*>(address));
  allocations_.erase(found);
  return status ? Code::success : Code::invalid_value;
}

Code Context::register_host(std::byte* begin, uint64_t bytes, unsigned flags) {
  const auto address = reinterpret_cast<uint64_t>(begin);
  if (bytes == 0 || !begin) return Code::invalid_value;
  if (memory_.is_host_memory(address)) return Code::memory_already_registered;
  if (Status status = memory_.attach({begin, bytes}, fmt::format("registered memory {}", ++allocation_number_));
      !status) {
    log(LogLevel::warn, "{}", status.error().message);
    return Code::memory_already_registered;
  }
  allocations_[address] = {MemoryKind::host, address, bytes, flags};
  return Code::success;
}

Code Context::attach_mapped(std::span<std::byte> bytes) {
  const auto address = reinterpret_cast<uint64_t>(bytes.data());
  if (Status status = memory_.attach(bytes, fmt::format("mapped memory {}", ++allocation_number_)); !status) {
    log(LogLevel::warn, "{}", status.error().message);
    return Code::invalid_value;
  }
  allocations_[address] = {MemoryKind::device, address, bytes.size(), 0};
  return Code::success;
}

Code Context::unregister_host(std::byte* begin) {
  if (!memory_.detach(begin)) return Code::memory_not_registered;
  allocations_.erase(reinterpret_cast<uint64_t>(begin));
  return Code::success;
}

MemoryInfo Context::info_of(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  const MemoryInfo& info = std::prev(after)->second;
  return address - info.begin < std::max<uint64_t>(info.bytes, 1) ? info : MemoryInfo{};
}

uint64_t Context::total_bytes() {
  return memory_.budget().limit();
}

uint64_t Context::free_bytes() {
  return memory_.budget().limit() - std::min(memory_.budget().limit(), memory_.budget().used());
}

std::byte* Context::device_bytes(uint64_t address, uint64_t bytes, bool& is_known) {
  const emulator::MemoryRange range = memory_.find(address);
  is_known = range.host != nullptr;
  if (range.host) return range.contains(address, bytes) ? range.at(address) : nullptr;
  is_known = addresses_are_reserved_ && address >= emulator::shared_window &&
             address < emulator::global_base + memory_.budget().limit();
  auto after = constants_.upper_bound(address);
  if (after == constants_.begin()) return nullptr;
  --after;
  if (!emulator::contains(after->first, after->second.size(), address, bytes)) return nullptr;
  is_known = true;
  return after->second.data() + (address - after->first);
}

void Context::remember_constant(const Symbol& symbol) {
  if (symbol.address >= emulator::constant_window && symbol.address < emulator::constant_window + emulator::window_size)
    constants_[symbol.address] = symbol.bytes;
}

bool Context::may_be_queued(uint64_t address, uint64_t bytes) {
  bool is_known = false;
  return bytes == 0 || device_bytes(address, bytes, is_known);
}

namespace {

uint64_t extent_of(const Rows& rows, uint64_t width, uint64_t height, uint64_t depth) {
  return saturating_add(
      saturating_add(saturating_multiply(depth - 1, rows.plane), saturating_multiply(height - 1, rows.pitch)), width);
}

bool must_be_device(CopyDirection direction, bool is_target) {
  return direction == CopyDirection::device_to_device ||
         direction == (is_target ? CopyDirection::host_to_device : CopyDirection::device_to_host);
}

} // namespace

bool Context::may_be_queued(const Rows& rows, uint64_t width, uint64_t height, uint64_t depth) {
  return width == 0 || height == 0 || depth == 0 || may_be_queued(rows.address, extent_of(rows, width, height, depth));
}

// Returns the bytes of one side of a copy; nullptr if they belong to the device but the copy may not access them.
std::byte* Context::copy_bytes(uint64_t address, uint64_t bytes, CopyDirection direction, bool is_target) {
  bool is_known = false;
  std::byte* found = device_bytes(address, bytes, is_known);
  if (found) return found;
  if (is_known || must_be_device(direction, is_target) || !address) {
    log(LogLevel::warn, "copy of {} bytes {} {:#x}: {}", bytes, is_target ? "to" : "from", address,
        memory_.describe(address));
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(address);
}

Code Context::copy_rows(const Rows& to, const Rows& from, uint64_t width, uint64_t height, uint64_t depth,
                        CopyDirection direction) {
  if (width == 0 || height == 0 || depth == 0) return Code::success;
  if (static_cast<int>(direction) < 0 || direction > CopyDirection::automatic) return Code::invalid_copy_direction;
  std::byte* target = copy_bytes(to.address, extent_of(to, width, height, depth), direction, true);
  const std::byte* source = copy_bytes(from.address, extent_of(from, width, height, depth), direction, false);
  if (!target || !source) return Code::invalid_value;
  for (uint64_t z = 0; z < depth; ++z)
    for (uint64_t y = 0; y < height; ++y)
      std::memmove(target + z * to.plane + y * to.pitch, source + z * from.plane + y * from.pitch, width);
  return Code::success;
}

Code Context::copy(uint64_t to, uint64_t from, uint64_t bytes, CopyDirection direction) {
  return copy_rows({to, bytes, bytes}, {from, bytes, bytes}, bytes, 1, 1, direction);
}

Code Context::fill_rows(const Rows& to, uint32_t value, unsigned element, uint64_t width, uint64_t height,
                        uint64_t depth) {
  if (width == 0 || height == 0 || depth == 0) return Code::success;
  const uint64_t bytes = saturating_multiply(width, element);
  std::byte* target = copy_bytes(to.address, extent_of(to, bytes, height, depth), CopyDirection::host_to_device, true);
  if (!target) return Code::invalid_value;
  for (uint64_t z = 0; z < depth; ++z)
    for (uint64_t y = 0; y < height; ++y) {
      std::byte* row = target + z * to.plane + y * to.pitch;
      if (element == 1)
        std::memset(row, static_cast<int>(value & 0xff), width);
      else
        for (uint64_t x = 0; x < width; ++x)
          std::memcpy(row + x * element, &value, element);
    }
  return Code::success;
}

} // namespace ptxrewrite::cuda
