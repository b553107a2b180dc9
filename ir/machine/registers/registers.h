// Estimates the registers per thread from the maximum number of live values. For machines without ptxas.
#pragma once

#include "ir/core/function.h"

#include <cstdint>

namespace ptxrewrite::ir {

// The orders of a function's instructions whose pressure is computed. One: several times as fast, for costs that
// compare versions of a kernel.
enum class OrdersTried : uint8_t { one, all };

class Lowering;

struct RegisterNeed {
  uint32_t registers = 0;  // of 32 bits, at the point of highest pressure (64-bit values: 2); up to `limit`
  uint32_t limit = 255;    // most_registers(), or fewer if the kernel states its block or a limit
  uint32_t live = 0;       // of these, those of values
  uint32_t predicates = 0; // at the point of highest pressure
  uint32_t beyond = 0;     // registers needed beyond that: values are spilled to local memory (machine_spill.h)
};

// Registers per thread that instructions can name (CUDA C Programming Guide, technical specifications by capability).
constexpr uint32_t most_registers(uint32_t compute_capability) {
  if (compute_capability < 20) return 124;
  return compute_capability < 32 ? 63 : 255;
}

// Works on both states of a function. Values that are folded into their readers' operands (constants, parameters,
// addresses plus a constant) take no register.
RegisterNeed register_need(const Function& function, uint32_t compute_capability,
                           OrdersTried orders = OrdersTried::all);

// The same for one order by the function's lowering (lowering.h), which is at hand where versions of a kernel are
// weighed: the larger part of the time goes into lowering the function as the assembler prepares it. Values that this
// preparation merges are counted where the text has them.
RegisterNeed register_need(const Function& function, const Lowering& lowering, uint32_t compute_capability);

} // namespace ptxrewrite::ir
