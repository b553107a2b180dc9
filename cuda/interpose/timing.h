// One launch under autotuning: which code runs, and the events around it.
#pragma once

#include "cuda/interpose/programs.h"

#include <string>

namespace ptxrewrite::cuda::interpose {

class LaunchTimer {
public:
  // Without autotuning the variant runs, and nothing is timed.
  LaunchTimer(Programs& programs, InterposedKernel& kernel, const VariantLaunch& variant, const LaunchShape& shape);

  bool runs_original() const { return code_ == Tuning::Code::original; }
  // Why it does.
  std::string reason() const;
  // Behind the launch, with what the driver said of it.
  void finish(int status);

private:
  void give_up();

  InterposedKernel& kernel_;
  void* stream_;
  Tuning* tuning_ = nullptr; // nullptr: nothing to find out
  bool is_timed_ = false;
  Tuning::Code code_ = Tuning::Code::rewritten;
  void *begin_ = nullptr, *end_ = nullptr; // events
};

} // namespace ptxrewrite::cuda::interpose
