// Runs a pipeline of either kind: its kernel, its launch, and the results that follow from its description.
#pragma once

#include "ir/isa/tensor_map.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz::pipelines {

// A parameter of the kernel: the address of a buffer, a tensor map over one, or a number.
struct Parameter {
  enum class Kind : uint8_t { address, map, number };
  Kind kind = Kind::number;
  size_t buffer = 0;
  uint32_t number = 0;
  ir::TensorMap map; // its address is that of the buffer
};

struct Case {
  std::string text; // of a kernel "pipeline"
  uint32_t blocks = 1, threads = 32, shared_bytes = 0;
  std::vector<Parameter> parameters;
  std::vector<std::vector<uint32_t>> buffers; // as the launch finds them; the last one is the output
  std::vector<uint32_t> expected;             // the output afterwards
};

struct Run {
  std::string refused; // nothing ran
  std::string failed;  // a fault, or a finding of check mode
  std::vector<uint32_t> output;
};
struct RunOptions {
  bool late_copies = false;
  bool check = true;
};
// `text`: the case's kernel, or a rewritten one.
Run run(const Case& launched, const std::string& text, const RunOptions& options);

// The first difference from a run without a fault; empty: there is none.
std::string wrong_in(const Case& launched, const Run& run);

} // namespace ptxrewrite::fuzz::pipelines
