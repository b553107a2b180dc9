// The oracle's memory: regions with a base address each, and the threads that accessed each byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

// Threads are numbered from 0 over the whole grid.
class OracleMemory {
public:
  enum class Sharing : uint8_t { constant, grid, block, thread };

  // `copies`: 1, or one per thread of the block (Sharing::thread), all at the same address.
  void add_region(uint64_t base, std::vector<uint8_t> contents, Sharing sharing, bool has_contents,
                  uint32_t copies = 1);
  std::vector<uint8_t>& contents(uint64_t base);

  // Block-wide memory is new in each block.
  void begin_block();
  // Bytes accessed before a barrier may be accessed by others after it.
  void barrier();

  // `bytes` up to 8. `thread` is the number in the grid, `local` that in the block.
  uint64_t load(uint64_t address, unsigned bytes, uint32_t thread, uint32_t local, bool is_atomic = false);
  void store(uint64_t address, unsigned bytes, uint64_t value, uint32_t thread, uint32_t local, bool is_atomic = false);

  const std::string& problem() const { return problem_; }

private:
  static constexpr uint32_t nobody = 0, several = ~0u; // else: thread + 1
  struct Region {
    uint64_t base = 0, size = 0;
    Sharing sharing = Sharing::grid;
    bool has_contents = true; // from the start
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> written; // for regions without contents
    std::vector<uint32_t> writer, reader, atomic;
  };
  Region* find(uint64_t address, unsigned bytes);
  void touch(Region& region, uint64_t at, unsigned bytes, uint32_t thread, bool writes, bool is_atomic);
  void complain(const std::string& what, uint64_t address, uint32_t thread);

  std::vector<Region> regions_;
  std::string problem_;
};

} // namespace ptxrewrite::fuzz
