// The public interface of the analysis: set-up, look-up, evaluation in one thread, printing.
#include "ir/analysis/linear/linear.h"
#include "ir/analysis/linear/linear_state.h"
#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::ir {

std::string_view spelling(ValueClass value_class) {
  switch (value_class) {
  case ValueClass::constant:
    return "constant";
  case ValueClass::launch_uniform:
    return "launch-uniform";
  case ValueClass::block_uniform:
    return "block-uniform";
  case ValueClass::linear:
    return "linear";
  case ValueClass::linear_loop:
    return "linear+loop";
  case ValueClass::mod_linear:
    return "mod-linear";
  case ValueClass::divergent_linear:
    return "divergent-linear";
  case ValueClass::any:
    return "any";
  }
  return "";
}

// --- set-up ---

LinearForms::State::State(const Function& function_to_analyse)
    : function(function_to_analyse), flow(function), dominators(function, flow), loops(function, flow, dominators),
      def_use(function) {
  // Hardware limits: 1,024 threads in a block, no more than 64 of them in z; 2^31-1 x 65535 x 65535 blocks.
  limits.block = {Interval{1, 1024}, Interval{1, 1024}, Interval{1, 64}};
  limits.grid = {Interval{1, (Int128(1) << 31) - 1}, Interval{1, 65535}, Interval{1, 65535}};
  for (const FunctionDirective& directive : function.directives) {
    std::string_view directive_name = function.module().text(directive.name);
    std::array<Int128, 3> extents{1, 1, 1};
    for (unsigned i = 0; i < directive.count && i < 3; ++i)
      extents[i] = directive.numbers[i];
    if (directive_name == ".reqntid")
      for (unsigned i = 0; i < 3; ++i)
        limits.block[i] = {extents[i], extents[i]};
    // .maxntid limits only the number of threads, not their shape.
    if (directive_name == ".maxntid")
      for (unsigned i = 0; i < 3; ++i)
        limits.block[i].high = std::min(limits.block[i].high, extents[0] * extents[1] * extents[2]);
  }
  parameter_number.assign(function.variables.size(), UINT32_MAX);
  if (function.is_entry) {
    unsigned number = 0;
    for (VariableId variable : function.variable_lists.view(function.signature.parameters))
      parameter_number[variable.index()] = number++;
  }
}

LinearForms::LinearForms(const Function& function) : state_(std::make_unique<State>(function)) {
  assert(function.is_ssa);
  solve_linear_forms(*state_);
}
LinearForms::~LinearForms() = default;
LinearForms::LinearForms(LinearForms&&) noexcept = default;
LinearForms& LinearForms::operator=(LinearForms&&) noexcept = default;

const Function& LinearForms::function() const {
  return state_->function;
}
const ControlFlow& LinearForms::control_flow() const {
  return state_->flow;
}
const DominatorTree& LinearForms::dominators() const {
  return state_->dominators;
}
const LoopForest& LinearForms::loops() const {
  return state_->loops;
}
const DefUse& LinearForms::def_use() const {
  return state_->def_use;
}
const ExpressionPool& LinearForms::expressions() const {
  return state_->pool;
}
ExpressionPool& LinearForms::expressions() {
  return state_->pool;
}

// --- look-up ---

LinearFormId LinearForms::form_id(ValueId value) const {
  return state_->value_form[value];
}
const LinearForm& LinearForms::form(ValueId value) const {
  return state_->at(form_id(value));
}
const LinearForm& LinearForms::form(LinearFormId id) const {
  return state_->at(id);
}
const LinearForm& LinearForms::form_at(ValueId value, BlockId block) const {
  return state_->at(state_->form_in(value, block));
}

const LinearForm& LinearForms::operand_form(InstructionId instruction, const Operand& operand) const {
  const Function& owner = state_->function;
  unsigned width = 64;
  if (operand.is(OperandKind::value)) {
    width = bit_width(owner.values[operand.as_value()].type);
  } else if (owner.instructions[instruction].kind == InstructionKind::real) {
    unsigned own = bit_width(owner.form_of(instruction).type());
    if (own >= 8 && own <= 64) width = own;
  }
  return state_->at(LinearTransfer(*state_).operand(instruction, operand, width));
}

const LinearForm& LinearForms::address_form(InstructionId instruction, size_t group) const {
  return state_->at(LinearTransfer(*state_).address(instruction, group));
}

std::span<const ObligationId> LinearForms::obligations(ValueId value) const {
  return state_->obligation_lists.view(state_->obligation_sets[state_->value_obligations[value]]);
}
const RangeObligation& LinearForms::obligation(ObligationId id) const {
  return state_->obligations[id];
}

const std::string& LinearForms::statement(ObligationId id) const {
  return state_->statement(id);
}
bool LinearForms::is_about_overflow(ObligationId id) const {
  const RangeObligation& row = obligation(id);
  const unsigned width =
      row.kind == RangeObligation::Kind::form_range ? form(row.form).width : expressions().width(row.expression);
  return row.range == signed_range(width) || row.range == unsigned_range(width);
}

const Table<ObligationId, RangeObligation>& LinearForms::all_obligations() const {
  return state_->obligations;
}
bool LinearForms::evaluate(ObligationId id, const LaunchValues& launch) const {
  return state_->obligations[id].proved || state_->evaluate(state_->obligations[id], launch);
}
const std::string& LinearForms::launch_predicate(ObligationId id) const {
  const auto [row, is_new] = state_->predicate_texts.try_emplace(id);
  const RangeObligation& obligation = state_->obligations[id];
  if (is_new && obligation.launch_checkable) row->second = state_->predicate(obligation);
  return row->second;
}

bool LinearForms::has_launch_predicate(ObligationId id) const {
  const RangeObligation& obligation = state_->obligations[id];
  return obligation.launch_checkable && state_->has_predicate(obligation);
}

ObligationId LinearForms::require_range(const LinearForm& form, Interval range, InstructionId instruction) {
  return state_->require(state_->intern(form), range, instruction);
}

LinearForms::MovedExtension LinearForms::move_extension(ExpressionId extended, InstructionId instruction) {
  ExpressionPool& pool = state_->pool;
  const Expression row = pool[extended];
  assert(row.kind == ExpressionKind::sign_extend || row.kind == ExpressionKind::zero_extend);
  bool is_signed = row.kind == ExpressionKind::sign_extend;
  ExpressionId inner = pool.operands(extended)[0];
  unsigned narrow = pool.width(inner);
  // Within the range the value is the integer sum of the terms, each read as signed.
  Interval range = is_signed ? signed_range(narrow) : unsigned_range(narrow);
  MovedExtension moved;
  moved.obligation = state_->require_expression(inner, range, instruction);
  const Expression sum = pool[inner];
  if (sum.kind != ExpressionKind::sum) {
    moved.expression = pool.sign_extend(inner, row.width);
    return moved;
  }
  ExpressionId result = pool.sign_extend(pool.literal(narrow, static_cast<uint64_t>(sum.offset)), row.width);
  std::vector<ExpressionTerm> terms(pool.terms(inner).begin(), pool.terms(inner).end());
  for (const ExpressionTerm& term : terms) {
    ExpressionId product = pool.sign_extend(pool.literal(narrow, term.coefficient), row.width);
    std::vector<ExpressionId> factors(pool.factors(term.monomial).begin(), pool.factors(term.monomial).end());
    for (ExpressionId factor : factors)
      product = pool.multiply(product, pool.sign_extend(factor, row.width));
    result = pool.add(result, product);
  }
  moved.expression = result;
  return moved;
}

bool LinearForms::branch_is_uniform(BlockId block) const {
  return state_->branch_level(block) == Level::launch;
}
const TripBound& LinearForms::trip_bound(LoopId loop) const {
  return state_->trip_bounds[loop.index()];
}
std::vector<unsigned> LinearForms::edge_groups(ValueId block_parameter) const {
  return state_->edge_groups(block_parameter);
}

// --- evaluation in one thread ---

std::optional<uint64_t> LinearForms::evaluate(const LinearForm& form, const LaunchValues& launch,
                                              const ThreadPosition& thread) const {
  const ExpressionPool& pool = state_->pool;
  if (form.kind == ValueClass::divergent_linear) {
    unsigned index = 0;
    for (unsigned i = 0; i < form.condition_count; ++i) {
      auto known = std::ranges::find(thread.conditions, form.conditions[i], &std::pair<FormCondition, bool>::first);
      if (known == thread.conditions.end()) return std::nullopt;
      index |= unsigned(known->second) << i;
    }
    return evaluate(this->form(form.alternatives[index]), launch, thread);
  }
  if (form.kind == ValueClass::mod_linear) {
    const LinearForm& dividend = this->form(form.dividend);
    auto value = evaluate(dividend, launch, thread);
    auto divisor = pool.evaluate(form.divisor, launch);
    auto multiplier = pool.evaluate(form.multiplier, launch), addend = pool.evaluate(form.addend, launch);
    if (!value || !divisor || !multiplier || !addend) return std::nullopt;
    auto remainder =
        apply_binary(form.signed_remainder ? ExpressionKind::remainder_signed : ExpressionKind::remainder_unsigned,
                     dividend.width, *value, *divisor);
    if (!remainder) return std::nullopt;
    uint64_t bits =
        form.signed_remainder ? static_cast<uint64_t>(signed_value(*remainder, dividend.width)) : *remainder;
    return low_bits(bits * *multiplier + *addend, form.width);
  }
  if (!form.has_coefficients()) return std::nullopt;
  uint64_t sum = 0;
  for (unsigned place = 0; place < form_index::count; ++place) {
    uint64_t index = place == 0 ? 1 : place < form_index::ctaid_x ? thread.tid[place - 1] : thread.ctaid[place - 4];
    auto coefficient = pool.evaluate(form.coefficients[place], launch);
    if (!coefficient) return std::nullopt;
    sum += *coefficient * index;
  }
  for (const LoopOffset& offset : form.loops()) {
    auto trip = std::ranges::find(thread.trips, offset.loop, &std::pair<LoopId, uint64_t>::first);
    auto step = pool.evaluate(offset.step, launch);
    if (trip == thread.trips.end() || !step) return std::nullopt;
    sum += *step * trip->second;
  }
  return low_bits(sum, form.width);
}

// --- text ---

namespace {

template <class PrintExpression>
std::string print_with(const LinearForms& forms, const LinearForm& form, PrintExpression&& text) {
  const ExpressionPool& pool = forms.expressions();
  if (form.kind == ValueClass::divergent_linear) {
    std::string out = "[";
    for (unsigned i = 0; i < 1u << form.condition_count; ++i)
      out += (i ? " | " : "") + print_with(forms, forms.form(form.alternatives[i]), text);
    return out + "]";
  }
  if (form.kind == ValueClass::mod_linear) {
    std::string out = "(" + print_with(forms, forms.form(form.dividend), text) + " mod " + text(form.divisor) + ")";
    if (!pool.is_literal(form.multiplier, 1)) out += "*(" + text(form.multiplier) + ")";
    if (!pool.is_zero(form.addend)) out += " + " + text(form.addend);
    return out;
  }
  if (!form.has_coefficients()) return "-";
  std::string out = "{";
  for (unsigned place = 0; place < form_index::count; ++place)
    out += (place ? ", " : "") + text(form.coefficients[place]);
  out += '}';
  for (const LoopOffset& offset : form.loops())
    out += " + k" + std::to_string(offset.loop.index()) + "*(" + text(offset.step) + ")";
  return out;
}

} // namespace

std::string LinearForms::print(const LinearForm& form) const {
  return print_with(*this, form, [&](ExpressionId id) { return state_->pool.print_short(id, &state_->function); });
}

std::string LinearForms::print_exact(const LinearForm& form) const {
  return print_with(*this, form, [&](ExpressionId id) { return state_->pool.print_exact(id, &state_->function); });
}

} // namespace ptxrewrite::ir
