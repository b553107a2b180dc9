// Coefficients on the host: integer values that only depend on parameters and launch dimensions, such as n*n, n/16 or
// base + 4*n, are computed by the launcher and passed as additional kernel parameters. The machine reads parameters as
// operands (constant bank), so such a value costs a thread no instruction.
//
// Only the last values of uniform chains are moved: those with a reader that is not uniform.
#include "transforms/r2d2/host_coefficients.h"

#include "ir/core/builder.h"
#include "ir/edit/dead_code.h"
#include "ir/machine/select/lowering.h"
#include "transforms/common/cost.h"
#include "transforms/r2d2/r2d2_plan.h"

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::ExpressionKind;
using ir::InstructionId;
using ir::Operand;
using ir::ValueId;

constexpr size_t most_parameters = 64; // added to one kernel; all parameters together have 4 KB

// An instruction, and its result as an expression over the launch.
struct Move {
  InstructionId instruction;
  ExpressionId expression;
};

class HostCoefficients {
public:
  HostCoefficients(const Trial& trial, bool force)
      : trial_(trial), function_(trial.kernel), force_(force), forms_(trial.analyses.of<ir::LinearForms>(trial.kernel)),
        counts_(reader_counts(trial.kernel, trial.analyses)), added_parameters_(trial.added_parameters) {}

  std::optional<Proposal> propose();

private:
  // The launch-uniform expression of the instruction's only result, if it can be computed at launch.
  std::optional<ExpressionId> uniform_result(InstructionId id) const;
  bool is_plain(ExpressionId id) const;
  void try_value(InstructionId id);

  const Trial& trial_;
  const ir::Function& function_;
  bool force_;
  ir::LinearForms& forms_;
  ir::ReaderCounts counts_;
  size_t added_parameters_;
  double saving_ = 0;
  std::vector<Move> moves_;
};

// Can the machine read the value as an operand, without an instruction of its own?
bool HostCoefficients::is_plain(ExpressionId id) const {
  const ir::ExpressionPool& pool = forms_.expressions();
  ExpressionKind kind = pool[id].kind;
  return pool.literal_value(id) || kind == ExpressionKind::parameter || kind == ExpressionKind::special ||
         (kind == ExpressionKind::sum && pool[id].offset == 0 && pool.terms(id).size() == 1 &&
          pool.terms(id)[0].coefficient == 1 && pool.factors(pool.terms(id)[0].monomial).size() == 1 &&
          is_plain(pool.factors(pool.terms(id)[0].monomial)[0]));
}

std::optional<ExpressionId> HostCoefficients::uniform_result(InstructionId id) const {
  if (function_.instructions[id].guard) return std::nullopt;
  std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() < 2 || !operands[0].is(ir::OperandKind::value) || !operands[0].is_definition() ||
      operands[1].is_definition())
    return std::nullopt;
  const ir::Value& value = function_.values[operands[0].as_value()];
  unsigned width = ir::bit_width(value.type);
  if (value.vector_width != 1 || ir::is_float(value.type) || (width != 32 && width != 64)) return std::nullopt;
  const ir::LinearForm& form = forms_.form(operands[0].as_value());
  if (form.kind != ir::ValueClass::launch_uniform || !form.has_coefficients() || form.varies || form.width != width)
    return std::nullopt;
  if (!ir::removable_when_unused(function_, id)) return std::nullopt;
  ExpressionId expression = form.coefficients[ir::form_index::constant];
  const ir::Expression& row = forms_.expressions()[expression];
  if (!row.evaluable || row.varies || is_plain(expression)) return std::nullopt;
  return expression;
}

void HostCoefficients::try_value(InstructionId id) {
  std::optional<ExpressionId> expression = uniform_result(id);
  if (!expression) return;
  ValueId result = function_.operands_of(id)[0].as_value();
  if (counts_.readers(result) == 0 || added_parameters_ >= most_parameters) return;
  if (!can_discharge(trial_.policy, forms_, forms_.obligations(result))) return;
  std::vector<ValueId> read;
  ir::for_each_use(function_, id, [&](ValueId value) { read.push_back(value); });
  const InstructionCosts& costs = trial_.analyses.of<InstructionCosts>(trial_.kernel);
  double saved = costs.of(id) + counts_.release(read, [&](InstructionId dead) { return costs.of(dead); });
  if (saved <= 0 && !force_) {
    counts_.undo();
    return;
  }
  saving_ += saved;
  counts_.add_reader(result); // keeps the result from being released: its definition will be another instruction
  added_parameters_ += std::ranges::none_of(moves_, [&](const Move& move) { return move.expression == *expression; });
  moves_.push_back({id, *expression});
}

void move_to_launch(Attempt& attempt, ir::LinearForms& forms, const Move& move) {
  ir::Function& function = attempt.function();
  const InstructionId id = move.instruction;
  const ValueId result = function.operands_of(id)[0].as_value();
  for (ir::ObligationId obligation : forms.obligations(result))
    attempt.rest_on(forms, obligation, "r2d2: coefficients on the host", id);
  bool wide = forms.expressions().width(move.expression) == 64;
  ir::VariableId parameter = attempt.launch_parameter(wide ? ir::ScalarType::s64 : ir::ScalarType::s32,
                                                      forms.expressions().print_predicate(move.expression));
  ir::Builder builder(function);
  builder.before(id).standing_for(id);
  std::vector<Operand> operands{Operand::definition(result)};
  ir::append_address(operands, Operand::symbol(ir::SymbolRef::local_variable(parameter)));
  builder.emit(wide ? "ld.param.b64" : "ld.param.b32", operands);
  const auto text = [&forms, expression = move.expression](const ir::Function& edited) {
    return "computed at launch: " + forms.expressions().print_short(expression, &edited);
  };
  attempt.remark_later(text, function.instructions[id].range);
  function.remove(id);
}

std::optional<Proposal> HostCoefficients::propose() {
  // Visits readers before definitions: of a chain, only the last values, which nonuniform code reads, remain to be
  // moved.
  const std::vector<BlockId>& order = forms_.control_flow().reverse_postorder();
  for (auto block = order.rbegin(); block != order.rend(); ++block)
    for (InstructionId id = function_.blocks[*block].last; id; id = function_.instructions[id].previous)
      if (function_.instructions[id].kind == ir::InstructionKind::real) try_value(id);
  if (moves_.empty()) return std::nullopt;
  Proposal proposal;
  proposal.saving = saving_;
  // A parameter that an earlier pass has added may have the same value.
  if (!original_of(function_)) proposal.needs_original = true;
  proposal.carry_out = [&forms = forms_, moves = std::move(moves_)](Attempt& attempt) {
    for (const Move& move : moves)
      move_to_launch(attempt, forms, move);
    attempt.function().changed();
    ir::remove_dead_code(attempt.function());
    attempt.statistics["r2d2.host-parameters"] += static_cast<int64_t>(attempt.added_parameters());
  };
  return proposal;
}

} // namespace

std::optional<Proposal> propose_coefficients_at_launch(const Trial& trial, bool force) {
  if (!trial.policy.launch) return std::nullopt;
  return HostCoefficients(trial, force).propose();
}

} // namespace ptxrewrite::transforms::legal
