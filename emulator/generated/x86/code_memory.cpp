#include "emulator/generated/x86/code_memory.h"

#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace ptxrewrite::emulator::generated {

namespace {
constexpr size_t page = 4096, line = 64;

// Where in its first page code of this size begins: where the code made before ended in its last page. Kernels with
// barriers go from one short code to the next; if all began with a page, all would be in the same few sets of the
// host's instruction cache, and there were more of them than it has ways.
size_t next_offset(size_t bytes) {
  static std::atomic<size_t> end{0};
  return end.fetch_add((bytes + line - 1) / line * line, std::memory_order_relaxed) % page;
}
} // namespace

CodeMemory::CodeMemory(std::span<const uint8_t> code) {
  const size_t offset = next_offset(code.size()), bytes = offset + code.size();
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return;
  std::memcpy(static_cast<uint8_t*>(pages) + offset, code.data(), code.size());
  if (mprotect(pages, bytes, PROT_READ | PROT_EXEC) != 0) {
    munmap(pages, bytes);
    return;
  }
  pages_ = pages;
  start_ = static_cast<uint8_t*>(pages) + offset;
  bytes_ = bytes;
}

CodeMemory::CodeMemory(CodeMemory&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), start_(std::exchange(other.start_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

CodeMemory& CodeMemory::operator=(CodeMemory&& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CodeMemory::~CodeMemory() {
  if (pages_) munmap(pages_, bytes_);
}

} // namespace ptxrewrite::emulator::generated
