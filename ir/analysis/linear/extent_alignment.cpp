// Residues of addresses modulo a power of two: from their forms if they have one, otherwise from the instructions that
// compute them, so that `pointer + 16 * loaded index` has the alignment of the pointer.
#include "ir/analysis/linear/extent.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::ir {

namespace {

constexpr unsigned residue_depth = 24;

// 2^k * x mod 2^k * m requires only x mod m.
unsigned reduced(unsigned modulus, uint64_t factor) {
  const unsigned zeros = factor == 0 ? 63 : static_cast<unsigned>(std::countr_zero(factor));
  return zeros >= 31 ? 1 : std::max(1u, modulus >> zeros);
}

} // namespace

// All terms but the literal have to be multiples of the modulus; terms not known to be become conditions.
std::optional<uint64_t> AccessExtents::residue_of_form(const LinearForm& form, unsigned modulus, Query& query) {
  std::vector<ExactSum> rests;
  uint64_t residue = 0;
  auto add = [&](ExpressionId id) {
    if ((uint64_t(1) << std::min(pool_.trailing_zeros(id), 63u)) >= modulus) return true;
    auto value = modular(id, query);
    if (!value || !value->is_point() || value->low.is_broken()) return false;
    const ExactSum rest = value->low.split(modulus).second;
    if (!rest.as_literal()) rests.push_back(rest - ExactSum::literal(rest.literal_part()));
    // An index multiplies its coefficient's literal, so that it has no fixed contribution.
    if (id != form.coefficients[form_index::constant]) return rest.literal_part() == 0;
    residue = static_cast<uint64_t>(rest.literal_part());
    return true;
  };
  for (ExpressionId coefficient : form.coefficients)
    if (!add(coefficient)) return std::nullopt;
  for (const LoopOffset& offset : form.loops())
    if (!add(offset.step)) return std::nullopt;
  // Conditions on one quantity come first, so that conditions implied by them can be omitted.
  std::ranges::stable_sort(rests, {},
                           [](const ExactSum& sum) { return sum.terms().size() + sum.terms().rbegin()->first.size(); });
  std::map<QuantityId, Int128> multiples;
  for (const ExactSum& sum : rests) {
    ExactSum rest;
    Int128 common = modulus;
    for (const auto& [product, coefficient] : sum.terms()) {
      Int128 known = coefficient;
      for (QuantityId id : product)
        if (auto found = multiples.find(id); found != multiples.end()) known *= found->second;
      if (known % modulus == 0) continue;
      ExactSum term = ExactSum::literal(coefficient);
      for (QuantityId id : product)
        term = term * ExactSum::of(id);
      rest = rest + term;
      while (coefficient % common != 0)
        common /= 2;
    }
    if (rest.is_zero()) continue;
    if (rest.terms().size() == 1 && rest.terms().begin()->first.size() == 1)
      multiples[rest.terms().begin()->first.front()] = modulus / common;
    const ExactSum part = *rest.divided(common);
    const bool simple = part.terms().size() == 1 && part.terms().begin()->second == 1;
    const std::string text = quantities_.text(part);
    query.conditions.insert((simple ? text : "(" + text + ")") + " % " + to_string(modulus / common) + " == 0");
  }
  return residue % modulus;
}

// The residue of a value that is the result of an instruction.
std::optional<uint64_t> AccessExtents::residue_of_result(ValueId value, unsigned modulus, Query& query) {
  const DefinitionSite& site = forms_.def_use().definition(value);
  if (site.is_parameter()) return residue_of_parameter(value, modulus, query);
  if (!site.instruction || function_.instructions[site.instruction].kind != InstructionKind::real ||
      function_.instructions[site.instruction].guard)
    return std::nullopt;
  const Form& form = function_.form_of(site.instruction);
  const auto operands = function_.operands_of(site.instruction);
  const bool plain = std::ranges::none_of(operands, [](const Operand& operand) {
    return operand.is_group() || operand.selector != no_selector || operand.has(OperandFlag::negated);
  });
  if (!plain || operands.size() < 2 || !(is_integer(form.type()) || is_bit_type(form.type())) ||
      form.has(Modifier::sat) || form.has(Modifier::hi) || form.carry_out || form.effects.reads_carry)
    return std::nullopt;
  auto of = [&](size_t i, unsigned of_modulus) { return residue_of_operand(operands[i], of_modulus, query); };
  auto product = [&](size_t i, size_t j) -> std::optional<uint64_t> {
    for (auto [number, other] : {std::pair(i, j), std::pair(j, i)})
      if (operands[number].is(OperandKind::integer)) {
        const auto factor = static_cast<uint64_t>(operands[number].immediate);
        auto rest = of(other, reduced(modulus, factor));
        return rest ? std::optional(*rest * factor % modulus) : std::nullopt;
      }
    return std::nullopt;
  };
  auto sum = [&](std::optional<uint64_t> a, std::optional<uint64_t> b) {
    return a && b ? std::optional((*a + *b) % modulus) : std::nullopt;
  };
  switch (form.operation) {
  case Operation::copy:
  case Operation::convert:
  case Operation::convert_address:
    // The low bits are unchanged; a conversion between widths keeps enough of them.
    if (form.operation == Operation::convert && is_float(form.type(1))) return std::nullopt;
    if (form.operation == Operation::convert_address && form.space != StateSpace::global) return std::nullopt;
    return of(1, modulus);
  case Operation::add:
    return operands.size() == 3 ? sum(of(1, modulus), of(2, modulus)) : std::nullopt;
  case Operation::subtract: {
    auto b = operands.size() == 3 ? of(2, modulus) : std::nullopt;
    return b ? sum(of(1, modulus), modulus - *b) : std::nullopt;
  }
  case Operation::multiply:
    return operands.size() == 3 ? product(1, 2) : std::nullopt;
  case Operation::multiply_add:
    return operands.size() == 4 ? sum(product(1, 2), of(3, modulus)) : std::nullopt;
  case Operation::shift_left: {
    if (operands.size() != 3 || !operands[2].is(OperandKind::integer) || operands[2].immediate < 0 ||
        operands[2].immediate > 31)
      return std::nullopt;
    const uint64_t factor = uint64_t(1) << operands[2].immediate;
    auto rest = of(1, reduced(modulus, factor));
    return rest ? std::optional(*rest * factor % modulus) : std::nullopt;
  }
  case Operation::bit_and:
    if (operands.size() == 3 && operands[2].is(OperandKind::integer) &&
        static_cast<uint64_t>(operands[2].immediate) % modulus == 0)
      return 0;
    return std::nullopt;
  case Operation::none:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::shift_right:
  case Operation::compare:
  case Operation::select:
    return std::nullopt;
  }
  return std::nullopt;
}

// The residue of a block parameter: has to agree on all edges, by induction if one of them is a back edge.
std::optional<uint64_t> AccessExtents::residue_of_parameter(ValueId value, unsigned modulus, Query& query) {
  const DefinitionSite& site = forms_.def_use().definition(value);
  if (auto found = residues_in_progress_.find(value); found != residues_in_progress_.end())
    return found->second % modulus;
  for (uint64_t guess = 0; guess < 2; ++guess) {
    // Guess 0, then the residue on the first edge.
    std::optional<uint64_t> wanted = 0;
    if (guess == 1) {
      residues_in_progress_[value] = 0;
      const EdgeId first = forms_.control_flow().predecessors(site.block).front();
      Query attempt = query;
      wanted = residue_of_value(function_.arguments(first)[site.parameter], modulus, attempt);
      residues_in_progress_.erase(value);
      if (!wanted || *wanted == 0) return std::nullopt;
    }
    Query attempt = query;
    residues_in_progress_[value] = *wanted;
    bool all = true;
    for (EdgeId edge : forms_.control_flow().predecessors(site.block))
      all = all && residue_of_value(function_.arguments(edge)[site.parameter], modulus, attempt) == wanted;
    residues_in_progress_.erase(value);
    if (!all) continue;
    query = attempt;
    return wanted;
  }
  return std::nullopt;
}

std::optional<uint64_t> AccessExtents::residue_of_operand(const Operand& operand, unsigned modulus, Query& query) {
  if (modulus == 1) return 0;
  if (operand.is(OperandKind::integer)) return static_cast<uint64_t>(operand.immediate) % modulus;
  return operand.is(OperandKind::value) ? residue_of_value(operand.as_value(), modulus, query) : std::nullopt;
}

std::optional<uint64_t> AccessExtents::residue_of_value(ValueId value, unsigned modulus, Query& query) {
  if (modulus == 1) return 0;
  if (!spend() || query.depth > residue_depth || function_.values[value].is_undefined ||
      function_.values[value].vector_width != 1 || bit_width(function_.values[value].type) < 16)
    return std::nullopt;
  ++query.depth;
  Query attempt = query;
  std::optional<uint64_t> residue;
  const LinearForm form = forms_.form(value);
  if (form.has_coefficients() && form.kind <= ValueClass::linear_loop) {
    const auto conditions = discharge(forms_.obligations(value));
    if (conditions) {
      attempt.conditions.insert(conditions->begin(), conditions->end());
      residue = residue_of_form(form, modulus, attempt);
    }
  }
  if (residue) {
    query = attempt;
  } else {
    attempt = query;
    residue = residue_of_result(value, modulus, attempt);
    if (residue) query = attempt;
  }
  query.depth -= 1;
  return residue;
}

std::optional<Residue> AccessExtents::residue_of(InstructionId access, size_t address, unsigned modulus) {
  const auto operands = function_.operands_of(access);
  if (!operands[address].is(OperandKind::address) || operands[address].group_size() != 1 ||
      !operands[address + 1].is(OperandKind::value))
    return std::nullopt;
  budget_ = full_budget;
  Scope own;
  const Scope& scope = guarded_scope(access, own);
  Query query{&scope, {}, 0};
  auto base = residue_of_value(operands[address + 1].as_value(), modulus, query);
  if (!base) return std::nullopt;
  return Residue{(*base + static_cast<uint64_t>(operands[address].immediate)) % modulus, query.conditions};
}

} // namespace ptxrewrite::ir
