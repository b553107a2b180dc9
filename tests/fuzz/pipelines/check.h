// A pipeline on the emulator: as it is written, and rewritten.
#pragma once

#include "tests/fuzz/kernels/differential.h"
#include "tests/fuzz/pipelines/pipeline.h"

#include <string>
#include <vector>

namespace ptxrewrite::fuzz::pipelines {

struct Run {
  std::string refused; // nothing ran
  std::string failed;  // a fault, or what check mode found
  std::vector<uint32_t> output;
};
struct RunOptions {
  bool late_copies = false;
  bool check = true;
};
// `text`: the pipeline's kernel, or what was made of it.
Run run(const Pipeline& pipeline, const std::string& text, const RunOptions& options);

// What is wrong with the run of a pipeline without a fault; empty: nothing.
std::string wrong_in(const Pipeline& pipeline, const Run& run);

} // namespace ptxrewrite::fuzz::pipelines
