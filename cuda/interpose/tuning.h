// Finds the faster of two codes for the same launch during the program's own launches (`exec --autotune`): they
// alternate until each has been timed often enough, then the one with the smaller median is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxrewrite::cuda::interpose {

class Tuning {
public:
  enum class Code : uint8_t { original, rewritten };

  // Timed launches of each code before the decision. The first of each is ignored, because it may include compiling or
  // loading.
  static constexpr size_t samples = 7;
  // The rewritten code must be faster by this fraction, because medians fluctuate.
  static constexpr double margin = 0.01;

  // The code for the next launch, which must be timed until the decision is made.
  Code next();
  bool is_decided() const { return decided_; }
  // Valid after the decision.
  Code best() const { return best_; }
  // Adds the milliseconds of a launch that ran `code`.
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
