#include "ir/analysis/linear/exact_range.h"

#include <vector>

namespace ptxrewrite::ir {

namespace {

constexpr const char* index_names[] = {"", "tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z"};

// A sum under construction; `known` becomes false when a part has no text.
struct SumText {
  std::string text;
  bool known = true;

  void add(const std::string& product) {
    if (product.empty()) known = false;
    text += (text.empty() ? "" : " + ") + product;
  }
};

// Adds coefficient * name; omitted if the coefficient is 0.
void add_product(SumText& sum, const ExpressionPool& pool, ExpressionId coefficient, const std::string& name) {
  if (pool.is_zero(coefficient)) return;
  const std::string factor = print_exact_integer(pool, coefficient);
  sum.add(factor.empty() || name.empty() ? factor : pool.is_literal(coefficient, 1) ? name : factor + "*" + name);
}

std::string form_text(const LinearForms& forms, const LinearForm& form) {
  if (!form.has_coefficients()) return {};
  const ExpressionPool& pool = forms.expressions();
  SumText sum;
  for (unsigned place = 0; place < form_index::count; ++place)
    add_product(sum, pool, form.coefficients[place], index_names[place]);
  for (const LoopOffset& offset : form.loops())
    add_product(sum, pool, offset.step, "k" + std::to_string(forms.loops().loops()[offset.loop].header.index()));
  if (!sum.known) return {};
  return sum.text.empty() ? "0" : sum.text;
}

// Products and sums in exact integers, every factor read as signed.
std::string expression_text(const ExpressionPool& pool, ExpressionId id) {
  const Expression& row = pool[id];
  if (row.kind != ExpressionKind::sum) return print_exact_integer(pool, id);
  SumText sum;
  if (row.offset != 0) sum.add(to_string(Int128(signed_value(static_cast<uint64_t>(row.offset), row.width))));
  for (const ExpressionTerm& term : pool.terms(id)) {
    std::string product = to_string(Int128(signed_value(term.coefficient, row.width)));
    for (ExpressionId factor : pool.factors(term.monomial)) {
      const std::string text = print_exact_integer(pool, factor);
      if (text.empty()) return {};
      product += "*" + text;
    }
    sum.add(product);
  }
  return sum.text.empty() ? "0" : sum.text;
}

} // namespace

std::string print_exact_range(const LinearForms& forms, ObligationId id) {
  const RangeObligation& row = forms.obligation(id);
  std::vector<std::string> values;
  if (row.kind == RangeObligation::Kind::expression_range) {
    values.push_back(expression_text(forms.expressions(), row.expression));
  } else if (const LinearForm& form = forms.form(row.form); form.kind == ValueClass::divergent_linear) {
    for (unsigned i = 0; i < 1u << form.condition_count; ++i)
      values.push_back(form_text(forms, forms.form(form.alternatives[i])));
  } else {
    values.push_back(form_text(forms, form));
  }
  std::string text;
  for (const std::string& value : values) {
    if (value.empty()) return {};
    text += (text.empty() ? "" : "; ") + to_string(row.range.low) + " <= " + value + " <= " + to_string(row.range.high);
  }
  return text;
}

} // namespace ptxrewrite::ir
