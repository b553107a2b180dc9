// A kernel's accesses to global memory: loads, stores and atomics, their order, and accesses with unknown address or
// effect.
#pragma once

#include "ir/core/function.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::memory {

struct Access {
  ir::InstructionId instruction;
  size_t address = 0; // operand index
  unsigned bytes = 0; // per thread
  bool reads = false, writes = false;
  bool plain = false; // a weak ld or st of global memory, excluding constant data (.nc)
};

struct KernelMemory {
  std::vector<Access> accesses; // in text order
  // Why the kernel's writes are not all known; empty if `accesses` has all of them.
  std::string unknown_writes;
  // Why the kernel may wait for concurrent writes of others; empty if memory that it does not write itself is constant
  // while it runs.
  //
  // A weak load may only read data that others wrote before the kernel began, or writes with which the kernel has
  // synchronised: by an acquiring load, an atomic that returns a value and a fence, or by waiting for another grid.
  // Without any of these, a concurrent write by others races with the load at any position, and ld.global.nc may be
  // used.
  std::string waits_for_others;
};

KernelMemory scan_memory(const ir::Function& function);

// Does the instruction prevent other accesses to global memory from moving across it? True for barriers, fences, calls,
// and accesses with an order of their own.
bool orders_memory(const ir::Function& function, ir::InstructionId instruction);

// " in line 7", for remarks; empty if the instruction has no source position.
std::string line_of(const ir::Function& function, ir::InstructionId instruction);

} // namespace ptxrewrite::transforms::memory
