// The units of an SM that instructions occupy, and the cost of an instruction.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

// The unit that an instruction occupies.
enum class Pipe : uint8_t {
  issue,   // no unit of its own: moves, no-operations
  integer, // 32-bit integer and logic
  fp32,    // single and half precision
  fp64,    //
  special, // conversions, reciprocals and other special functions
  memory,  // loads, stores, atomics, shuffles, textures
  matrix,  // tensor cores
  control, // branches, barriers, calls
  uniform, // the datapath that executes once per warp, from compute capability 7.5 on
};
std::string_view spelling(Pipe pipe);

struct InstructionCost {
  uint16_t weight = 0;  // machine instructions executed per warp, without those of the uniform datapath
  uint16_t uniform = 0; // machine instructions on the uniform datapath
  Pipe pipe = Pipe::issue;
  bool operator==(const InstructionCost&) const = default;
};

} // namespace ptxrewrite::ir
