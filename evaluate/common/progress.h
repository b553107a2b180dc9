// A progress line on standard error for long jobs: only on a terminal, and only after two seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ptxrewrite::evaluate {

class Progress {
public:
  explicit Progress(size_t total);
  ~Progress(); // removes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows that `label` is in progress, after `done` of the total.
  void show(size_t done, const std::string& label);
  // Must be called before other output.
  void clear();

private:
  size_t total_;
  bool on_terminal_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point start_;
};

} // namespace ptxrewrite::evaluate
