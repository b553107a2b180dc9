// Reorders the instructions of a block: for fewer registers, or to issue loads of global memory long before their
// results are read. Dependences (dependences.h) are preserved. SSA form.
//
//   Scheduler scheduler(function, compute_capability);
//   for (BlockId block : function.layout)
//     reorder(function, block, scheduler.order_of(block, {.goal = ScheduleGoal::early_loads}));
//
// few_registers: schedules from the end of the block to its start, always choosing the instruction that leaves the
// fewest registers live before it. A block keeps its order unless its maximum pressure decreases.
//
// early_loads: the level of an instruction is the largest number of global loads in a dependence chain to it. Levels
// are scheduled in order: first loads and the instructions that they depend on, then the rest, where each instruction
// is delayed to the level of its first reader. This leaves only as many waits for memory as there are dependent loads
// in a chain. At `live_limit` live registers, instructions that free registers take precedence over levels.
#pragma once

#include "ir/machine/registers/dependences.h"
#include "ir/machine/registers/machine_values.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ptxrewrite::ir {

enum class ScheduleGoal : uint8_t { few_registers, early_loads };

struct ScheduleOptions {
  ScheduleGoal goal = ScheduleGoal::few_registers;
  uint32_t live_limit = 32; // for early_loads: 32-bit registers
};

struct ScheduleProblem; // a block's instructions and registers

class Scheduler {
public:
  Scheduler(const Function& function, uint32_t compute_capability);
  // With the lowering of the same instructions in another order.
  Scheduler(const Function& function, std::shared_ptr<const Lowering> lowering);
  ~Scheduler();

  // All instructions and statements of the block, each once.
  std::vector<InstructionId> order_of(BlockId block, const ScheduleOptions& options) const;
  // Maximum number of registers live at one point of the block in that order; predicates beyond six count as registers.
  uint32_t most_live(BlockId block, const std::vector<InstructionId>& order) const;
  // The maximum over the function in its current order; predicates do not count.
  uint32_t most_live() const { return most_live_; }
  const std::shared_ptr<const Lowering>& lowering() const { return values_.shared_lowering(); }

private:
  const ScheduleProblem& problem_of(BlockId block) const;

  const Function& function_;
  ControlFlow flow_;
  MachineValues values_;
  Dependences dependences_;
  std::vector<uint32_t> live_out_; // by BlockId: registers live at the end of the block
  mutable std::vector<std::unique_ptr<const ScheduleProblem>> problems_; // by BlockId, when first asked for
  mutable std::vector<uint32_t> number_;                                 // scratch, by ValueId: in one block's problem
  uint32_t most_live_ = 0;
};

// Returns false if the block has that order already.
bool reorder(Function& function, BlockId block, const std::vector<InstructionId>& order);
// Reorders all blocks. Returns false if nothing has moved.
bool schedule(Function& function, uint32_t compute_capability, const ScheduleOptions& options);

} // namespace ptxrewrite::ir
