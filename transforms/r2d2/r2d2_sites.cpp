// Finds the sites of a kernel that can take their value from a linear register: memory addresses, and instructions
// whose results have a linear form.
#include "ir/machine/select/linear_operands.h"
#include "transforms/common/moved_extensions.h"
#include "transforms/r2d2/r2d2_planner.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <algorithm>

namespace ptxrewrite::transforms::r2d2 {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::LinearForm;
using ir::ObligationId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;
namespace form_index = ir::form_index;

bool Planner::dischargeable(ObligationId id) {
  const ir::RangeObligation& obligation = forms_.obligation(id);
  if (obligation.proved || (options_.assume_no_overflow && forms_.is_about_overflow(id))) return true;
  return options_.launch_checks && forms_.has_launch_predicate(id);
}

void Planner::explain_unused(InstructionId id, const std::string& why) {
  auto [row, fresh] = unused_.try_emplace(why, 0, function_.instructions[id].range);
  ++row->second.first;
}

// If the user assumes that no index overflows, `sext(P1+1)` is `sext(P1)+1`: fewer instructions, and forms that differ
// only in the position of the extension become equal.
void Planner::pull_extensions_out(LinearSite& site) {
  for (ExpressionId& coefficient : site.coefficients)
    coefficient = move_extensions(forms_, coefficient, site.instruction, site.obligations);
  for (ir::LoopOffset& offset : site.offsets)
    offset.step = move_extensions(forms_, offset.step, site.instruction, site.obligations);
}

bool Planner::add_obligations(ValueId value, LinearSite& site) {
  for (ObligationId id : forms_.obligations(value)) {
    if (!dischargeable(id)) {
      explain_unused(site.instruction, "not used: nothing can show that " + forms_.statement(id));
      return false;
    }
    site.obligations.push_back(id);
  }
  return true;
}

bool Planner::expressible(ExpressionId id, const LinearSite& site) {
  if (CoefficientWriter::expressible(forms_.expressions(), id)) return true;
  explain_unused(site.instruction,
                 "not used: a coefficient needs something that the coefficient section cannot compute (" +
                     forms_.expressions().print_short(id, &function_) + ")");
  return false;
}

// The loops of a form must enclose the place where it is read: outside, the value is that of the last trip.
bool Planner::set_offsets(const LinearForm& form, LinearSite& site) {
  const ir::LoopForest& loops = forms_.loops();
  for (const ir::LoopOffset& offset : form.loops()) {
    if (!loops.contains(offset.loop, function_.instructions[site.instruction].block)) return false;
    site.offsets.push_back(offset);
  }
  std::ranges::sort(site.offsets, {}, [&](const ir::LoopOffset& offset) { return loops.loops()[offset.loop].depth; });
  return true;
}

bool Planner::usable(const LinearForm& form, ValueId value, LinearSite& site) {
  const LinearForm& own = forms_.form(value);
  if (form.kind == ir::ValueClass::any || own.kind == ir::ValueClass::any) return false;
  if (form.loop_count != own.loop_count || !set_offsets(form, site)) {
    explain_unused(site.instruction, "the value is that of a loop's last trip; the original instructions stay");
    return false;
  }
  if (form.kind == ir::ValueClass::divergent_linear) return add_obligations(value, site) && set_join(form, value, site);
  if (!own.has_coefficients() || own.varies) return false;
  return set_coefficients(form, site) && add_obligations(value, site);
}

bool Planner::set_coefficients(const LinearForm& form, LinearSite& site) {
  if (!form.has_coefficients() || form.varies) return false;
  if (form.width != 32 && form.width != 64) return false;
  site.width = form.width;
  site.coefficients = form.coefficients;
  if (options_.assume_no_overflow) pull_extensions_out(site);
  for (ExpressionId coefficient : site.coefficients)
    if (!expressible(coefficient, site)) return false;
  for (const ir::LoopOffset& offset : site.offsets)
    if (!expressible(offset.step, site)) return false;
  return true;
}

// The definition stays guarded; if the guard is false, the register keeps its old value.
bool Planner::usable_alternative(InstructionId id, LinearSite& site) {
  const ir::Instruction& row = function_.instructions[id];
  ValueId result = function_.operands_of(id)[0].as_value();
  const LinearForm& form = forms_.form(result);
  if (form.kind != ir::ValueClass::divergent_linear || form.condition_count != 1 ||
      form.conditions[0].kind != ir::FormCondition::Kind::predicate || form.conditions[0].value != row.guard)
    return false;
  const LinearForm& written = forms_.form(form.alternatives[row.guard_negated ? 0 : 1]);
  if (written.kind == ir::ValueClass::divergent_linear) return false;
  return set_offsets(written, site) && set_coefficients(written, site) && add_obligations(result, site);
}

void Planner::find_address_sites() {
  for (BlockId block : function_.layout) {
    for (InstructionId id : function_.instructions_in(block)) {
      std::optional<size_t> address = rewritable_address(function_, id);
      if (!address) continue;
      const LinearForm& form = forms_.address_form(id, *address);
      // Sums have 64 bits; the machine truncates a narrower address only in shared memory.
      if (form.kind != ir::ValueClass::any && form.width == 32 && !ir::is_shared(function_.form_of(id).space)) continue;
      LinearSite site;
      site.instruction = id;
      site.address = static_cast<uint32_t>(*address);
      if (!usable(form, function_.operands_of(id)[*address + 1].as_value(), site)) continue;
      site_of_[id.index()] = static_cast<uint32_t>(sites_.size());
      sites_.push_back(std::move(site));
    }
  }
}

void Planner::find_result_sites() {
  ir::Liveliness::Result live = simulate();
  ir::ReaderCounts counts(function_, forms_.def_use(), live,
                          [&](InstructionId id, size_t operand) { return replaced(id, operand); });
  for (const LinearSite& site : sites_)
    if (site.counter && takes_part(site)) counts.add_reader(site.counter);
  std::vector<bool> used = used_increments();
  // Visits readers before definitions, so that all readers of a value are settled when it is visited.
  const std::vector<BlockId>& order = forms_.control_flow().reverse_postorder();
  for (auto block = order.rbegin(); block != order.rend(); ++block)
    for (InstructionId id = function_.blocks[*block].last; id; id = function_.instructions[id].previous)
      if (live.needed(id) && site_of_[id.index()] == none && ir::removable_when_unused(function_, id))
        consider_result(id, counts, live, used);
}

void Planner::consider_result(InstructionId id, ir::ReaderCounts& counts, const ir::Liveliness::Result& live,
                              const std::vector<bool>& used) {
  std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() < 2 || !operands[0].is(OperandKind::value) || operands[1].is_definition()) return;
  ValueId result = operands[0].as_value();
  const ir::Value& value = function_.values[result];
  if (counts.readers(result) == 0 || value.vector_width != 1 || ir::is_float(value.type)) return;
  const LinearForm& form = forms_.form(result);
  if (form.kind == ir::ValueClass::any || form.width != ir::bit_width(value.type)) return;
  bool guarded = bool(function_.instructions[id].guard);
  LinearSite site;
  site.instruction = id;
  site.width = form.width;
  std::vector<ValueId> read;
  for (const Operand& operand : operands)
    if (operand.is(OperandKind::value) && !operand.is_definition() && !operand.has(ir::OperandFlag::old_value))
      read.push_back(operand.as_value());
  const auto is_usable = [&] { return guarded ? usable_alternative(id, site) : usable(form, result, site); };
  // Before the release, which may follow long chains.
  const bool weighs = weight(id) > 0;
  if (weighs && !is_usable()) return;
  double released = counts.release(read, [&](InstructionId dead) { return weight(dead); });
  // The replacement costs nothing at best.
  bool worth = weighs || (released > 0 && is_usable());
  // A result alone does not justify a new increment register.
  worth = worth && (!site.moves() || choose_offset_of_result(site, used));
  std::vector<InstructionId> readers;
  if (worth) {
    site.uniform = is_uniform(site);
    std::optional<std::vector<InstructionId>> direct =
        guarded ? std::nullopt : direct_readers(site, result, counts, live);
    site.direct = direct.has_value();
    if (direct) readers = std::move(*direct);
    worth = released > replacement_weight(site) && !(site.counter && counts.readers(site.counter) == 0);
  }
  if (!worth) return counts.undo();
  if (site.counter) counts.add_reader(site.counter);
  for (InstructionId reader : readers)
    reads_sum_[reader.index()] = true;
  site_of_[id.index()] = static_cast<uint32_t>(sites_.size());
  sites_.push_back(std::move(site));
}

// Is the site's value the same for all threads of the launch, but no literal? It is then kept in a coefficient
// register.
bool Planner::is_uniform(const LinearSite& site) const {
  const ir::ExpressionPool& pool = forms_.expressions();
  for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
    if (!pool.is_zero(site.coefficients[place])) return false;
  return !site.moves() && site.join == none;
}

// Returns the remaining readers of the result if all of them can name its linear register; for readers that must add,
// their IDs.
std::optional<std::vector<InstructionId>> Planner::direct_readers(const LinearSite& site, ValueId result,
                                                                  const ir::ReaderCounts& counts,
                                                                  const ir::Liveliness::Result& live) const {
  const ir::ExpressionPool& pool = forms_.expressions();
  auto any = [&](unsigned first) {
    for (unsigned place = first; place < first + 3; ++place)
      if (!pool.is_zero(site.coefficients[place])) return true;
    return false;
  };
  bool constant = !pool.is_zero(site.coefficients[form_index::constant]);
  ir::LinearOperand sum;
  sum.registers = site.uniform ? 1 : any(form_index::tid_x) + any(form_index::ctaid_x) + constant + site.moves();
  sum.adds = sum.registers > 1;
  if (sum.adds && site.width != 32) return std::nullopt;
  std::vector<InstructionId> readers;
  for (const ir::Use& use : forms_.def_use().uses(result)) {
    if (use.edge) {
      BlockId to = function_.edges[use.edge].to;
      if (live.read(function_.parameters(to)[use.index])) return std::nullopt;
      continue;
    }
    InstructionId reader = use.instruction;
    if (use.index == ir::Use::guard_index) return std::nullopt;
    if (!live.needed(reader) || replaced(reader, use.index) || is_dead(reader, counts)) continue;
    if (!ir::reads_linear_operand(function_, reader, result, sum)) return std::nullopt;
    if (sum.adds && reads_sum_[reader.index()]) return std::nullopt;
    if (site.moves() && function_.instructions[reader].block != function_.instructions[site.instruction].block)
      return std::nullopt;
    if (site.counter && !is_counter_at(site.counter, reader)) return std::nullopt;
    if (sum.adds) readers.push_back(reader);
  }
  return readers;
}

bool Planner::is_dead(InstructionId id, const ir::ReaderCounts& counts) const {
  if (!ir::removable_when_unused(function_, id)) return false;
  bool read = false;
  ir::for_each_definition(function_, id, [&](ValueId value) { read |= counts.readers(value) != 0; });
  return !read;
}

} // namespace ptxrewrite::transforms::r2d2
