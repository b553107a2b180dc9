// Other orders of the instructions of a block: for fewer registers, or with loads of global memory far in front of what
// reads their results. Dependences (dependences.h) are kept. SSA form.
//
//   Scheduler scheduler(function, {.goal = ScheduleGoal::early_loads});
//   for (BlockId block : function.layout) reorder(function, block, scheduler.order_of(block));
//
// few_registers: from the end of the block to its beginning, always the instruction that leaves the fewest registers
// live in front of it. A block whose worst place would not become better keeps its order.
//
// early_loads: instructions have levels, as many loads of global memory as stand one behind the other in what they
// depend on. Level by level: first loads and what they need, then the rest, of which each instruction waits for the
// level of its first reader. So only as many waits for memory remain as loads depend on each other. At `live_limit`
// registers, instructions that free some come first, whatever their level.
#pragma once

#include "ir/machine/registers/dependences.h"
#include "ir/machine/registers/machine_values.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::ir {

enum class ScheduleGoal : uint8_t { few_registers, early_loads };

struct ScheduleOptions {
  ScheduleGoal goal = ScheduleGoal::few_registers;
  uint32_t compute_capability = 80;
  uint32_t live_limit = 32; // of early_loads: registers of 32 bits
};

class Scheduler {
public:
  Scheduler(const Function& function, const ScheduleOptions& options);

  // All that stands in the block, each once.
  std::vector<InstructionId> order_of(BlockId block) const;
  // Most registers that are live at one place of the block in that order; predicates beyond six count as registers.
  uint32_t most_live(BlockId block, const std::vector<InstructionId>& order) const;
  // At one place of the function as it stands; predicates do not count.
  uint32_t most_live() const { return most_live_; }

private:
  const Function& function_;
  ScheduleOptions options_;
  ControlFlow flow_;
  MachineValues values_;
  Dependences dependences_;
  std::vector<uint32_t> live_out_; // by BlockId: registers, at the end of the block
  uint32_t most_live_ = 0;
};

// False if the block has that order already.
bool reorder(Function& function, BlockId block, const std::vector<InstructionId>& order);
// All blocks. False if nothing has moved.
bool schedule(Function& function, const ScheduleOptions& options);

} // namespace ptxrewrite::ir
