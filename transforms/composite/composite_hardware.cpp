// The hardware form of `composite` (composite-hpca13 §3): in each block, the pairs that save the most become composite
// instructions. Instructions are counted as FX5800 executes them: funnel shifts, three-input logic, byte permutations
// and bit fields are split into steps if one of the steps can be fused, and 64-bit additions that only compute
// addresses are 32-bit additions there. The rows crf_* of ir/isa/opcodes.def define the supported pairs.
#include "transforms/composite/composite.h"

#include "transforms/composite/composite_choice.h"
#include "transforms/composite/composite_graph.h"
#include "transforms/composite/composite_rewrite.h"

#include "ir/core/module.h"

namespace ptxrewrite::transforms {

Change run_hardware_composite(ir::Function& function, PassContext& context) {
  using namespace composite;
  const FunctionFacts facts(function);
  std::vector<std::pair<ir::BlockId, BlockGraph>> graphs;
  for (ir::BlockId block : function.layout)
    if (BlockGraph graph = build_graph(facts, block); !graph.problem.pairs.empty())
      graphs.emplace_back(block, std::move(graph));
  RewriteCounts total;
  for (const auto& [block, graph] : graphs) {
    PairChoice choice = choose_pairs(graph.problem);
    RewriteCounts counts = rewrite_block(function, block, graph, choice);
    total.composites += counts.composites;
    total.slot_reads += counts.slot_reads;
    total.expanded += counts.expanded;
  }
  if (total.composites == 0) return Change::unchanged;
  function.module().hardware_form = true;
  context.statistics["composite.fused"] += total.composites;
  context.statistics["composite.slot-reads"] += total.slot_reads;
  context.statistics["composite.expanded"] += total.expanded;
  return Change::changed;
}

} // namespace ptxrewrite::transforms
