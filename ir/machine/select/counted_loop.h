// Loops that count by a literal until a limit is reached, as the unroller recognises them. SSA form only. Private to
// ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptxrewrite::ir {

// A loop that counts from `start` by `step` until `limit` is reached; the counter is a parameter of the first block.
struct CountedLoop {
  std::vector<BlockId> blocks; // header first, the block with the back edge last
  BlockId exit;                // the block through which it is left
  InstructionId increment, compare, branch;
  std::optional<uint64_t> trips; // known if start and limit are literals
  bool launch_limit = false;     // the limit is a literal or lies in the constant bank

  BlockId header() const { return blocks.front(); }
  bool contains(BlockId block) const { return std::ranges::find(blocks, block) != blocks.end(); }
};

// By header: loops that are unrolled completely.
using StraightLoops = std::map<BlockId, CountedLoop>;

// The loop that starts at the block, if it is counted. It may contain loops of `straight`, but no others.
std::optional<CountedLoop> counted_loop(const LoweringContext& context, const StraightLoops& straight, BlockId header);

// If value = header parameter + constant in this loop, returns the index of the parameter.
std::optional<size_t> stepped_parameter(const LoweringContext& context, const CountedLoop& loop, ValueId value,
                                        int64_t& step, InstructionId& increment);
// The value of a header parameter in the next trip; other values are returned unchanged.
ValueId next_of(const LoweringContext& context, const CountedLoop& loop, ValueId value);
// The only edge into the loop; invalid if there are several. Blocks that only jump to the header count as their
// predecessors.
EdgeId entering_edge(const LoweringContext& context, const CountedLoop& loop);
// The parameter's value in the first trip. ptxas 13.0 knows a number only if it is set right before the loop, behind
// the last branch.
std::optional<Operand> first_operand(const LoweringContext& context, const CountedLoop& loop, size_t parameter);

} // namespace ptxrewrite::ir
