#include "emulator/generated/x86/code_memory.h"

#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace ptxrewrite::emulator::generated {

CodeMemory::CodeMemory(std::span<const uint8_t> code) {
  void* place = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return;
  std::memcpy(place, code.data(), code.size());
  if (mprotect(place, code.size(), PROT_READ | PROT_EXEC) != 0) {
    munmap(place, code.size());
    return;
  }
  start_ = place;
  bytes_ = code.size();
}

CodeMemory::CodeMemory(CodeMemory&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

CodeMemory& CodeMemory::operator=(CodeMemory&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CodeMemory::~CodeMemory() {
  if (start_) munmap(start_, bytes_);
}

} // namespace ptxrewrite::emulator::generated
