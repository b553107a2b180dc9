// Read-only loads: those whose address does not change in a loop move in front of it, and a load of an address that was
// loaded before becomes a move.
//
// ptxas does neither across stores if the two addresses are computed by different registers after unrolling, or if the
// loop has several exits. The data of a read-only load is constant while the kernel runs, so that only the addresses
// matter: the same register, read where the earlier load dominates the later one, has the same value in both places. A
// load leaves a loop only from the beginning of its header, which is executed whenever the loop is entered.
#include "transforms/memory/workspace.h"

#include "ir/core/builder.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

struct Load {
  InstructionId instruction;
  ValueId base;
  int64_t offset = 0;
  std::vector<ValueId> elements;
};

class Reuse {
public:
  explicit Reuse(Workspace& workspace) : workspace_(workspace), function_(workspace.function) {}

  size_t run() {
    if (workspace_.read_only.empty()) return 0;
    leave_loops();
    reuse();
    return count_;
  }

private:
  std::optional<Load> load_of(InstructionId id) const;
  // The block that is left only for the loop's header; invalid if there is none.
  BlockId preheader(const ir::Loop& loop) const;
  void leave_loops();
  void leave(const ir::Loop& loop);
  void reuse();
  void replace(const Load& later, const Load& earlier);

  Workspace& workspace_;
  ir::Function& function_;
  size_t count_ = 0;
};

std::optional<Load> Reuse::load_of(InstructionId id) const {
  if (!workspace_.read_only.contains(id) || function_.instructions[id].guard) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  if (form.space != ir::StateSpace::global) return std::nullopt;
  const auto operands = function_.operands_of(id);
  const size_t address = ir::next_sibling(operands, 0);
  if (address + 2 != operands.size() || !operands[address].is(OperandKind::address) ||
      operands[address].group_size() != 1 || !operands[address + 1].is(OperandKind::value))
    return std::nullopt;
  Load load{id, operands[address + 1].as_value(), operands[address].immediate, {}};
  for (size_t i = operands[0].is(OperandKind::vector) ? 1 : 0; i < address; ++i) {
    if (!operands[i].is(OperandKind::value) || !operands[i].is_definition() ||
        operands[i].selector != ir::no_selector || function_.values[operands[i].as_value()].vector_width != 1)
      return std::nullopt;
    load.elements.push_back(operands[i].as_value());
  }
  return load;
}

BlockId Reuse::preheader(const ir::Loop& loop) const {
  BlockId found;
  for (ir::EdgeId edge : workspace_.forms.control_flow().predecessors(loop.header)) {
    if (std::ranges::find(loop.back_edges, edge) != loop.back_edges.end()) continue;
    if (found) return {};
    found = function_.edges[edge].from;
  }
  return found && function_.successors(found).size() == 1 ? found : BlockId();
}

// From inner loops to outer ones: the block in front of an inner loop may be the header of an outer one.
void Reuse::leave_loops() {
  std::vector<const ir::Loop*> loops;
  for (const ir::Loop& loop : workspace_.forms.loops().loops())
    loops.push_back(&loop);
  std::ranges::stable_sort(loops, std::greater(), [](const ir::Loop* loop) { return loop->depth; });
  for (const ir::Loop* loop : loops)
    leave(*loop);
}

void Reuse::leave(const ir::Loop& loop) {
  const BlockId before = preheader(loop);
  if (!before || !function_.blocks[before].last) return;
  const ir::DefUse& def_use = workspace_.forms.def_use();
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

void Reuse::replace(const Load& later, const Load& earlier) {
  ir::Builder builder(function_);
  builder.before(later.instruction).standing_for(later.instruction);
  std::vector<Operand> results;
  const auto operands = function_.operands_of(later.instruction);
  for (const Operand& operand : operands)
    if (operand.is(OperandKind::value) && operand.is_definition()) results.push_back(operand);
  for (size_t i = 0; i < results.size(); ++i) {
    const unsigned bits = ir::bit_width(function_.values[later.elements[i]].type);
    builder.emit("mov.b" + std::to_string(bits), {results[i], Operand::value(earlier.elements[i])});
  }
  function_.remove(later.instruction);
  ++count_;
}

void Reuse::reuse() {
  using Key = std::tuple<uint32_t, int64_t, uint32_t>; // base, offset, form
  const ir::DominatorTree& dominators = workspace_.forms.dominators();
  std::map<Key, std::vector<Load>> known;
  // Blocks in an order in which dominators come first.
  for (BlockId block : workspace_.forms.control_flow().reverse_postorder()) {
    std::vector<InstructionId> list;
    for (InstructionId id : function_.instructions_in(block))
      list.push_back(id);
    for (InstructionId id : list) {
      const std::optional<Load> load = load_of(id);
      if (!load) continue;
      std::vector<Load>& before = known[{load->base.index(), load->offset, function_.instructions[id].form.index()}];
      const auto earlier = std::ranges::find_if(before, [&](const Load& other) {
        const auto same_width = [&](ValueId a, ValueId b) {
          return ir::bit_width(function_.values[a].type) == ir::bit_width(function_.values[b].type);
        };
        return dominators.dominates(function_.instructions[other.instruction].block, block) &&
               std::ranges::equal(other.elements, load->elements, same_width);
      });
      if (earlier != before.end() &&
          workspace_.sites.take(id, "a load of an address that was loaded before becomes a move"))
        replace(*load, *earlier);
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
