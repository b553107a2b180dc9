#include "emulator/core/printed.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t entry_bytes = 128; // size of a block's entry in the table, besides its text

uint64_t size_of(const PrintedText& text) {
  return text.text().size() + entry_bytes;
}

} // namespace

void PrintedText::clear() {
  text_.clear();
  is_cut_ = false;
}

void PrintedText::append(std::string_view text) {
  const size_t room = limit - text_.size();
  text_ += text.substr(0, room);
  is_cut_ = is_cut_ || text.size() > room;
}

void PrintedBlocks::add(uint64_t block, PrintedText&& text) {
  if (text.empty() || block >= first_left_out_) return;
  size_ += size_of(text);
  texts_.insert_or_assign(block, std::move(text));
  // Drops the blocks with the highest numbers, so the result does not depend on the order in which blocks end.
  while (size_ > limit) {
    const auto last = std::prev(texts_.end());
    size_ -= size_of(last->second);
    first_left_out_ = last->first;
    texts_.erase(last);
  }
}

std::string PrintedBlocks::take(uint64_t last) {
  std::string all;
  for (const auto& [block, text] : texts_) {
    if (block > last) break;
    all += text.text();
    if (text.is_cut())
      all += fmt::format("\n[printf: what block {} prints beyond {} bytes is left out]\n", block, PrintedText::limit);
  }
  if (first_left_out_ != UINT64_MAX && first_left_out_ <= last)
    all += fmt::format("\n[printf: what blocks from {} on print is left out: a launch keeps {} bytes]\n",
                       first_left_out_, limit);
  texts_.clear();
  return all;
}

} // namespace ptxrewrite::emulator
