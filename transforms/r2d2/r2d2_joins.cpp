// Registers that are written on several paths (paper §3.1.2): each of the linear forms gets a linear register, and each
// thread moves the one for its path into a general register. Accesses whose addresses differ from it by the same amount
// on all paths share it.
#include "transforms/r2d2/r2d2_joins.h"

#include "ir/core/insertion.h"
#include "transforms/r2d2/r2d2_planner.h"

#include <algorithm>

namespace ptxrewrite::transforms::r2d2 {

using ir::BlockId;
using ir::EdgeId;
using ir::ExpressionId;
using ir::FormCondition;
using ir::InstructionId;
using ir::LinearForm;
using ir::Operand;
using ir::ValueId;
namespace form_index = ir::form_index;

namespace {

unsigned alternatives_of(const LinearForm& form) {
  return 1u << form.condition_count;
}

} // namespace

// Finds the block parameter from which `value` was computed if two paths join there and one predicate decides between
// them. Moves at the ends of the paths execute one instruction less than a move and a guarded one.
std::optional<Planner::PathChoice> Planner::paths_of(ValueId value, const FormCondition& condition) const {
  constexpr size_t most_steps = 64;
  std::vector<ValueId> work{value};
  for (size_t i = 0; i < work.size() && i < most_steps; ++i) {
    const LinearForm& form = forms_.form(work[i]);
    if (form.condition_count != 1 || form.conditions[0] != condition) continue;
    const ir::DefinitionSite& site = forms_.def_use().definition(work[i]);
    if (!site.is_parameter()) {
      if (site.instruction && !function_.instructions[site.instruction].guard)
        ir::for_each_use(function_, site.instruction, [&](ValueId read) { work.push_back(read); });
      continue;
    }
    PathChoice choice{site.block, {}, {}};
    for (EdgeId edge : forms_.control_flow().predecessors(site.block)) {
      const LinearForm& brought = forms_.form_at(function_.arguments(edge)[site.parameter], site.block);
      for (unsigned alternative : {0u, 1u})
        if (brought == forms_.form(form.alternatives[alternative])) choice.alternatives.push_back(alternative);
    }
    bool complete = choice.alternatives.size() == forms_.control_flow().predecessors(site.block).size();
    return complete ? std::optional(choice) : std::nullopt;
  }
  return std::nullopt;
}

// Returns the form that each edge into the block provides, or the predicate that chooses; nothing if the choice is of
// another kind or is not final before `place`.
std::optional<Planner::PathChoice> Planner::choice_of(const LinearForm& form, ValueId value,
                                                      InstructionId place) const {
  const FormCondition& first = form.conditions[0];
  BlockId block = function_.instructions[place].block;
  const ir::DominatorTree& dominators = forms_.dominators();
  if (first.kind == FormCondition::Kind::predicate) {
    if (form.condition_count != 1) return std::nullopt;
    if (auto paths = paths_of(value, first); paths && dominators.dominates(paths->block, block)) return paths;
    const ir::DefinitionSite& site = forms_.def_use().definition(first.value);
    BlockId above = site.block;
    bool in_front = above == block ? site.is_parameter() ||
                                         (site.instruction && order_[site.instruction.index()] < order_[place.index()])
                                   : above && dominators.dominates(above, block);
    if (!in_front) return std::nullopt;
    return PathChoice{{}, first.value, {0, 1}};
  }
  if (first.kind != FormCondition::Kind::edge) return std::nullopt;
  for (unsigned i = 0; i < form.condition_count; ++i)
    if (form.conditions[i].kind != first.kind || form.conditions[i].value != first.value) return std::nullopt;
  BlockId join = forms_.def_use().definition(first.value).block;
  if (!dominators.dominates(join, block)) return std::nullopt;
  for (EdgeId edge : forms_.control_flow().predecessors(join))
    if (!forms_.control_flow().reachable(function_.edges[edge].from)) return std::nullopt;
  PathChoice choice{join, {}, {}};
  for (unsigned group : forms_.edge_groups(first.value)) {
    unsigned alternative = 0;
    for (unsigned i = 0; i < form.condition_count; ++i)
      alternative |= ((group >> form.conditions[i].bit) & 1) << i;
    choice.alternatives.push_back(alternative);
  }
  return choice;
}

// Makes the site a use of a join's register; its own coefficients become the difference to that register.
bool Planner::set_join(const LinearForm& form, ValueId value, LinearSite& site) {
  auto refuse = [&](const char* why) {
    explain_unused(site.instruction, std::string("the register is written on several paths") + why);
    return false;
  };
  if (site.address == LinearSite::whole_result || (form.width != 32 && form.width != 64))
    return refuse("; the original instructions stay");
  std::optional<PathChoice> choice = choice_of(form, value, site.instruction);
  if (!choice) return refuse(", and what chooses among them is not a branch or a predicate alone");
  std::vector<LinearSite> alternatives;
  for (unsigned i = 0; i < alternatives_of(form); ++i) {
    const LinearForm& alternative = forms_.form(form.alternatives[i]);
    if (!alternative.has_coefficients() || alternative.varies || alternative.loop_count != 0)
      return refuse(", not all of them linear outside loops");
    LinearSite move;
    move.instruction = site.instruction;
    move.width = form.width;
    move.coefficients = alternative.coefficients;
    if (options_.assume_no_overflow) pull_extensions_out(move);
    for (ExpressionId coefficient : move.coefficients)
      if (!expressible(coefficient, site)) return false;
    site.obligations.insert(site.obligations.end(), move.obligations.begin(), move.obligations.end());
    alternatives.push_back(std::move(move));
  }
  site.width = form.width;
  site.join = join_for(*choice, alternatives);
  ir::ExpressionPool& pool = forms_.expressions();
  ExpressionId constant =
      pool.subtract(alternatives[0].coefficients[form_index::constant], joins_[site.join].first_constant);
  site.coefficients.fill(pool.literal(form.width, 0));
  site.coefficients[form_index::constant] = constant;
  return true;
}

uint32_t Planner::join_for(const PathChoice& choice, std::vector<LinearSite>& alternatives) {
  ir::ExpressionPool& pool = forms_.expressions();
  unsigned width = alternatives[0].width;
  ExpressionId first = alternatives[0].coefficients[form_index::constant];
  std::vector<uint32_t> key{width, choice.block.index(), choice.predicate.index()};
  key.insert(key.end(), choice.alternatives.begin(), choice.alternatives.end());
  for (const LinearSite& alternative : alternatives) {
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      key.push_back(alternative.coefficients[place].index());
    key.push_back(pool.subtract(alternative.coefficients[form_index::constant], first).index());
  }
  auto [row, fresh] = join_of_.try_emplace(std::move(key), static_cast<uint32_t>(joins_.size()));
  if (!fresh) return row->second;
  Join join;
  join.width = static_cast<uint8_t>(width);
  join.block = choice.block;
  join.predicate = choice.predicate;
  ExpressionId literal = pool.literal(width, static_cast<uint64_t>(split_constant(pool, first).literal));
  join.first_constant = pool.subtract(first, literal);
  for (size_t i = 0; i < choice.alternatives.size(); ++i) {
    LinearSite move = alternatives[choice.alternatives[i]];
    ExpressionId& constant = move.coefficients[form_index::constant];
    constant = pool.subtract(constant, literal);
    move.obligations.clear(); // they belong to the accesses
    move.moved_for = row->second;
    move.block = choice.block ? function_.edges[forms_.control_flow().predecessors(choice.block)[i]].from
                              : forms_.def_use().definition(choice.predicate).block;
    join.moves.push_back(static_cast<uint32_t>(moves_.size()));
    moves_.push_back(std::move(move));
  }
  joins_.push_back(std::move(join));
  join_enabled_.push_back(true);
  return row->second;
}

bool Planner::join_takes_part(uint32_t index) const {
  return join_enabled_[index] && std::ranges::all_of(joins_[index].moves, [&](uint32_t move) {
           return moves_[move].group == none || kept_[moves_[move].group];
         });
}

std::vector<bool> Planner::used_joins() const {
  std::vector<bool> used(joins_.size());
  for (const LinearSite& site : sites_)
    if (site.join != none && takes_part(site)) used[site.join] = true;
  return used;
}

double Planner::added_by_joins(ir::LoopId inside) const {
  double sum = 0;
  std::vector<bool> used = used_joins();
  for (const LinearSite& move : moves_)
    if (used[move.moved_for] && (!inside || forms_.loops().contains(inside, move.block)))
      sum += weight_of(move_mnemonic(move.width), move.block);
  return sum;
}

void Planner::drop_useless_joins() {
  for (uint32_t i = 0; i < joins_.size(); ++i) {
    double with = gain();
    join_enabled_[i] = false;
    if (gain() < with) join_enabled_[i] = true;
  }
  for (const LinearSite& site : sites_)
    if (site.join != none && !join_enabled_[site.join])
      explain_unused(site.instruction,
                     "the register is written on several paths, and moving linear registers there would save nothing");
}

// --- code ---

void append_sum(std::vector<Operand>& operands, const SiteOperands& sum) {
  operands.push_back(Operand::value(sum.linear));
  if (sum.coefficient.is(ir::OperandKind::value)) operands.push_back(sum.coefficient);
  if (sum.immediate != 0) operands.push_back(Operand::integer(sum.immediate));
}

std::string_view move_mnemonic(unsigned width) {
  return width == 64 ? "r2d2.mov.b64" : "r2d2.mov.b32";
}

namespace {

class JoinWriter {
public:
  JoinWriter(ir::Function& function, std::span<const SiteOperands> operands)
      : function_(function), operands_(operands) {}

  ValueId at_predicate(const Join& join, const ir::DefinitionSite& site) {
    ir::Builder builder = ir::builder_at_start(function_, site.block);
    if (site.instruction) builder.after(site.instruction);
    ValueId otherwise = move(builder, join, 0, {});
    builder.guarded_by(join.predicate);
    return move(builder, join, 1, otherwise);
  }

  ValueId at_edges(const Join& join, const ir::ControlFlow& flow) {
    ValueId parameter = fresh(join.width);
    std::vector<ValueId> parameters(function_.parameters(join.block).begin(), function_.parameters(join.block).end());
    parameters.push_back(parameter);
    function_.set_parameters(join.block, parameters);
    for (size_t i = 0; i < join.moves.size(); ++i) {
      EdgeId edge = flow.predecessors(join.block)[i];
      BlockId from = function_.edges[edge].from;
      ir::Builder builder(function_);
      if (InstructionId terminator = function_.terminator(from))
        builder.before(terminator);
      else
        builder.at_end(from);
      std::vector<ValueId> arguments(function_.arguments(edge).begin(), function_.arguments(edge).end());
      arguments.push_back(move(builder, join, i, {}));
      function_.set_arguments(edge, arguments);
    }
    return parameter;
  }

private:
  ValueId fresh(unsigned width) {
    return ir::Builder(function_).new_value(width == 64 ? ir::ScalarType::b64 : ir::ScalarType::b32,
                                            width == 64 ? "%rd" : "%r");
  }
  ValueId move(ir::Builder& builder, const Join& join, size_t number, ValueId old) {
    ValueId target = fresh(join.width);
    std::vector<Operand> list{Operand::definition(target)};
    append_sum(list, operands_[join.moves[number]]);
    if (old) {
      list.push_back(Operand::value(old));
      list.back().flags = ir::OperandFlag::old_value;
    }
    builder.emit(move_mnemonic(join.width), list);
    return target;
  }

  ir::Function& function_;
  std::span<const SiteOperands> operands_;
};

} // namespace

std::vector<ValueId> emit_joins(ir::Function& function, const ir::LinearForms& forms, const Plan& plan,
                                std::span<const SiteOperands> operands) {
  JoinWriter writer(function, operands);
  std::vector<ValueId> registers;
  for (const Join& join : plan.joins)
    registers.push_back(join.block ? writer.at_edges(join, forms.control_flow())
                                   : writer.at_predicate(join, forms.def_use().definition(join.predicate)));
  return registers;
}

} // namespace ptxrewrite::transforms::r2d2
