// Finds the loads of a loop that can be issued trips ahead, and the instructions that must be computed ahead for them.
//
// The slice of a loop is the code that determines, independently of loaded data, whether there is another trip and from
// which addresses it loads: the part that DAC's affine stream would hold (spec of DAC, compiler). Computed a few trips
// ahead, it yields exactly the accesses that the loop will make: no address is accessed that the loop would not access.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::legal {

// When a block of the loop is executed, in a trip that has begun.
struct Reach {
  ir::BlockId same_as;           // if valid: whenever that block is executed; otherwise
  std::vector<ir::EdgeId> edges; // when one of these is taken; if empty: always
};

// The code that is computed ahead.
struct RunAheadSlice {
  std::vector<ir::InstructionId> instructions; // pure; operands before users
  std::vector<uint32_t> parameters;            // of the header: values carried from trip to trip
  std::map<ir::BlockId, Reach> reach;          // for the blocks with loads, and for those that lead to them
};

struct RunAheadLoad {
  ir::InstructionId instruction;
  ir::BlockId block;
  size_t address = 0; // index of the address operand, which is a register and an offset
  unsigned bytes = 0;
  bool read_only = false; // .nc: the kernel does not write the data
};

// A load that does not run ahead.
struct StayingLoad {
  ir::InstructionId instruction;
  std::string reason;
};

struct RunAheadPlan {
  ir::LoopId loop;
  ir::BlockId header;
  ir::EdgeId back_edge;
  std::vector<RunAheadLoad> loads;
  std::vector<StayingLoad> staying;
  RunAheadSlice slice; // for all of `loads`
};

// Plans one loop at a time.
class RunAheadPlanner {
public:
  explicit RunAheadPlanner(const ir::LinearForms& forms);

  // Plans global loads whose innermost loop this is. If there are none, both lists are empty.
  RunAheadPlan plan(ir::LoopId loop) const;
  // The slice for a subset of a plan's loads.
  RunAheadSlice slice_of(const RunAheadPlan& plan, const std::vector<RunAheadLoad>& loads) const;

  // The code before an outermost loop with a single entry that decides whether and how the loop is entered: the
  // condition of `entry`, and the values that the plan's slice reads from there. Returns nothing, and the reason in
  // `refusal`, if that is impossible.
  std::optional<RunAheadSlice> preamble_of(const RunAheadPlan& plan, ir::EdgeId entry, std::string& refusal) const;

private:
  const ir::LinearForms& forms_;
  const ir::Function& function_;
  ir::PostDominatorTree post_dominators_;
  std::vector<ir::BlockId> above_; // by block: the one before it in the text
};

// The guard of the branch that takes an edge; `holds` is the value for which it is taken. Without a predicate the edge
// is always taken.
struct EdgeCondition {
  ir::ValueId predicate;
  bool holds = true;
};
EdgeCondition condition_of(const ir::Function& function, ir::EdgeId edge);

} // namespace ptxrewrite::transforms::legal
