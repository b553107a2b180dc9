#include "evaluate/prove/float_rules.h"

#include "transforms/divisor/float_division.h"

#include <algorithm>
#include <bit>
#include <string>

namespace ptxrewrite::prove {

namespace {

constexpr uint32_t lowest = std::bit_cast<uint32_t>(-0x1.fffffep127f);
constexpr uint32_t most_of_byte = std::bit_cast<uint32_t>(255.0f);

// The half with the same value, if it is zero or a normal half.
std::optional<uint32_t> half_of(uint32_t single) {
  const uint32_t sign = single >> 31 << 15, exponent = single >> 23 & 0xff, fraction = single & 0x7fffff;
  if (exponent == 0 && fraction == 0) return sign;
  if (exponent < 127 - 14 || exponent > 127 + 15 || (fraction & 0x1fff) != 0) return std::nullopt;
  return sign | (exponent - 127 + 15) << 10 | fraction >> 13;
}

// add.ftz.f32.0 -> add.rn.f16.0, for operations whose double rounding is that of one.
std::optional<std::string> operation_on_halves(std::string name) {
  constexpr std::string_view end = ".f32.0";
  if (!name.ends_with(end)) return std::nullopt;
  name.resize(name.size() - end.size());
  const std::string opcode = name.substr(0, name.find('.')), rest = name.substr(opcode.size());
  const bool rounds = opcode == "add" || opcode == "sub" || opcode == "mul";
  const bool compares = opcode == "min" || opcode == "max";
  if (rounds && (rest.empty() || rest == ".rn" || rest == ".ftz" || rest == ".rn.ftz")) return opcode + ".rn.f16.0";
  if (compares && (rest.empty() || rest == ".ftz")) return opcode + ".f16.0";
  return std::nullopt;
}

} // namespace

std::optional<Atom> FloatRules::operation(TermId term, std::string_view name, size_t operands) const {
  const auto id = terms_.as_atom(term);
  if (!id) return std::nullopt;
  const Atom& row = terms_.atom(*id);
  const bool same = row.kind == AtomKind::operation && row.name == name && row.operands.size() == operands;
  return same ? std::optional(row) : std::nullopt;
}

std::optional<uint32_t> FloatRules::literal(TermId term) const {
  const auto value = terms_.literal_value(term);
  return value ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

// fma(max(fma(q, d, -x), lowest), -1/d, q), q = x * (1/d)
std::optional<TermId> FloatRules::quotient(const Atom& row) {
  if (row.name != "fma.rn.f32.0" || row.operands.size() != 3) return std::nullopt;
  const TermId q = row.operands[2];
  const auto product = operation(q, "mul.rn.f32.0", 2);
  const auto kept = operation(row.operands[0], "max.f32.0", 2);
  const auto rest = kept ? operation(kept->operands[0], "fma.rn.f32.0", 3) : std::nullopt;
  if (!product || !rest || rest->operands[0] != q || literal(kept->operands[1]) != lowest) return std::nullopt;
  const TermId x = product->operands[0];
  const auto negated = operation(rest->operands[2], "neg.f32.0", 1);
  const auto divisor = literal(rest->operands[1]);
  if (!negated || negated->operands[0] != x || !divisor || !transforms::is_exact_divisor(*divisor)) return std::nullopt;
  const float reciprocal = 1.0f / std::bit_cast<float>(*divisor);
  if (literal(product->operands[1]) != std::bit_cast<uint32_t>(reciprocal) ||
      literal(row.operands[1]) != std::bit_cast<uint32_t>(-reciprocal))
    return std::nullopt;
  return terms_.operation("div.rn.f32.0", 32, {x, terms_.literal(32, *divisor)});
}

// The half whose widening to f32 the term is.
std::optional<TermId> FloatRules::narrowed(TermId widened) {
  if (const auto number = literal(widened)) {
    const auto bits = half_of(*number);
    return bits ? std::optional(terms_.literal(16, *bits)) : std::nullopt;
  }
  for (const std::string_view name : {"cvt.f32.f16.0", "cvt.ftz.f32.f16.0"})
    if (const auto row = operation(widened, name, 1); row && terms_.width(row->operands[0]) == 16)
      return row->operands[0];
  return std::nullopt;
}

// The operation on halves whose result rounding the f32 term gives.
std::optional<TermId> FloatRules::half(TermId rounded) {
  const auto id = terms_.as_atom(rounded);
  if (!id) return std::nullopt;
  const Atom row = terms_.atom(*id);
  const auto name = row.kind == AtomKind::operation ? operation_on_halves(row.name) : std::nullopt;
  if (!name || row.operands.size() != 2) return std::nullopt;
  std::vector<TermId> operands;
  for (const TermId operand : row.operands)
    if (const auto one = narrowed(operand)) operands.push_back(*one);
  if (operands.size() != 2) return std::nullopt;
  return terms_.operation(*name, 16, std::move(operands));
}

// Literals have the width of a half, not that of the register or number that they come from.
std::optional<TermId> FloatRules::with_half_literals(const Atom& row) {
  if (!row.name.ends_with(".f16.0") || row.width != 16) return std::nullopt;
  std::vector<TermId> operands;
  for (const TermId operand : row.operands)
    operands.push_back(literal(operand) ? terms_.truncate(operand, 16) : operand);
  return terms_.operation(row.name, 16, std::move(operands));
}

std::optional<TermId> FloatRules::clamped(const Atom& row) {
  if (row.name != "cvt.rzi.u32.f32.0" || row.operands.size() != 1) return std::nullopt;
  const auto below = operation(row.operands[0], "min.f32.0", 2);
  const auto above = below ? operation(below->operands[0], "max.f32.0", 2) : std::nullopt;
  if (!above || literal(below->operands[1]) != most_of_byte || literal(above->operands[1]) != 0u) return std::nullopt;
  const TermId whole = terms_.operation("cvt.rzi.s32.f32.0", 32, {above->operands[0]});
  const TermId most = terms_.operation("smin", 32, {whole, terms_.literal(32, 255)});
  return terms_.operation("smax", 32, {most, terms_.literal(32, 0)});
}

std::optional<TermId> FloatRules::by_rule(const Atom& row) {
  if (row.kind != AtomKind::operation || row.width > 32) return std::nullopt; // in a wider register: extended
  if (row.name == "cvt.rn.f16.f32.0" && row.operands.size() == 1)
    return row.width == 16 ? half(row.operands[0]) : std::nullopt;
  if (row.width < 32) return with_half_literals(row);
  if (row.name == "cvt.rn.f16x2.f32.0" && row.operands.size() == 2) { // the upper half comes first
    const auto upper = half(row.operands[0]), lower = half(row.operands[1]);
    if (!upper || !lower) return std::nullopt;
    const TermId moved = terms_.scale(terms_.zero_extend(*upper, 32), UInt128(1) << 16);
    return terms_.add(terms_.zero_extend(*lower, 32), moved);
  }
  if (const auto found = quotient(row)) return found;
  if (const auto found = with_half_literals(row)) return found;
  return clamped(row);
}

TermId FloatRules::factor(AtomId id) {
  const std::vector<TermId> old = terms_.atom(id).operands;
  std::vector<TermId> operands;
  for (const TermId operand : old)
    operands.push_back(rewritten(operand));
  const TermId term = operands == old ? terms_.from_atom(id) : terms_.remade(id, std::move(operands));
  const auto made = terms_.as_atom(term);
  if (!made) return term;
  const Atom row = terms_.atom(*made);
  return by_rule(row).value_or(term);
}

TermId FloatRules::rewritten(TermId in) {
  if (const auto known = done_.find(in); known != done_.end()) return known->second;
  const Term term = terms_[in];
  TermId sum = terms_.literal(term.width, 0);
  for (const auto& [monomial, coefficient] : term.coefficients) {
    TermId product = terms_.literal(term.width, coefficient);
    for (const AtomId one : monomial)
      product = terms_.multiply(product, factor(one));
    sum = terms_.add(sum, product);
  }
  return done_[in] = sum;
}

} // namespace ptxrewrite::prove
