#include "evaluate/common/progress.h"

#include "support/text/terminal.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace ptxrewrite::evaluate {

Progress::Progress(size_t total)
    : total_(total), on_terminal_(isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  clear();
}

void Progress::show(size_t done, const std::string& label) {
  constexpr std::chrono::seconds patience{2};
  if (!on_terminal_ || total_ == 0 || std::chrono::steady_clock::now() - start_ < patience) return;
  constexpr size_t bar = 24;
  const size_t filled = std::min(bar, bar * done / total_);
  std::string line = "[" + std::string(filled, '#') + std::string(bar - filled, ' ') + "] " + std::to_string(done) +
                     "/" + std::to_string(total_) + " " + label;
  const size_t width = terminal_width();
  if (line.size() >= width) line.resize(width - 1);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (visible_) std::fputs("\r\033[K", stderr);
  visible_ = false;
}

} // namespace ptxrewrite::evaluate
