#include "evaluate/prove/divisions.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ptxrewrite::prove {

namespace {

using transforms::MagicForm;

constexpr unsigned exact_bits = 128;
constexpr unsigned most_steps = 64;
constexpr MagicForm all_forms[]{MagicForm::natural32, MagicForm::unsigned32, MagicForm::signed32,
                                MagicForm::natural64, MagicForm::unsigned64, MagicForm::signed64};

// The expressions that occur as an argument of log2 in the text, without the doubling of ceil(log2 d).
std::vector<std::string> possible_divisors(const std::string& shift) {
  std::vector<std::string> list;
  const size_t start = shift.find("log2(");
  if (start == shift.npos) return list;
  size_t end = start + 5;
  for (unsigned depth = 1; end < shift.size() && depth > 0; ++end)
    depth += (shift[end] == '(') - (shift[end] == ')');
  const std::string argument = shift.substr(start + 5, end - start - 6);
  list.push_back(argument);
  if (argument.starts_with("2*") && argument.ends_with(" - 1")) list.push_back(argument.substr(2, argument.size() - 6));
  return list;
}

} // namespace

Divisions::Divisions(Terms& terms, const std::vector<AddedParameter>& added,
                     const std::function<std::optional<TermId>(const std::string&)>& value_of)
    : terms_(terms) {
  const auto parameter = [&](const std::string& expression) {
    const auto found = std::ranges::find(added, expression, &AddedParameter::expression);
    return found == added.end() ? TermId() : found->value;
  };
  for (const AddedParameter& shift : added)
    for (const std::string& divisor : possible_divisors(shift.expression))
      for (const MagicForm form : all_forms) {
        const transforms::Magic numbers = transforms::magic_of(form, divisor);
        const TermId multiplier = parameter(numbers.multiplier);
        const TermId addend = numbers.addend.empty() ? TermId() : parameter(numbers.addend);
        const std::optional<TermId> value = value_of(divisor);
        if (numbers.shift != shift.expression || !multiplier || !value || (!numbers.addend.empty() && !addend))
          continue;
        magic_.push_back({form, *value, multiplier, shift.value, addend});
      }
}

TermId Divisions::in_range(TermId value, UInt128 low, UInt128 high) {
  const TermId above = terms_.negation(terms_.less(value, terms_.literal(exact_bits, low), true));
  const TermId below = terms_.negation(terms_.less(terms_.literal(exact_bits, high), value, true));
  return terms_.multiply(above, below);
}

TermId Divisions::divided(const char* type, TermId n, TermId divisor) {
  return terms_.operation("div." + std::string(type) + ".0", terms_.width(n),
                          {n, terms_.truncate(divisor, terms_.width(n))});
}

// The other factor of a product, if each of its summands has the multiplier as a factor.
std::optional<TermId> Divisions::dividend_of(TermId product, TermId multiplier) {
  const std::optional<AtomId> factor = terms_.as_atom(multiplier);
  if (!factor) return std::nullopt;
  const Term row = terms_[product];
  TermId rest = terms_.literal(row.width, 0);
  for (const auto& [monomial, coefficient] : row.coefficients) {
    Monomial others = monomial;
    const auto place = std::ranges::find(others, *factor);
    if (place == others.end()) return std::nullopt;
    others.erase(place);
    TermId summand = terms_.literal(row.width, coefficient);
    for (AtomId other : others)
      summand = terms_.multiply(summand, terms_.from_atom(other));
    rest = terms_.add(rest, summand);
  }
  return rest;
}

// The quotient that the shifted number is, by one of the rules of magic.h.
std::optional<Divisions::Meaning> Divisions::quotient_by(const Magic& magic, TermId shifted, unsigned width) {
  const UInt128 least = transforms::least_divisor(magic.form), largest = transforms::largest_divisor(magic.form);
  const TermId divisor_fits = in_range(magic.divisor, least, largest);
  const auto is_below = [&](TermId n, UInt128 limit) {
    return terms_.less(n, terms_.literal(terms_.width(n), limit), false);
  };
  const auto high = [&](const char* name) -> std::optional<std::vector<TermId>> {
    const std::optional<AtomId> atom = terms_.as_atom(shifted);
    if (!atom || terms_.atom(*atom).name != name) return std::nullopt;
    return terms_.atom(*atom).operands;
  };
  switch (magic.form) {
  case MagicForm::natural32:
  case MagicForm::unsigned32: {
    if (width != 64) return std::nullopt;
    const bool any = magic.form == MagicForm::unsigned32;
    const std::optional<TermId> n =
        dividend_of(any ? terms_.subtract(shifted, magic.addend) : shifted, terms_.zero_extend(magic.multiplier, 64));
    if (!n) return std::nullopt;
    const TermId fits = is_below(*n, UInt128(1) << (any ? 32 : 31));
    return Meaning{terms_.multiply(divisor_fits, fits),
                   terms_.zero_extend(divided("u32", terms_.truncate(*n, 32), magic.divisor), 64)};
  }
  case MagicForm::natural64: {
    const auto factors = high("mul.hi.u64.0");
    if (!factors || factors->size() != 2 || (*factors)[1] != magic.multiplier) return std::nullopt;
    return Meaning{terms_.multiply(divisor_fits, is_below((*factors)[0], UInt128(1) << 63)),
                   divided("u64", (*factors)[0], magic.divisor)};
  }
  case MagicForm::signed32: {
    const auto factors = high("mad.hi.s32.0");
    if (!factors || factors->size() != 3 || (*factors)[1] != magic.multiplier || (*factors)[2] != (*factors)[0])
      return std::nullopt;
    // The difference of the two is 1 if n is negative.
    const TermId n = (*factors)[0], sign = terms_.operation("lshr", 32, {n, terms_.literal(32, 31)});
    return Meaning{divisor_fits, terms_.subtract(divided("s32", n, magic.divisor), sign)};
  }
  case MagicForm::unsigned64:
  case MagicForm::signed64:
    break;
  }
  return std::nullopt;
}

std::optional<Divisions::Meaning> Divisions::quotient(AtomId id) {
  const Atom row = terms_.atom(id);
  if (row.kind != AtomKind::operation || row.operands.size() != 2) return std::nullopt;
  const bool is_signed = row.name == "ashr";
  if (!is_signed && row.name != "lshr") return std::nullopt;
  for (const Magic& magic : magic_) {
    const bool needs_sign = magic.form == MagicForm::signed32 || magic.form == MagicForm::signed64;
    if (needs_sign != is_signed || terms_.resize(magic.shift, row.width, false) != row.operands[1]) continue;
    if (auto found = quotient_by(magic, row.operands[0], row.width)) return found;
  }
  return std::nullopt;
}

// rem -> difference; signed -> unsigned; 64 -> 32 bits.
std::optional<Divisions::Meaning> Divisions::division(AtomId id) {
  const Atom row = terms_.atom(id);
  if (row.kind != AtomKind::operation || row.operands.size() != 2) return std::nullopt;
  const bool divides = row.name.starts_with("div."), leaves = row.name.starts_with("rem.");
  if ((!divides && !leaves) || (row.width != 32 && row.width != 64)) return std::nullopt;
  const TermId x = row.operands[0], y = row.operands[1];
  if (terms_.width(x) != row.width || terms_.width(y) != row.width) return std::nullopt;
  const std::string type = row.name.substr(4);
  const TermId nothing = terms_.literal(row.width, 0);
  if (leaves) {
    const TermId whole = terms_.operation("div." + type, row.width, {x, y});
    return Meaning{terms_.negation(terms_.is_zero(y)), terms_.subtract(x, terms_.multiply(whole, y))};
  }
  if (type.starts_with('s')) {
    const TermId natural = terms_.negation(terms_.less(x, nothing, true)), positive = terms_.less(nothing, y, true);
    return Meaning{terms_.multiply(natural, positive), terms_.operation("div.u" + type.substr(1), row.width, {x, y})};
  }
  if (row.width != 64) return std::nullopt;
  const TermId limit = terms_.literal(64, UInt128(1) << 32);
  const TermId small = terms_.multiply(terms_.less(x, limit, false), terms_.less(y, limit, false));
  const TermId short_one = terms_.operation("div.u32.0", 32, {terms_.truncate(x, 32), terms_.truncate(y, 32)});
  return Meaning{terms_.multiply(small, terms_.negation(terms_.is_zero(y))), terms_.zero_extend(short_one, 64)};
}

std::optional<Divisions::Meaning> Divisions::meaning_of(AtomId atom) {
  std::optional<Meaning> found = quotient(atom);
  return found ? found : division(atom);
}

TermId Divisions::rewritten(TermId in, const std::function<bool(TermId)>& holds) {
  std::set<AtomId> refused;
  for (unsigned step = 0; step < most_steps; ++step) {
    // Operands have smaller numbers than the terms computed from them, and come first.
    std::set<AtomId> atoms;
    terms_.collect_atoms(in, atoms);
    bool changed = false;
    for (AtomId atom : atoms) {
      if (refused.contains(atom)) continue;
      const std::optional<Meaning> meaning = meaning_of(atom);
      if (!meaning || !holds(meaning->condition)) {
        refused.insert(atom);
        continue;
      }
      in = terms_.substitute(in, {{atom, meaning->value}});
      changed = true;
      break;
    }
    if (!changed) break;
  }
  return in;
}

} // namespace ptxrewrite::prove
