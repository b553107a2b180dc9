// Infers the use of a kernel's parameters from its code without executing it: which are addresses, of
// which data, and the purpose of other numbers. The result is a guess, sufficient for an initial launch
// file.
#pragma once

#include "ir/core/module.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::launch {

// One value in a parameter: the parameter itself, or a member of a struct that is passed by value.
struct ParameterPart {
  uint64_t offset = 0;                                // in bytes, inside of the parameter
  ir::ScalarType type = ir::ScalarType::none;         // type of the load
  bool is_address = false;                            // of memory that the kernel reads or writes
  bool is_read = false;                               // the memory at the address
  bool is_written = false;                            //
  bool is_atomic = false;                             //
  ir::ScalarType element_type = ir::ScalarType::none; // of the widest access
  bool counts_shifts = false;
  bool is_compared_with_constants = false;
  bool has_other_uses = false; // arithmetic, comparisons with computed values
};

// By parameter, in order: its parts by offset. A parameter that is never loaded has none.
std::vector<std::vector<ParameterPart>> parameter_parts(const ir::Module& module, const ir::Function& function);

// True if the kernel, or a function that it may call, uses shared memory whose size only the launch specifies.
bool uses_dynamic_shared_memory(const ir::Module& module, const ir::Function& kernel);

} // namespace ptxrewrite::launch
