#include "evaluate/prove/exact_forms.h"

#include <algorithm>

namespace ptxrewrite::prove {

namespace {

// Depth of nested extensions; deeper ones are not rewritten.
constexpr unsigned most_depth = 24;

} // namespace

TermId ExactForms::without_literal(TermId term, UInt128& literal) {
  const auto& coefficients = terms_[term].coefficients;
  const auto found = coefficients.find(Monomial{});
  literal = found == coefficients.end() ? 0 : found->second;
  return literal == 0 ? term : terms_.subtract(term, terms_.literal(terms_.width(term), literal));
}

void ExactForms::assume(const Assumption& fact) {
  Assumption stored = fact;
  // Known bounds make the fact stronger: a nonnegative signed number is also an unsigned one.
  if (const auto known = bounds_.of(fact.value)) {
    stored.range.low = std::max(stored.range.low, known->low);
    stored.range.high = std::min(stored.range.high, known->high);
  }
  for (unsigned width : {16u, 32u, 64u}) {
    UInt128 literal;
    by_low_bits_[without_literal(terms_.truncate(fact.value, width), literal)].push_back(facts_.size());
  }
  facts_.push_back(stored);
  done_.clear();
}

std::optional<ExactForms::Rewritten> ExactForms::exact_value(TermId inner, AtomKind kind, unsigned to) {
  const unsigned width = terms_.width(inner);
  UInt128 literal;
  const TermId key = without_literal(inner, literal);
  if (const auto found = by_low_bits_.find(key); found != by_low_bits_.end())
    for (size_t number : found->second) {
      const Assumption& fact = facts_[number];
      UInt128 own;
      without_literal(terms_.truncate(fact.value, width), own);
      // The literals are known modulo 2^width: the difference that keeps the number within its type, if there is one.
      const ir::Int128 distance = as_signed(literal - own, width);
      for (const ir::Int128 shift :
           {distance, distance + (ir::Int128(1) << width), distance - (ir::Int128(1) << width)}) {
        const ir::Interval range{fact.range.low + shift, fact.range.high + shift};
        if (!is_exact_(kind, width, to, range)) continue;
        return Rewritten{terms_.add(fact.value, terms_.literal(128, static_cast<UInt128>(shift))), {number}};
      }
    }
  const TermId number = bounds_.exact(inner, kind == AtomKind::sign_extend);
  if (const auto range = bounds_.of(number); range && is_exact_(kind, width, to, *range)) return Rewritten{number, {}};
  return std::nullopt;
}

// Rewrites an extension of a sum that contains a selection to a selection of two extensions.
std::optional<TermId> ExactForms::extended_choice(const Atom& extension, std::set<size_t>& used) {
  const TermId inner = extension.operands[0];
  std::optional<AtomId> choice;
  for (const auto& [monomial, coefficient] : terms_[inner].coefficients)
    for (AtomId factor : monomial)
      if (const Atom& row = terms_.atom(factor); row.kind == AtomKind::operation && row.name == "select")
        choice = factor;
  if (!choice) return std::nullopt;
  const std::vector<TermId> operands = terms_.atom(*choice).operands;
  auto of_side = [&](size_t side) {
    const TermId sum = terms_.substitute(inner, {{*choice, operands[side]}});
    const Rewritten& further = rewritten(terms_.resize(sum, extension.width, extension.kind == AtomKind::sign_extend));
    used.insert(further.used.begin(), further.used.end());
    return further.term;
  };
  const TermId if_set = of_side(1), if_not = of_side(2);
  const Rewritten& condition = rewritten(operands[0]);
  used.insert(condition.used.begin(), condition.used.end());
  return terms_.select(condition.term, if_set, if_not);
}

TermId ExactForms::factor(AtomId id, std::set<size_t>& used) {
  const Atom row = terms_.atom(id);
  if (row.kind == AtomKind::leaf) return terms_.from_atom(id);
  if (row.kind == AtomKind::sign_extend || row.kind == AtomKind::zero_extend)
    if (auto exact = exact_value(row.operands[0], row.kind, row.width)) {
      const TermId wide = terms_.truncate(exact->term, row.width);
      used.insert(exact->used.begin(), exact->used.end());
      if (terms_.as_atom(wide) != std::optional(id)) {
        const Rewritten& further = rewritten(wide);
        used.insert(further.used.begin(), further.used.end());
        return further.term;
      }
    }
  if (row.kind == AtomKind::sign_extend || row.kind == AtomKind::zero_extend)
    if (auto choice = extended_choice(row, used)) return *choice;
  std::vector<TermId> operands;
  for (TermId operand : row.operands) {
    const Rewritten& inside = rewritten(operand);
    used.insert(inside.used.begin(), inside.used.end());
    operands.push_back(inside.term);
  }
  return terms_.remade(id, std::move(operands));
}

const ExactForms::Rewritten& ExactForms::rewritten(TermId in) {
  if (auto known = done_.find(in); known != done_.end()) return known->second;
  if (depth_ >= most_depth) return done_[in] = {in, {}};
  ++depth_;
  done_[in] = {in, {}}; // a cyclic reference to it stays as it is
  const Term term = terms_[in];
  Rewritten result{terms_.literal(term.width, 0), {}};
  for (const auto& [monomial, coefficient] : term.coefficients) {
    TermId product = terms_.literal(term.width, coefficient);
    for (AtomId one : monomial)
      product = terms_.multiply(product, factor(one, result.used));
    result.term = terms_.add(result.term, product);
  }
  --depth_;
  return done_[in] = std::move(result);
}

TermId ExactForms::rewrite(TermId in, std::set<size_t>& used) {
  const Rewritten& result = rewritten(in);
  used.insert(result.used.begin(), result.used.end());
  return result.term;
}

} // namespace ptxrewrite::prove
