#include "emulator/memory/shadow.h"

#include <algorithm>

namespace ptxrewrite::emulator {

void SharedShadow::clear() {
  std::fill_n(words_.begin(), std::min<uint64_t>((touched_ + 3) / 4, words_.size()), ShadowCell{});
  pieces_.clear();
  readers_.clear();
  free_readers_.clear();
  touched_ = 0;
}

void SharedShadow::split(ShadowCell& word) {
  std::array<ShadowCell, 4> pieces;
  pieces.fill(word);
  if (word.readers)
    for (ShadowCell& piece : pieces) {
      const Readers copy = readers_[word.readers - 1];
      piece.readers = 0;
      readers(piece) = copy;
    }
  pieces_.push_back(pieces);
  word.split = static_cast<uint32_t>(pieces_.size());
}

SharedShadow::Readers& SharedShadow::readers(ShadowCell& cell) {
  if (cell.readers == 0) {
    if (free_readers_.empty()) {
      readers_.emplace_back();
      cell.readers = static_cast<uint32_t>(readers_.size());
    } else {
      cell.readers = free_readers_.back();
      free_readers_.pop_back();
      readers_[cell.readers - 1] = {};
    }
    readers_[cell.readers - 1][cell.read.warp] = cell.read;
  }
  return readers_[cell.readers - 1];
}

void SharedShadow::drop_readers(ShadowCell& cell) {
  if (cell.readers) free_readers_.push_back(cell.readers);
  cell.readers = 0;
  cell.read = {};
}

void LocalShadow::clear() {
  for (std::vector<uint64_t>& bits : written_)
    std::fill(bits.begin(), bits.end(), 0);
}

void LocalShadow::mark(uint32_t thread, uint64_t address, uint64_t bytes, bool written) {
  std::vector<uint64_t>& bits = written_[thread];
  if (bits.size() * 64 < address + bytes) {
    if (!written && bits.size() * 64 <= address) return;
    bits.resize((address + bytes + 63) / 64);
  }
  for (uint64_t byte = address; byte < address + bytes; ++byte) {
    const uint64_t bit = uint64_t(1) << (byte % 64);
    bits[byte / 64] = written ? bits[byte / 64] | bit : bits[byte / 64] & ~bit;
  }
}

unsigned LocalShadow::missing(uint32_t thread, uint64_t address, uint64_t bytes) const {
  const std::vector<uint64_t>& bits = written_[thread];
  unsigned count = 0;
  for (uint64_t byte = address; byte < address + bytes; ++byte)
    count += byte / 64 >= bits.size() || ((bits[byte / 64] >> (byte % 64)) & 1) == 0;
  return count;
}

} // namespace ptxrewrite::emulator
