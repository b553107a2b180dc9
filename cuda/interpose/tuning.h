// Which of two codes for the same launch is the faster one, found in the program's own launches (`exec --autotune`):
// they take turns until each has been timed often enough, then the one with the smaller median stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxrewrite::cuda::interpose {

class Tuning {
public:
  enum class Code : uint8_t { original, rewritten };

  // Timed launches of each code before it is decided. The first of each is left out: it may compile or load.
  static constexpr size_t samples = 7;
  // The rewritten code has to be faster by this share, as medians differ by chance.
  static constexpr double margin = 0.01;

  // What the next launch runs; it is to be timed as long as nothing is decided.
  Code next();
  bool is_decided() const { return decided_; }
  // Once decided.
  Code best() const { return best_; }
  // Milliseconds of a launch that ran `code`.
  void add(Code code, double milliseconds);
  // Medians in milliseconds; 0 without samples.
  double median(Code code) const;

private:
  std::vector<double>& times_of(Code code) { return code == Code::original ? original_ : rewritten_; }

  std::vector<double> original_, rewritten_;
  uint64_t turns_ = 0;
  bool decided_ = false;
  Code best_ = Code::original;
};

} // namespace ptxrewrite::cuda::interpose
