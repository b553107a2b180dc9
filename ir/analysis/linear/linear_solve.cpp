// The fixpoint iteration over a function, and the last pass, which records the obligations of forms.
#include "ir/analysis/linear/linear_state.h"
#include "ir/flow/dataflow.h"

#include <algorithm>
#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

using Results = std::vector<std::pair<ValueId, LinearFormId>>;

unsigned width_of(const Function& function, ValueId value) {
  return bit_width(function.values[value].type);
}

class LinearProblem {
public:
  using State = LinearFormId;

  explicit LinearProblem(LinearForms::State& state)
      : state_(state), transfer_(state), raises_demands_(state.function.instructions.size()),
        headers_(state.function.values.size()), branch_joins_(state.function.blocks.size()),
        branch_loops_(state.function.blocks.size()), leaving_uses_(state.loops.loops().size()) {}

  void attach(SparseDataflow<LinearProblem>& flow) {
    flow_ = &flow;
    find_joins();
    find_leaving_uses();
  }

  LinearFormId visit_parameter(BlockId block, unsigned index, bool back_edges_ready) {
    ValueId parameter = state_.function.parameters(block)[index];
    LinearFormId result = parameter_form(block, index, parameter, back_edges_ready);
    state_.value_form[parameter] = result;
    return result;
  }

  template <class Set> void visit_instruction(InstructionId id, Set&& set) {
    const Function& function = state_.function;
    demands_.clear();
    state_.demands = &demands_;
    const bool computed = transfer_.compute(id, results_);
    state_.demands = nullptr;
    if (!demands_.empty()) raises_demands_[id.index()] = true;
    if (computed)
      for (auto [value, form] : results_) {
        state_.value_form[value] = form;
        set(value, form);
      }
    if (function.instructions[id].kind != InstructionKind::real) return;
    BlockId block = function.instructions[id].block;
    if (function.form_of(id).effects.branch) {
      for (BlockId join : branch_joins_[block.index()])
        schedule_parameters(join);
      for (LoopId loop : branch_loops_[block.index()])
        schedule_leaving(loop);
    }
    if (auto found = test_loops_.find(id); found != test_loops_.end())
      for (LoopId loop : found->second)
        schedule_leaving(loop);
  }

  // By instruction: did it raise a demand in any iteration?
  const std::vector<bool>& raises_demands() const { return raises_demands_; }

private:
  struct HeaderValue {
    ExpressionId step;
    bool not_linear = false;
    Level level = Level::launch; // used if it is not linear
    uint8_t changes = 0;
  };
  static constexpr uint8_t change_limit = 8; // entry values of nested loops may change once per outer loop

  // --- values to revisit when a branch turns out to diverge ---

  void find_joins() {
    const Function& function = state_.function;
    for (BlockId block : state_.flow.reverse_postorder()) {
      if (function.parameters(block).empty() || state_.flow.predecessors(block).size() < 2) continue;
      if (!state_.dominators.immediate_dominator(block)) continue;
      for (BlockId branch : state_.join_region(block).branches)
        branch_joins_[branch.index()].push_back(block);
      LoopId loop = state_.loops.innermost(block);
      if (loop && state_.loops.loops()[loop].header == block && state_.loops.loops()[loop].back_edges.size() > 1)
        for (BlockId inside : state_.loops.loops()[loop].blocks)
          if (function.successors(inside).size() > 1) branch_joins_[inside.index()].push_back(block);
    }
  }

  void find_leaving_uses() {
    const Function& function = state_.function;
    if (state_.loops.loops().empty()) return;
    for (ValueId value : function.values.ids()) {
      const DefinitionSite& site = state_.def_use.definition(value);
      if (!site.block || !state_.loops.innermost(site.block)) continue;
      for (const Use& use : state_.def_use.uses(value)) {
        BlockId where = use.edge ? function.edges[use.edge].to : function.instructions[use.instruction].block;
        for (LoopId loop = state_.loops.innermost(site.block); loop && !state_.loops.contains(loop, where);
             loop = state_.loops.loops()[loop].parent)
          leaving_uses_[loop.index()].push_back(use);
      }
    }
    for (LoopId loop : state_.loops.loops().ids()) {
      if (leaving_uses_[loop.index()].empty()) continue;
      for (EdgeId exit : state_.loops.loops()[loop].exits) {
        BlockId from = function.edges[exit].from;
        branch_loops_[from.index()].push_back(loop);
        ValueId predicate = state_.branch_selector(from);
        InstructionId test = predicate ? state_.def_use.definition(predicate).instruction : InstructionId();
        if (test) test_loops_[test].push_back(loop);
      }
    }
  }

  void schedule_parameters(BlockId block) {
    for (unsigned i = 0; i < state_.function.parameters(block).size(); ++i) {
      flow_->schedule_parameter(block, i);
      flow_->schedule_recheck(block, i);
    }
  }

  void schedule_leaving(LoopId loop) {
    for (const Use& use : leaving_uses_[loop.index()]) {
      if (use.instruction) {
        flow_->schedule_instruction(use.instruction);
        continue;
      }
      // Only a recheck reads the arguments of back edges. To visit the headers themselves would start again from the
      // outermost loop of a nest at the end of each loop inside it.
      const Edge& edge = state_.function.edges[use.edge];
      if (state_.flow.position(edge.to) <= state_.flow.position(edge.from))
        flow_->schedule_recheck(edge.to, use.index);
      else
        schedule_parameters(edge.to);
    }
  }

  // --- block parameters ---

  LinearFormId parameter_form(BlockId block, unsigned index, ValueId parameter, bool back_edges_ready) {
    const Function& function = state_.function;
    unsigned width = width_of(function, parameter);
    auto incoming = state_.flow.predecessors(block);
    if (width == 0 || width > 64 || function.values[parameter].vector_width != 1) return state_.any(width);
    LoopId loop = state_.loops.innermost(block);
    bool header = loop && state_.loops.loops()[loop].header == block;
    if (state_.loops.irreducible() && incoming.size() > 1) return state_.any(width);
    if (!header) return state_.join(block, index, incoming);

    std::vector<EdgeId> entries;
    for (EdgeId edge : incoming)
      if (!std::ranges::count(state_.loops.loops()[loop].back_edges, edge)) entries.push_back(edge);
    LinearFormId entry = state_.join(block, index, entries);
    if (!entry) return entry;
    HeaderValue& row = headers_[parameter.index()];
    if (back_edges_ready) check_back_edges(loop, index, parameter, entry, row);
    return current(loop, parameter, entry, row, width);
  }

  // The parameter's form, from its entry value and the current assumption about its back edges.
  LinearFormId current(LoopId loop, ValueId parameter, LinearFormId entry, HeaderValue& row, unsigned width) {
    if (!row.not_linear) {
      if (!row.step) return entry;
      LinearFormId form = state_.with_loop_offset(entry, loop, row.step);
      if (state_.at(form).kind != ValueClass::any) return form;
    }
    switch (std::max(row.level, state_.level(entry))) {
    case Level::launch:
      return state_.uniform(state_.pool.value(parameter, width, true));
    case Level::block:
      return state_.block_uniform(width, true);
    case Level::thread:
      break;
    }
    return state_.any(width);
  }

  void check_back_edges(LoopId loop, unsigned index, ValueId parameter, LinearFormId entry, HeaderValue& row) {
    const Function& function = state_.function;
    BlockId header = state_.loops.loops()[loop].header;
    Level level = Level::launch;
    bool agree = true, fresh = !row.step;
    unsigned carried = 0; // back edges whose argument is not the parameter itself
    for (EdgeId edge : state_.loops.loops()[loop].back_edges) {
      ValueId argument = function.arguments(edge)[index];
      if (argument == parameter) {
        carried += row.step ? 1 : 0;
        agree &= !row.step;
        continue;
      }
      LinearFormId form = state_.form_in(argument, header);
      if (!form) continue;
      ++carried;
      level = std::max(level, state_.level(form));
      if (row.not_linear || !agree) continue;
      agree = agrees(loop, entry, form, row, fresh);
      if (agree && fresh && row.step && carried > 1 && state_.loops.loops()[loop].back_edges.size() != carried)
        agree = false; // an earlier back edge passed the parameter unchanged
    }
    if (agree && row.changes <= change_limit && !row.not_linear) return;
    row.not_linear = true;
    if (state_.loops.loops()[loop].back_edges.size() > 1)
      for (BlockId inside : state_.loops.loops()[loop].blocks)
        level = std::max(level, state_.branch_level(inside));
    row.level = std::max(row.level, level);
    if (row.changes > change_limit) row.level = Level::thread;
  }

  // True if the back edge passes the value of the next trip. Sets the step if there is none yet.
  bool agrees(LoopId loop, LinearFormId entry, LinearFormId form, HeaderValue& row, bool fresh) {
    bool identified = state_.at(entry).has_coefficients() || state_.at(entry).kind == ValueClass::mod_linear ||
                      state_.at(entry).kind == ValueClass::divergent_linear;
    if (!row.step && form == entry && identified) return true;
    if (!state_.at(entry).has_coefficients() || !state_.at(form).has_coefficients()) return false;
    LinearFormId now = row.step && !fresh ? state_.with_loop_offset(entry, loop, row.step) : entry;
    auto difference = state_.scalar(state_.subtract(form, now));
    if (!difference || state_.pool[*difference].varies) return false;
    if (!row.step) {
      row.step = *difference;
      ++row.changes;
      return true;
    }
    return row.step == *difference;
  }

  LinearForms::State& state_;
  LinearTransfer transfer_;
  SparseDataflow<LinearProblem>* flow_ = nullptr;
  Results results_;
  std::vector<Demand> demands_;
  std::vector<bool> raises_demands_;
  std::vector<HeaderValue> headers_;
  std::vector<std::vector<BlockId>> branch_joins_; // by branching block
  std::vector<std::vector<LoopId>> branch_loops_;
  std::vector<std::vector<Use>> leaving_uses_; // by loop
  std::unordered_map<InstructionId, std::vector<LoopId>> test_loops_;
};

// Computes obligations: those of each value, then those of its sources, to a fixpoint.
class ObligationPass {
public:
  // `raises_demands`: by instruction.
  ObligationPass(LinearForms::State& state, const std::vector<bool>& raises_demands)
      : state_(state), raises_demands_(raises_demands), own_(state.function.values.size()) {}

  void run() {
    if (!record_own()) return;
    // Without loops, a sweep in this order visits all sources of a value before it.
    const bool once = state_.loops.loops().empty() && !state_.loops.irreducible();
    for (bool changed = true; changed;) {
      changed = false;
      exits_have_obligations_ = have_obligations_of_exits();
      for (BlockId block : state_.flow.reverse_postorder())
        changed |= propagate(block);
      changed &= !once;
    }
    drop_overloaded();
  }

private:
  bool has_form(ValueId value) const { return state_.at(state_.value_form[value]).kind != ValueClass::any; }

  // Returns false if no value has an obligation.
  bool record_own() {
    bool found = false;
    LinearTransfer transfer(state_);
    std::vector<Demand> demands;
    Results results;
    state_.demands = &demands;
    for (BlockId block : state_.flow.reverse_postorder())
      for (InstructionId id : state_.function.instructions_in(block)) {
        if (!raises_demands_[id.index()]) continue;
        bool wanted = false;
        for_each_definition(state_.function, id, [&](ValueId value) { wanted |= has_form(value); });
        if (!wanted) continue;
        demands.clear();
        transfer.compute(id, results);
        if (demands.empty()) continue;
        std::vector<ObligationId> list;
        std::vector<ValueId> also;
        for (const Demand& demand : demands) {
          list.push_back(state_.require(demand.form, demand.range, id));
          for (const LoopOffset& offset : state_.at(demand.form).loops())
            add_test_operands(offset.loop, also);
        }
        ObligationSetId set = state_.make_set(list);
        found = true;
        for (auto [value, form] : results) {
          own_[value.index()] = set;
          if (!also.empty()) bound_operands_[value] = also;
        }
      }
    state_.demands = nullptr;
    return found;
  }

  // A trip bound depends on an exit test, and therefore on the obligations of the test's operands.
  void add_test_operands(LoopId loop, std::vector<ValueId>& out) {
    for (EdgeId exit : state_.loops.loops()[loop].exits)
      if (ValueId predicate = state_.branch_predicate(state_.function.edges[exit].from))
        if (InstructionId test = state_.def_use.definition(predicate).instruction)
          for_each_use(state_.function, test, [&](ValueId value) { out.push_back(value); });
  }

  ObligationSetId set_of(ValueId value) const { return state_.value_obligations[value]; }

  // Values that leave a loop add those of its exits.
  bool have_obligations_of_exits() {
    std::vector<ValueId> operands;
    for (LoopId loop : state_.loops.loops().ids())
      add_test_operands(loop, operands);
    return std::ranges::any_of(operands, [&](ValueId value) { return set_of(value) != ObligationSetId(0); });
  }

  bool update(ValueId value, ObligationSetId set) {
    if (!has_form(value)) return false;
    if (own_[value.index()]) set = state_.united(set, own_[value.index()]);
    if (auto found = bound_operands_.find(value); found != bound_operands_.end())
      for (ValueId operand : found->second)
        set = state_.united(set, set_of(operand));
    set = state_.united(set, set_of(value));
    if (set == set_of(value)) return false;
    state_.value_obligations[value] = set;
    return true;
  }

  // The value after a loop with a known trip count depends on the tests of the loop's exits.
  ObligationSetId with_exits(ValueId value, BlockId where, ObligationSetId set) {
    const DefinitionSite& site = state_.def_use.definition(value);
    if (!site.block) return set;
    for (LoopId loop = state_.loops.innermost(site.block); loop && !state_.loops.contains(loop, where);
         loop = state_.loops.loops()[loop].parent) {
      std::vector<ValueId> operands;
      add_test_operands(loop, operands);
      for (ValueId operand : operands)
        set = state_.united(set, set_of(operand));
    }
    return set;
  }

  bool propagate(BlockId block) {
    const Function& function = state_.function;
    ObligationSetId empty = ObligationSetId(0);
    bool changed = false;
    auto parameters = function.parameters(block);
    ObligationSetId control = empty;
    if (!parameters.empty() && state_.flow.predecessors(block).size() > 1 &&
        state_.dominators.immediate_dominator(block))
      for (BlockId branch : state_.join_region(block).branches)
        if (ValueId selector = state_.branch_selector(branch)) control = state_.united(control, set_of(selector));
    for (unsigned i = 0; i < parameters.size(); ++i) {
      if (!has_form(parameters[i])) continue;
      ObligationSetId set = control;
      for (EdgeId edge : state_.flow.predecessors(block)) {
        ValueId argument = function.arguments(edge)[i];
        set = with_exits(argument, block, state_.united(set, set_of(argument)));
      }
      changed |= update(parameters[i], set);
    }
    for (InstructionId id : function.instructions_in(block)) {
      bool has_forms = false, has_obligations = exits_have_obligations_;
      for (const Operand& operand : function.operands_of(id)) {
        if (!operand.is(OperandKind::value)) continue;
        const ValueId value = operand.as_value();
        has_forms |= operand.is_definition() && has_form(value);
        has_obligations |= operand.is_definition() ? own_[value.index()].valid() : set_of(value) != empty;
      }
      if (const ValueId guard = function.instructions[id].guard) has_obligations |= set_of(guard) != empty;
      if (!has_forms || !has_obligations) continue;
      ObligationSetId set = empty;
      for_each_use(function, id,
                   [&](ValueId value) { set = with_exits(value, block, state_.united(set, set_of(value))); });
      for_each_definition(function, id, [&](ValueId value) { changed |= update(value, set); });
    }
    return changed;
  }

  void drop_overloaded() {
    for (ValueId value : state_.function.values.ids()) {
      if (state_.obligation_sets[set_of(value)].count <= LinearForms::State::obligation_limit) continue;
      state_.value_form[value] = state_.any(width_of(state_.function, value));
      state_.value_obligations[value] = ObligationSetId(0);
    }
  }

  LinearForms::State& state_;
  const std::vector<bool>& raises_demands_;
  std::vector<ObligationSetId> own_;
  bool exits_have_obligations_ = false; // when the sweep began
  std::unordered_map<ValueId, std::vector<ValueId>> bound_operands_;
};

} // namespace

void solve_linear_forms(LinearForms::State& state) {
  const Function& function = state.function;
  state.value_form.resize(function.values.size());
  for (ValueId value : function.values.ids()) {
    const DefinitionSite& site = state.def_use.definition(value);
    if ((!site.instruction && !site.is_parameter()) || !state.flow.reachable(site.block))
      state.value_form[value] = state.any(width_of(function, value));
  }
  LinearProblem problem(state);
  SparseDataflow<LinearProblem> flow(function, state.flow, state.def_use, problem);
  problem.attach(flow);
  flow.solve();
  // Values that the optimistic iteration did not visit are unreachable; give them no form.
  for (ValueId value : function.values.ids())
    if (!state.value_form[value]) state.value_form[value] = state.any(width_of(function, value));
  state.settled = true;
  for (LoopId loop : state.loops.loops().ids())
    state.trip_bounds.push_back(state.find_trip_bound(loop));
  std::vector<ObligationId> none;
  state.value_obligations.resize(function.values.size(), state.make_set(none));
  ObligationPass(state, problem.raises_demands()).run();
}

} // namespace ptxrewrite::ir
