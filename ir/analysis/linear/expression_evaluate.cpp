// Values and bounds of launch-uniform expressions.
#include "ir/analysis/linear/expression.h"

#include <algorithm>

namespace ptxrewrite::ir {

void LaunchValues::add_parameter(uint64_t value, unsigned bytes) {
  std::vector<uint8_t> little_endian(bytes);
  for (unsigned i = 0; i < bytes; ++i)
    little_endian[i] = static_cast<uint8_t>(value >> (8 * i));
  parameters.push_back(std::move(little_endian));
}

// --- one launch ---

std::optional<uint64_t> ExpressionPool::evaluate(ExpressionId id, const LaunchValues& launch) const {
  const Expression& row = expressions_[id];
  if (!row.evaluable) return std::nullopt;
  if (row.kind != ExpressionKind::sum) return evaluate_atom(id, launch);
  uint64_t sum = static_cast<uint64_t>(row.offset);
  for (const ExpressionTerm& term : terms(id)) {
    uint64_t product = term.coefficient;
    for (ExpressionId factor : factors(term.monomial)) {
      auto value = evaluate(factor, launch);
      if (!value) return std::nullopt;
      product *= *value;
    }
    sum += product;
  }
  return low_bits(sum, row.width);
}

std::optional<uint64_t> ExpressionPool::evaluate_atom(ExpressionId id, const LaunchValues& launch) const {
  const Expression& row = expressions_[id];
  auto list = operands(id);
  std::array<uint64_t, 3> values{};
  for (size_t i = 0; i < list.size(); ++i) {
    auto value = evaluate(list[i], launch);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  switch (row.kind) {
  case ExpressionKind::parameter: {
    size_t bytes = row.width / 8, first = static_cast<size_t>(row.offset);
    if (row.payload >= launch.parameters.size() || launch.parameters[row.payload].size() < first + bytes)
      return std::nullopt;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i)
      value |= uint64_t(launch.parameters[row.payload][first + i]) << (8 * i);
    return value;
  }
  case ExpressionKind::special: {
    if (row.offset > 2) return 0; // the fourth component of %ntid and %nctaid
    const auto& counts = SpecialRegister(row.payload) == SpecialRegister::ntid ? launch.block : launch.grid;
    return low_bits(counts[static_cast<size_t>(row.offset)], row.width);
  }
  case ExpressionKind::sign_extend:
    return low_bits(static_cast<uint64_t>(signed_value(values[0], width(list[0]))), row.width);
  case ExpressionKind::zero_extend:
    return values[0];
  case ExpressionKind::truncate:
    return low_bits(values[0], row.width);
  case ExpressionKind::compare:
    return apply_comparison(Comparison(row.payload), width(list[0]), values[0], values[1]);
  case ExpressionKind::select:
    return values[0] ? values[1] : values[2];
  default:
    return apply_binary(row.kind, row.width, values[0], values[1]);
  }
}

std::optional<Int128> ExpressionPool::evaluate_signed(ExpressionId id, const LaunchValues& launch) const {
  auto value = evaluate(id, launch);
  if (!value) return std::nullopt;
  return signed_value(*value, width(id));
}

// --- all launches ---

namespace {

bool within(const Interval& inner, const Interval& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

// False on overflow of 128 bits.
bool multiply_intervals(const Interval& a, const Interval& b, Interval& out) {
  Int128 corner[4];
  if (__builtin_mul_overflow(a.low, b.low, &corner[0]) || __builtin_mul_overflow(a.low, b.high, &corner[1]) ||
      __builtin_mul_overflow(a.high, b.low, &corner[2]) || __builtin_mul_overflow(a.high, b.high, &corner[3]))
    return false;
  out = {*std::min_element(corner, corner + 4), *std::max_element(corner, corner + 4)};
  return true;
}

bool add_intervals(const Interval& a, const Interval& b, Interval& out) {
  return !__builtin_add_overflow(a.low, b.low, &out.low) && !__builtin_add_overflow(a.high, b.high, &out.high);
}

} // namespace

Interval ExpressionPool::interval(ExpressionId id, const LaunchLimits& limits) const {
  const Expression& row = expressions_[id];
  Interval full = signed_range(row.width);
  Interval bounds = full;
  if (row.kind == ExpressionKind::sum) {
    Int128 constant = signed_value(static_cast<uint64_t>(row.offset), row.width);
    bounds = {constant, constant};
    for (const ExpressionTerm& term : terms(id)) {
      Int128 coefficient = signed_value(term.coefficient, row.width);
      Interval product{coefficient, coefficient};
      for (ExpressionId factor : factors(term.monomial))
        if (!multiply_intervals(product, interval(factor, limits), product)) return full;
      if (!add_intervals(bounds, product, bounds)) return full;
    }
    if (!within(bounds, full)) bounds = full;
  } else {
    bounds = atom_interval(id, limits);
  }
  for (const auto& [narrowed, range] : limits.narrowed)
    if (narrowed == id) bounds = {std::max(bounds.low, range.low), std::min(bounds.high, range.high)};
  return bounds;
}

Interval ExpressionPool::atom_interval(ExpressionId id, const LaunchLimits& limits) const {
  const Expression& row = expressions_[id];
  Interval full = signed_range(row.width);
  auto list = operands(id);
  auto of = [&](size_t i) { return interval(list[i], limits); };
  switch (row.kind) {
  case ExpressionKind::special: {
    auto special_register = SpecialRegister(row.payload);
    if (row.offset > 2 || row.width < 32) return full;
    if (special_register == SpecialRegister::ntid) return limits.block[static_cast<size_t>(row.offset)];
    if (special_register == SpecialRegister::nctaid) return limits.grid[static_cast<size_t>(row.offset)];
    return full;
  }
  case ExpressionKind::sign_extend:
    return of(0);
  case ExpressionKind::zero_extend: {
    Interval inner = of(0);
    return inner.low >= 0 ? inner : unsigned_range(width(list[0]));
  }
  case ExpressionKind::truncate: {
    Interval inner = of(0);
    return within(inner, full) ? inner : full;
  }
  case ExpressionKind::divide_signed:
  case ExpressionKind::divide_unsigned: {
    Interval a = of(0), b = of(1);
    if (a.low >= 0 && b.low > 0) return {a.low / b.high, a.high / b.low};
    return full;
  }
  case ExpressionKind::remainder_signed:
  case ExpressionKind::remainder_unsigned: {
    Interval a = of(0), b = of(1);
    if (a.low >= 0 && b.low > 0) return {0, std::min(a.high, b.high - 1)};
    return full;
  }
  case ExpressionKind::shift_right_signed:
  case ExpressionKind::shift_right_unsigned: {
    Interval a = of(0);
    auto amount = literal_value(list[1]);
    if (a.low < 0) return full;
    return amount && *amount < 64 ? Interval{a.low >> *amount, a.high >> *amount} : Interval{0, a.high};
  }
  case ExpressionKind::minimum_unsigned:
  case ExpressionKind::maximum_unsigned:
  case ExpressionKind::minimum_signed:
  case ExpressionKind::maximum_signed: {
    Interval a = of(0), b = of(1);
    bool is_signed = row.kind == ExpressionKind::minimum_signed || row.kind == ExpressionKind::maximum_signed;
    if (!is_signed && (a.low < 0 || b.low < 0)) return full;
    if (row.kind == ExpressionKind::minimum_signed || row.kind == ExpressionKind::minimum_unsigned)
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  case ExpressionKind::and_: {
    Interval a = of(0), b = of(1);
    if (a.low >= 0 || b.low >= 0) return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
    return full;
  }
  case ExpressionKind::select: {
    Interval a = of(1), b = of(2);
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  default:
    return full;
  }
}

} // namespace ptxrewrite::ir
