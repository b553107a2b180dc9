// What kernels print: bounded, and in block order whatever host threads ran the blocks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ptxrewrite::emulator {

// Of one block. What is beyond the limit is left out, and said to be.
class PrintedText {
public:
  static constexpr uint64_t limit = uint64_t(1) << 20;

  void clear();
  void append(std::string_view text);
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  bool is_cut() const { return is_cut_; }

private:
  std::string text_;
  bool is_cut_ = false;
};

// Of a launch: the first blocks that printed, as many as there is room for.
class PrintedBlocks {
public:
  static constexpr uint64_t limit = uint64_t(16) << 20;

  void add(uint64_t block, PrintedText&& text);
  // Of the blocks up to `last`.
  std::string take(uint64_t last);

private:
  std::map<uint64_t, PrintedText> texts_;
  uint64_t size_ = 0;
  uint64_t first_left_out_ = UINT64_MAX; // block
};

} // namespace ptxrewrite::emulator
