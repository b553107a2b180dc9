// Check mode's record of global memory, byte by byte, during one launch.
//
// Order between blocks is a single counter, the moment: the number of fences that the launch has executed. A strong
// write after a fence carries the fence's moment. A warp that reads that value with a strong read is ordered after all
// accesses up to that moment, of every block. This orders more than PTX does, so that no handshake is reported as a
// race.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

// One access to a byte or word of global memory. clock 0: no access recorded.
struct GlobalAccess {
  uint32_t clock = 0; // of the warp, at the access
  uint32_t instruction = 0;
  uint32_t block = 0;  // number in the grid
  uint32_t moment = 0; // of the launch, at the access
  uint8_t warp = 0;
  uint8_t lane = 0;
  bool strong = false;
};

struct GlobalCell {
  GlobalAccess write; // the last one that changed the bytes
  // Reads since the write: the last one, and one that is unordered with it, by another block if there is one. A write
  // that races with any read of another block races with one of the two.
  GlobalAccess read, other_read;
  uint32_t split = 0; // the word's bytes differ: index + 1 of their cells; else 0
};

class GlobalShadow {
public:
  // Cells take at most this many bytes, and at most a 16th of the launch's memory: the first ones touched. Accesses to
  // other memory are not checked.
  static constexpr uint64_t default_limit = uint64_t(2) << 30;

  explicit GlobalShadow(uint64_t limit = default_limit) : limit_(limit) {}

  // Calls visit(cell, first byte, bytes) for the cells of [address, address + bytes), as far as they are stored.
  template <class Visit> void for_each(uint64_t address, uint64_t bytes, Visit&& visit) {
    const uint64_t past = address + bytes;
    while (address < past) {
      const uint64_t stop = std::min(past, address / 4 * 4 + 4);
      GlobalCell* word = word_at(address);
      if (word && word->split == 0 && stop - address == 4) {
        visit(*word, address, 4u);
        address = stop;
      } else if (!word || (word->split == 0 && !split(*word))) {
        address = stop;
      } else {
        for (const uint32_t pieces = word->split - 1; address < stop; ++address)
          visit(pieces_[pieces][address % 4], address, 1u);
      }
    }
  }
  // Forgets the accesses to bytes that have a new owner: a kernel's malloc.
  void forget(uint64_t address, uint64_t bytes);

  uint32_t moment() const { return moment_; }
  // A fence: accesses so far belong to the returned moment, accesses from now on to the next one.
  uint32_t pass_moment() { return moment_ == UINT32_MAX ? moment_ : moment_++; }
  // A strong write publishes the moment at the address: strong reads of the address find it, without a time limit.
  void give(uint64_t address, uint32_t moment);
  uint32_t given(uint64_t address) const;

private:
  static constexpr uint64_t words_of_page = 256;
  using Page = std::array<GlobalCell, words_of_page>;

  GlobalCell* word_at(uint64_t address) {
    const uint64_t page = address / 4 / words_of_page;
    if (page != last_page_) find_page(page);
    return last_ ? &(*last_)[address / 4 % words_of_page] : nullptr;
  }
  void find_page(uint64_t page);
  bool split(GlobalCell& word);

  uint64_t limit_;
  uint64_t used_ = 0;
  uint32_t moment_ = 1;
  uint64_t last_page_ = UINT64_MAX;
  Page* last_ = nullptr; // nullptr: the limit was reached
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<std::array<GlobalCell, 4>> pieces_;
  std::unordered_map<uint64_t, uint32_t> given_;
  uint32_t given_anywhere_ = 0; // the latest moment at addresses without an entry
};

} // namespace ptxrewrite::emulator
