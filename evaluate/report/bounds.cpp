#include "evaluate/report/bounds.h"

namespace ptxrewrite::evaluate {

std::string_view advice(timing::Cause cause) {
  using enum timing::Cause;
  switch (cause) {
  case issue:
    return "The schedulers are busy: fewer instructions make it faster, nothing else does.";
  case unit_integer:
    return "The integer units are full: fewer or cheaper integer instructions (addresses, indices, divisions by "
           "constants) make it faster.";
  case unit_fp32:
  case unit_fp64:
    return "The floating-point units are full: the arithmetic itself is the bound.";
  case unit_special:
    return "The special function units are full: approximations, conversions and divisions go there.";
  case unit_matrix:
    return "The tensor cores are full: the bound that a matrix kernel wants.";
  case unit_affine:
  case unit_scalar:
    return "The technique's own unit is full.";
  case unit_barrier:
    return "Barriers take turns: fewer of them, or fewer warps at each, make it faster.";
  case memory_port:
    return "The load/store units are full: wider accesses, or ones that touch fewer sectors and banks, make it faster.";
  case instruction_fetch:
    return "Instructions arrive too slowly: the code is larger than the schedulers' instruction caches. Unroll less, "
           "or keep warps together.";
  case staging:
  case expansion:
    return "The technique's own unit for registers or addresses is full.";
  case l2_bandwidth:
    return "L2 delivers no more: reuse in shared memory or L1, or accesses that touch fewer sectors.";
  case dram_bandwidth:
    return "DRAM delivers no more: only fewer bytes make it faster.";
  case wait_integer:
  case wait_fp32:
  case wait_fp64:
  case wait_special:
  case wait_matrix:
    return "Warps wait for results of arithmetic: more warps, or more independent work in each, hide it.";
  case wait_shared:
    return "Warps wait for shared memory: loads issued earlier, or more warps, hide it; look for bank conflicts in the "
           "column of transactions.";
  case wait_constant:
    return "Warps wait for constant memory or parameters.";
  case wait_l1:
  case wait_l2:
    return "Warps wait for loads that hit in a cache: loads issued earlier or together, or more warps, hide it.";
  case wait_dram:
    return "Warps wait for DRAM, which is not full: more loads in flight (wider, earlier, more warps) make it faster.";
  case wait_queue:
  case wait_staged:
    return "Warps wait for the technique's own unit.";
  case linear:
  case affine:
    return "Warps wait for the part that the technique computes for all of them.";
  case misses:
    return "More loads miss than there are registers for misses: fewer sectors, or better reuse.";
  case barrier:
    return "Warps wait for one another at barriers: work between barriers is uneven, or there are many of them.";
  case imbalance:
    return "Warps of a block end at different times and hold its place meanwhile.";
  case tail:
    return "The last blocks do not fill the machine: the grid is no multiple of what it holds at a time.";
  case launch:
    return "The launch itself: the kernel is too short for this machine. A larger grid, fewer launches or fusion with "
           "its neighbours help; other figures matter little until then.";
  case count:
    break;
  }
  return "";
}

} // namespace ptxrewrite::evaluate
