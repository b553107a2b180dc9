// Finds loads and the slices of loops.
#include "transforms/dac/run_ahead_plan.h"

#include "ir/edit/dead_code.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::LoopId;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

// Collects the slice of one loop; records the reason if a value cannot be computed ahead. Without a loop: the code
// outside loops, which runs once.
class SliceBuilder {
public:
  SliceBuilder(const ir::LinearForms& forms, const ir::PostDominatorTree& post_dominators, LoopId loop)
      : forms_(forms), post_dominators_(post_dominators), function_(forms.function()), loop_id_(loop),
        header_(loop.valid() ? forms.loops().loops()[loop].header : function_.entry()) {}

  // Each returns false if it cannot be known ahead; refusal() has the reason.
  bool add_control(); // whether there is another trip
  bool add_load(const RunAheadLoad& load);
  bool add_edge(EdgeId edge);
  bool add_value(ValueId value);

  const std::string& refusal() const { return refusal_; }
  RunAheadSlice finish() const;

private:
  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }
  bool add_reach(BlockId block);
  bool add_parameter(const ir::DefinitionSite& site, std::vector<ValueId>& work);
  bool add_instruction(InstructionId id, std::vector<ValueId>& work);
  bool is_here(BlockId block) const { return forms_.loops().innermost(block) == loop_id_; }

  const ir::LinearForms& forms_;
  const ir::PostDominatorTree& post_dominators_;
  const ir::Function& function_;
  LoopId loop_id_;
  BlockId header_;
  std::set<ValueId> values_;
  std::set<InstructionId> instructions_;
  std::set<uint32_t> parameters_;
  std::map<BlockId, Reach> reach_;
  std::string refusal_;
};

bool SliceBuilder::add_control() {
  return add_edge(forms_.loops().loops()[loop_id_].back_edges.front());
}

bool SliceBuilder::add_edge(EdgeId edge) {
  const EdgeCondition condition = condition_of(function_, edge);
  return add_reach(function_.edges[edge].from) && (!condition.predicate || add_value(condition.predicate));
}

bool SliceBuilder::add_reach(BlockId block) {
  if (reach_.contains(block)) return true;
  if (block == header_) {
    reach_.emplace(block, Reach());
    return true;
  }
  const BlockId above = forms_.dominators().immediate_dominator(block);
  if (above && post_dominators_.post_dominates(block, above)) {
    if (!add_reach(above)) return false;
    reach_.emplace(block, Reach{above, {}});
    return true;
  }
  // A block inside an inner loop is executed more than once per trip.
  if (!is_here(block)) return refuse("an inner loop decides");
  Reach reach;
  for (EdgeId edge : forms_.control_flow().predecessors(block)) {
    if (!is_here(function_.edges[edge].from)) return refuse("an inner loop decides");
    const InstructionId terminator = function_.terminator(function_.edges[edge].from);
    if (terminator && !function_.is_opcode(terminator, Opcode::bra)) return refuse("an indexed branch decides");
    if (!add_edge(edge)) return false;
    reach.edges.push_back(edge);
  }
  reach_.emplace(block, std::move(reach));
  return true;
}

bool SliceBuilder::add_parameter(const ir::DefinitionSite& site, std::vector<ValueId>& work) {
  if (!loop_id_ || site.block != header_) return refuse("a value differs by the path taken in the trip");
  parameters_.insert(site.parameter);
  work.push_back(function_.arguments(forms_.loops().loops()[loop_id_].back_edges.front())[site.parameter]);
  return true;
}

bool SliceBuilder::add_instruction(InstructionId id, std::vector<ValueId>& work) {
  if (!ir::removable_when_unused(function_, id)) {
    const ir::Form& form = function_.form_of(id);
    if (form.effects.reads_memory) return refuse("it depends on loaded data");
    return refuse("it depends on '" + std::string(form.mnemonic) + "'");
  }
  if (!is_here(function_.instructions[id].block)) return refuse("it depends on an inner loop");
  instructions_.insert(id);
  ir::for_each_use(function_, id, [&](ValueId read) { work.push_back(read); });
  return true;
}

bool SliceBuilder::add_value(ValueId value) {
  std::vector<ValueId> work{value};
  while (!work.empty()) {
    const ValueId next = work.back();
    work.pop_back();
    if (function_.values[next].is_undefined || !values_.insert(next).second) continue;
    const ir::DefinitionSite& site = forms_.def_use().definition(next);
    if (loop_id_ && !forms_.loops().contains(loop_id_, site.block)) continue;
    if (site.is_parameter() ? !add_parameter(site, work) : !add_instruction(site.instruction, work)) return false;
  }
  return true;
}

bool SliceBuilder::add_load(const RunAheadLoad& load) {
  const ValueId guard = function_.instructions[load.instruction].guard;
  return add_reach(load.block) && (!guard || add_value(guard)) &&
         add_value(function_.operands_of(load.instruction)[load.address + 1].as_value());
}

RunAheadSlice SliceBuilder::finish() const {
  RunAheadSlice slice;
  slice.parameters.assign(parameters_.begin(), parameters_.end());
  slice.reach = reach_;
  std::vector<BlockId> blocks;
  for (InstructionId id : instructions_)
    blocks.push_back(function_.instructions[id].block);
  std::ranges::sort(blocks, {}, [&](BlockId block) { return forms_.control_flow().position(block); });
  const auto repeated = std::ranges::unique(blocks);
  blocks.erase(repeated.begin(), repeated.end());
  for (BlockId block : blocks)
    for (InstructionId id : function_.instructions_in(block))
      if (instructions_.contains(id)) slice.instructions.push_back(id);
  return slice;
}

// Does the mnemonic specify only space, width and type? Cache hints of a load must not be lost.
bool is_plain(const ir::Form& form) {
  for (ir::Modifier modifier : form.modifiers)
    switch (modifier) {
    case ir::Modifier::global:
    case ir::Modifier::weak:
    case ir::Modifier::nc:
    case ir::Modifier::v2:
    case ir::Modifier::v4:
      break;
    default:
      // Types are modifiers, too.
      if (std::ranges::none_of(form.types, [&](ir::ScalarType type) { return spelling(modifier) == spelling(type); }))
        return false;
    }
  return true;
}

// Why the loop as a whole cannot run ahead; empty if it can. `above` is the block before its header in the text.
std::string loop_refusal(const ir::LinearForms& forms, LoopId loop_id, BlockId above) {
  const ir::Function& function = forms.function();
  const ir::Loop& loop = forms.loops().loops()[loop_id];
  if (forms.loops().irreducible()) return "the kernel has a loop with several entries";
  if (loop.back_edges.size() != 1) return "the loop goes on from several places";
  if (loop.exits.empty()) return "the loop has no end";
  for (EdgeId edge : forms.control_flow().predecessors(loop.header)) {
    const BlockId from = function.edges[edge].from;
    const InstructionId terminator = function.terminator(from);
    if (terminator && !function.is_opcode(terminator, Opcode::bra)) return "an indexed branch leads to the loop";
  }
  if (!above) return "the kernel begins with the loop";
  if (function.blocks[above].falls_through && forms.loops().contains(loop_id, above))
    return "control falls from the end of the loop into its head";
  for (BlockId block : loop.blocks)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const ir::Form& form = function.form_of(id);
      if (form.opaque) return "'" + std::string(form.mnemonic) + "' may do anything";
      if (form.effects.terminates) return "a thread may end inside the loop";
    }
  return {};
}

std::optional<RunAheadLoad> global_load(const ir::Function& function, InstructionId id) {
  if (!function.is_opcode(id, Opcode::ld)) return std::nullopt;
  const ir::Form& form = function.form_of(id);
  if (form.space != ir::StateSpace::global) return std::nullopt;
  RunAheadLoad load{id, function.instructions[id].block, 0, 0, form.has(ir::Modifier::nc)};
  const auto operands = function.operands_of(id);
  while (load.address < operands.size() && !operands[load.address].is(OperandKind::address))
    ++load.address;
  if (load.address >= operands.size()) return std::nullopt;
  load.bytes = (ir::bit_width(form.type()) + 7) / 8 * form.vector_width;
  return load;
}

// Why one load cannot run ahead, apart from its slice; empty if it can.
std::string load_refusal(const ir::LinearForms& forms, const RunAheadLoad& load, LoopId loop) {
  const ir::Function& function = forms.function();
  const ir::Form& form = function.form_of(load.instruction);
  if (form.effects.volatile_result || form.effects.atomic) return "it is volatile or ordered";
  if (!is_plain(form)) return "its cache operator would be lost";
  const Operand& base = function.operands_of(load.instruction)[load.address + 1];
  if (!base.is(OperandKind::value) || !forms.loops().contains(loop, forms.def_use().definition(base.as_value()).block))
    return "its address is the same in every trip";
  const ir::LinearForm& address = forms.address_form(load.instruction, load.address);
  if (address.kind == ir::ValueClass::constant || (address.kind == ir::ValueClass::launch_uniform && !address.varies) ||
      address.kind == ir::ValueClass::linear)
    return "its address is the same in every trip";
  return {};
}

} // namespace

EdgeCondition condition_of(const ir::Function& function, EdgeId edge) {
  const BlockId from = function.edges[edge].from;
  const auto successors = function.successors(from);
  if (successors.size() != 2 || function.edges[successors[0]].to == function.edges[successors[1]].to) return {};
  const ir::Instruction& branch = function.instructions[function.terminator(from)];
  // Successor 0 is the target, taken if the guard holds.
  return {branch.guard, (successors[0] == edge) != branch.guard_negated};
}

RunAheadPlanner::RunAheadPlanner(const ir::LinearForms& forms)
    : forms_(forms), function_(forms.function()), post_dominators_(function_, forms.control_flow()),
      above_(function_.blocks.size()) {
  for (size_t i = 1; i < function_.layout.size(); ++i)
    above_[function_.layout[i].index()] = function_.layout[i - 1];
}

RunAheadPlan RunAheadPlanner::plan(LoopId loop_id) const {
  const ir::Loop& loop = forms_.loops().loops()[loop_id];
  RunAheadPlan plan{loop_id, loop.header, {}, {}, {}, {}};
  std::vector<RunAheadLoad> loads;
  for (BlockId block : loop.blocks) {
    if (forms_.loops().innermost(block) != loop_id) continue;
    for (InstructionId id : function_.instructions_in(block))
      if (std::optional<RunAheadLoad> load = global_load(function_, id)) loads.push_back(*load);
  }
  if (loads.empty()) return plan;
  std::string refusal = loop_refusal(forms_, loop_id, above_[loop.header.index()]);
  SliceBuilder control(forms_, post_dominators_, loop_id);
  if (refusal.empty()) {
    plan.back_edge = loop.back_edges.front();
    if (!control.add_control()) refusal = "the end of the loop is not known ahead: " + control.refusal();
  }
  for (const RunAheadLoad& load : loads) {
    std::string why = refusal.empty() ? load_refusal(forms_, load, loop_id) : refusal;
    SliceBuilder builder(forms_, post_dominators_, loop_id);
    if (why.empty() && !builder.add_load(load)) why = "its address is not known ahead: " + builder.refusal();
    if (why.empty())
      plan.loads.push_back(load);
    else
      plan.staying.push_back({load.instruction, std::move(why)});
  }
  plan.slice = slice_of(plan, plan.loads);
  return plan;
}

RunAheadSlice RunAheadPlanner::slice_of(const RunAheadPlan& plan, const std::vector<RunAheadLoad>& loads) const {
  if (loads.empty()) return {};
  SliceBuilder builder(forms_, post_dominators_, plan.loop);
  builder.add_control();
  for (const RunAheadLoad& load : loads)
    builder.add_load(load);
  return builder.finish();
}

std::optional<RunAheadSlice> RunAheadPlanner::preamble_of(const RunAheadPlan& plan, EdgeId entry,
                                                          std::string& refusal) const {
  SliceBuilder builder(forms_, post_dominators_, LoopId());
  const auto add_from_outside = [&](ValueId value) {
    const ir::DefinitionSite& site = forms_.def_use().definition(value);
    return function_.values[value].is_undefined || forms_.loops().contains(plan.loop, site.block) ||
           builder.add_value(value);
  };
  bool good = builder.add_edge(entry);
  for (InstructionId id : plan.slice.instructions)
    ir::for_each_use(function_, id, [&](ValueId value) { good = good && add_from_outside(value); });
  const auto add_condition = [&](EdgeId edge) {
    const ValueId predicate = condition_of(function_, edge).predicate;
    good = good && (!predicate || add_from_outside(predicate));
  };
  add_condition(plan.back_edge);
  for (const auto& [block, reach] : plan.slice.reach)
    std::ranges::for_each(reach.edges, add_condition);
  for (uint32_t parameter : plan.slice.parameters) {
    good = good && builder.add_value(function_.arguments(entry)[parameter]);
    good = good && add_from_outside(function_.arguments(plan.back_edge)[parameter]);
  }
  refusal = builder.refusal();
  return good ? std::optional(builder.finish()) : std::nullopt;
}

} // namespace ptxrewrite::transforms::legal
