// A kernel's accesses to global memory: loads, stores and atomics, the order among them, and accesses whose address or
// effect is unknown.
#pragma once

#include "ir/core/function.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::memory {

struct Access {
  ir::InstructionId instruction;
  size_t address = 0; // operand index
  unsigned bytes = 0; // of one thread
  bool reads = false, writes = false;
  bool plain = false; // a weak ld or st of global memory, not of data that never change (.nc)
};

struct KernelMemory {
  std::vector<Access> accesses; // in the order of the text
  // Why nobody can say where the kernel writes; empty: `accesses` has all writes.
  std::string unknown_writes;
  // Why the kernel may wait for what others write while it runs; empty: what it does not write itself stands still.
  //
  // A weak load may only read what others wrote before the kernel began, or what the kernel has synchronised with:
  // by a load that acquires, an atomic that returns something and a fence, or by waiting for another grid. Without
  // any of these a write by others is a race with the load wherever it stands, and ld.global.nc may be used.
  std::string waits_for_others;
};

KernelMemory scan_memory(const ir::Function& function);

// Does the instruction keep other accesses to global memory from moving over it? Barriers, fences, calls, accesses with
// an order of their own.
bool orders_memory(const ir::Function& function, ir::InstructionId instruction);

// " in line 7", for people; empty where an instruction has no place in the text.
std::string line_of(const ir::Function& function, ir::InstructionId instruction);

} // namespace ptxrewrite::transforms::memory
