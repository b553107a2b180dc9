// What a kernel does with what its parameters hold, as far as that can be read off the code without carrying it out:
// which are addresses, of what, and what the other numbers are for. A guess, good enough for a launch file to start
// from.
#pragma once

#include "ir/core/module.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::launch {

// One number in a parameter: the parameter itself, or a member of a struct that is passed by value.
struct ParameterPart {
  uint64_t offset = 0;                                // in bytes, inside of the parameter
  ir::ScalarType type = ir::ScalarType::none;         // as it is loaded
  bool is_address = false;                            // of memory that the kernel reads or writes
  bool is_read = false;                               // the memory behind it
  bool is_written = false;                            //
  bool is_atomic = false;                             //
  ir::ScalarType element_type = ir::ScalarType::none; // of the widest access
  bool counts_shifts = false;
  bool is_compared_with_constants = false;
  bool has_other_uses = false; // arithmetic, comparisons with what is computed
};

// For each parameter of the function, in their order: its parts by offset. A parameter that is never loaded has none.
std::vector<std::vector<ParameterPart>> parameter_parts(const ir::Module& module, const ir::Function& function);

// Whether the kernel, or what it may call, uses shared memory whose size only the launch states.
bool uses_dynamic_shared_memory(const ir::Module& module, const ir::Function& kernel);

} // namespace ptxrewrite::launch
