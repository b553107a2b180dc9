// Estimate of the registers per thread, from the maximum of simultaneously live values. For machines without ptxas.
#pragma once

#include "ir/core/function.h"

#include <cstdint>

namespace ptxrewrite::ir {

struct RegisterNeed {
  uint32_t registers = 0;  // of 32 bits, at the worst place; a value of 64 bits takes two; at most most_registers()
  uint32_t predicates = 0; // at the worst place
  uint32_t beyond = 0;     // how many more it would take: values wait in local memory (machine_spill.h)
};

// Of a thread: what instructions can name (CUDA C Programming Guide, technical specifications per compute capability).
constexpr uint32_t most_registers(uint32_t compute_capability) {
  if (compute_capability < 20) return 124;
  return compute_capability < 32 ? 63 : 255;
}

// Both states of a function. Values that fold into their users' operands (constants, parameters, addresses plus a
// constant) take no register.
RegisterNeed register_need(const Function& function, uint32_t compute_capability);

} // namespace ptxrewrite::ir
