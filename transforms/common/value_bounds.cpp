#include "transforms/common/value_bounds.h"

#include "ir/analysis/linear/form_bounds.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::InstructionId;
using ir::Int128;
using ir::Interval;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::Operation;
using ir::ValueId;

constexpr size_t most_text = 1500; // characters of one bound; a longer one counts as unknown
constexpr size_t most_conditions = 16;
constexpr size_t most_nesting = 24;
constexpr unsigned most_values = 2000; // visited by one query

bool within(const Interval& inner, const Interval& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

Interval range_of_type(unsigned width, bool is_signed) {
  return is_signed ? ir::signed_range(width) : ir::unsigned_range(width);
}

ValueBounds constant(Int128 low, Int128 high) {
  ValueBounds bounds;
  bounds.always = Interval{low, high};
  bounds.low = ir::to_string(low);
  bounds.high = ir::to_string(high);
  return bounds;
}

// Bounds for a number of which only the type is known.
ValueBounds all_of(const Interval& type) {
  ValueBounds bounds = constant(type.low, type.high);
  bounds.weak_low = bounds.weak_high = true;
  return bounds;
}

bool is_one_number(const ValueBounds& bounds) {
  return bounds.has_text() && bounds.low == bounds.high;
}

std::string in_brackets(const std::string& text) {
  const bool is_number = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? text : "(" + text + ")";
}

std::string call(const char* function, const std::string& a, const std::string& b) {
  return a == b ? a : std::string(function) + "(" + a + ", " + b + ")";
}

std::string infix(const std::string& a, const char* operation, const std::string& b) {
  return in_brackets(a) + " " + operation + " " + in_brackets(b);
}

// Empty bounds with the conditions and obligations of both.
ValueBounds resting_on(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result;
  result.conditions = a.conditions;
  result.conditions.insert(b.conditions.begin(), b.conditions.end());
  result.obligations = a.obligations;
  result.obligations.insert(b.obligations.begin(), b.obligations.end());
  result.weak_low = a.weak_low || b.weak_low;
  result.weak_high = a.weak_high || b.weak_high;
  return result;
}

void set_text(ValueBounds& bounds, std::string low, std::string high) {
  if (low.size() + high.size() > most_text || bounds.conditions.size() > most_conditions) return;
  bounds.low = std::move(low);
  bounds.high = std::move(high);
}

bool both_always(const ValueBounds& a, const ValueBounds& b) {
  return a.always && b.always;
}
bool both_text(const ValueBounds& a, const ValueBounds& b) {
  return a.has_text() && b.has_text();
}
bool never_negative(const ValueBounds& bounds) {
  return bounds.always && bounds.always->low >= 0;
}

ValueBounds sum(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  if (both_always(a, b)) result.always = Interval{a.always->low + b.always->low, a.always->high + b.always->high};
  if (both_text(a, b)) set_text(result, infix(a.low, "+", b.low), infix(a.high, "+", b.high));
  return result;
}

ValueBounds difference(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  // The two operands are often correlated, so that this difference is pessimistic.
  const bool is_pessimistic = !is_one_number(a) && !is_one_number(b);
  result.weak_low = a.weak_low || b.weak_high || is_pessimistic;
  result.weak_high = a.weak_high || b.weak_low || is_pessimistic;
  if (both_always(a, b)) result.always = Interval{a.always->low - b.always->high, a.always->high - b.always->low};
  if (both_text(a, b)) set_text(result, infix(a.low, "-", b.high), infix(a.high, "-", b.low));
  return result;
}

ValueBounds product(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  if (!never_negative(a) || !never_negative(b))
    result.weak_low = result.weak_high = result.weak_low || result.weak_high;
  if (both_always(a, b)) {
    std::array<Int128, 4> corners;
    const bool overflows = __builtin_mul_overflow(a.always->low, b.always->low, &corners[0]) ||
                           __builtin_mul_overflow(a.always->low, b.always->high, &corners[1]) ||
                           __builtin_mul_overflow(a.always->high, b.always->low, &corners[2]) ||
                           __builtin_mul_overflow(a.always->high, b.always->high, &corners[3]);
    if (!overflows) result.always = Interval{std::ranges::min(corners), std::ranges::max(corners)};
  }
  if (!both_text(a, b)) return result;
  if (never_negative(a) && never_negative(b)) {
    set_text(result, infix(a.low, "*", b.low), infix(a.high, "*", b.high));
  } else {
    const std::string corners = infix(a.low, "*", b.low) + ", " + infix(a.low, "*", b.high) + ", " +
                                infix(a.high, "*", b.low) + ", " + infix(a.high, "*", b.high);
    set_text(result, "min(" + corners + ")", "max(" + corners + ")");
  }
  return result;
}

ValueBounds hull(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  if (both_always(a, b))
    result.always = Interval{std::min(a.always->low, b.always->low), std::max(a.always->high, b.always->high)};
  if (both_text(a, b)) set_text(result, call("min", a.low, b.low), call("max", a.high, b.high));
  return result;
}

ValueBounds lesser(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  result.weak_high = a.weak_high && b.weak_high;
  if (both_always(a, b))
    result.always = Interval{std::min(a.always->low, b.always->low), std::min(a.always->high, b.always->high)};
  if (both_text(a, b)) set_text(result, call("min", a.low, b.low), call("min", a.high, b.high));
  return result;
}

ValueBounds greater(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  result.weak_low = a.weak_low && b.weak_low;
  if (both_always(a, b))
    result.always = Interval{std::max(a.always->low, b.always->low), std::max(a.always->high, b.always->high)};
  if (both_text(a, b)) set_text(result, call("max", a.low, b.low), call("max", a.high, b.high));
  return result;
}

ValueBounds shifted_right(const ValueBounds& a, unsigned amount) {
  ValueBounds result = resting_on(a, a);
  if (amount >= 8) result.weak_low = result.weak_high = false; // much narrower than the type
  const std::string count = std::to_string(amount);
  if (a.always) result.always = Interval{a.always->low >> amount, a.always->high >> amount};
  if (a.has_text()) set_text(result, infix(a.low, ">>", count), infix(a.high, ">>", count));
  return result;
}

// Sets all bits up to the highest set bit of a nonnegative number.
Int128 filled(Int128 number) {
  Int128 all = 0;
  while (all < number)
    all = all * 2 + 1;
  return all;
}

// a | b and a ^ b of nonnegative numbers.
ValueBounds joined(const ValueBounds& a, const ValueBounds& b) {
  ValueBounds result = resting_on(a, b);
  result.weak_low = false;
  if (both_always(a, b)) result.always = Interval{0, filled(std::max(a.always->high, b.always->high))};
  if (both_text(a, b)) set_text(result, "0", "(2 << log2(max(1, " + a.high + ", " + b.high + "))) - 1");
  return result;
}

bool has_a_form(const ir::LinearForm& form) {
  return form.has_coefficients() || form.kind == ir::ValueClass::mod_linear ||
         form.kind == ir::ValueClass::divergent_linear;
}

// Parses a bound that is a plain number; returns nothing for other texts.
std::optional<Int128> number_in(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 30) return std::nullopt;
  Int128 number = 0;
  for (char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  return negative ? -number : number;
}

// Adds `text relation number` to the conditions, unless both are numbers and the relation holds.
void demand(std::set<std::string>& conditions, const std::string& text, bool at_least, Int128 number) {
  const std::optional<Int128> known = number_in(text);
  if (known && (at_least ? *known >= number : *known <= number)) return;
  conditions.insert(infix(text, at_least ? ">=" : "<=", ir::to_string(number)));
}

bool surely_outside(const ValueBounds& bounds, const Interval& range) {
  if (bounds.always && (bounds.always->low > range.high || bounds.always->high < range.low)) return true;
  const std::optional<Int128> low = number_in(bounds.low), high = number_in(bounds.high);
  return (low && *low < range.low) || (high && *high > range.high);
}

// Returns an empty list if an operand is a group.
std::vector<Operand> sources_of(const ir::Function& function, InstructionId id) {
  std::vector<Operand> sources;
  for (const Operand& operand : function.operands_of(id)) {
    if (operand.is_group()) return {};
    if (!operand.is_definition() && !operand.has(ir::OperandFlag::old_value)) sources.push_back(operand);
  }
  return sources;
}

std::optional<unsigned> literal_amount(const Operand& operand, unsigned width) {
  if (!operand.is(OperandKind::integer) || operand.immediate < 0 || operand.immediate >= int64_t(width))
    return std::nullopt;
  return static_cast<unsigned>(operand.immediate);
}

} // namespace

BoundsOfValues::BoundsOfValues(ir::LinearForms& forms, const Attempt& attempt)
    : forms_(forms), function_(forms.function()), attempt_(attempt), analysed_(function_.values.size()) {}

bool BoundsOfValues::may_rest_on(const ValueBounds& bounds) const {
  return std::ranges::all_of(bounds.obligations, [&](ir::ObligationId id) { return attempt_.can_rest_on(forms_, id); });
}

void BoundsOfValues::add_obligations_of_tests(const ir::LinearForm& form,
                                              std::set<ir::ObligationId>& obligations) const {
  if (form.kind == ir::ValueClass::divergent_linear) {
    for (ir::LinearFormId alternative : form.alternatives)
      if (alternative) add_obligations_of_tests(forms_.form(alternative), obligations);
  }
  if (form.kind == ir::ValueClass::mod_linear) add_obligations_of_tests(forms_.form(form.dividend), obligations);
  for (const ir::LoopOffset& offset : form.loops())
    for (ir::EdgeId exit : forms_.loops().loops()[offset.loop].exits) {
      const InstructionId branch = function_.terminator(function_.edges[exit].from);
      const ValueId guard = branch ? function_.instructions[branch].guard : ValueId();
      const InstructionId test =
          guard && guard.index() < analysed_ ? forms_.def_use().definition(guard).instruction : InstructionId();
      if (!test) continue;
      ir::for_each_use(function_, test, [&](ValueId value) {
        if (value.index() >= analysed_) return;
        const auto needed = forms_.obligations(value);
        obligations.insert(needed.begin(), needed.end());
      });
    }
}

// --- values ---

ValueBounds BoundsOfValues::of(InstructionId instruction, const Operand& operand, unsigned width) {
  if (operand.is(OperandKind::integer)) {
    const Int128 number = ir::signed_value(static_cast<uint64_t>(operand.immediate), width);
    return constant(number, number);
  }
  if (operand.is(OperandKind::value) && operand.selector == ir::no_selector && !operand.has(ir::OperandFlag::negated)) {
    const ir::Value& value = function_.values[operand.as_value()];
    // Reading a wider register takes its low bits: these belong to the same exact integer.
    if (value.vector_width == 1 && ir::bit_width(value.type) >= width) return of_value(operand.as_value());
  }
  if (operand.is(OperandKind::special_register)) {
    const ir::LinearForm& form = forms_.operand_form(instruction, operand);
    ValueBounds result;
    result.always = ir::bounds_in_all_launches(forms_, form, function_.instructions[instruction].block);
    if (auto text = ir::bounds_at_launch(forms_, form); text && text->conditions.empty())
      set_text(result, text->low, text->high);
    return result;
  }
  return {};
}

ValueBounds BoundsOfValues::of_value(ValueId value) {
  if (value.index() >= analysed_) return {};
  if (auto found = known_.find(value); found != known_.end()) return found->second;
  if (visiting_.empty()) left_ = most_values;
  if (visiting_.size() >= most_nesting || left_ == 0 || !visiting_.insert(value).second) return {};
  --left_;
  ValueBounds result = linear(value);
  if (!result.has_text() || !result.always) {
    ValueBounds other = structural(value);
    if (!result.has_text()) {
      result.weak_low = other.weak_low;
      result.weak_high = other.weak_high;
      result.low = std::move(other.low);
      result.high = std::move(other.high);
      result.conditions = std::move(other.conditions);
      result.obligations = std::move(other.obligations);
    }
    if (!result.always) result.always = other.always;
  }
  if (result.always && !result.has_text()) {
    result = constant(result.always->low, result.always->high);
    // The bounds of the type at most: no useful condition can be derived from them.
    const Interval type = ir::signed_range(std::min(32u, ir::bit_width(function_.values[value].type)));
    result.weak_low = result.always->low <= type.low;
    result.weak_high = result.always->high >= type.high;
  }
  visiting_.erase(value);
  // A result that was cut off at a cycle may become known by another path, so it is not cached.
  if (visiting_.empty() || result.has_text()) known_[value] = result;
  return result;
}

ValueBounds BoundsOfValues::linear(ValueId value) {
  const ir::LinearForm& form = forms_.form(value);
  const ir::BlockId block = forms_.def_use().definition(value).block;
  if (!has_a_form(form) || !block || !forms_.control_flow().reachable(block)) return {};
  ValueBounds result;
  const auto obligations = forms_.obligations(value);
  result.obligations.insert(obligations.begin(), obligations.end());
  add_obligations_of_tests(form, result.obligations);
  const bool proved =
      std::ranges::all_of(result.obligations, [&](ir::ObligationId id) { return forms_.obligation(id).proved; });
  if (proved) result.always = ir::bounds_in_all_launches(forms_, form, block);
  if (!may_rest_on(result)) return {};
  if (auto text = ir::bounds_at_launch(forms_, form)) {
    set_text(result, text->low, text->high);
    if (!text->conditions.empty()) result.conditions.insert(text->conditions);
  }
  return result;
}

ValueBounds BoundsOfValues::structural(ValueId value) {
  const ir::DefinitionSite& site = forms_.def_use().definition(value);
  if (site.is_parameter()) return of_parameter(value);
  if (!site.instruction || !site.block) return {};
  const ir::Instruction& instruction = function_.instructions[site.instruction];
  if (instruction.kind != ir::InstructionKind::real || instruction.guard) return {};
  const ir::Form& form = function_.form_of(site.instruction);
  if (form.opaque || form.has(ir::Modifier::sat) || form.has(ir::Modifier::cc) || form.effects.reads_carry) return {};
  size_t definitions = 0;
  ir::for_each_definition(function_, site.instruction, [&](ValueId) { ++definitions; });
  const bool integers = ir::is_integer(form.type()) || ir::is_bit_type(form.type());
  if (definitions != 1 || !integers || ir::bit_width(form.type()) > 64) return {};
  if (form.opcode == Opcode::ld || form.opcode == Opcode::ldu) {
    const unsigned width = ir::bit_width(form.type());
    if (width >= ir::bit_width(function_.values[value].type) || ir::is_bit_type(form.type())) return {};
    const Interval range = range_of_type(width, ir::is_signed(form.type()));
    return width < 32 ? constant(range.low, range.high) : all_of(range);
  }
  return computed(site.instruction, form);
}

ValueBounds BoundsOfValues::of_parameter(ValueId value) {
  const ir::DefinitionSite& site = forms_.def_use().definition(value);
  std::optional<ValueBounds> all;
  for (ir::EdgeId edge : forms_.control_flow().predecessors(site.block)) {
    if (!forms_.control_flow().reachable(function_.edges[edge].from)) continue;
    const ValueBounds one = of_value(function_.arguments(edge)[site.parameter]);
    if (!one.always && !one.has_text()) return {};
    all = all ? hull(*all, one) : one;
  }
  return all.value_or(ValueBounds());
}

ValueBounds BoundsOfValues::read(InstructionId id, const Operand& operand, unsigned width, bool is_signed) {
  ValueBounds bounds = of(id, operand, width);
  const Interval type = range_of_type(width, is_signed);
  if (operand.is(OperandKind::integer)) {
    const uint64_t bits = ir::low_bits(static_cast<uint64_t>(operand.immediate), width);
    const Int128 number = is_signed ? Int128(ir::signed_value(bits, width)) : Int128(bits);
    return constant(number, number);
  }
  if (bounds.always && within(*bounds.always, type)) return bounds;
  const bool strong = bounds.has_text() && !bounds.weak_low && !bounds.weak_high;
  if (!strong || !may_rest_on(bounds)) return all_of(type);
  bounds.always = type;
  demand(bounds.conditions, bounds.low, true, type.low);
  demand(bounds.conditions, bounds.high, false, type.high);
  return bounds;
}

// --- operations ---

ValueBounds BoundsOfValues::divided(InstructionId id, const ir::Form& form, bool as_remainder) {
  const std::vector<Operand> sources = sources_of(function_, id);
  const unsigned width = ir::bit_width(form.type());
  const bool is_signed = ir::is_signed(form.type());
  ValueBounds dividend = read(id, sources[0], width, is_signed), divisor = read(id, sources[1], width, is_signed);
  ValueBounds result = resting_on(dividend, divisor);
  const bool positive = divisor.always && divisor.always->low >= 1;
  const bool quotient = form.operation == Operation::divide && !as_remainder;
  const bool natural = never_negative(dividend);
  result.weak_low = dividend.weak_low || divisor.weak_high;
  result.weak_high = (quotient && dividend.weak_high) || divisor.weak_low || (!quotient && divisor.weak_high);
  if (both_always(dividend, divisor) && positive) {
    const Interval n = *dividend.always, d = *divisor.always;
    if (quotient)
      result.always = natural ? Interval{n.low / d.high, n.high / d.low}
                              : Interval{std::min<Int128>(n.low, 0), std::max<Int128>(n.high, 0)};
    else
      result.always = Interval{natural ? 0 : std::max(n.low, 1 - d.high), std::clamp<Int128>(n.high, 0, d.high - 1)};
  }
  if (!both_text(dividend, divisor)) return result;
  if ((!positive && divisor.weak_low) || (!natural && dividend.weak_low)) return result;
  if (!positive) demand(result.conditions, divisor.low, true, 1);
  // Requires a nonnegative dividend.
  if (!natural) demand(result.conditions, dividend.low, true, 0);
  if (quotient)
    set_text(result, infix(dividend.low, "/", divisor.high), infix(dividend.high, "/", divisor.low));
  else
    set_text(result, "0", call("min", dividend.high, infix(divisor.high, "-", "1")));
  return result;
}

// Matches n - n / d * d and n - (n + t & -2^k), as compilers write remainders.
std::optional<ValueBounds> BoundsOfValues::remainder_in_parts(InstructionId id) {
  const std::vector<Operand> sources = sources_of(function_, id);
  auto definition = [&](const Operand& operand, Operation operation) {
    const InstructionId found =
        operand.is(OperandKind::value) ? forms_.def_use().definition(operand.as_value()).instruction : InstructionId();
    const bool fits = found && function_.instructions[found].kind == ir::InstructionKind::real &&
                      !function_.instructions[found].guard && function_.form_of(found).operation == operation &&
                      function_.form_of(found).type() != ir::ScalarType::none &&
                      ir::bit_width(function_.form_of(found).type()) == ir::bit_width(function_.form_of(id).type()) &&
                      !function_.form_of(found).has(ir::Modifier::hi) && sources_of(function_, found).size() == 2;
    return fits ? found : InstructionId();
  };
  const Operand& n = sources[0];
  if (const InstructionId product = definition(sources[1], Operation::multiply)) {
    const std::vector<Operand> factors = sources_of(function_, product);
    for (size_t i = 0; i < 2; ++i) {
      const InstructionId quotient = definition(factors[i], Operation::divide);
      if (!quotient) continue;
      const std::vector<Operand> parts = sources_of(function_, quotient);
      if (parts[0] == n && parts[1] == factors[1 - i]) return divided(quotient, function_.form_of(quotient), true);
    }
  }
  const InstructionId mask = definition(sources[1], Operation::bit_and);
  if (!mask) return std::nullopt;
  const std::vector<Operand> masked = sources_of(function_, mask);
  const Int128 low_end = masked[1].is(OperandKind::integer) ? -Int128(masked[1].immediate) : 0;
  if (low_end <= 0 || (low_end & (low_end - 1)) != 0) return std::nullopt;
  if (masked[0] == n) return constant(0, low_end - 1);
  const InstructionId added = definition(masked[0], Operation::add);
  if (!added) return std::nullopt;
  const std::vector<Operand> terms = sources_of(function_, added);
  if (terms[0] != n) return std::nullopt;
  // n is the masked number minus t; the mask removes a value in 0 .. 2^k - 1.
  const ValueBounds t = of(added, terms[1], ir::bit_width(function_.form_of(id).type()));
  if (!t.always) return std::nullopt;
  return constant(-t.always->high, low_end - 1 - t.always->low);
}

// Bounds of value & mask for a nonnegative value.
ValueBounds BoundsOfValues::masked(const Operand& mask, const ValueBounds& value, unsigned width) {
  ValueBounds result = resting_on(value, value);
  result.weak_low = result.weak_high = false;
  const uint64_t bits = ir::low_bits(static_cast<uint64_t>(mask.immediate), width);
  const Int128 low_end = bits & (0 - bits); // smaller numbers have none of these bits
  if (value.always) {
    const Int128 most = std::min<Int128>(value.always->high, bits);
    result.always = Interval{0, most < low_end ? 0 : most};
  }
  if (value.has_text())
    set_text(result, "0", call("min", ir::to_string(Int128(bits)), infix(value.high, "&", ir::to_string(-low_end))));
  return result;
}

ValueBounds BoundsOfValues::multiplied(InstructionId id, const ir::Form& form) {
  const std::vector<Operand> sources = sources_of(function_, id);
  const unsigned width = ir::bit_width(form.type());
  const bool wide = form.has(ir::Modifier::wide), adds = form.operation == Operation::multiply_add;
  auto factors = [&](bool as_numbers) {
    const bool is_signed = ir::is_signed(form.type());
    return as_numbers ? product(read(id, sources[0], width, is_signed), read(id, sources[1], width, is_signed))
                      : product(of(id, sources[0], width), of(id, sources[1], width));
  };
  if (sources.size() != (adds ? 3u : 2u)) return {};
  if (form.has(ir::Modifier::hi)) {
    if (adds) return {};
    const ValueBounds whole = factors(true);
    ValueBounds high = shifted_right(whole, width);
    high.weak_low = whole.weak_low;
    high.weak_high = whole.weak_high;
    return high;
  }
  const ValueBounds both = factors(wide);
  return adds ? sum(both, of(id, sources[2], wide ? 2 * width : width)) : both;
}

ValueBounds BoundsOfValues::computed(InstructionId id, const ir::Form& form) {
  const std::vector<Operand> sources = sources_of(function_, id);
  const unsigned width = ir::bit_width(form.type());
  const bool is_signed = ir::is_signed(form.type());
  const bool wide = form.has(ir::Modifier::wide);
  const size_t count = sources.size();
  auto ring = [&](size_t i) { return of(id, sources[i], width); };
  auto number = [&](size_t i) { return read(id, sources[i], width, is_signed); };
  auto natural = [&](size_t i) { return read(id, sources[i], width, false); };
  if (count == 0) return {};
  if (form.opcode == Opcode::popc || form.opcode == Opcode::clz) return constant(0, width);
  // If the register is wider than the type, it holds the value extended from the type.
  if (!function_.operands_of(id)[0].is(OperandKind::value) || !function_.operands_of(id)[0].is_definition()) return {};
  const ValueId result = function_.operands_of(id)[0].as_value();
  if (ir::bit_width(function_.values[result].type) != (wide ? 2 * width : width)) {
    const Interval type = range_of_type(width, is_signed);
    return form.operation == Operation::convert ? constant(type.low, type.high) : ValueBounds();
  }
  switch (form.operation) {
  case Operation::copy:
    return count == 1 ? ring(0) : ValueBounds();
  case Operation::convert: {
    const ir::ScalarType from = form.type(1);
    if (count != 1 || (!ir::is_integer(from) && !ir::is_bit_type(from)) || ir::bit_width(from) > 64) return {};
    return ir::bit_width(from) < width ? read(id, sources[0], ir::bit_width(from), ir::is_signed(from))
                                       : of(id, sources[0], ir::bit_width(from));
  }
  case Operation::add:
    return count == 2 ? sum(ring(0), ring(1)) : ValueBounds();
  case Operation::subtract:
    if (count != 2) return {};
    if (auto rest = remainder_in_parts(id)) return *rest;
    return difference(ring(0), ring(1));
  case Operation::multiply:
  case Operation::multiply_add:
    return multiplied(id, form);
  case Operation::divide:
  case Operation::remainder:
    return count == 2 ? divided(id, form) : ValueBounds();
  case Operation::minimum:
    return count == 2 ? lesser(number(0), number(1)) : ValueBounds();
  case Operation::maximum:
    return count == 2 ? greater(number(0), number(1)) : ValueBounds();
  case Operation::bit_and:
    if (count != 2) return {};
    if (sources[1].is(OperandKind::integer)) return masked(sources[1], natural(0), width);
    return lesser(natural(0), natural(1)).always ? hull(constant(0, 0), lesser(natural(0), natural(1))) : ValueBounds();
  case Operation::bit_or:
  case Operation::bit_xor:
    return count == 2 ? joined(natural(0), natural(1)) : ValueBounds();
  case Operation::shift_left: {
    const auto amount = literal_amount(sources.back(), width);
    return count == 2 && amount ? product(ring(0), constant(Int128(1) << *amount, Int128(1) << *amount))
                                : ValueBounds();
  }
  case Operation::shift_right: {
    const auto amount = literal_amount(sources.back(), width);
    return count == 2 && amount ? shifted_right(number(0), *amount) : ValueBounds();
  }
  case Operation::select:
    return count == 3 ? hull(ring(0), ring(1)) : ValueBounds();
  case Operation::none:
  case Operation::convert_address:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::compare:
    break;
  }
  return {};
}

// --- ranges ---

std::optional<RangeProof> BoundsOfValues::prove(InstructionId instruction, const Operand& operand, Interval range) {
  RangeProof proof;
  const unsigned width = operand.is(OperandKind::value) ? ir::bit_width(function_.values[operand.as_value()].type) : 64;
  const std::string name = operand.is(OperandKind::value) ? function_.value_name(operand.as_value()) : "the operand";
  proof.statement = ir::to_string(range.low) + " <= " + name + " <= " + ir::to_string(range.high);
  proof.reason = "bounds of what it is computed from";
  if (operand.is(OperandKind::integer)) {
    const bool fits = operand.immediate >= range.low && operand.immediate <= range.high;
    return fits ? std::optional(proof) : std::nullopt;
  }
  const ValueBounds bounds = of(instruction, operand, width);
  if (bounds.always && within(*bounds.always, range)) return proof;
  if (surely_outside(bounds, range)) return std::nullopt;
  if (operand.is(OperandKind::value)) {
    // The form at the definition: after a loop, the value is that of one of its trips.
    const ir::LinearForm form = forms_.form(operand.as_value());
    if (has_a_form(form)) {
      const auto needed = forms_.obligations(operand.as_value());
      std::set<ir::ObligationId> all(needed.begin(), needed.end());
      add_obligations_of_tests(form, all);
      proof.obligations.assign(all.begin(), all.end());
      proof.obligations.push_back(forms_.require_range(form, range, instruction));
      if (attempt_.can_rest_on(forms_, proof.obligations)) return proof;
      proof.obligations.clear();
    }
  }
  if (!attempt_.policy().launch || !bounds.has_text() || !may_rest_on(bounds)) return std::nullopt;
  if ((bounds.weak_low && (!bounds.always || bounds.always->low < range.low)) ||
      (bounds.weak_high && (!bounds.always || bounds.always->high > range.high)))
    return std::nullopt;
  proof.obligations.assign(bounds.obligations.begin(), bounds.obligations.end());
  std::set<std::string> all = bounds.conditions;
  if (!bounds.always || bounds.always->low < range.low) demand(all, bounds.low, true, range.low);
  if (!bounds.always || bounds.always->high > range.high) demand(all, bounds.high, false, range.high);
  for (const std::string& condition : all)
    proof.predicate += (proof.predicate.empty() ? "" : " && ") + condition;
  return proof;
}

void BoundsOfValues::rest_on(Attempt& attempt, const RangeProof& proof, std::string_view raised_by,
                             InstructionId instruction) {
  for (ir::ObligationId id : proof.obligations)
    attempt.rest_on(forms_, id, raised_by, instruction);
  if (!proof.predicate.empty() || proof.obligations.empty())
    attempt.rest_on(proof.statement, raised_by, proof.predicate, proof.reason,
                    function_.instructions[instruction].range);
}

} // namespace ptxrewrite::transforms::legal
