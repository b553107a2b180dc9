// One launch under autotuning: chooses the code to run, and times it by events.
#pragma once

#include "cuda/interpose/programs.h"

#include <string>

namespace ptxrewrite::cuda::interpose {

class LaunchTimer {
public:
  // Without autotuning, the variant is run without timing.
  LaunchTimer(Programs& programs, InterposedKernel& kernel, const VariantLaunch& variant, const LaunchShape& shape);

  bool runs_original() const { return code_ == Tuning::Code::original; }
  // Why the original is run.
  std::string reason() const;
  // Called after the launch with the driver's result code.
  void finish(int status);

private:
  void give_up();

  InterposedKernel& kernel_;
  void* stream_;
  Tuning* tuning_ = nullptr; // nullptr: nothing to measure
  bool is_timed_ = false;
  Tuning::Code code_ = Tuning::Code::rewritten;
  void *begin_ = nullptr, *end_ = nullptr; // events
};

} // namespace ptxrewrite::cuda::interpose
