// Compares the addresses of loads that run ahead with those of the writes they pass.
#include "transforms/dac/run_ahead_memory.h"

#include "ir/analysis/linear/form_bounds.h"
#include "ir/core/module.h"
#include "transforms/common/address_forms.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::ExpressionKind;
using ir::InstructionId;
using ir::InstructionKind;
using ir::LinearForm;
using ir::LoopId;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::StateSpace;

constexpr std::string_view raised_by = "dac: a load runs ahead";

std::string line_of(const ir::Function& function, InstructionId id) {
  const SourceRange range = function.instructions[id].range;
  if (range.empty()) return {};
  return " in line " + std::to_string(function.module().source.locate(range.begin).line);
}

bool is_affine(const LinearForm& form) {
  return form.has_coefficients() && !form.varies && form.kind != ir::ValueClass::any &&
         form.kind != ir::ValueClass::mod_linear && form.kind != ir::ValueClass::divergent_linear;
}

bool is_elsewhere(const ir::Form& form) {
  return ir::is_shared(form.space) || form.space == StateSpace::local || ir::is_param(form.space);
}

bool is_block_barrier(const ir::Form& form) {
  return form.opcode == Opcode::bar || form.opcode == Opcode::barrier;
}

} // namespace

std::vector<InstructionId> writers_of(const ir::Function& function) {
  std::vector<InstructionId> writers;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const ir::Form& form = function.form_of(id);
      if (form.effects.call || (form.effects.writes_memory && !is_elsewhere(form))) writers.push_back(id);
    }
  return writers;
}

MemoryOrder::MemoryOrder(ir::LinearForms& forms, const Attempt& attempt, bool assume_noalias, LoopId loop,
                         std::span<const InstructionId> writers, bool by_another_thread)
    : forms_(forms), function_(forms.function()), attempt_(attempt), assume_noalias_(assume_noalias), loop_(loop),
      barriers_(by_another_thread) {
  scan(writers);
}

void MemoryOrder::scan(std::span<const InstructionId> writers) {
  for (BlockId block : forms_.loops().loops()[loop_].blocks)
    for (InstructionId id : function_.instructions_in(block))
      if (function_.instructions[id].kind == InstructionKind::real) scan_instruction(id, true);
  if (!barriers_) return;
  if (!function_.is_entry && refusal_.empty()) refusal_ = "callers may write between barriers";
  for (InstructionId id : writers)
    if (!forms_.loops().contains(loop_, function_.instructions[id].block)) scan_instruction(id, false);
}

void MemoryOrder::scan_instruction(InstructionId id, bool in_loop) {
  const ir::Form& form = function_.form_of(id);
  // `before`, the instruction, `behind`. Written for the first refusal only.
  const auto refuse = [&](std::string_view before, std::string_view behind) {
    if (refusal_.empty())
      refusal_ =
          std::string(before) + "'" + std::string(form.mnemonic) + "'" + line_of(function_, id) + std::string(behind);
  };
  if (form.effects.call) return refuse("the function called by ", " may write to memory");
  if (form.effects.barrier && !form.effects.writes_memory) {
    if (!in_loop) return;
    if (is_block_barrier(form))
      barriers_ = true;
    else
      refuse("", " orders memory");
    return;
  }
  const bool elsewhere = is_elsewhere(form);
  if (in_loop && form.effects.reads_memory && !form.effects.writes_memory && !elsewhere &&
      (form.effects.atomic || form.effects.volatile_result))
    return refuse("", " may see what other threads write");
  if (!form.effects.writes_memory || elsewhere) return;
  const bool is_store = form.opcode == Opcode::st,
             is_atomic = form.opcode == Opcode::atom || form.opcode == Opcode::red;
  if (!is_store && !is_atomic) return refuse("", " writes to memory");
  if (form.has(ir::Modifier::acquire) || form.has(ir::Modifier::release) || form.has(ir::Modifier::acq_rel) ||
      (is_store && (form.effects.atomic || form.effects.volatile_result)))
    return refuse("", " orders memory");
  Write write{id, 0, (ir::bit_width(form.type()) + 7) / 8 * form.vector_width, is_atomic};
  const auto operands = function_.operands_of(id);
  while (write.address < operands.size() && !operands[write.address].is(OperandKind::address))
    ++write.address;
  if (write.address >= operands.size()) return refuse("", " writes to memory");
  writes_.push_back(write);
}

std::string MemoryOrder::check(const RunAheadLoad& load, unsigned distance, std::vector<MemoryClaim>& claims) const {
  if (load.read_only) return {};
  if (!refusal_.empty()) return refusal_;
  for (const Write& write : writes_)
    if (std::string why = check_against(load, write, distance, claims); !why.empty()) return why;
  return {};
}

std::string MemoryOrder::check_against(const RunAheadLoad& load, const Write& write, unsigned distance,
                                       std::vector<MemoryClaim>& claims) const {
  const ir::Form& form = function_.form_of(write.instruction);
  const std::string what = "'" + std::string(form.mnemonic) + "'" + line_of(function_, write.instruction);
  const LinearForm& from = forms_.address_form(load.instruction, load.address);
  const LinearForm& to = forms_.address_form(write.instruction, write.address);
  MemoryClaim claim;
  claim.load = load.instruction;
  claim.write = write.instruction;
  claim.statement = "the load does not read what " + what + " writes";
  const auto from_variable = variable_of(from), to_variable = variable_of(to);
  const auto from_pointer = pointer_of(from), to_pointer = pointer_of(to);
  if (from_variable && to_variable && *from_variable != *to_variable) {
    claim.reason = *from_variable + " and " + *to_variable + " are different variables";
    claims.push_back(std::move(claim));
    return {};
  }
  if (assume_noalias_ && from_pointer && to_pointer && *from_pointer != *to_pointer) {
    claim.assumed = true;
    claims.push_back(std::move(claim));
    return {};
  }
  // The following conclusions depend on the obligations of the forms.
  for (const auto& [instruction, address] :
       {std::pair(load.instruction, load.address), std::pair(write.instruction, write.address)}) {
    const Operand& base = function_.operands_of(instruction)[address + 1];
    if (!base.is(OperandKind::value)) continue;
    const auto list = forms_.obligations(base.as_value());
    claim.obligations.insert(claim.obligations.end(), list.begin(), list.end());
  }
  const bool forms_hold = attempt_.can_rest_on(forms_, claim.obligations);
  if (!barriers_ && forms_hold) {
    switch (apart_in_thread(load, write, distance, claim.predicate)) {
    case Apart::proved:
      claim.reason = "their addresses in a thread differ in each of these trips";
      claims.push_back(std::move(claim));
      return {};
    case Apart::at_launch:
      if (!attempt_.policy().launch) break;
      claims.push_back(std::move(claim));
      return {};
    case Apart::never:
      return what + " writes what the load reads within " + std::to_string(distance) + " trip(s)";
    case Apart::unknown:
      break;
    }
  }
  if (from_pointer && from_pointer == to_pointer)
    return what + " and the load are both addressed from parameter " + std::to_string(*from_pointer);
  if (!is_affine(to)) return what + " writes to an address that is not affine";
  if (!is_affine(from)) return what + " may write there, and the load's address is not affine";
  if (!forms_hold) return what + " may write there: no launch could tell whether the addresses wrap";
  if (!attempt_.policy().launch) return what + " may write there, and no launcher chooses between kernels";
  const std::optional<std::string>& predicate = ranges_apart(load, write);
  if (!predicate) return what + " may write there: the ranges of addresses are not known before the launch";
  claim.predicate = *predicate;
  claim.statement = "in the whole launch, " + claim.statement;
  claims.push_back(std::move(claim));
  return {};
}

// May the write precede the load within one trip?
bool MemoryOrder::comes_before(const Write& write, const RunAheadLoad& load) const {
  const BlockId block = function_.instructions[write.instruction].block;
  if (block != load.block) return !forms_.dominators().strictly_dominates(load.block, block);
  for (InstructionId id : function_.instructions_in(block)) {
    if (id == load.instruction) return false;
    if (id == write.instruction) return true;
  }
  return true;
}

bool MemoryOrder::same_in_all_threads(const LinearForm& a, const LinearForm& b, ExpressionId& step) const {
  if (!is_affine(a) || !is_affine(b) || a.width != 64 || b.width != 64 || a.loop_count != b.loop_count) return false;
  for (unsigned place = 1; place < ir::form_index::count; ++place)
    if (a.coefficients[place] != b.coefficients[place]) return false;
  for (const ir::LoopOffset& offset : a.loops()) {
    if (std::ranges::find(b.loops(), offset) == b.loops().end()) return false;
    if (offset.loop == loop_) step = offset.step;
  }
  return step.valid();
}

// If load and write differ by a constant plus a step for each trip in between: can they overlap?
MemoryOrder::Apart MemoryOrder::apart_in_thread(const RunAheadLoad& load, const Write& write, unsigned distance,
                                                std::string& predicate) const {
  const LinearForm& from = forms_.address_form(load.instruction, load.address);
  const LinearForm& to = forms_.address_form(write.instruction, write.address);
  ExpressionId step;
  if (!same_in_all_threads(from, to, step)) return Apart::unknown;
  ir::ExpressionPool& pool = forms_.expressions();
  const int64_t load_bytes = load.bytes, write_bytes = write.bytes;
  ExpressionId difference = pool.subtract(from.coefficients[0], to.coefficients[0]);
  std::string all;
  for (unsigned trips = 0; trips <= distance; ++trips, difference = pool.add(difference, step)) {
    if (trips == 0 && !comes_before(write, load)) continue;
    if (const auto literal = pool.literal_value(difference)) {
      const int64_t bytes = ir::signed_value(*literal, 64);
      if (bytes < write_bytes && bytes > -load_bytes) return Apart::never;
      continue;
    }
    if (!pool[difference].evaluable) return Apart::unknown;
    const std::string text = pool.print_predicate(difference);
    all += (all.empty() ? "(" : " && (") + text + " >= " + std::to_string(write_bytes) + " || " + text +
           " <= " + std::to_string(-load_bytes) + ")";
  }
  predicate = all;
  return all.empty() ? Apart::proved : Apart::at_launch;
}

const std::optional<std::string>& MemoryOrder::ranges_apart(const RunAheadLoad& load, const Write& write) const {
  const auto [entry, fresh] = ranges_apart_.try_emplace({load.instruction, write.instruction});
  if (fresh) entry->second = compare_ranges(load, write);
  return entry->second;
}

std::optional<std::string> MemoryOrder::compare_ranges(const RunAheadLoad& load, const Write& write) const {
  const auto from = ir::bounds_at_launch(forms_, forms_.address_form(load.instruction, load.address));
  const auto to = ir::bounds_at_launch(forms_, forms_.address_form(write.instruction, write.address));
  if (!from || !to) return std::nullopt;
  std::string text;
  const auto require = [&](const std::string& condition) {
    if (!condition.empty() && text.find(condition) == std::string::npos)
      text += (text.empty() ? "" : " && ") + condition;
  };
  require(from->conditions);
  require(to->conditions);
  // Addresses are numbers in Z/2^64: if both ranges lie in one window of that size, they compare as integers.
  for (const std::string& low : {from->low, to->low})
    require(low + " >= -9223372036854775808");
  for (const std::string& high : {from->high, to->high})
    require(high + " <= 9223372036854775807");
  require("(" + from->high + " + " + std::to_string(load.bytes) + " <= " + to->low + " || " + to->high + " + " +
          std::to_string(write.bytes) + " <= " + from->low + ")");
  return text;
}

// Returns the only parameter that is the base of the address, as its number.
std::optional<uint32_t> MemoryOrder::pointer_of(const LinearForm& form) const {
  if (!form.has_coefficients() || form.width != 64) return std::nullopt;
  const ir::ExpressionPool& pool = forms_.expressions();
  const ExpressionId constant = form.coefficients[0];
  std::optional<uint32_t> pointer;
  const auto look_at = [&](ExpressionId atom) {
    const ir::Expression& row = pool[atom];
    if (row.kind != ExpressionKind::parameter || row.width != 64) return true;
    if (pointer && *pointer != row.payload) return false;
    pointer = row.payload;
    return true;
  };
  if (pool[constant].kind != ExpressionKind::sum) return look_at(constant) ? pointer : std::nullopt;
  for (const ir::ExpressionTerm& term : pool.terms(constant)) {
    const auto factors = pool.factors(term.monomial);
    if (term.coefficient == 1 && factors.size() == 1 && !look_at(factors.front())) return std::nullopt;
  }
  return pointer;
}

std::optional<std::string> MemoryOrder::variable_of(const LinearForm& form) const {
  if (!form.has_coefficients() || form.width != 64) return std::nullopt;
  const ir::ExpressionPool& pool = forms_.expressions();
  std::set<ExpressionId> symbols;
  pool.for_each_atom(form.coefficients[0], [&](ExpressionId atom) {
    if (pool[atom].kind == ExpressionKind::symbol) symbols.insert(atom);
  });
  if (symbols.size() != 1) return std::nullopt;
  return pool.print_short(*symbols.begin(), &function_);
}

void rest_on_claims(Attempt& attempt, ir::LinearForms& forms, const std::vector<MemoryClaim>& claims) {
  std::set<std::pair<std::string, std::string>> stated;
  const ir::Function& function = attempt.function();
  for (const MemoryClaim& claim : claims) {
    for (ir::ObligationId id : claim.obligations)
      attempt.rest_on(forms, id, raised_by, claim.load);
    if (!stated.insert({claim.statement, claim.predicate}).second) continue;
    const SourceRange range = function.instructions[claim.load].range;
    if (claim.assumed)
      attempt.rest_on_assumption(claim.statement, raised_by, noalias_parameters, range);
    else
      attempt.rest_on(claim.statement, raised_by, claim.predicate, claim.reason, range);
  }
}

} // namespace ptxrewrite::transforms::legal
