// What `bench --autotune` keeps: for each kernel and launch shape the fastest candidate that is right, and all of them
// as one module with a side file, so that whoever launches it (run, verify, the loader) heeds what was measured.
#pragma once

#include "evaluate/bench/bench.h"
#include "launch/side_file.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct TunedChoice {
  std::optional<size_t> candidate; // nothing: the original
  Speedup speedup;                 // with the L2 cache warm
};

// The fastest of those whose interval lies above 1.
TunedChoice choose(const Bench& bench, size_t shape);

struct TunedModule {
  std::string text; // the input's module, and behind it the kernels that were chosen
  launch::SideFile side_file;
  std::vector<std::string> notes; // where a choice could not be expressed, and the original stays
};

// `choices` by shape of the bench. In launches of other shapes the originals run. Error: the candidates' kernels make
// no module together.
Result<TunedModule> tuned_module(const LaunchInput& input, const Bench& bench, const std::vector<TunedChoice>& choices);

} // namespace ptxrewrite::evaluate
