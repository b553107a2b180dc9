// Arithmetic on linear forms: exact in Z/2^width, with demands where an operation is exact only within a range.
#include "ir/analysis/linear/linear_state.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ptxrewrite::ir {

using State = LinearForms::State;

namespace {

uint64_t hash_of(const LinearForm& form) {
  uint64_t hash = static_cast<uint64_t>(form.kind) << 32 | uint64_t(form.width) << 24 |
                  uint64_t(form.loop_count) << 16 | uint64_t(form.condition_count) << 8 |
                  uint64_t(form.signed_remainder) << 1 | uint64_t(form.varies);
  auto mix = [&](uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
    hash *= 0xff51afd7ed558ccdull;
  };
  static_assert(form_index::count % 2 == 1);
  for (unsigned i = 0; i + 1 < form_index::count; i += 2)
    mix(uint64_t(form.coefficients[i].index()) << 32 | form.coefficients[i + 1].index());
  mix(form.coefficients.back().index());
  for (const LoopOffset& offset : form.loops())
    mix(uint64_t(offset.loop.index()) << 32 | offset.step.index());
  if (form.kind == ValueClass::mod_linear) {
    mix(uint64_t(form.dividend.index()) << 32 | form.divisor.index());
    mix(uint64_t(form.multiplier.index()) << 32 | form.addend.index());
  }
  if (form.condition_count == 0) return hash;
  for (LinearFormId id : form.alternatives)
    mix(id.index());
  for (const FormCondition& condition : form.conditions)
    mix(uint64_t(condition.value.index()) << 32 | (condition.instruction.index() ^ condition.bit));
  return hash;
}

bool is_plain(const LinearForm& form) {
  return form.has_coefficients();
}

} // namespace

// --- construction ---

LinearFormId State::intern(const LinearForm& form) {
  uint64_t hash = hash_of(form);
  const uint32_t known = forms_by_hash.find(hash, [&](uint32_t number) { return forms[LinearFormId(number)] == form; });
  if (known != HashIndex::none) return LinearFormId(known);
  LinearFormId id = forms.add(form);
  forms_by_hash.add(hash, id.index());
  return id;
}

LinearFormId State::any(unsigned width) {
  if (width >= any_forms.size()) any_forms.resize(width + 1);
  if (any_forms[width]) return any_forms[width];
  LinearForm form;
  form.width = static_cast<uint8_t>(width);
  return any_forms[width] = intern(form);
}

LinearFormId State::block_uniform(unsigned width, bool varies) {
  LinearForm form;
  form.kind = ValueClass::block_uniform;
  form.width = static_cast<uint8_t>(width);
  form.varies = varies;
  return intern(form);
}

LinearFormId State::uniform(ExpressionId expression) {
  if (expression.index() >= uniform_forms.size())
    uniform_forms.resize(std::max(pool.size(), expression.index() + size_t(1)));
  LinearFormId& known = uniform_forms[expression.index()];
  if (known) return known;
  LinearForm form;
  form.width = static_cast<uint8_t>(pool.width(expression));
  form.coefficients.fill(pool.zero(form.width));
  form.coefficients[form_index::constant] = expression;
  return known = classified(form);
}

LinearFormId State::index_form(unsigned place, unsigned width) {
  LinearForm form;
  form.width = static_cast<uint8_t>(width);
  form.coefficients.fill(pool.zero(width));
  form.coefficients[place] = pool.literal(width, 1);
  return classified(form);
}

LinearFormId State::classified(LinearForm form) {
  bool coefficients_vary = false, too_large = false, threads = false, blocks = false;
  const ExpressionId zero = pool.zero(form.width); // most coefficients
  for (unsigned place = 0; place < form_index::count; ++place) {
    const ExpressionId id = form.coefficients[place];
    if (id == zero) continue;
    coefficients_vary |= pool[id].varies;
    too_large |= pool.too_large(id);
    threads |= place >= form_index::tid_x && place < form_index::ctaid_x;
    blocks |= place >= form_index::ctaid_x;
  }
  // Offsets sorted by loop, zero steps dropped.
  unsigned kept = 0;
  if (form.loop_count > 1)
    std::sort(form.loop_offsets.begin(), form.loop_offsets.begin() + form.loop_count,
              [](const LoopOffset& a, const LoopOffset& b) { return a.loop < b.loop; });
  for (unsigned i = 0; i < form.loop_count; ++i) {
    coefficients_vary |= pool[form.loop_offsets[i].step].varies;
    too_large |= pool.too_large(form.loop_offsets[i].step);
    if (!pool.is_zero(form.loop_offsets[i].step)) form.loop_offsets[kept++] = form.loop_offsets[i];
  }
  for (unsigned i = kept; i < form.loop_count; ++i)
    form.loop_offsets[i] = {};
  form.loop_count = static_cast<uint8_t>(kept);
  if (too_large) return any(form.width);
  form.varies = coefficients_vary;
  if (coefficients_vary) {
    // Only a uniform value may differ between trips; a coefficient may not.
    if (threads || blocks || kept) return any(form.width);
    form.kind = ValueClass::launch_uniform;
  } else if (kept) {
    form.kind = ValueClass::linear_loop;
  } else if (threads) {
    form.kind = ValueClass::linear;
  } else if (blocks) {
    form.kind = ValueClass::block_uniform;
  } else {
    form.kind = pool.literal_value(form.coefficients[0]) ? ValueClass::constant : ValueClass::launch_uniform;
  }
  return intern(form);
}

// --- queries ---

std::optional<ExpressionId> State::scalar(LinearFormId id) const {
  const LinearForm& form = forms[id];
  if (form.kind != ValueClass::constant && form.kind != ValueClass::launch_uniform) return std::nullopt;
  return form.coefficients[form_index::constant];
}

Level State::level(LinearFormId id) const {
  const LinearForm& form = forms[id];
  switch (form.kind) {
  case ValueClass::constant:
  case ValueClass::launch_uniform:
    return Level::launch;
  case ValueClass::block_uniform:
    return Level::block;
  case ValueClass::linear_loop: {
    bool threads = false, blocks = false;
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      if (!pool.is_zero(form.coefficients[place])) (place < form_index::ctaid_x ? threads : blocks) = true;
    return threads ? Level::thread : blocks ? Level::block : Level::launch;
  }
  case ValueClass::linear:
    break;
  case ValueClass::mod_linear:
    return level(form.dividend);
  case ValueClass::divergent_linear: {
    Level most = Level::launch;
    for (unsigned i = 0; i < 1u << form.condition_count; ++i)
      most = std::max(most, level(form.alternatives[i]));
    for (unsigned i = 0; i < form.condition_count && most != Level::thread; ++i)
      most = std::max(most, condition_level(forms[id].conditions[i]));
    return most;
  }
  case ValueClass::any:
    break;
  }
  return Level::thread;
}

bool State::varies(LinearFormId id) const {
  const LinearForm& form = forms[id];
  if (form.kind == ValueClass::mod_linear) return varies(form.dividend);
  if (form.kind == ValueClass::divergent_linear) {
    for (unsigned i = 0; i < 1u << form.condition_count; ++i)
      if (varies(form.alternatives[i])) return true;
    for (unsigned i = 0; i < form.condition_count; ++i)
      if (loops.innermost(condition_block(form.conditions[i]))) return true;
    return false;
  }
  return form.varies || form.loop_count > 0;
}

// --- divergent-linear operands ---

// Applies an operation to each pair of alternatives. The operation itself receives no divergent-linear forms.
template <class Operation> LinearFormId State::lifted(LinearFormId a, LinearFormId b, Operation&& operation) {
  bool divergent_a = forms[a].kind == ValueClass::divergent_linear;
  bool divergent_b = forms[b].kind == ValueClass::divergent_linear;
  if (!divergent_a && !divergent_b) return operation(a, b);
  std::vector<FormCondition> conditions;
  auto place_of = [&](const FormCondition& condition) {
    auto found = std::ranges::find(conditions, condition);
    if (found == conditions.end()) conditions.push_back(condition), found = conditions.end() - 1;
    return static_cast<unsigned>(found - conditions.begin());
  };
  auto places_of = [&](LinearFormId id, bool divergent) {
    std::array<unsigned, 2> places{};
    for (unsigned i = 0; divergent && i < forms[id].condition_count; ++i)
      places[i] = place_of(forms[id].conditions[i]);
    return places;
  };
  auto places_a = places_of(a, divergent_a), places_b = places_of(b, divergent_b);
  LinearForm result;
  if (conditions.size() > result.conditions.size()) {
    LinearFormId sample =
        operation(divergent_a ? forms[a].alternatives[0] : a, divergent_b ? forms[b].alternatives[0] : b);
    return any(forms[sample].width);
  }
  auto pick = [&](LinearFormId id, bool divergent, const std::array<unsigned, 2>& places, unsigned bits) {
    if (!divergent) return id;
    unsigned index = 0;
    for (unsigned i = 0; i < forms[id].condition_count; ++i)
      index |= (bits >> places[i] & 1) << i;
    return forms[id].alternatives[index];
  };
  unsigned combinations = 1u << conditions.size();
  bool all_equal = true, expressible = true;
  for (unsigned bits = 0; bits < combinations; ++bits) {
    LinearFormId one = operation(pick(a, divergent_a, places_a, bits), pick(b, divergent_b, places_b, bits));
    result.alternatives[bits] = one;
    all_equal &= one == result.alternatives[0];
    expressible &= is_plain(forms[one]) && !forms[one].varies;
  }
  if (!expressible) return any(forms[result.alternatives[0]].width);
  if (all_equal) return result.alternatives[0];
  result.kind = ValueClass::divergent_linear;
  result.width = forms[result.alternatives[0]].width;
  result.condition_count = static_cast<uint8_t>(conditions.size());
  std::ranges::copy(conditions, result.conditions.begin());
  return intern(result);
}

LinearFormId State::choose(const FormCondition& condition, LinearFormId if_true, LinearFormId if_false) {
  if (if_true == if_false && (is_plain(forms[if_true]) || forms[if_true].kind == ValueClass::mod_linear ||
                              forms[if_true].kind == ValueClass::divergent_linear))
    return if_true;
  unsigned width = forms[if_true].width;
  // Two reads of a predicate that is never written may give different values.
  if (condition.kind == FormCondition::Kind::predicate && function.values[condition.value].is_undefined)
    return any(width);
  // Represent the condition as a divergent form over two distinct constants; lifted() handles the rest.
  if (width < 2 || width > 64) return any(width); // expressions have at most 64 bits
  LinearForm selector;
  selector.kind = ValueClass::divergent_linear;
  selector.width = static_cast<uint8_t>(width);
  selector.condition_count = 1;
  selector.conditions[0] = condition;
  selector.alternatives[0] = uniform(pool.zero(width));
  selector.alternatives[1] = uniform(pool.literal(width, 1));
  LinearFormId one = selector.alternatives[1], bit = intern(selector);
  auto masked = [&](LinearFormId form, bool wanted) {
    return lifted(form, bit, [&](LinearFormId value, LinearFormId chosen) {
      if (!is_plain(forms[value])) return any(width);
      return (chosen == one) == wanted ? value : uniform(pool.zero(width));
    });
  };
  return add(masked(if_true, true), masked(if_false, false));
}

// --- ring arithmetic ---

LinearFormId State::add(LinearFormId a, LinearFormId b) {
  return lifted(a, b, [&](LinearFormId left, LinearFormId right) {
    if (forms[right].kind == ValueClass::mod_linear) std::swap(left, right);
    LinearForm x = forms[left];
    const LinearForm& y = forms[right];
    assert(x.width == y.width);
    if (x.kind == ValueClass::mod_linear) {
      auto term = scalar(right);
      if (!term || pool[*term].varies) return any(x.width);
      x.addend = pool.add(x.addend, *term);
      return pool.too_large(x.addend) ? any(x.width) : intern(x);
    }
    if (!is_plain(x) || !is_plain(y)) return any(x.width);
    const ExpressionId zero = pool.zero(x.width);
    for (unsigned i = 0; i < form_index::count; ++i)
      if (y.coefficients[i] != zero)
        x.coefficients[i] =
            x.coefficients[i] == zero ? y.coefficients[i] : pool.add(x.coefficients[i], y.coefficients[i]);
    for (const LoopOffset& offset : y.loops()) {
      auto same = std::find_if(x.loop_offsets.begin(), x.loop_offsets.begin() + x.loop_count,
                               [&](const LoopOffset& mine) { return mine.loop == offset.loop; });
      if (same != x.loop_offsets.begin() + x.loop_count)
        same->step = pool.add(same->step, offset.step);
      else if (x.loop_count < LinearForm::max_loops)
        x.loop_offsets[x.loop_count++] = offset;
      else
        return any(x.width);
    }
    return classified(x);
  });
}

LinearFormId State::negate(LinearFormId a) {
  unsigned width = forms[a].width;
  return scale(a, pool.literal(width, ~uint64_t(0)));
}

LinearFormId State::scale(LinearFormId a, ExpressionId factor) {
  return lifted(a, a, [&](LinearFormId id, LinearFormId) {
    LinearForm form = forms[id];
    if (form.kind == ValueClass::mod_linear) {
      if (pool[factor].varies) return any(form.width);
      if (pool.is_zero(factor)) return uniform(factor);
      form.multiplier = pool.multiply(form.multiplier, factor);
      form.addend = pool.multiply(form.addend, factor);
      return pool.too_large(form.multiplier) || pool.too_large(form.addend) ? any(form.width) : intern(form);
    }
    if (!is_plain(form)) return any(form.width);
    const ExpressionId zero = pool.zero(form.width);
    for (ExpressionId& coefficient : form.coefficients)
      if (coefficient != zero) coefficient = pool.multiply(coefficient, factor);
    for (unsigned i = 0; i < form.loop_count; ++i)
      form.loop_offsets[i].step = pool.multiply(form.loop_offsets[i].step, factor);
    return classified(form);
  });
}

LinearFormId State::multiply(LinearFormId a, LinearFormId b) {
  if (auto factor = scalar(b)) return scale(a, *factor);
  if (auto factor = scalar(a)) return scale(b, *factor);
  return any(forms[a].width);
}

LinearFormId State::shift_left(LinearFormId a, LinearFormId amount) {
  unsigned width = forms[a].width;
  auto count = scalar(amount);
  if (!count) return any(width);
  // x << n is x * (1 << n), which is 0 for n >= width, as in PTX.
  return scale(a, pool.binary(ExpressionKind::shift_left, pool.literal(width, 1), *count));
}

LinearFormId State::with_loop_offset(LinearFormId a, LoopId loop, ExpressionId step) {
  LinearForm form = forms[a];
  if (!is_plain(form) || form.loop_count == LinearForm::max_loops) return any(form.width);
  form.loop_offsets[form.loop_count++] = {loop, step};
  return classified(form);
}

// --- width ---

LinearFormId State::widen(LinearFormId a, unsigned width, bool is_signed) {
  if (forms[a].width == width) return a;
  return lifted(a, a, [&](LinearFormId id, LinearFormId) {
    LinearForm form = forms[id];
    if (auto expression = scalar(id)) return uniform(pool.extend(*expression, width, is_signed));
    bool mod = form.kind == ValueClass::mod_linear;
    if (!mod && !is_plain(form)) return any(width);
    bool plain_remainder = mod && pool.is_literal(form.multiplier, 1) && pool.is_zero(form.addend) &&
                           forms[form.dividend].width <= form.width && form.signed_remainder == is_signed;
    if (demands && !plain_remainder)
      demands->push_back({id, is_signed ? signed_range(form.width) : unsigned_range(form.width)});
    // In the demanded range the integer value is the sum of signed representatives, whatever the target's signedness.
    const ExpressionId zero = pool.zero(form.width);
    form.width = static_cast<uint8_t>(width);
    if (mod) {
      form.multiplier = pool.sign_extend(form.multiplier, width);
      form.addend = pool.sign_extend(form.addend, width);
      return intern(form);
    }
    for (ExpressionId& coefficient : form.coefficients)
      coefficient = coefficient == zero ? pool.zero(width) : pool.sign_extend(coefficient, width);
    for (unsigned i = 0; i < form.loop_count; ++i)
      form.loop_offsets[i].step = pool.sign_extend(form.loop_offsets[i].step, width);
    return classified(form);
  });
}

LinearFormId State::truncate(LinearFormId a, unsigned width) {
  if (forms[a].width == width) return a;
  return lifted(a, a, [&](LinearFormId id, LinearFormId) {
    LinearForm form = forms[id];
    form.width = static_cast<uint8_t>(width);
    if (form.kind == ValueClass::mod_linear) {
      form.multiplier = pool.truncate(form.multiplier, width);
      form.addend = pool.truncate(form.addend, width);
      return intern(form);
    }
    if (!is_plain(form)) return any(width);
    for (ExpressionId& coefficient : form.coefficients)
      coefficient = pool.truncate(coefficient, width);
    for (unsigned i = 0; i < form.loop_count; ++i)
      form.loop_offsets[i].step = pool.truncate(form.loop_offsets[i].step, width);
    return classified(form);
  });
}

LinearFormId State::convert(LinearFormId a, unsigned width, bool is_signed) {
  return forms[a].width > width ? truncate(a, width) : widen(a, width, is_signed);
}

// --- bits ---

LinearFormId State::bitwise(ExpressionKind kind, LinearFormId a, LinearFormId b) {
  unsigned width = forms[a].width;
  auto left = scalar(a), right = scalar(b);
  if (left && right) return uniform(pool.binary(kind, *left, *right));
  if (left) std::swap(a, b), std::swap(left, right);
  bool has_literal = right && pool.literal_value(*right).has_value();
  uint64_t literal = has_literal ? *pool.literal_value(*right) : 0;
  auto zeros_of = [&](LinearFormId id) {
    unsigned zeros = width;
    for (ExpressionId coefficient : forms[id].coefficients)
      zeros = std::min(zeros, pool.trailing_zeros(coefficient));
    for (const LoopOffset& offset : forms[id].loops())
      zeros = std::min(zeros, pool.trailing_zeros(offset.step));
    return zeros;
  };
  if (!is_plain(forms[a])) return any(width);
  uint64_t ones = low_bits(~uint64_t(0), width);

  if (kind == ExpressionKind::and_) {
    if (!has_literal) return any(width);
    if (literal == ones) return a;
    unsigned zeros = zeros_of(a);
    if (zeros < width && low_bits(~literal, width) < (uint64_t(1) << zeros)) return a; // clears zeros only
    if ((literal & (literal + 1)) != 0) return any(width);                             // not a low mask
    unsigned bits = static_cast<unsigned>(std::countr_one(literal));
    if (zeros >= bits) return uniform(pool.zero(width));
    if (auto bounds = form_bounds(forms[a]); bounds && bounds->low >= 0 && bounds->high <= Int128(literal)) return a;
    return remainder(a, uniform(pool.literal(width, literal + 1)), false);
  }
  if (has_literal && kind == ExpressionKind::xor_ && literal == ones) return add(negate(a), b); // not x = -x - 1
  // or and xor of values without common bits are sums.
  if (!is_plain(forms[b])) return any(width);
  for (int turn = 0; turn < 2; ++turn, std::swap(a, b)) {
    unsigned zeros = zeros_of(a);
    if (zeros == 0) continue;
    Interval range{0, (Int128(1) << zeros) - 1};
    if (auto expression = scalar(b)) {
      Interval bounds = pool.interval(*expression, limits);
      if (bounds.low >= 0 && bounds.high <= range.high) return add(a, b);
      continue;
    }
    auto bounds = form_bounds(forms[b]);
    bool proved = bounds && bounds->low >= 0 && bounds->high <= range.high;
    if (!proved && zeros < 4) continue; // rarely true: not worth a check at launch
    if (demands && !proved) demands->push_back({b, range});
    return add(a, b);
  }
  return any(width);
}

LinearFormId State::remainder(LinearFormId a, LinearFormId b, bool is_signed) {
  unsigned width = forms[a].width;
  auto divisor = scalar(b);
  if (auto dividend = scalar(a); dividend && divisor)
    return uniform(pool.binary(is_signed ? ExpressionKind::remainder_signed : ExpressionKind::remainder_unsigned,
                               *dividend, *divisor));
  if (!divisor || pool[*divisor].varies || pool.is_zero(*divisor) || !is_plain(forms[a])) return any(width);
  auto literal = pool.literal_value(*divisor);
  bool power_of_two = literal && (*literal & (*literal - 1)) == 0 && !is_signed;
  // Residues add up only without wrapping and for one sign; a power of two divides 2^width, so wrapping is harmless.
  if (demands && !power_of_two)
    demands->push_back({a, {0, is_signed ? signed_range(width).high : unsigned_range(width).high}});
  LinearForm form;
  form.kind = ValueClass::mod_linear;
  form.width = static_cast<uint8_t>(width);
  form.signed_remainder = is_signed;
  form.dividend = a;
  form.divisor = *divisor;
  form.multiplier = pool.literal(width, 1);
  form.addend = pool.zero(width);
  return intern(form);
}

LinearFormId State::select(ExpressionId condition, LinearFormId if_true, LinearFormId if_false) {
  LinearForm x = forms[if_true], y = forms[if_false];
  if (if_true == if_false && is_plain(x)) return if_true;
  if (!is_plain(x) || !is_plain(y) || x.loop_count || y.loop_count) return any(x.width);
  for (unsigned i = 0; i < form_index::count; ++i)
    x.coefficients[i] = pool.select(condition, x.coefficients[i], y.coefficients[i]);
  return classified(x);
}

} // namespace ptxrewrite::ir
