// Read-only loads: those whose address does not change in a loop move in front of it, and a load of an address that was
// loaded before becomes a move.
//
// ptxas does neither across stores if the two addresses are computed by different registers after unrolling, or if the
// loop has several exits. The data of a read-only load is constant while the kernel runs, so that only the addresses
// matter: the same register, read where the earlier load dominates the later one, has the same value in both places. A
// load leaves a loop only from the beginning of its header, which is executed whenever the loop is entered.
#include "transforms/memory/repeatable_load.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::BlockId;
using ir::InstructionId;

class Reuse {
public:
  explicit Reuse(Workspace& workspace) : workspace_(workspace), function_(workspace.function) {}

  size_t run() {
    if (workspace_.read_only.empty()) return 0;
    leave_loops();
    count_ += load_before_branches(workspace_);
    reuse();
    return count_;
  }

private:
  std::optional<Load> load_of(InstructionId id) const { return repeatable_load(workspace_, id); }
  // The block that is left only for the loop's header; invalid if there is none.
  BlockId preheader(const ir::Loop& loop) const;
  void leave_loops();
  void leave(const ir::Loop& loop);
  void reuse();

  Workspace& workspace_;
  ir::Function& function_;
  size_t count_ = 0;
};

BlockId Reuse::preheader(const ir::Loop& loop) const {
  BlockId found;
  for (ir::EdgeId edge : workspace_.forms().control_flow().predecessors(loop.header)) {
    if (std::ranges::find(loop.back_edges, edge) != loop.back_edges.end()) continue;
    if (found) return {};
    found = function_.edges[edge].from;
  }
  return found && function_.successors(found).size() == 1 ? found : BlockId();
}

// From inner loops to outer ones: the block in front of an inner loop may be the header of an outer one.
void Reuse::leave_loops() {
  std::vector<const ir::Loop*> loops;
  for (const ir::Loop& loop : workspace_.forms().loops().loops())
    loops.push_back(&loop);
  std::ranges::stable_sort(loops, std::greater(), [](const ir::Loop* loop) { return loop->depth; });
  for (const ir::Loop* loop : loops)
    leave(*loop);
}

void Reuse::leave(const ir::Loop& loop) {
  const BlockId before = preheader(loop);
  if (!before || !function_.blocks[before].last) return;
  const ir::DefUse& def_use = workspace_.forms().def_use();
  std::vector<InstructionId> leaving;
  for (InstructionId id : function_.instructions_in(loop.header)) {
    if (function_.instructions[id].kind != ir::InstructionKind::real) continue;
    // Code behind these may never be reached.
    const ir::Effects& effects = function_.form_of(id).effects;
    if (function_.form_of(id).opaque || effects.terminates || effects.call || effects.barrier || effects.branch) break;
    const std::optional<Load> load = load_of(id);
    if (!load) continue;
    const BlockId defined = def_use.definition(load->base).block;
    if (std::ranges::find(loop.blocks, defined) != loop.blocks.end()) continue;
    if (workspace_.sites.take(id, "a load of the same address in every trip leaves its loop")) leaving.push_back(id);
  }
  const InstructionId last = function_.terminator(before);
  for (InstructionId id : leaving) {
    function_.remove(id);
    if (last)
      function_.insert_before(last, id);
    else
      function_.insert_after(function_.blocks[before].last, id);
    ++count_;
  }
}

void Reuse::reuse() {
  const ir::DominatorTree& dominators = workspace_.forms().dominators();
  std::map<LoadKey, std::vector<Load>> known;
  // Blocks in an order in which dominators come first.
  for (BlockId block : workspace_.forms().control_flow().reverse_postorder()) {
    std::vector<InstructionId> list;
    for (InstructionId id : function_.instructions_in(block))
      list.push_back(id);
    for (InstructionId id : list) {
      const std::optional<Load> load = load_of(id);
      if (!load) continue;
      std::vector<Load>& before = known[key_of(function_, *load)];
      const auto earlier = std::ranges::find_if(before, [&](const Load& other) {
        return dominators.dominates(function_.instructions[other.instruction].block, block) &&
               have_same_widths(function_, other, *load);
      });
      if (earlier != before.end() &&
          workspace_.sites.take(id, "a load of an address that was loaded before becomes a move"))
        copy_from_load(workspace_, *load, *earlier), ++count_;
      else
        before.push_back(*load);
    }
  }
}

} // namespace

size_t reuse_loads(Workspace& workspace) {
  return Reuse(workspace).run();
}

} // namespace ptxrewrite::transforms::memory
