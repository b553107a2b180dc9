#include "emulator/memory/global_shadow.h"

namespace ptxrewrite::emulator {

void GlobalShadow::find_page(uint64_t page) {
  last_page_ = page;
  if (auto known = pages_.find(page); known != pages_.end()) {
    last_ = known->second.get();
    return;
  }
  last_ = nullptr;
  if (used_ + sizeof(Page) > limit_) return;
  used_ += sizeof(Page);
  last_ = pages_.emplace(page, std::make_unique<Page>()).first->second.get();
}

bool GlobalShadow::split(GlobalCell& word) {
  constexpr uint64_t bytes = sizeof(std::array<GlobalCell, 4>);
  if (used_ + bytes > limit_) return false;
  used_ += bytes;
  std::array<GlobalCell, 4> pieces;
  pieces.fill(word);
  pieces_.push_back(pieces);
  word.split = static_cast<uint32_t>(pieces_.size());
  return true;
}

void GlobalShadow::forget(uint64_t address, uint64_t bytes) {
  const uint64_t first = address / 4, past = (address + bytes + 3) / 4;
  for (auto& [number, page] : pages_) {
    const uint64_t base = number * words_of_page;
    for (uint64_t word = std::max(first, base); word < std::min(past, base + words_of_page); ++word) {
      GlobalCell& cell = (*page)[word - base];
      const uint32_t split = cell.split;
      if (split) pieces_[split - 1].fill({});
      cell = {};
      cell.split = split;
    }
  }
}

void GlobalShadow::give(uint64_t address, uint32_t moment) {
  constexpr uint64_t bytes = 64; // estimated size of a node of the map with its bucket
  auto known = given_.find(address);
  if (known != given_.end()) {
    known->second = std::max(known->second, moment);
  } else if (used_ + bytes <= limit_) {
    used_ += bytes;
    given_.emplace(address, moment);
  } else {
    given_anywhere_ = std::max(given_anywhere_, moment);
  }
}

uint32_t GlobalShadow::given(uint64_t address) const {
  auto known = given_.find(address);
  return std::max(known == given_.end() ? 0 : known->second, given_anywhere_);
}

} // namespace ptxrewrite::emulator
