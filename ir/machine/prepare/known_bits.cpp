// Determined by assembling each operation on literals, on thread indices of blocks with a given shape, and on masked
// numbers: see known_bits.h. 64-bit numbers are either completely known or unknown.
#include "ir/machine/prepare/known_bits.h"

#include "ir/analysis/linear/relation.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ptxrewrite::ir {

namespace {

// The smallest 2^k - 1 that is at least the number.
uint64_t ones_up_to(uint64_t number) {
  return number == 0 ? 0 : ~uint64_t(0) >> std::countl_zero(number);
}

// The expression kind of the operation on two integers of one width; nullopt for other forms.
std::optional<ExpressionKind> operation(const Form& form) {
  const bool is_signed_form = is_signed(form.type());
  auto choose = [&](ExpressionKind with_sign, ExpressionKind without) { return is_signed_form ? with_sign : without; };
  switch (form.operation) {
  case Operation::bit_and:
    return ExpressionKind::and_;
  case Operation::bit_or:
    return ExpressionKind::or_;
  case Operation::bit_xor:
    return ExpressionKind::xor_;
  case Operation::shift_left:
    return ExpressionKind::shift_left;
  case Operation::shift_right:
    return choose(ExpressionKind::shift_right_signed, ExpressionKind::shift_right_unsigned);
  case Operation::divide:
    return choose(ExpressionKind::divide_signed, ExpressionKind::divide_unsigned);
  case Operation::remainder:
    return choose(ExpressionKind::remainder_signed, ExpressionKind::remainder_unsigned);
  case Operation::minimum:
    return choose(ExpressionKind::minimum_signed, ExpressionKind::minimum_unsigned);
  case Operation::maximum:
    return choose(ExpressionKind::maximum_signed, ExpressionKind::maximum_unsigned);
  case Operation::multiply:
    if (form.has(Modifier::lo)) return ExpressionKind::product;
    if (form.has(Modifier::hi))
      return choose(ExpressionKind::multiply_high_signed, ExpressionKind::multiply_high_unsigned);
    return std::nullopt;
  case Operation::none:
  case Operation::copy:
  case Operation::convert:
  case Operation::convert_address:
  case Operation::add:
  case Operation::subtract:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply_add:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::compare:
  case Operation::select:
    break;
  }
  return std::nullopt;
}

uint64_t extended(uint64_t value, ScalarType from, unsigned width) {
  const unsigned bits = bit_width(from);
  return is_signed(from) ? low_bits(static_cast<uint64_t>(signed_value(value, bits)), width)
                         : low_bits(value, std::min(bits, width));
}

std::optional<uint64_t> logic_of_three(const Form& form, std::span<const uint64_t> numbers) {
  if (form.opcode != Opcode::lop3 || numbers.size() != 4) return std::nullopt;
  uint64_t result = 0;
  for (unsigned bit = 0; bit < bit_width(form.type()); ++bit) {
    const uint64_t row = (numbers[0] >> bit & 1) << 2 | (numbers[1] >> bit & 1) << 1 | (numbers[2] >> bit & 1);
    result |= (numbers[3] >> row & 1) << bit;
  }
  return result;
}

// Evaluates the form on known numbers.
std::optional<uint64_t> compute(const Form& form, std::span<const uint64_t> numbers) {
  const unsigned width = bit_width(form.type());
  auto are = [&](size_t count) { return numbers.size() == count; };
  switch (form.operation) {
  case Operation::copy:
    return are(1) ? std::optional(numbers[0]) : std::nullopt;
  case Operation::add:
    return are(2) ? std::optional(low_bits(numbers[0] + numbers[1], width)) : std::nullopt;
  case Operation::subtract:
    return are(2) ? std::optional(low_bits(numbers[0] - numbers[1], width)) : std::nullopt;
  case Operation::negate:
    return are(1) ? std::optional(low_bits(0 - numbers[0], width)) : std::nullopt;
  case Operation::complement:
    return are(1) ? std::optional(low_bits(~numbers[0], width)) : std::nullopt;
  case Operation::convert:
    if (!are(1) || form.has(Modifier::sat)) return std::nullopt;
    return extended(numbers[0], form.type(1), result_width(form));
  case Operation::select:
    return are(3) ? std::optional(numbers[2] ? numbers[0] : numbers[1]) : std::nullopt;
  case Operation::compare:
    if (const std::optional<Relation> relation = relation_of(form); relation && are(2))
      return apply_comparison(relation->comparison, width, numbers[relation->reversed], numbers[!relation->reversed]);
    return std::nullopt;
  case Operation::multiply:
  case Operation::multiply_add: {
    if (form.has(Modifier::wide) && numbers.size() >= 2) {
      const uint64_t product =
          extended(numbers[0], form.type(), 2 * width) * extended(numbers[1], form.type(), 2 * width);
      return low_bits(form.operation == Operation::multiply_add ? product + numbers[2] : product, 2 * width);
    }
    if (form.operation == Operation::multiply_add && form.has(Modifier::lo) && are(3))
      return low_bits(numbers[0] * numbers[1] + numbers[2], width);
    break;
  }
  case Operation::logic_of_three:
    return logic_of_three(form, numbers);
  case Operation::none:
  case Operation::convert_address:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::bit_and:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::shift_left:
  case Operation::shift_right:
    break;
  }
  const std::optional<ExpressionKind> kind = operation(form);
  return kind && are(2) ? apply_binary(*kind, width, numbers[0], numbers[1]) : std::nullopt;
}

KnownBits sum(const KnownBits& a, const KnownBits& b, unsigned width) {
  const uint64_t most = std::max(ones_up_to(a.may_be_one), ones_up_to(b.may_be_one));
  const int zeros = std::min(std::countr_zero(a.may_be_one), std::countr_zero(b.may_be_one));
  if (a.may_be_one == 0 || b.may_be_one == 0) return {a.may_be_one | b.may_be_one, false};
  return {low_bits(((most << 1) | 1) >> zeros << zeros, width), false};
}

KnownBits product(const KnownBits& a, const KnownBits& b, unsigned width) {
  if (a.may_be_one == 0 || b.may_be_one == 0) return KnownBits::literal(0);
  const int zeros = std::countr_zero(a.may_be_one) + std::countr_zero(b.may_be_one);
  const int bits = 128 - std::countl_zero(a.may_be_one) - std::countl_zero(b.may_be_one);
  if (zeros >= static_cast<int>(width)) return KnownBits::literal(0);
  const uint64_t most = low_bits(~uint64_t(0), std::min(static_cast<unsigned>(bits), width));
  return {most >> zeros << zeros, false};
}

// A literal with a set bit above all possible bits of the number is greater than it, or less if the bit is the sign. A
// literal with any bit that the number cannot have is different from it. In both cases the number compares like 0.
KnownBits comparison(const Form& form, const KnownBits& a, const KnownBits& b) {
  const std::optional<Relation> relation = relation_of(form);
  if (!relation || !(a.all || b.all)) return {1, false};
  const unsigned width = bit_width(form.type());
  const KnownBits& number = b.all ? a : b;
  const KnownBits& literal = b.all ? b : a;
  const bool equality = relation->comparison == Comparison::equal || relation->comparison == Comparison::not_equal;
  if ((literal.may_be_one & ~(equality ? number.may_be_one : ones_up_to(number.may_be_one))) == 0) return {1, false};
  if (is_signed(form.type()) && !equality && number.may_be_one >> (width - 1) != 0) return {1, false};
  uint64_t left = b.all ? 0 : a.may_be_one, right = b.all ? b.may_be_one : 0;
  if (relation->reversed) std::swap(left, right);
  return KnownBits::literal(apply_comparison(relation->comparison, width, left, right));
}

// The bits that may be set; if there are none, the number is zero.
KnownBits compute_bits(const Form& form, std::span<const KnownBits> sources) {
  const unsigned width = result_width(form);
  const KnownBits nothing{low_bits(~uint64_t(0), width), false};
  auto are = [&](size_t count) { return sources.size() == count; };
  auto distance = [&]() { return are(2) && sources[1].all ? sources[1].may_be_one : width; };
  switch (form.operation) {
  case Operation::copy:
    return are(1) ? sources[0] : nothing;
  case Operation::bit_and:
    return are(2) ? KnownBits{sources[0].may_be_one & sources[1].may_be_one, false} : nothing;
  case Operation::bit_or:
  case Operation::bit_xor:
    return are(2) ? KnownBits{sources[0].may_be_one | sources[1].may_be_one, false} : nothing;
  case Operation::shift_left:
    return distance() < width ? KnownBits{low_bits(sources[0].may_be_one << distance(), width), false} : nothing;
  case Operation::shift_right:
    if (distance() >= width || (is_signed(form.type()) && sources[0].may_be_one >> (width - 1) != 0)) return nothing;
    return {sources[0].may_be_one >> distance(), false};
  case Operation::add:
    return are(2) ? sum(sources[0], sources[1], width) : nothing;
  case Operation::multiply:
    return form.has(Modifier::lo) && are(2) ? product(sources[0], sources[1], width) : nothing;
  case Operation::multiply_add:
    return form.has(Modifier::lo) && are(3) ? sum(product(sources[0], sources[1], width), sources[2], width) : nothing;
  case Operation::select:
    return are(3) ? KnownBits{sources[0].may_be_one | sources[1].may_be_one, false} : nothing;
  case Operation::convert:
    if (form.has(Modifier::sat) || is_signed(form.type(1))) return nothing;
    return {low_bits(sources[0].may_be_one, width), false};
  case Operation::none:
  case Operation::convert_address:
  case Operation::subtract:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::compare:
    break;
  }
  return nothing;
}

// True for x and 0, x times 0, and similar operations of any width.
bool is_zero_by_one_operand(const Form& form, std::span<const KnownBits> sources) {
  const bool product = form.opcode == Opcode::mul;
  if (form.opcode != Opcode::and_ && !product) return false;
  return std::ranges::any_of(sources, [](const KnownBits& source) { return source.all && source.may_be_one == 0; });
}

} // namespace

KnownBits KnownBits::below(uint64_t limit) {
  return limit <= 1 ? literal(0) : KnownBits{ones_up_to(limit - 1), false};
}

unsigned result_width(const Form& form) {
  if (form.opcode == Opcode::setp) return 1;
  const unsigned width = bit_width(form.type());
  return form.has(Modifier::wide) ? 2 * width : width;
}

unsigned source_width(const Form& form, size_t source) {
  if (!form.integers_only) return 0;
  const bool distance = source == 1 && (form.opcode == Opcode::shl || form.opcode == Opcode::shr);
  if (distance) return 32;
  if (form.opcode == Opcode::selp && source == 2) return 1;
  if (form.opcode == Opcode::lop3 && source == 3) return 8;
  if (form.opcode == Opcode::mad && source == 2) return result_width(form);
  return bit_width(form.opcode == Opcode::cvt ? form.type(1) : form.type());
}

KnownBits known_result(const Form& form, std::span<const KnownBits> sources) {
  const unsigned width = result_width(form);
  const KnownBits nothing{low_bits(~uint64_t(0), std::min(width, 64u)), false};
  if (!form.integers_only || width == 0 || width > 64 || form.definitions != 1 || form.carry_out ||
      form.has(Modifier::sat) || sources.empty() || sources.size() > 4)
    return nothing;
  if (std::ranges::all_of(sources, [](const KnownBits& source) { return source.all; })) {
    std::array<uint64_t, 4> numbers{};
    for (size_t i = 0; i < sources.size(); ++i)
      numbers[i] = low_bits(sources[i].may_be_one, source_width(form, i));
    const std::optional<uint64_t> value = compute(form, std::span(numbers).first(sources.size()));
    return value ? KnownBits::literal(*value) : nothing;
  }
  if (is_zero_by_one_operand(form, sources)) return KnownBits::literal(0);
  constexpr unsigned widest = 32; // longer numbers are in two registers
  if (width > widest || bit_width(form.type()) > widest) return nothing;
  if (form.opcode == Opcode::setp) return sources.size() == 2 ? comparison(form, sources[0], sources[1]) : nothing;
  KnownBits result = compute_bits(form, sources);
  if (result.may_be_one == 0) result.all = true;
  return result;
}

} // namespace ptxrewrite::ir
