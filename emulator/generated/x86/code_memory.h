// Pages of executable code. They are written before they become executable, and never after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ptxrewrite::emulator::generated {

class CodeMemory {
public:
  CodeMemory() = default;
  // Copies the code. start() is null if the system allows no executable memory.
  explicit CodeMemory(std::span<const uint8_t> code);
  CodeMemory(CodeMemory&& other) noexcept;
  CodeMemory& operator=(CodeMemory&& other) noexcept;
  ~CodeMemory();
  const void* start() const { return start_; }

private:
  void* pages_ = nullptr;
  const void* start_ = nullptr;
  size_t bytes_ = 0; // of the pages, from their beginning to the end of the code
};

} // namespace ptxrewrite::emulator::generated
