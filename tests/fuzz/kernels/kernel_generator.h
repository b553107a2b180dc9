// Random kernels; the kernel of a seed is the same on every machine. Every kernel terminates, has no races and no
// undefined behaviour, and its threads write their results to separate places, independently of the order of threads
// and blocks: barriers are only executed by whole blocks, warp functions by whole warps, loops have small limits,
// addresses are masked or linear in the thread's index, atomics on shared places commute.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <map>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

struct Knobs {
  unsigned statements = 30; // in the kernel's body, without nested ones and their address arithmetic
  unsigned nested_statements = 6;
  unsigned depth = 3;                    // of nested ifs, loops, switches and scopes
  unsigned trips = 40;                   // product of the trip counts of nested loops
  double guard = 0.2;                    // an assignment to an existing register is guarded
  double assign = 0.4;                   // an operation writes an existing register instead of a new one
  double immediate = 0.2;                // an operand is an immediate if permitted
  double uniform = 0.35;                 // a condition or limit is the same in the whole block
  double partial_warps = 0.3;            // per kernel: block sizes that do not fill their warps
  double approximate = 0.06;             // per kernel: approximate instructions occur
  double early_exit = 0.3;               // per kernel: some threads leave before the end
  double functions = 0.35;               // per kernel: device functions
  double perturb = 0.3;                  // an index passes through arithmetic that wraps and cancels
  double qualified_memory = 0.3;         // cache operators, volatile, eviction priorities
  bool floats = true;                    // false: integers and predicates only
  bool many_warps = false;               // blocks of up to 8, mostly with rows smaller than a warp
  bool indices = false;                  // only index arithmetic, unless it may wrap
  double wrap = 0.34;                    // per kernel, with `indices`: index arithmetic may wrap
  double own_addresses = 0;              // accesses to local memory at one generic address in all threads
  double races = 0;                      // per kernel: values that warps read depend on their order, the results do not
  bool integer_chains = false;           // long chains of instructions that read each other
  std::map<std::string, double> weights; // of statements and groups of operations; default 1
};

// For kernels about index arithmetic: in a third of them it wraps on purpose in some launches, in the others in
// none.
Knobs index_knobs();

// For DARSIE: blocks of several warps, much redundancy between them, and loads with stores in between.
Knobs redundancy_knobs();
// For passes that fuse integer instructions.
Knobs integer_knobs();
// For passes that rewrite loops.
Knobs loop_knobs();
// For DAC: index arithmetic, accesses with it, loops, divergence, barriers.
Knobs stream_knobs();

Kernel generate_kernel(uint64_t seed, const Knobs& knobs = {});

// Kernels without control flow in which each operation of the table occurs three times, with operands that differ
// between threads: parts 0 .. sweep_count() - 1 cover the whole table except approximate instructions.
uint32_t sweep_count();
Kernel generate_sweep(uint64_t seed, uint32_t part);

// Every name that can occur in Kernel::features.
const std::vector<std::string>& all_features();

// "feature count, feature count ..." over several kernels.
std::string statistics_line(const std::vector<Kernel>& kernels);

} // namespace ptxrewrite::fuzz
