// Which loads of a loop can be issued trips ahead, and what has to be computed ahead for that.
//
// A loop's slice is what decides, without looking at loaded data, whether there is another trip and at which addresses
// its loads read: the part that DAC's affine stream would hold (spec of DAC, compiler). Computed a few trips ahead of
// the loop, it names exactly the accesses that the loop will make: nothing is touched that the loop would not touch.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::legal {

// When a block of the loop runs, in a trip that has begun.
struct Reach {
  ir::BlockId same_as;           // whenever that block runs; or else
  std::vector<ir::EdgeId> edges; // when one of these is taken; none: always
};

// What is computed ahead.
struct RunAheadSlice {
  std::vector<ir::InstructionId> instructions; // pure; operands before users
  std::vector<uint32_t> parameters;            // of the header: what is carried from trip to trip
  std::map<ir::BlockId, Reach> reach;          // of the blocks with loads, and of those that lead to them
};

struct RunAheadLoad {
  ir::InstructionId instruction;
  ir::BlockId block;
  size_t address = 0; // index of the address operand; a register and an offset
  unsigned bytes = 0;
  bool read_only = false; // .nc: nothing in the kernel writes there
};

// A load that stays where it is.
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

// Looks at one loop after the other.
class RunAheadPlanner {
public:
  explicit RunAheadPlanner(const ir::LinearForms& forms);

  // Of global loads whose innermost loop this is. No loads at all: neither list has entries.
  RunAheadPlan plan(ir::LoopId loop) const;
  // The slice for some of a plan's loads.
  RunAheadSlice slice_of(const RunAheadPlan& plan, const std::vector<RunAheadLoad>& loads) const;

  // What stands in front of an outermost loop with one way in, and decides whether and how it is entered: the condition
  // of `entry`, and all that the plan's slice reads from there. Nothing: `refusal` says why.
  std::optional<RunAheadSlice> preamble_of(const RunAheadPlan& plan, ir::EdgeId entry, std::string& refusal) const;

private:
  const ir::LinearForms& forms_;
  const ir::Function& function_;
  ir::PostDominatorTree post_dominators_;
};

// The guard of the branch by which an edge is taken; `holds` says with which value. No value: it is always taken.
struct EdgeCondition {
  ir::ValueId predicate;
  bool holds = true;
};
EdgeCondition condition_of(const ir::Function& function, ir::EdgeId edge);

} // namespace ptxrewrite::transforms::legal
