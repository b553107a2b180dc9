// Converts launch-uniform expressions to exact sums: ring arithmetic becomes products of quantities, truncations and
// extensions become conditions that they change nothing, other operations become quantities with text and range.
#include "ir/analysis/linear/extent.h"

#include "ir/analysis/linear/exact_range.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::ir {

// The pointer parameter that a 64-bit sum is relative to; nullopt if there is none or several.
std::optional<unsigned> AccessExtents::pointer_of(ExpressionId constant) const {
  std::optional<unsigned> pointer;
  bool several = false;
  auto look_at = [&](ExpressionId atom, uint64_t coefficient) {
    const Expression& row = pool_[atom];
    if (row.kind != ExpressionKind::parameter || row.width != 64 || coefficient != 1 ||
        (!pointers_.empty() && !pointers_.contains(row.payload)))
      return;
    several |= pointer && *pointer != row.payload;
    pointer = row.payload;
  };
  if (pool_[constant].kind != ExpressionKind::sum)
    look_at(constant, 1);
  else
    for (const ExpressionTerm& term : pool_.terms(constant))
      if (auto factors = pool_.factors(term.monomial); factors.size() == 1) look_at(factors[0], term.coefficient);
  return several ? std::nullopt : pointer;
}

std::optional<AccessExtents::Span> AccessExtents::product(const Span& a, const Span& b, Query& query) {
  if (a.is_point() && b.is_point()) return Span{a.low * b.low, a.low * b.low};
  const Span& point = a.is_point() ? a : b;
  const Span& span = a.is_point() ? b : a;
  if (point.is_point()) {
    if (is_not_negative(point.low, query)) return Span{span.low * point.low, span.high * point.low};
    if (is_not_negative(point.low * -1, query)) return Span{span.high * point.low, span.low * point.low};
    return std::nullopt;
  }
  Query attempt = query;
  if (!is_not_negative(a.low, attempt) || !is_not_negative(b.low, attempt)) return std::nullopt;
  query = attempt;
  return Span{a.low * b.low, a.high * b.high};
}

std::optional<AccessExtents::Span> AccessExtents::sum_of(ExpressionId id, Query& query) {
  const unsigned width = pool_.width(id);
  const ExactSum literal = ExactSum::literal(signed_value(static_cast<uint64_t>(pool_[id].offset), width));
  Span sum{literal, literal};
  const auto terms = pool_.terms(id);
  const unsigned none = UINT32_MAX, pointer = width == 64 ? pointer_of(id).value_or(none) : none;
  for (const ExpressionTerm& term : terms) {
    const ExactSum number = ExactSum::literal(signed_value(term.coefficient, width));
    Span scaled{number, number};
    const auto factors = pool_.factors(term.monomial);
    for (ExpressionId factor : factors) {
      const Expression& row = pool_[factor];
      std::optional<Span> part;
      if (pointer != none && factors.size() == 1 && term.coefficient == 1 && row.kind == ExpressionKind::parameter &&
          row.payload == pointer) {
        // Addresses are not negative: use the parameter directly.
        std::string name = "P" + std::to_string(pointer);
        if (row.offset != 0) name += "@" + std::to_string(row.offset);
        const ExactSum value = ExactSum::of(quantities_.plain(name, unsigned_range(64)));
        part = Span{value, value};
      } else {
        part = modular(factor, query);
      }
      auto next = part ? product(scaled, *part, query) : std::nullopt;
      if (!next) return std::nullopt;
      scaled = *next;
    }
    sum = {sum.low + scaled.low, sum.high + scaled.high};
  }
  if (sum.low.is_broken() || sum.high.is_broken()) return std::nullopt;
  return sum;
}

// Shifts right and divisions by literals.
std::optional<AccessExtents::Span> AccessExtents::whole_part(ExpressionId id, Query& query) {
  const ExpressionKind kind = pool_[id].kind;
  const ExpressionId inner = pool_.operands(id)[0];
  const auto amount = pool_.literal_value(pool_.operands(id)[1]);
  if (!amount) return leaf(id);
  const bool shift = kind == ExpressionKind::shift_right_signed || kind == ExpressionKind::shift_right_unsigned;
  const bool is_signed = kind == ExpressionKind::shift_right_signed || kind == ExpressionKind::divide_signed;
  if (shift ? *amount >= pool_.width(id) : *amount == 0 || *amount > uint64_t(INT32_MAX)) return leaf(id);
  Query attempt = query;
  auto value = exact(inner, is_signed ? Reading::as_signed : Reading::as_unsigned, attempt);
  if (!value) return leaf(id);
  const Int128 divisor = shift ? Int128(1) << *amount : Int128(*amount);
  if (!shift && is_signed) {
    // PTX rounds towards 0.
    auto range = interval(value->low, attempt);
    if (!range || range->low < 0) return leaf(id);
  }
  query = attempt;
  return Span{quantities_.whole_part(value->low, divisor), quantities_.whole_part(value->high, divisor)};
}

// x & 3 is x - 4*floor(x / 4), x & -4 is 4*floor(x / 4).
std::optional<AccessExtents::Span> AccessExtents::masked(ExpressionId id, Query& query) {
  ExpressionId value = pool_.operands(id)[0], mask = pool_.operands(id)[1];
  if (pool_.literal_value(value)) std::swap(value, mask);
  const auto literal = pool_.literal_value(mask);
  if (!literal) return leaf(id);
  const unsigned width = pool_.width(id);
  const uint64_t bits = low_bits(*literal, width), others = low_bits(~*literal, width);
  const bool low_mask = (bits & (bits + 1)) == 0, high_mask = (others & (others + 1)) == 0;
  if ((!low_mask && !high_mask) || bits == 0 || others == 0) return leaf(id);
  Query attempt = query;
  // The result of a low mask depends on the low bits only; a high mask keeps the sign.
  auto inner = low_mask ? modular(value, attempt) : exact(value, Reading::as_signed, attempt);
  if (!inner || !inner->is_point()) return leaf(id);
  query = attempt;
  const Int128 divisor = Int128(low_mask ? bits : others) + 1;
  const ExactSum whole = quantities_.whole_part(inner->low, divisor) * divisor;
  const ExactSum result = low_mask ? inner->low - whole : whole;
  return Span{result, result};
}

// Minimum, maximum and select: one of two expressions.
std::optional<AccessExtents::Span> AccessExtents::chosen(ExpressionId id, Query& query) {
  const ExpressionKind kind = pool_[id].kind;
  const bool is_select = kind == ExpressionKind::select;
  const bool is_unsigned = kind == ExpressionKind::minimum_unsigned || kind == ExpressionKind::maximum_unsigned;
  const ExpressionId first = pool_.operands(id)[is_select ? 1 : 0], second = pool_.operands(id)[is_select ? 2 : 1];
  const Reading reading = is_unsigned ? Reading::as_unsigned : Reading::as_signed;
  Query attempt = query;
  auto a = exact(first, reading, attempt), b = a ? exact(second, reading, attempt) : std::nullopt;
  if (!b) return leaf(id);
  query = attempt;
  if (is_select) return Span{minimum(a->low, b->low, query), maximum(a->high, b->high, query)};
  if (kind == ExpressionKind::minimum_signed || kind == ExpressionKind::minimum_unsigned)
    return Span{minimum(a->low, b->low, query), minimum(a->high, b->high, query)};
  return Span{maximum(a->low, b->low, query), maximum(a->high, b->high, query)};
}

// A register read after its loop: any value that it had in the loop.
std::optional<AccessExtents::Span> AccessExtents::left_behind(ExpressionId id, Query& query) {
  const ValueId value(pool_[id].payload);
  const LinearForm form = forms_.form(value);
  if (!form.has_coefficients() || form.width != pool_.width(id) || form.coefficients[form_index::constant] == id ||
      query.depth > expression_depth)
    return std::nullopt;
  auto conditions = discharge(forms_.obligations(value));
  const BlockId block = forms_.def_use().definition(value).block;
  if (!conditions || !block) return std::nullopt;
  Scope own;
  const Scope& scope = scope_of(block, own);
  Query inner{&scope, *conditions, query.depth + 1};
  auto span = span_of(form, inner);
  if (!span || !require_within(*span, signed_range(form.width), inner)) return std::nullopt;
  query.conditions.insert(inner.conditions.begin(), inner.conditions.end());
  return span;
}

// A quantity that the launcher evaluates as it is, read as signed.
std::optional<AccessExtents::Span> AccessExtents::leaf(ExpressionId id) {
  if (!pool_[id].evaluable || pool_.width(id) > 64) return std::nullopt;
  const ExactSum value = ExactSum::of(quantities_.plain(pool_.print_predicate(id), pool_.interval(id, limits_)));
  return Span{value, value};
}

// An integer congruent to the expression; if the expression is not ring arithmetic, its signed value.
std::optional<AccessExtents::Span> AccessExtents::modular(ExpressionId id, Query& query) {
  if (query.depth > expression_depth || !spend()) return std::nullopt;
  ++query.depth;
  std::optional<Span> result;
  switch (pool_[id].kind) {
  case ExpressionKind::sum:
    result = sum_of(id, query);
    break;
  case ExpressionKind::product: {
    const ExpressionId first = pool_.operands(id)[0], second = pool_.operands(id)[1];
    auto a = modular(first, query), b = a ? modular(second, query) : std::nullopt;
    if (b) result = product(*a, *b, query);
    break;
  }
  case ExpressionKind::truncate:
    result = modular(pool_.operands(id)[0], query);
    break;
  case ExpressionKind::sign_extend:
    result = exact(pool_.operands(id)[0], Reading::as_signed, query);
    break;
  case ExpressionKind::zero_extend:
    result = exact(pool_.operands(id)[0], Reading::as_unsigned, query);
    break;
  case ExpressionKind::shift_right_signed:
  case ExpressionKind::shift_right_unsigned:
  case ExpressionKind::divide_signed:
  case ExpressionKind::divide_unsigned:
    result = whole_part(id, query);
    break;
  case ExpressionKind::and_:
    result = masked(id, query);
    break;
  case ExpressionKind::minimum_signed:
  case ExpressionKind::minimum_unsigned:
  case ExpressionKind::maximum_signed:
  case ExpressionKind::maximum_unsigned:
  case ExpressionKind::select:
    result = chosen(id, query);
    break;
  case ExpressionKind::value:
    result = left_behind(id, query);
    break;
  case ExpressionKind::parameter:
    if (pool_.width(id) == 64 && pointers_.contains(pool_[id].payload)) {
      std::string name = "P" + std::to_string(pool_[id].payload);
      if (pool_[id].offset != 0) name += "@" + std::to_string(pool_[id].offset);
      const ExactSum value = ExactSum::of(quantities_.plain(name, unsigned_range(64)));
      result = Span{value, value};
    } else {
      result = leaf(id);
    }
    break;
  case ExpressionKind::special:
  case ExpressionKind::shift_left:
  case ExpressionKind::remainder_signed:
  case ExpressionKind::remainder_unsigned:
  case ExpressionKind::multiply_high_signed:
  case ExpressionKind::multiply_high_unsigned:
  case ExpressionKind::or_:
  case ExpressionKind::xor_:
  case ExpressionKind::compare:
    result = leaf(id);
    break;
  case ExpressionKind::symbol: // a launcher does not know addresses of variables
  case ExpressionKind::window:
  case ExpressionKind::load:
    break;
  }
  --query.depth;
  return result;
}

// The signed or unsigned value of the expression: the congruent integer, provided that it is in the range of the type.
std::optional<AccessExtents::Span> AccessExtents::exact(ExpressionId id, Reading reading, Query& query) {
  if (reading == Reading::modular) return modular(id, query);
  const unsigned width = pool_.width(id);
  if (width < 8) return std::nullopt;
  auto span = modular(id, query);
  if (!span) return std::nullopt;
  if (reading == Reading::as_signed && pool_[id].kind == ExpressionKind::parameter && width < 64) return span;
  if (!require_within(*span, reading == Reading::as_signed ? signed_range(width) : unsigned_range(width), query))
    return std::nullopt;
  return span;
}

} // namespace ptxrewrite::ir
