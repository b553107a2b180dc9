// Decides whether R2D2's linear registers fit, or the original kernel runs instead (r2d2-isca23 §4.4, §5.6).
//
// Thread-index registers are stored once per thread of a block, block-index registers once per block that an SM holds,
// coefficients once per SM. All of them must fit into the registers that remain when the SM holds as many blocks of the
// rewritten kernel as it would of the original: otherwise fewer blocks would run at the same time.
//
// The machine's register index is `type offset + number x warps of the SM + warp` (Fig. 11), so that registers of all
// types share one pool: no rounding to allocation units, except for the number of blocks that an SM holds.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/figures/machine.h"

#include <cstdint>
#include <string>

namespace ptxrewrite::emulator {

// The linear registers of a kernel in hardware form. Registers that only sections read are temporarily general-purpose
// registers, and so are coefficients of thread parts (§4.2): they do not count.
struct LinearRegisterUse {
  uint32_t threads = 0, blocks = 0, coefficients = 0;                // registers
  uint32_t thread_units = 0, block_units = 0, coefficient_units = 0; // their sizes, in 32-bit registers

  bool operator==(const LinearRegisterUse&) const = default;
};
LinearRegisterUse linear_register_use(const ir::Function& kernel);

struct BudgetFacts {
  uint32_t threads_per_block = 0;
  uint64_t blocks = 0; // of the launch
  uint32_t shared_bytes = 0;
  uint32_t original_registers = 0; // per thread
  uint32_t body_registers = 0;     // per thread, of the rewritten kernel
  LinearRegisterUse linear;
};

// In 32-bit registers per SM.
struct RegisterBudget {
  uint32_t resident_blocks = 0; // of the original, limited to the blocks that an SM gets of this launch
  uint64_t needed = 0;
  uint64_t available = 0; // freed by removed registers, or never used
  uint64_t freed = 0;     // of `available`, those of removed registers
  // As in the paper: 4 bytes for thread-index registers and coefficients, 8 for block-index registers.
  uint64_t needed_in_paper = 0;

  bool fits() const { return needed <= available; }
};
RegisterBudget register_budget(const ir::Machine& machine, const BudgetFacts& facts);

// "1091 of 12288 registers left by 16 blocks per SM of TITANV; as the paper counts: 1091"
std::string describe(const RegisterBudget& budget, const ir::Machine& machine);

} // namespace ptxrewrite::emulator
