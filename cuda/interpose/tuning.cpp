#include "cuda/interpose/tuning.h"

#include <algorithm>

namespace ptxrewrite::cuda::interpose {

Tuning::Code Tuning::next() {
  if (decided_) return best_;
  return turns_++ % 2 == 0 ? Code::original : Code::rewritten;
}

void Tuning::add(Code code, double milliseconds) {
  if (decided_) return;
  times_of(code).push_back(milliseconds);
  if (original_.size() <= samples || rewritten_.size() <= samples) return;
  decided_ = true;
  best_ = median(Code::rewritten) < median(Code::original) * (1 - margin) ? Code::rewritten : Code::original;
}

double Tuning::median(Code code) const {
  const std::vector<double>& all = code == Code::original ? original_ : rewritten_;
  if (all.size() < 2) return 0;
  std::vector<double> times(all.begin() + 1, all.end());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

} // namespace ptxrewrite::cuda::interpose
