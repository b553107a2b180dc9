#include "emulator/observe/linearity.h"

#include "ir/analysis/linear/linear.h"
#include "ir/ssa/ssa.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

// The values of the launch for the linear analysis.
ir::LaunchValues facts_of(const ir::Function& entry, const LaunchRequest& request) {
  ir::LaunchValues launch;
  launch.block = {request.block.x, request.block.y, request.block.z};
  launch.grid = {request.grid.x, request.grid.y, request.grid.z};
  uint64_t offset = 0;
  for (ir::VariableId id : entry.variable_lists.view(entry.signature.parameters)) {
    const ir::Variable& variable = entry.variables[id];
    const uint64_t bytes = variable_bytes(variable, entry.dimensions.view(variable.dimensions));
    offset = align_up(offset, variable_alignment(variable));
    std::vector<uint8_t> value; // empty: the launch is going to be refused
    if (contains(0, request.parameters.size(), offset, bytes)) {
      value.resize(bytes);
      std::ranges::transform(std::span(request.parameters).subspan(offset, bytes), value.begin(),
                             [](std::byte byte) { return std::to_integer<uint8_t>(byte); });
    }
    launch.parameters.push_back(std::move(value));
    offset = saturating_add(offset, bytes);
  }
  return launch;
}

bool is_linear(ir::ValueClass value_class) {
  return value_class <= ir::ValueClass::linear_loop;
}

// Whether any of the places [first, first + 3) of the coefficient vector is not zero.
bool has_index(const ir::LinearForms& forms, const ir::LinearForm& form, unsigned first) {
  if (!form.has_coefficients()) return false;
  for (unsigned place = first; place < first + 3; ++place)
    if (!forms.expressions().is_zero(form.coefficients[place])) return true;
  return false;
}

// Whether a coefficient is not a literal, so that it has to be computed once for all threads.
bool has_symbols(const ir::LinearForms& forms, const ir::LinearForm& form) {
  if (!form.has_coefficients()) return false;
  return std::ranges::any_of(form.coefficients, [&](ir::ExpressionId coefficient) {
    return !forms.expressions().literal_value(coefficient).has_value();
  });
}

} // namespace

LinearAnalysis::LinearAnalysis(const ir::Function& entry) : function_(std::make_unique<ir::Function>(entry)) {
  if (!function_->is_ssa && !ir::construct_ssa(*function_)) return;
  forms_ = std::make_unique<ir::LinearForms>(*function_);
}
LinearAnalysis::LinearAnalysis(LinearAnalysis&&) noexcept = default;
LinearAnalysis::~LinearAnalysis() = default;

LinearParts::LinearParts(const LinearAnalysis& analysis, const LaunchRequest& request)
    : parts_(analysis.function().instructions.size()) {
  if (analysis.forms()) find_parts(analysis, request);
}

void LinearParts::find_parts(const LinearAnalysis& analysis, const LaunchRequest& request) {
  const ir::Function& function = analysis.function();
  const ir::LinearForms& forms = *analysis.forms();
  const ir::LaunchValues launch = facts_of(function, request);
  // Cached, because many values share an obligation.
  std::vector<std::optional<bool>> fulfilled(forms.all_obligations().size());
  auto holds = [&](ir::ObligationId obligation) {
    std::optional<bool>& known = fulfilled[obligation.index()];
    if (!known) known = forms.evaluate(obligation, launch);
    return *known;
  };
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real || id.index() >= parts_.size()) continue;
      Parts parts;
      size_t results = 0;
      bool all_linear = true, all_uniform = true;
      for (const ir::Operand& operand : function.operands_of(id)) {
        if (!operand.is(ir::OperandKind::value) || !operand.is_definition()) continue;
        ++results;
        const ir::LinearForm& form = forms.form(operand.as_value());
        all_linear = all_linear && is_linear(form.kind);
        all_uniform = all_uniform && is_linear(form.kind) && !has_index(forms, form, ir::form_index::tid_x);
        for (ir::ObligationId obligation : forms.obligations(operand.as_value()))
          all_linear = all_linear && holds(obligation);
        const bool in_block_only = form.kind == ir::ValueClass::block_uniform && !form.has_coefficients();
        const bool changes = form.varies || form.loop_count > 0;
        parts.per_trip = parts.per_trip || changes;
        parts.block_per_trip = parts.block_per_trip || (in_block_only && changes);
        if (form.kind <= ir::ValueClass::launch_uniform || has_symbols(forms, form) || form.loop_count > 0)
          parts.coefficient = 1;
        if (has_index(forms, form, ir::form_index::tid_x)) parts.thread = request.block.count();
        if (in_block_only || has_index(forms, form, ir::form_index::ctaid_x)) parts.block = request.grid.count();
      }
      parts.linear = results > 0 && all_linear;
      parts.uniform = results > 0 && all_uniform;
      parts_[id.index()] = parts;
    }
}

void LinearParts::finish(LinearityRow& row, uint32_t number, uint64_t trips) const {
  row.needed = row.lanes;
  if (number >= parts_.size()) return;
  const Parts& parts = parts_[number];
  row.uniform = parts.uniform;
  if (!parts.linear) return;
  if (!parts.per_trip) trips = 1;
  row.coefficient = parts.coefficient * trips;
  row.thread = parts.thread;
  // Blocks that do not execute it need nothing: a block-uniform value costs at most one lane per execution.
  row.block = std::min(parts.block * (parts.block_per_trip ? trips : 1), parts.thread ? UINT64_MAX : row.executions);
  row.linear = true;
  row.needed = std::min(row.lanes, row.coefficient + row.thread + row.block);
}

LinearityStudy::LinearityStudy(const ir::Function& entry, const LaunchRequest& request)
    : parts_(LinearAnalysis(entry), request),
      warps_(static_cast<uint32_t>((request.block.count() + warp_size - 1) / warp_size)) {}

void LinearityStudy::before(Block& block, Warp& warp, const MicroOp& op) {
  const uint32_t number = op.instruction;
  if (number >= rows_.size()) {
    rows_.resize(number + 1);
    trips_.resize(number + 1);
  }
  LinearityRow& row = rows_[number];
  const DecodedFunction& function = *warp.activation->function;
  row.function = function.source;
  row.instruction = ir::InstructionId(number - function.first_instruction);
  ++row.executions;
  row.lanes += static_cast<uint64_t>(std::popcount(warp.mask));
  if (!parts_.changes_per_trip(number)) return;
  std::vector<uint32_t>& executed = executed_[block.linear];
  executed.resize(parts_.size() * warps_);
  trips_[number] = std::max(trips_[number], ++executed[warp.index * parts_.size() + number]);
}

void LinearityStudy::block_ended(Block& block) {
  executed_.erase(block.linear);
}

std::vector<LinearityRow> LinearityStudy::rows() const {
  std::vector<LinearityRow> finished_rows = rows_;
  for (uint32_t number = 0; number < rows_.size(); ++number)
    parts_.finish(finished_rows[number], number, trips_[number]);
  return finished_rows;
}

LinearityRow LinearityStudy::total() const {
  LinearityRow sum;
  for (const LinearityRow& row : rows()) {
    sum.executions += row.executions;
    sum.lanes += row.lanes;
    sum.coefficient += row.coefficient;
    sum.thread += row.thread;
    sum.block += row.block;
    sum.needed += row.needed;
  }
  return sum;
}

} // namespace ptxrewrite::emulator
