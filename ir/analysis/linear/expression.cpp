// Construction and normal form of launch-uniform expressions.
#include "ir/analysis/linear/expression.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::ir {

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

unsigned trailing_zeros_of(uint64_t value, unsigned width) {
  return std::min<unsigned>(width, static_cast<unsigned>(std::countr_zero(value)));
}

bool is_signed_kind(ExpressionKind kind) {
  return kind == ExpressionKind::divide_signed || kind == ExpressionKind::remainder_signed ||
         kind == ExpressionKind::minimum_signed || kind == ExpressionKind::maximum_signed;
}

} // namespace

// --- plain numbers ---

std::optional<uint64_t> apply_binary(ExpressionKind kind, unsigned width, uint64_t a, uint64_t b) {
  int64_t sa = signed_value(a, width), sb = signed_value(b, width);
  if (is_signed_kind(kind) && (kind == ExpressionKind::divide_signed || kind == ExpressionKind::remainder_signed)) {
    if (sb == 0) return std::nullopt;
    if (sb == -1) return kind == ExpressionKind::divide_signed ? low_bits(0 - a, width) : 0;
  }
  switch (kind) {
  case ExpressionKind::divide_signed:
    return low_bits(static_cast<uint64_t>(sa / sb), width);
  case ExpressionKind::remainder_signed:
    return low_bits(static_cast<uint64_t>(sa % sb), width);
  case ExpressionKind::divide_unsigned:
    return b ? std::optional(a / b) : std::nullopt;
  case ExpressionKind::remainder_unsigned:
    return b ? std::optional(a % b) : std::nullopt;
  case ExpressionKind::shift_left:
    return b >= width ? 0 : low_bits(a << b, width);
  case ExpressionKind::shift_right_unsigned:
    return b >= width ? 0 : a >> b;
  case ExpressionKind::shift_right_signed:
    return low_bits(static_cast<uint64_t>(sa >> std::min<uint64_t>(b, 63)), width);
  case ExpressionKind::minimum_signed:
    return sa < sb ? a : b;
  case ExpressionKind::maximum_signed:
    return sa < sb ? b : a;
  case ExpressionKind::minimum_unsigned:
    return std::min(a, b);
  case ExpressionKind::maximum_unsigned:
    return std::max(a, b);
  case ExpressionKind::multiply_high_signed:
    return low_bits(static_cast<uint64_t>((Int128(sa) * Int128(sb)) >> width), width);
  case ExpressionKind::multiply_high_unsigned: {
    __extension__ typedef unsigned __int128 Unsigned128;
    return low_bits(static_cast<uint64_t>((Unsigned128(a) * Unsigned128(b)) >> width), width);
  }
  case ExpressionKind::product:
    return low_bits(a * b, width);
  case ExpressionKind::and_:
    return a & b;
  case ExpressionKind::or_:
    return a | b;
  case ExpressionKind::xor_:
    return a ^ b;
  default:
    return std::nullopt;
  }
}

bool apply_comparison(Comparison comparison, unsigned width, uint64_t a, uint64_t b) {
  switch (comparison) {
  case Comparison::equal:
    return a == b;
  case Comparison::not_equal:
    return a != b;
  case Comparison::less_signed:
    return signed_value(a, width) < signed_value(b, width);
  case Comparison::less_equal_signed:
    return signed_value(a, width) <= signed_value(b, width);
  case Comparison::less_unsigned:
    return a < b;
  case Comparison::less_equal_unsigned:
    return a <= b;
  }
  return false;
}

Interval signed_range(unsigned width) {
  Int128 half = Int128(1) << (width - 1);
  return {-half, half - 1};
}

Interval unsigned_range(unsigned width) {
  return {0, (Int128(1) << width) - 1};
}

std::string to_string(Int128 value) {
  if (value >= INT64_MIN && value <= INT64_MAX) return std::to_string(static_cast<int64_t>(value)); // without divisions
  bool negative = value < 0;
  std::string digits;
  while (value != 0) {
    int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
    value /= 10;
  }
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

// --- interning ---

void ExpressionPool::describe(Expression& row, std::span<const ExpressionId> operand_list,
                              std::span<const ExpressionTerm> term_list) const {
  auto include = [&](ExpressionId id) {
    const Expression& part = expressions_[id];
    row.varies |= part.varies;
    row.evaluable &= part.evaluable;
    row.size = std::min<uint32_t>(row.size + part.size, UINT32_MAX / 2);
  };
  for (ExpressionId id : operand_list)
    include(id);
  for (const ExpressionTerm& term : term_list)
    for (ExpressionId id : factors(term.monomial))
      include(id);

  auto zeros = [&](ExpressionId id) { return expressions_[id].trailing_zeros; };
  unsigned width = row.width;
  unsigned known = 0;
  switch (row.kind) {
  case ExpressionKind::sum:
    known = trailing_zeros_of(static_cast<uint64_t>(row.offset), width);
    for (const ExpressionTerm& term : term_list) {
      unsigned of_term = trailing_zeros_of(term.coefficient, width);
      for (ExpressionId id : factors(term.monomial))
        of_term += zeros(id);
      known = std::min(known, of_term);
    }
    break;
  case ExpressionKind::sign_extend:
  case ExpressionKind::zero_extend:
  case ExpressionKind::truncate:
    known = zeros(operand_list[0]);
    break;
  case ExpressionKind::product:
    known = zeros(operand_list[0]) + zeros(operand_list[1]);
    break;
  case ExpressionKind::and_:
    known = std::max(zeros(operand_list[0]), zeros(operand_list[1]));
    break;
  case ExpressionKind::or_:
  case ExpressionKind::xor_:
  case ExpressionKind::minimum_signed:
  case ExpressionKind::minimum_unsigned:
  case ExpressionKind::maximum_signed:
  case ExpressionKind::maximum_unsigned:
    known = std::min(zeros(operand_list[0]), zeros(operand_list[1]));
    break;
  case ExpressionKind::shift_left:
    known = zeros(operand_list[0]);
    break;
  case ExpressionKind::select:
    known = std::min(zeros(operand_list[1]), zeros(operand_list[2]));
    break;
  default:
    break;
  }
  row.trailing_zeros = static_cast<uint8_t>(std::min(known, width));
}

ExpressionId ExpressionPool::intern(Expression row, std::span<const ExpressionId> operand_list,
                                    std::span<const ExpressionTerm> term_list) {
  uint64_t hash = mix(static_cast<uint64_t>(row.kind) << 40 | uint64_t(row.width) << 32 | row.payload,
                      static_cast<uint64_t>(row.offset));
  for (ExpressionId id : operand_list)
    hash = mix(hash, id.index());
  for (const ExpressionTerm& term : term_list)
    hash = mix(mix(hash, term.coefficient), term.monomial.index());
  const uint32_t known = index_.find(hash, [&](uint32_t number) {
    const Expression& old = expressions_[ExpressionId(number)];
    auto same_term = [](const ExpressionTerm& a, const ExpressionTerm& b) {
      return a.coefficient == b.coefficient && a.monomial == b.monomial;
    };
    return old.kind == row.kind && old.width == row.width && old.payload == row.payload && old.offset == row.offset &&
           std::ranges::equal(operands_.view(old.operands), operand_list) &&
           std::ranges::equal(terms_.view(old.terms), term_list, same_term);
  });
  if (known != HashIndex::none) return ExpressionId(known);
  describe(row, operand_list, term_list);
  row.operands = operands_.add(operand_list);
  row.terms = terms_.add(term_list);
  ExpressionId id = expressions_.add(row);
  index_.add(hash, id.index());
  return id;
}

MonomialId ExpressionPool::intern_monomial(std::span<const ExpressionId> sorted) {
  uint64_t hash = 1;
  for (ExpressionId id : sorted)
    hash = mix(hash, id.index());
  const uint32_t known = monomial_index_.find(
      hash, [&](uint32_t number) { return std::ranges::equal(factors(MonomialId(number)), sorted); });
  if (known != HashIndex::none) return MonomialId(known);
  MonomialId id(static_cast<uint32_t>(monomials_.size()));
  monomials_.push_back(factors_.add(sorted));
  monomial_index_.add(hash, id.index());
  return id;
}

MonomialId ExpressionPool::monomial_of(ExpressionId atom_id) {
  return intern_monomial({&atom_id, 1});
}

ExpressionId ExpressionPool::intern_sum(unsigned width, uint64_t constant, std::vector<ExpressionTerm>& term_list) {
  if (term_list.empty()) return literal(width, constant);
  if (!std::ranges::is_sorted(term_list, {}, &ExpressionTerm::monomial))
    std::ranges::sort(term_list, {}, &ExpressionTerm::monomial);
  size_t kept = 0;
  for (size_t i = 0; i < term_list.size();) {
    ExpressionTerm term = term_list[i++];
    while (i < term_list.size() && term_list[i].monomial == term.monomial)
      term.coefficient += term_list[i++].coefficient;
    term.coefficient = low_bits(term.coefficient, width);
    if (term.coefficient) term_list[kept++] = term;
  }
  constant = low_bits(constant, width);
  if (constant == 0 && kept == 1 && term_list[0].coefficient == 1) {
    auto list = factors(term_list[0].monomial);
    if (list.size() == 1) return list[0];
  }
  Expression row;
  row.kind = ExpressionKind::sum;
  row.width = static_cast<uint8_t>(width);
  row.offset = static_cast<int64_t>(constant);
  return intern(row, {}, std::span(term_list).first(kept));
}

ExpressionId ExpressionPool::atom(ExpressionKind kind, unsigned width, uint32_t payload, int64_t offset,
                                  std::initializer_list<ExpressionId> operand_list) {
  Expression row;
  row.kind = kind;
  row.width = static_cast<uint8_t>(width);
  row.payload = payload;
  row.offset = offset;
  row.evaluable = kind != ExpressionKind::symbol && kind != ExpressionKind::window && kind != ExpressionKind::load &&
                  kind != ExpressionKind::value;
  if (kind == ExpressionKind::special) {
    SpecialRegister special_register = SpecialRegister(payload);
    row.evaluable = special_register == SpecialRegister::ntid || special_register == SpecialRegister::nctaid;
  }
  row.varies = kind == ExpressionKind::value && offset != 0;
  return intern(row, std::span(operand_list.begin(), operand_list.size()), {});
}

// --- leaves ---

std::optional<uint64_t> ExpressionPool::literal_value(ExpressionId id) const {
  const Expression& row = expressions_[id];
  if (row.kind != ExpressionKind::sum || !row.terms.empty()) return std::nullopt;
  return static_cast<uint64_t>(row.offset);
}

bool ExpressionPool::is_literal(ExpressionId id, uint64_t value) const {
  auto found = literal_value(id);
  return found && *found == low_bits(value, width(id));
}

ExpressionId ExpressionPool::zero(unsigned width) {
  ExpressionId& known = zeros_[width];
  if (!known) known = literal(width, 0);
  return known;
}

ExpressionId ExpressionPool::literal(unsigned width, uint64_t value) {
  Expression row;
  row.kind = ExpressionKind::sum;
  row.width = static_cast<uint8_t>(width);
  const uint64_t bits = low_bits(value, width);
  row.offset = static_cast<int64_t>(bits);
  if (bits >= small_literals || (width != 32 && width != 64)) return intern(row, {}, {});
  ExpressionId& known = small_[width / 64][bits];
  if (!known) known = intern(row, {}, {});
  return known;
}

ExpressionId ExpressionPool::parameter(unsigned width, unsigned index, unsigned byte_offset) {
  return atom(ExpressionKind::parameter, width, index, byte_offset, {});
}

ExpressionId ExpressionPool::special(SpecialRegister special_register, unsigned component, unsigned width) {
  return atom(ExpressionKind::special, width, static_cast<uint32_t>(special_register), component, {});
}

ExpressionId ExpressionPool::symbol(SymbolRef ref, unsigned width) {
  return atom(ExpressionKind::symbol, width, ref.bits(), 0, {});
}

ExpressionId ExpressionPool::window(StateSpace space, unsigned width) {
  return atom(ExpressionKind::window, width, static_cast<uint32_t>(space), 0, {});
}

ExpressionId ExpressionPool::load(StateSpace space, ExpressionId address, int64_t offset, unsigned width) {
  return atom(ExpressionKind::load, width, static_cast<uint32_t>(space), offset, {address});
}

ExpressionId ExpressionPool::value(ValueId id, unsigned width, bool varies) {
  return atom(ExpressionKind::value, width, id.index(), varies ? 1 : 0, {});
}

// --- ring arithmetic ---

void ExpressionPool::append_terms(ExpressionId id, uint64_t factor, std::vector<ExpressionTerm>& out,
                                  uint64_t& constant) {
  const Expression row = expressions_[id];
  if (row.kind != ExpressionKind::sum) {
    out.push_back({factor, monomial_of(id)});
    return;
  }
  constant += factor * static_cast<uint64_t>(row.offset);
  for (const ExpressionTerm& term : terms_.view(row.terms))
    out.push_back({factor * term.coefficient, term.monomial});
}

ExpressionId ExpressionPool::add(ExpressionId a, ExpressionId b) {
  assert(width(a) == width(b));
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  term_list_.clear();
  uint64_t constant = 0;
  append_terms(a, 1, term_list_, constant);
  append_terms(b, 1, term_list_, constant);
  return intern_sum(width(a), constant, term_list_);
}

ExpressionId ExpressionPool::subtract(ExpressionId a, ExpressionId b) {
  return add(a, negate(b));
}

ExpressionId ExpressionPool::negate(ExpressionId a) {
  return multiply_literal(a, ~uint64_t(0));
}

ExpressionId ExpressionPool::multiply_literal(ExpressionId a, uint64_t factor) {
  if (factor == 1 || is_zero(a)) return a;
  if (factor == 0) return zero(width(a));
  term_list_.clear();
  uint64_t constant = 0;
  append_terms(a, factor, term_list_, constant);
  return intern_sum(width(a), constant, term_list_);
}

ExpressionId ExpressionPool::multiply(ExpressionId a, ExpressionId b) {
  assert(width(a) == width(b));
  if (auto value = literal_value(a)) return multiply_literal(b, *value);
  if (auto value = literal_value(b)) return multiply_literal(a, *value);
  if (uint64_t(expressions_[a].size) * expressions_[b].size > size_limit) {
    if (b < a) std::swap(a, b);
    return atom(ExpressionKind::product, width(a), 0, 0, {a, b});
  }
  std::vector<ExpressionTerm> left, right, list;
  uint64_t left_constant = 0, right_constant = 0;
  append_terms(a, 1, left, left_constant);
  append_terms(b, 1, right, right_constant);
  for (const ExpressionTerm& x : left)
    list.push_back({x.coefficient * right_constant, x.monomial});
  for (const ExpressionTerm& y : right)
    list.push_back({y.coefficient * left_constant, y.monomial});
  std::vector<ExpressionId> product;
  for (const ExpressionTerm& x : left)
    for (const ExpressionTerm& y : right) {
      auto fx = factors(x.monomial);
      product.assign(fx.begin(), fx.end());
      auto fy = factors(y.monomial);
      product.insert(product.end(), fy.begin(), fy.end());
      std::ranges::sort(product);
      list.push_back({x.coefficient * y.coefficient, intern_monomial(product)});
    }
  return intern_sum(width(a), left_constant * right_constant, list);
}

// --- width changes ---

ExpressionId ExpressionPool::sign_extend(ExpressionId a, unsigned to) {
  unsigned from = width(a);
  assert(to >= from);
  if (to == from) return a;
  if (auto value = literal_value(a)) return literal(to, static_cast<uint64_t>(signed_value(*value, from)));
  const Expression& row = expressions_[a];
  if (row.kind == ExpressionKind::sign_extend) return sign_extend(operands(a)[0], to);
  if (row.kind == ExpressionKind::zero_extend) return zero_extend(operands(a)[0], to);
  return atom(ExpressionKind::sign_extend, to, 0, 0, {a});
}

ExpressionId ExpressionPool::zero_extend(ExpressionId a, unsigned to) {
  unsigned from = width(a);
  assert(to >= from);
  if (to == from) return a;
  if (auto value = literal_value(a)) return literal(to, *value);
  if (expressions_[a].kind == ExpressionKind::zero_extend) return zero_extend(operands(a)[0], to);
  return atom(ExpressionKind::zero_extend, to, 0, 0, {a});
}

ExpressionId ExpressionPool::truncate(ExpressionId a, unsigned to) {
  assert(to <= width(a));
  if (to == width(a)) return a;
  const Expression row = expressions_[a];
  switch (row.kind) {
  case ExpressionKind::sum: {
    std::vector<ExpressionTerm> list(terms_.view(row.terms).begin(), terms_.view(row.terms).end());
    ExpressionId result = literal(to, static_cast<uint64_t>(row.offset));
    for (const ExpressionTerm& term : list) {
      std::vector<ExpressionId> parts(factors(term.monomial).begin(), factors(term.monomial).end());
      ExpressionId product = literal(to, term.coefficient);
      for (ExpressionId part : parts)
        product = multiply(product, truncate(part, to));
      result = add(result, product);
    }
    return result;
  }
  case ExpressionKind::sign_extend:
  case ExpressionKind::zero_extend: {
    ExpressionId inner = operands(a)[0];
    if (width(inner) >= to) return truncate(inner, to);
    return row.kind == ExpressionKind::sign_extend ? sign_extend(inner, to) : zero_extend(inner, to);
  }
  case ExpressionKind::truncate:
    return truncate(operands(a)[0], to);
  case ExpressionKind::parameter:
    if (to >= 8) return parameter(to, row.payload, static_cast<unsigned>(row.offset));
    break;
  default:
    break;
  }
  return atom(ExpressionKind::truncate, to, 0, 0, {a});
}

// --- atoms with two and three operands ---

ExpressionId ExpressionPool::simplify_binary(ExpressionKind kind, ExpressionId a, ExpressionId b) {
  auto value = literal_value(b);
  switch (kind) {
  case ExpressionKind::minimum_signed:
  case ExpressionKind::minimum_unsigned:
  case ExpressionKind::maximum_signed:
  case ExpressionKind::maximum_unsigned:
    return a == b ? a : ExpressionId();
  case ExpressionKind::divide_signed:
  case ExpressionKind::divide_unsigned:
    return value && *value == 1 ? a : ExpressionId();
  case ExpressionKind::remainder_signed:
  case ExpressionKind::remainder_unsigned:
    return value && *value == 1 ? literal(width(a), 0) : ExpressionId();
  case ExpressionKind::shift_left:
    if (value) return *value >= width(a) ? literal(width(a), 0) : multiply_literal(a, uint64_t(1) << *value);
    return {};
  case ExpressionKind::shift_right_signed:
  case ExpressionKind::shift_right_unsigned:
    if (value && *value == 0) return a;
    if (value && *value >= width(a) && kind == ExpressionKind::shift_right_unsigned) return literal(width(a), 0);
    return {};
  case ExpressionKind::and_:
    if (a == b) return a;
    if (value && *value == 0) return b;
    // The mask only clears bits that are zero in any case.
    if (value && low_bits(~*value, width(a)) < (uint64_t(1) << std::min(trailing_zeros(a), 63u))) return a;
    return {};
  case ExpressionKind::or_:
    if (a == b || (value && *value == 0)) return a;
    if (value && trailing_zeros(a) < 64 && *value < (uint64_t(1) << trailing_zeros(a))) return add(a, b);
    return {};
  case ExpressionKind::xor_:
    if (a == b) return literal(width(a), 0);
    if (value && *value == 0) return a;
    if (value && *value == low_bits(~uint64_t(0), width(a))) return add(negate(a), b); // -a - 1
    return {};
  case ExpressionKind::product:
    return multiply(a, b);
  default:
    return {};
  }
}

ExpressionId ExpressionPool::binary(ExpressionKind kind, ExpressionId a, ExpressionId b) {
  [[maybe_unused]] bool shift = kind == ExpressionKind::shift_left || kind == ExpressionKind::shift_right_signed ||
                                kind == ExpressionKind::shift_right_unsigned;
  assert(shift ? width(b) == 32 : width(a) == width(b));
  auto left = literal_value(a), right = literal_value(b);
  if (left && right)
    if (auto value = apply_binary(kind, width(a), *left, *right)) return literal(width(a), *value);
  bool commutes = kind == ExpressionKind::and_ || kind == ExpressionKind::or_ || kind == ExpressionKind::xor_ ||
                  kind == ExpressionKind::product || kind == ExpressionKind::multiply_high_signed ||
                  kind == ExpressionKind::multiply_high_unsigned ||
                  (kind >= ExpressionKind::minimum_signed && kind <= ExpressionKind::maximum_unsigned);
  if (commutes && (left || (b < a && !right))) std::swap(a, b);
  if (ExpressionId simple = simplify_binary(kind, a, b)) return simple;
  return atom(kind, width(a), 0, 0, {a, b});
}

ExpressionId ExpressionPool::compare(Comparison comparison, ExpressionId a, ExpressionId b) {
  assert(width(a) == width(b));
  auto left = literal_value(a), right = literal_value(b);
  if (left && right) return literal(1, apply_comparison(comparison, width(a), *left, *right));
  if (a == b) return literal(1, apply_comparison(comparison, width(a), 0, 0));
  // Normal form of comparisons with literals: x < 5 becomes x <= 4, and 5 < x becomes 6 <= x.
  if (comparison == Comparison::less_signed) {
    if (right && !is_literal(b, uint64_t(1) << (width(a) - 1)))
      return compare(Comparison::less_equal_signed, a, literal(width(a), *right - 1));
    if (left && !is_literal(a, (uint64_t(1) << (width(a) - 1)) - 1))
      return compare(Comparison::less_equal_signed, literal(width(a), *left + 1), b);
  }
  if (comparison == Comparison::less_unsigned) {
    if (right && *right != 0) return compare(Comparison::less_equal_unsigned, a, literal(width(a), *right - 1));
    if (left && !is_literal(a, ~uint64_t(0)))
      return compare(Comparison::less_equal_unsigned, literal(width(a), *left + 1), b);
  }
  if ((comparison == Comparison::equal || comparison == Comparison::not_equal) && (left || (b < a && !right)))
    std::swap(a, b);
  return atom(ExpressionKind::compare, 1, static_cast<uint32_t>(comparison), 0, {a, b});
}

ExpressionId ExpressionPool::logical_not(ExpressionId a) {
  const Expression row = expressions_[a];
  if (row.kind != ExpressionKind::compare) return add(a, literal(1, 1));
  ExpressionId left = operands(a)[0], right = operands(a)[1];
  switch (Comparison(row.payload)) {
  case Comparison::equal:
    return compare(Comparison::not_equal, left, right);
  case Comparison::not_equal:
    return compare(Comparison::equal, left, right);
  case Comparison::less_signed:
    return compare(Comparison::less_equal_signed, right, left);
  case Comparison::less_equal_signed:
    return compare(Comparison::less_signed, right, left);
  case Comparison::less_unsigned:
    return compare(Comparison::less_equal_unsigned, right, left);
  case Comparison::less_equal_unsigned:
    return compare(Comparison::less_unsigned, right, left);
  }
  return {};
}

ExpressionId ExpressionPool::select(ExpressionId condition, ExpressionId if_true, ExpressionId if_false) {
  assert(width(condition) == 1 && width(if_true) == width(if_false));
  if (if_true == if_false) return if_true;
  if (auto value = literal_value(condition)) return *value ? if_true : if_false;
  return atom(ExpressionKind::select, width(if_true), 0, 0, {condition, if_true, if_false});
}

void ExpressionPool::for_each_atom(ExpressionId id, const std::function<void(ExpressionId)>& visit) const {
  const Expression& row = expressions_[id];
  if (row.kind == ExpressionKind::sum) {
    for (const ExpressionTerm& term : terms(id))
      for (ExpressionId factor : factors(term.monomial))
        for_each_atom(factor, visit);
    return;
  }
  visit(id);
  for (ExpressionId operand : operands(id))
    for_each_atom(operand, visit);
}

} // namespace ptxrewrite::ir
