// A line on standard error that says how far a long job is: on a terminal only, and not before two seconds are over.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ptxrewrite::evaluate {

class Progress {
public:
  explicit Progress(size_t total);
  ~Progress(); // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `label` is being worked on, after `done` of the total.
  void show(size_t done, const std::string& label);
  // Before anything else is written.
  void clear();

private:
  size_t total_;
  bool on_terminal_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point start_;
};

} // namespace ptxrewrite::evaluate
