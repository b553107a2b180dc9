// Ring arithmetic on terms. Every function here is one law of Z/2^n; tests/unit/evaluate/prove/prove_test.cpp evaluates
// both sides.
#include "evaluate/prove/terms.h"

#include <algorithm>
#include <utility>

namespace ptxrewrite::prove {

namespace {

UInt128 low_bits(UInt128 value, unsigned width) {
  return width >= 128 ? value : value & ((UInt128(1) << width) - 1);
}

UInt128 sign_extended(UInt128 value, unsigned from) {
  if (from >= 128) return value;
  const UInt128 sign = UInt128(1) << (from - 1);
  return (value ^ sign) - sign;
}

UInt128 greatest_common_divisor(UInt128 a, UInt128 b) {
  while (b != 0)
    a = std::exchange(b, a % b);
  return a;
}

} // namespace

TermId Terms::intern(Term term) {
  auto [row, fresh] = term_index_.try_emplace(std::move(term), TermId(static_cast<uint32_t>(terms_.size())));
  if (fresh) terms_.push_back(row->first);
  return row->second;
}

AtomId Terms::intern(Atom atom) {
  auto [row, fresh] = atom_index_.try_emplace(std::move(atom), AtomId(static_cast<uint32_t>(atoms_.size())));
  if (fresh) atoms_.push_back(row->first);
  return row->second;
}

TermId Terms::literal(unsigned width, UInt128 value) {
  Term term;
  term.width = static_cast<uint8_t>(width);
  if (UInt128 bits = low_bits(value, width)) term.coefficients[{}] = bits;
  return intern(std::move(term));
}

std::optional<UInt128> Terms::literal_value(TermId id) const {
  const Term& term = (*this)[id];
  if (term.coefficients.empty()) return 0;
  if (term.coefficients.size() == 1 && term.coefficients.begin()->first.empty())
    return term.coefficients.begin()->second;
  return std::nullopt;
}

TermId Terms::from_atom(AtomId id) {
  Term term;
  term.width = atom(id).width;
  term.coefficients[{id}] = 1;
  return intern(std::move(term));
}

std::optional<AtomId> Terms::as_atom(TermId id) const {
  const Term& term = (*this)[id];
  if (term.coefficients.size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *term.coefficients.begin();
  if (coefficient != 1 || monomial.size() != 1) return std::nullopt;
  return monomial[0];
}

TermId Terms::leaf(std::string name, unsigned width, bool nonnegative) {
  const AtomId id = intern(Atom{AtomKind::leaf, static_cast<uint8_t>(width), std::move(name), {}});
  if (nonnegative) nonnegative_.insert(id);
  return from_atom(id);
}

void Terms::bound(TermId leaf, uint64_t highest) {
  highest_[*as_atom(leaf)] = highest;
}

// Is the term a sum of leaves with bounds that stays within the signed range of its width?
bool Terms::stays_signed(TermId a) const {
  const unsigned width = this->width(a);
  if (width > 32) return false;
  ir::Int128 low = 0, high = 0;
  for (const auto& [monomial, coefficient] : (*this)[a].coefficients) {
    const auto value = static_cast<ir::Int128>(sign_extended(coefficient, width));
    ir::Int128 extreme = value;
    if (monomial.size() > 1) return false;
    if (monomial.size() == 1) {
      auto highest = highest_.find(monomial[0]);
      if (highest == highest_.end()) return false;
      extreme = value * static_cast<ir::Int128>(highest->second);
    }
    (extreme < 0 ? low : high) += extreme;
  }
  const ir::Int128 limit = ir::Int128(1) << (width - 1);
  return low >= -limit && high < limit;
}

// The largest value of a sum of zero extensions and literals that cannot wrap.
std::optional<UInt128> Terms::greatest(TermId a) const {
  const Term& term = (*this)[a];
  if (term.width > 64) return std::nullopt;
  UInt128 sum = 0;
  for (const auto& [monomial, coefficient] : term.coefficients) {
    if (monomial.size() > 1) return std::nullopt;
    UInt128 most = 1;
    if (monomial.size() == 1) {
      const Atom& row = atom(monomial[0]);
      if (row.kind != AtomKind::zero_extend) return std::nullopt;
      most = low_bits(~UInt128(0), width(row.operands[0]));
    }
    if (most > (UInt128(1) << 63) || coefficient * most > low_bits(~UInt128(0), term.width)) return std::nullopt;
    sum += coefficient * most;
  }
  return sum <= low_bits(~UInt128(0), term.width) ? std::optional(sum) : std::nullopt;
}

TermId Terms::shift_right(TermId a, unsigned amount) {
  const Term term = (*this)[a];
  if (amount == 0) return a;
  if (amount >= term.width) return literal(term.width, 0);
  if (const auto value = literal_value(a)) return literal(term.width, *value >> amount);
  Term low{term.width, {}}, high{term.width, {}};
  for (const auto& [monomial, coefficient] : term.coefficients)
    if (const UInt128 whole = coefficient >> amount; whole << amount == coefficient)
      high.coefficients[monomial] = whole;
    else
      low.coefficients[monomial] = coefficient;
  const auto rest = greatest(intern(std::move(low)));
  if (rest && *rest >> amount == 0 && greatest(a)) return intern(std::move(high));
  if (const auto single = as_atom(a))
    if (const Atom row = atom(*single); row.kind == AtomKind::operation && row.name == "lshr")
      if (const auto before = literal_value(row.operands[1]); before && *before + amount < term.width)
        return operation("lshr", term.width, {row.operands[0], literal(term.width, *before + amount)});
  return operation("lshr", term.width, {a, literal(term.width, amount)});
}

TermId Terms::bitwise(const std::string& name, TermId a, TermId b) {
  if (literal_value(a)) std::swap(a, b);
  if (auto first = literal_value(a), second = literal_value(b); first && second)
    return literal(width(a), name == "and" ? *first & *second : name == "or" ? *first | *second : *first ^ *second);
  // The low bits of a sum whose other parts are multiples of a power of two.
  if (const auto mask = literal_value(b); name == "and" && mask) {
    const auto& terms = (*this)[a].coefficients;
    const auto found = terms.find(Monomial{});
    const UInt128 number = found == terms.end() ? 0 : found->second;
    const unsigned zeros = trailing_zeros(subtract(a, literal(width(a), number)));
    if (zeros >= 128 || *mask >> zeros == 0) return literal(width(a), *mask & number);
  }
  // The lowest byte or two; parts that do not overlap.
  for (const unsigned own : {8u, 16u})
    if (name == "and" && own < width(a) && literal_value(b) == (UInt128(1) << own) - 1)
      return zero_extend(truncate(a, own), width(a));
  if (name != "and")
    for (const auto& [lower, upper] : {std::pair(a, b), std::pair(b, a)})
      if (const auto most = greatest(lower); most && *most >> trailing_zeros(upper) == 0) return add(a, b);
  if (auto bits = literal_value(b); bits && name != "and" && (*bits >> trailing_zeros(a)) == 0) return add(a, b);
  return operation(name, width(a), {std::min(a, b), std::max(a, b)});
}

// The greatest common divisor of the coefficients, interpreted as signed; negative if the first one is.
ir::Int128 Terms::content(TermId a) const {
  const Term& term = (*this)[a];
  auto magnitude = [](ir::Int128 value) { return value < 0 ? UInt128(0) - UInt128(value) : UInt128(value); };
  UInt128 divisor = 0;
  for (const auto& [monomial, coefficient] : term.coefficients)
    divisor =
        greatest_common_divisor(divisor, magnitude(static_cast<ir::Int128>(sign_extended(coefficient, term.width))));
  const bool is_negative = static_cast<ir::Int128>(sign_extended(term.coefficients.begin()->second, term.width)) < 0;
  return static_cast<ir::Int128>(is_negative ? UInt128(0) - divisor : divisor);
}

TermId Terms::divided(TermId a, ir::Int128 by) {
  Term term = (*this)[a];
  for (auto& [monomial, coefficient] : term.coefficients)
    coefficient = low_bits(static_cast<UInt128>(static_cast<ir::Int128>(sign_extended(coefficient, term.width)) / by),
                           term.width);
  std::erase_if(term.coefficients, [](const auto& row) { return row.second == 0; });
  return intern(std::move(term));
}

TermId Terms::is_zero(TermId a) {
  if (auto value = literal_value(a)) return literal(1, *value == 0);
  if (width(a) == 1) return negation(a);
  // For an extension plus a literal: tests the operand of the extension instead.
  const Term term = (*this)[a];
  const auto& [last, coefficient] = *term.coefficients.rbegin();
  const bool is_one_more = term.coefficients.size() == 2 && term.coefficients.begin()->first.empty();
  if ((term.coefficients.size() == 1 || is_one_more) && last.size() == 1) {
    const Atom row = atom(last[0]);
    const auto factor = static_cast<ir::Int128>(sign_extended(coefficient, term.width));
    if ((row.kind == AtomKind::sign_extend || row.kind == AtomKind::zero_extend) && (factor == 1 || factor == -1)) {
      const UInt128 rest = is_one_more ? term.coefficients.begin()->second : 0;
      const UInt128 wanted = low_bits(factor == 1 ? UInt128(0) - rest : rest, term.width);
      const TermId inner = row.operands[0];
      const TermId narrow = literal(width(inner), wanted);
      if (extend(narrow, term.width, row.kind) != literal(term.width, wanted)) return literal(1, 0);
      return is_zero(subtract(inner, narrow));
    }
  }
  return operation("zero", 1, {content(a) < 0 ? scale(a, ~UInt128(0)) : a});
}

TermId Terms::less(TermId a, TermId b, bool is_signed) {
  const auto first = literal_value(a), second = literal_value(b);
  if (a == b) return literal(1, 0);
  if (first && second) {
    const unsigned own = width(a);
    const bool result = is_signed ? static_cast<ir::Int128>(sign_extended(*first, own)) <
                                        static_cast<ir::Int128>(sign_extended(*second, own))
                                  : *first < *second;
    return literal(1, result);
  }
  return operation(is_signed ? "slt" : "ult", 1, {a, b});
}

TermId Terms::select(TermId bit, TermId if_set, TermId if_not) {
  if (auto value = literal_value(bit)) return *value ? if_set : if_not;
  if (if_set == if_not) return if_set;
  // 1 + c is the negation of c, so the operands are swapped.
  if ((*this)[bit].coefficients.contains(Monomial{})) return select(negation(bit), if_not, if_set);
  const TermId difference = subtract(if_set, if_not);
  const ir::Int128 factor = content(difference);
  const unsigned own = width(if_set);
  const TermId part = operation("select", own, {bit, divided(difference, factor), literal(own, 0)});
  return add(if_not, scale(part, static_cast<UInt128>(factor)));
}

TermId Terms::operation(std::string name, unsigned width, std::vector<TermId> operands) {
  // A product with zero is zero; the order of factors, and of the operands of a minimum, does not matter.
  const bool is_high_product = name.starts_with("mul.hi.") && operands.size() == 2;
  if (is_high_product && (literal_value(operands[0]) == UInt128(0) || literal_value(operands[1]) == UInt128(0)))
    return literal(width, 0);
  if (is_high_product || name == "smin" || name == "smax" || name == "umin" || name == "umax")
    std::ranges::sort(operands);
  return from_atom(
      intern(Atom{AtomKind::operation, static_cast<uint8_t>(width), std::move(name), std::move(operands)}));
}

TermId Terms::add(TermId a, TermId b) {
  assert(width(a) == width(b));
  Term sum = (*this)[a];
  for (const auto& [monomial, coefficient] : (*this)[b].coefficients) {
    UInt128& place = sum.coefficients[monomial];
    place = low_bits(place + coefficient, sum.width);
    if (place == 0) sum.coefficients.erase(monomial);
  }
  return intern(std::move(sum));
}

TermId Terms::scale(TermId a, UInt128 factor) {
  Term product{(*this)[a].width, {}};
  for (const auto& [monomial, coefficient] : (*this)[a].coefficients)
    if (UInt128 bits = low_bits(coefficient * factor, product.width)) product.coefficients[monomial] = bits;
  return intern(std::move(product));
}

TermId Terms::multiply(TermId a, TermId b) {
  assert(width(a) == width(b));
  if (auto value = literal_value(a)) return scale(b, *value);
  if (auto value = literal_value(b)) return scale(a, *value);
  const Term left = (*this)[a], right = (*this)[b];
  if (left.coefficients.size() * right.coefficients.size() > most_monomials) {
    std::vector<TermId> operands{std::min(a, b), std::max(a, b)};
    return from_atom(intern(Atom{AtomKind::product, left.width, {}, std::move(operands)}));
  }
  Term product{left.width, {}};
  for (const auto& [first, x] : left.coefficients)
    for (const auto& [second, y] : right.coefficients) {
      Monomial both = first;
      both.insert(both.end(), second.begin(), second.end());
      std::ranges::sort(both);
      if (product.width == 1) both.erase(std::unique(both.begin(), both.end()), both.end()); // a bit equals its square
      UInt128& place = product.coefficients[both];
      place = low_bits(place + x * y, product.width);
      if (place == 0) product.coefficients.erase(both);
    }
  return intern(std::move(product));
}

TermId Terms::extend(TermId a, unsigned to, AtomKind kind) {
  const unsigned from = width(a);
  assert(from <= to);
  if (from == to) return a;
  if (auto value = literal_value(a))
    return literal(to, kind == AtomKind::sign_extend ? sign_extended(*value, from) : *value);
  if (auto inner = as_atom(a)) {
    const Atom row = atom(*inner);
    if (nonnegative_.contains(*inner)) kind = AtomKind::zero_extend;
    // An extension of a zero extension is a zero extension of either kind; a sign extension absorbs only another one.
    if (row.kind == AtomKind::zero_extend) return extend(row.operands[0], to, AtomKind::zero_extend);
    if (row.kind == AtomKind::sign_extend && kind == AtomKind::sign_extend)
      return extend(row.operands[0], to, AtomKind::sign_extend);
  }
  if (kind == AtomKind::sign_extend && !as_atom(a) && stays_signed(a)) {
    TermId sum = literal(to, 0);
    const Term parts = (*this)[a];
    for (const auto& [monomial, coefficient] : parts.coefficients) {
      const UInt128 factor = sign_extended(coefficient, from);
      sum = add(sum, monomial.empty() ? literal(to, factor)
                                      : scale(extend(from_atom(monomial[0]), to, AtomKind::zero_extend), factor));
    }
    return sum;
  }
  return from_atom(intern(Atom{kind, static_cast<uint8_t>(to), {}, {a}}));
}

TermId Terms::truncate_atom(AtomId id, unsigned to) {
  const Atom row = atom(id);
  switch (row.kind) {
  case AtomKind::sign_extend:
  case AtomKind::zero_extend:
    if (width(row.operands[0]) >= to) return truncate(row.operands[0], to);
    return extend(row.operands[0], to, row.kind);
  case AtomKind::truncate:
    return truncate(row.operands[0], to);
  case AtomKind::product:
    return multiply(truncate(row.operands[0], to), truncate(row.operands[1], to));
  case AtomKind::operation:
    if (row.name == "select")
      return select(row.operands[0], truncate(row.operands[1], to), truncate(row.operands[2], to));
    if (row.name == "and" || row.name == "or" || row.name == "xor")
      return bitwise(row.name, truncate(row.operands[0], to), truncate(row.operands[1], to));
    // The low bits of x << n, for any n.
    if (auto amount = as_atom(row.operands.size() == 2 ? row.operands[1] : row.operands[0]);
        row.name == "shl" && amount && atom(*amount).kind == AtomKind::zero_extend &&
        width(atom(*amount).operands[0]) <= to)
      return operation("shl", to, {truncate(row.operands[0], to), zero_extend(atom(*amount).operands[0], to)});
    break;
  case AtomKind::leaf:
    break;
  }
  return from_atom(intern(Atom{AtomKind::truncate, static_cast<uint8_t>(to), {}, {from_atom(id)}}));
}

TermId Terms::truncate(TermId a, unsigned to) {
  assert(to <= width(a));
  if (to == width(a)) return a;
  TermId sum = literal(to, 0);
  const Term term = (*this)[a];
  for (const auto& [monomial, coefficient] : term.coefficients) {
    TermId product = literal(to, coefficient);
    for (AtomId factor : monomial)
      product = multiply(product, truncate_atom(factor, to));
    sum = add(sum, product);
  }
  return sum;
}

TermId Terms::resize(TermId a, unsigned to, bool is_signed) {
  if (to <= width(a)) return truncate(a, to);
  return is_signed ? sign_extend(a, to) : zero_extend(a, to);
}

unsigned Terms::trailing_zeros(TermId a) const {
  const Term& term = (*this)[a];
  unsigned least = term.width;
  for (const auto& [monomial, coefficient] : term.coefficients) {
    unsigned zeros = 0;
    while (zeros < 127 && !((coefficient >> zeros) & 1))
      ++zeros;
    for (AtomId factor : monomial)
      if (const Atom& row = atom(factor); row.kind == AtomKind::sign_extend || row.kind == AtomKind::zero_extend)
        zeros += trailing_zeros(row.operands[0]);
    least = std::min(least, zeros);
  }
  return least;
}

TermId Terms::substitute(TermId in, const std::map<AtomId, TermId>& with) {
  if (with.empty()) return in;
  std::map<TermId, TermId> done;
  return substitute(in, with, done);
}

TermId Terms::substitute(TermId in, const std::map<AtomId, TermId>& with, std::map<TermId, TermId>& done) {
  if (auto known = done.find(in); known != done.end()) return known->second;
  const Term term = (*this)[in];
  TermId sum = literal(term.width, 0);
  for (const auto& [monomial, coefficient] : term.coefficients) {
    TermId product = literal(term.width, coefficient);
    for (AtomId factor : monomial)
      product = multiply(product, replaced(factor, with, done));
    sum = add(sum, product);
  }
  done.emplace(in, sum);
  return sum;
}

TermId Terms::replaced(AtomId id, const std::map<AtomId, TermId>& with, std::map<TermId, TermId>& done) {
  if (auto found = with.find(id); found != with.end()) return found->second;
  std::vector<TermId> operands;
  const std::vector<TermId> old = atom(id).operands;
  for (TermId operand : old)
    operands.push_back(substitute(operand, with, done));
  return remade(id, std::move(operands));
}

TermId Terms::remade(AtomId id, std::vector<TermId> operands) {
  const Atom row = atom(id);
  switch (row.kind) {
  case AtomKind::leaf:
    break;
  case AtomKind::sign_extend:
  case AtomKind::zero_extend:
    return extend(operands[0], row.width, row.kind);
  case AtomKind::truncate:
    return truncate(operands[0], row.width);
  case AtomKind::product:
    return multiply(operands[0], operands[1]);
  case AtomKind::operation:
    if (row.name == "and" || row.name == "or" || row.name == "xor") return bitwise(row.name, operands[0], operands[1]);
    if (row.name == "zero") return is_zero(operands[0]);
    if (row.name == "slt" || row.name == "ult") return less(operands[0], operands[1], row.name == "slt");
    if (row.name == "select") return select(operands[0], operands[1], operands[2]);
    return operation(row.name, row.width, std::move(operands));
  }
  return from_atom(id);
}

void Terms::collect_atoms(TermId in, std::set<AtomId>& found) const {
  for (const auto& [monomial, coefficient] : (*this)[in].coefficients)
    for (AtomId factor : monomial)
      if (found.insert(factor).second)
        for (TermId operand : atom(factor).operands)
          collect_atoms(operand, found);
}

std::string Terms::print(TermId id, unsigned depth) const {
  if (depth == 0) return "...";
  std::string text;
  const Term& term = (*this)[id];
  for (const auto& [monomial, coefficient] : term.coefficients) {
    const ir::Int128 value = static_cast<ir::Int128>(sign_extended(coefficient, term.width));
    std::string product = value == 1 && !monomial.empty() ? std::string() : ir::to_string(value);
    for (AtomId factor : monomial) {
      const Atom& row = atom(factor);
      if (!product.empty()) product += '*';
      switch (row.kind) {
      case AtomKind::leaf:
        product += row.name;
        continue;
      case AtomKind::sign_extend:
        product += "sext";
        break;
      case AtomKind::zero_extend:
        product += "zext";
        break;
      case AtomKind::truncate:
        product += "trunc";
        break;
      case AtomKind::product:
        product += "product";
        break;
      case AtomKind::operation:
        product += row.name;
        break;
      }
      if (row.kind != AtomKind::operation) product += std::to_string(row.width);
      product += '(';
      for (size_t i = 0; i < row.operands.size(); ++i)
        product += (i ? ", " : "") + print(row.operands[i], depth - 1);
      product += ')';
    }
    text += (text.empty() ? "" : " + ") + product;
  }
  return text.empty() ? "0" : text;
}

} // namespace ptxrewrite::prove
