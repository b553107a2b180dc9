// The output of kernels: limited in size, and in block order, independent of the host threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ptxrewrite::emulator {

// The output of one block. Text beyond the limit is dropped, with a note.
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

// The output of a launch: that of the first blocks that printed, up to the limit.
class PrintedBlocks {
public:
  static constexpr uint64_t limit = uint64_t(16) << 20;

  void add(uint64_t block, PrintedText&& text);
  // The output of the blocks up to `last`.
  std::string take(uint64_t last);

private:
  std::map<uint64_t, PrintedText> texts_;
  uint64_t size_ = 0;
  uint64_t first_left_out_ = UINT64_MAX; // block
};

} // namespace ptxrewrite::emulator
