// Check mode's record of memory, byte by byte.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

// One access to a byte or word of shared memory. clock 0: no access recorded.
struct ShadowAccess {
  uint32_t clock = 0; // of the warp, at the access
  uint32_t instruction = 0;
  uint8_t warp = 0;
  uint8_t lane = 0;
  bool strong = false;
  bool by_async_proxy = false; // a bulk copy
  uint8_t rank = 0;            // of the warp's block in its cluster
};

// Readers of a byte that are tracked separately: 32 warps of a block, then matrix products (wgmma) of 8 warp groups.
inline constexpr unsigned shadow_readers = 32 + 8;

struct ShadowCell {
  ShadowAccess write;        // the last one
  ShadowAccess read;         // the last one since the write, if one suffices
  uint32_t write_serial = 0; // number of the access of the block that was `write`
  uint32_t readers = 0;      // unordered reads of several warps: index + 1 of their set
  uint32_t split = 0;        // the word's bytes differ: index + 1 of their cells; else 0
  bool initialised = false;
};

// Shared memory of a block. Bytes of a word that are always accessed together share one cell.
class SharedShadow {
public:
  using Readers = std::array<ShadowAccess, shadow_readers>; // by warp

  explicit SharedShadow(uint64_t bytes) : words_((bytes + 3) / 4), bytes_(bytes) {}
  void clear();
  uint64_t bytes() const { return bytes_; }

  // Calls visit(cell, first byte, bytes) for the cells of [address, address + bytes), which must be in bounds.
  template <class Visit> void for_each(uint64_t address, uint64_t bytes, Visit&& visit) {
    const uint64_t past = address + bytes;
    touched_ = std::max(touched_, past);
    while (address < past) {
      ShadowCell& word = words_[address / 4];
      if (word.split == 0 && address % 4 == 0 && past - address >= 4) {
        visit(word, address, 4u);
        address += 4;
        continue;
      }
      if (word.split == 0) split(word);
      const uint64_t stop = std::min(past, address / 4 * 4 + 4);
      for (const uint32_t pieces = word.split - 1; address < stop; ++address)
        visit(pieces_[pieces][address % 4], address, 1u);
    }
  }
  Readers& readers(ShadowCell& cell);
  void drop_readers(ShadowCell& cell);

private:
  void split(ShadowCell& word);

  std::vector<ShadowCell> words_;
  std::vector<std::array<ShadowCell, 4>> pieces_;
  std::vector<Readers> readers_;
  std::vector<uint32_t> free_readers_;
  uint64_t bytes_ = 0;
  uint64_t touched_ = 0;
};

// The written bytes of each thread's local memory.
class LocalShadow {
public:
  explicit LocalShadow(uint32_t threads) : written_(threads) {}
  void clear();
  void mark(uint32_t thread, uint64_t address, uint64_t bytes, bool written);
  // The number of bytes of [address, address + bytes) that have not been written.
  unsigned missing(uint32_t thread, uint64_t address, uint64_t bytes) const;

private:
  std::vector<std::vector<uint64_t>> written_; // by thread; one bit per byte
};

} // namespace ptxrewrite::emulator
