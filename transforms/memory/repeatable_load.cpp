// Hoists read-only loads of one address from several control-flow paths above the branch where these paths diverge.
//
// Every thread that reaches the branch executes the hoisted load, so the kernel may access no address that the original
// does not. Two conditions ensure this: the branches on each path have launch-uniform guards, and a predicate on the
// launch guarantees that one of the paths is taken.
#include "transforms/memory/repeatable_load.h"

#include "ir/core/builder.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr std::string_view hoisted_for = "memory: a load in front of a branch";

// "(a) && (b)"
std::string joined(const std::set<std::string>& parts, const std::string& connective) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "(" : connective + "(") + part + ")";
  return text;
}

class CommonLoads {
public:
  explicit CommonLoads(Workspace& workspace)
      : workspace_(workspace), function_(workspace.function), forms_(workspace.forms()),
        post_dominators_(forms_.function(), forms_.control_flow()) {}

  size_t run();

private:
  BlockId block_of(const Load& load) const { return function_.instructions[load.instruction].block; }
  BlockId common_dominator(const std::vector<Load>& loads) const;
  bool always_passes(BlockId from, const Load& load) const;
  std::optional<ir::LaunchConditions> path_conditions(BlockId from, const Load& load);
  bool add_branch(BlockId from, BlockId to, ir::LaunchConditions& conditions);
  bool try_loads(const std::vector<Load>& loads);

  Workspace& workspace_;
  ir::Function& function_;
  ir::LinearForms& forms_;
  ir::PostDominatorTree post_dominators_;
};

BlockId CommonLoads::common_dominator(const std::vector<Load>& loads) const {
  const ir::DominatorTree& dominators = forms_.dominators();
  BlockId found = block_of(loads.front());
  for (const Load& load : loads)
    while (found && !dominators.dominates(found, block_of(load)))
      found = dominators.immediate_dominator(found);
  return found;
}

// True if no thread stops between the block and the load: barriers and calls may not return, and a loop may be endless
// unless its trip count is known.
bool CommonLoads::always_passes(BlockId from, const Load& load) const {
  std::set<BlockId> between{block_of(load)};
  std::vector<BlockId> work(between.begin(), between.end());
  for (size_t i = 0; i < work.size(); ++i)
    for (ir::EdgeId edge : forms_.control_flow().predecessors(work[i]))
      if (const BlockId next = function_.edges[edge].from; next != from && between.insert(next).second)
        work.push_back(next);
  const ir::LoopForest& loops = forms_.loops();
  for (BlockId block : work) {
    const ir::LoopId loop = loops.innermost(block);
    if (loop && !loops.contains(loop, from) && !forms_.trip_bound(loop).known) return false;
    for (InstructionId id : function_.instructions_in(block)) {
      if (id == load.instruction) break;
      if (function_.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = function_.form_of(id);
      if (form.opaque || form.effects.terminates || form.effects.call || form.effects.barrier) return false;
    }
  }
  return true;
}

// Adds the condition under which the branch at the end of `from` goes to `to`.
bool CommonLoads::add_branch(BlockId from, BlockId to, ir::LaunchConditions& conditions) {
  const auto successors = function_.successors(from);
  const InstructionId end = function_.terminator(from);
  if (successors.size() != 2 || !end || !function_.is_opcode(end, ir::Opcode::bra) ||
      !function_.instructions[end].guard)
    return false;
  const BlockId taken = function_.edges[successors[0]].to, other = function_.edges[successors[1]].to;
  if (taken == other || (to != taken && to != other) || forms_.control_flow().predecessors(to).size() != 1)
    return false;
  const ValueId guard = function_.instructions[end].guard;
  const ir::LinearForm& form = forms_.form(guard);
  const bool is_known = form.kind == ir::ValueClass::constant || form.kind == ir::ValueClass::launch_uniform;
  if (!is_known || form.varies || !form.has_coefficients()) return false;
  const ir::ExpressionId expression = form.coefficients[ir::form_index::constant];
  if (!forms_.expressions()[expression].evaluable) return false;
  const auto needed = workspace_.extents().discharge(forms_.obligations(guard));
  if (!needed) return false;
  conditions.insert(needed->begin(), needed->end());
  const bool holds = (to == taken) != function_.instructions[end].guard_negated;
  conditions.insert("(" + forms_.expressions().print_predicate(expression) + ")" + (holds ? " != 0" : " == 0"));
  return true;
}

// The conditions under which every thread that reaches the end of the block `from` executes the load; nothing if the
// launch alone does not decide it.
std::optional<ir::LaunchConditions> CommonLoads::path_conditions(BlockId from, const Load& load) {
  if (!always_passes(from, load)) return std::nullopt;
  ir::LaunchConditions conditions;
  for (BlockId to = block_of(load); to != from;) {
    const BlockId above = forms_.dominators().immediate_dominator(to);
    if (!post_dominators_.post_dominates(to, above) && !add_branch(above, to, conditions)) return std::nullopt;
    to = above;
  }
  return conditions;
}

bool CommonLoads::try_loads(const std::vector<Load>& loads) {
  const BlockId place = common_dominator(loads);
  const auto is_there = [&](const Load& load) { return block_of(load) == place; };
  if (!place || std::ranges::any_of(loads, is_there)) return false;
  const BlockId defined = forms_.def_use().definition(loads.front().base).block;
  const ir::LoopId loop = forms_.loops().innermost(place);
  const auto is_inside = [&](const Load& load) { return !loop || forms_.loops().contains(loop, block_of(load)); };
  const InstructionId last = function_.terminator(place);
  // A later trip may load from another address.
  if (loop && forms_.loops().contains(loop, defined)) return false;
  if (!last || !forms_.dominators().dominates(defined, place) || !std::ranges::all_of(loads, is_inside)) return false;
  std::set<std::string> paths;
  bool always = false;
  for (const Load& load : loads) {
    const auto conditions = path_conditions(place, load);
    if (!conditions) continue;
    always = always || conditions->empty();
    paths.insert(joined(*conditions, " && "));
  }
  if (paths.empty()) return false;
  std::vector<Need> needs;
  if (!always) needs.push_back({"one of the loads is executed", joined(paths, " || "), loads.front().instruction});
  if (!workspace_.can_rest_on(needs) ||
      !workspace_.sites.take(loads.front().instruction, "loads of one address on several paths become one"))
    return false;
  workspace_.rest_on(needs, hoisted_for);
  function_.remove(loads.front().instruction);
  function_.insert_before(last, loads.front().instruction);
  for (size_t i = 1; i < loads.size(); ++i)
    copy_from_load(workspace_, loads[i], loads.front());
  return true;
}

size_t CommonLoads::run() {
  if (forms_.loops().irreducible()) return 0;
  std::map<LoadKey, std::vector<Load>> known;
  for (BlockId block : forms_.control_flow().reverse_postorder())
    for (InstructionId id : function_.instructions_in(block))
      if (auto load = repeatable_load(workspace_, id)) known[key_of(function_, *load)].push_back(*std::move(load));
  size_t count = 0;
  for (const auto& [key, loads] : known) {
    const auto same = [&](const Load& load) { return have_same_widths(function_, load, loads.front()); };
    if (loads.size() > 1 && std::ranges::all_of(loads, same) && try_loads(loads)) count += loads.size();
  }
  return count;
}

} // namespace

LoadKey key_of(const ir::Function& function, const Load& load) {
  return {load.base.index(), load.offset, function.instructions[load.instruction].form.index()};
}

std::optional<Load> repeatable_load(const Workspace& workspace, InstructionId id) {
  const ir::Function& function = workspace.function;
  if (!workspace.read_only.contains(id) || function.instructions[id].guard) return std::nullopt;
  const ir::Form& form = function.form_of(id);
  if (form.space != ir::StateSpace::global) return std::nullopt;
  const auto operands = function.operands_of(id);
  const size_t address = ir::next_sibling(operands, 0);
  if (address + 2 != operands.size() || !operands[address].is(OperandKind::address) ||
      operands[address].group_size() != 1 || !operands[address + 1].is(OperandKind::value))
    return std::nullopt;
  Load load{id, operands[address + 1].as_value(), operands[address].immediate, {}};
  for (size_t i = operands[0].is(OperandKind::vector) ? 1 : 0; i < address; ++i) {
    if (!operands[i].is(OperandKind::value) || !operands[i].is_definition() ||
        operands[i].selector != ir::no_selector || function.values[operands[i].as_value()].vector_width != 1)
      return std::nullopt;
    load.elements.push_back(operands[i].as_value());
  }
  return load;
}

bool have_same_widths(const ir::Function& function, const Load& a, const Load& b) {
  return std::ranges::equal(a.elements, b.elements, [&](ValueId x, ValueId y) {
    return ir::bit_width(function.values[x].type) == ir::bit_width(function.values[y].type);
  });
}

void copy_from_load(Workspace& workspace, const Load& later, const Load& earlier) {
  ir::Function& function = workspace.function;
  ir::Builder builder(function);
  builder.before(later.instruction).standing_for(later.instruction);
  std::vector<Operand> results;
  const auto operands = function.operands_of(later.instruction);
  for (const Operand& operand : operands)
    if (operand.is(OperandKind::value) && operand.is_definition()) results.push_back(operand);
  for (size_t i = 0; i < results.size(); ++i) {
    const unsigned bits = ir::bit_width(function.values[later.elements[i]].type);
    builder.emit("mov.b" + std::to_string(bits), {results[i], Operand::value(earlier.elements[i])});
  }
  function.remove(later.instruction);
}

size_t load_before_branches(Workspace& workspace) {
  return CommonLoads(workspace).run();
}

} // namespace ptxrewrite::transforms::memory
