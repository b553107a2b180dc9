// Chooses the values to spill, and estimates the cost. Private to transforms/registers/spill*.cpp.
#pragma once

#include "ir/flow/def_use.h"
#include "ir/flow/loops.h"
#include "ir/machine/registers/allocation.h"

#include <vector>

namespace ptxrewrite::transforms {

// Values that share one slot of local memory, because they share a register and their live ranges are disjoint; or one
// value that is recomputed.
struct SpillWeb {
  std::vector<ir::ValueId> values;
  bool recompute = false;
};

class SpillChooser {
public:
  // `unspillable`, by value: needed by loads and stores of earlier rounds.
  SpillChooser(const ir::Function& function, const ir::MachineValues& values, const ir::AllocationOptions& options,
               const std::vector<bool>& unspillable);

  // For each of the values, chooses the cheapest web that is live at the same time, unless one is already chosen; with
  // `many`, unless there are as many as values without a register that are live where it starts. That is rarely too
  // few, and sometimes too many: the next colouring of the registers can find places for values that none was chosen
  // for.
  std::vector<SpillWeb> choose(const std::vector<ir::ValueId>& unplaced, bool many) const;

private:
  struct Candidate {
    SpillWeb web;
    double cost = 0;   // of loads, stores and instructions, weighted by loop depth; infinite if it cannot be spilled
    double length = 0; // number of program points at which it occupies a register
    double price() const { return cost / length; }
  };
  void weigh(Candidate& candidate, const std::vector<bool>& unspillable);
  double accesses_of(ir::ValueId value) const;
  double weight_at(ir::BlockId block) const;
  bool is_spillable(ir::ValueId value) const;
  bool in_same_web(ir::ValueId argument, ir::ValueId parameter) const;
  bool can_recompute(ir::ValueId value) const;
  bool at_hand(ir::InstructionId definition, uint32_t point) const;
  uint32_t cheapest(ir::ValueId unplaced, const std::vector<bool>& taken) const;

  const ir::Function& function_;
  const ir::MachineValues& values_;
  ir::ControlFlow flow_;
  ir::DominatorTree dominators_;
  ir::LoopForest loops_;
  ir::DefUse def_use_;
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> by_price_;                 // candidates that can be spilled, the cheapest first
  std::vector<uint32_t> candidate_of_;             // by value; UINT32_MAX: none
  std::vector<bool> asynchronous_;                 // by value: of products that run on
  std::vector<std::vector<uint32_t>> read_points_; // by value: the points where the machine reads it
};

} // namespace ptxrewrite::transforms
