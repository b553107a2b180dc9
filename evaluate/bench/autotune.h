// The result of `bench --autotune`: for each kernel and launch shape the fastest candidate with correct results, and
// all of them as one module with a side file, which tools that launch it (run, verify, the loader) use for their
// choice.
#pragma once

#include "evaluate/bench/bench.h"
#include "launch/side_file.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct TunedChoice {
  std::optional<size_t> candidate; // empty: the original
  Speedup speedup;                 // with a warm L2 cache
};

// Returns the fastest candidate whose confidence interval lies above 1.
TunedChoice choose(const Bench& bench, size_t shape);

struct TunedModule {
  std::string text; // the input's module, followed by the chosen kernels
  launch::SideFile side_file;
  std::vector<std::string> notes; // why a choice could not be expressed, so that the original is kept
};

// `choices` are indexed by shape of the bench. Launches of other shapes run the originals. Fails if the candidates'
// kernels cannot be combined in one module.
Result<TunedModule> tuned_module(const LaunchInput& input, const Bench& bench, const std::vector<TunedChoice>& choices);

} // namespace ptxrewrite::evaluate
