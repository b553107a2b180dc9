// Three texts of an expression: short (for people), exact (with extensions) and as a predicate for the side file.
#include "ir/analysis/linear/exact_range.h"
#include "ir/core/module.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ptxrewrite::ir {

namespace {

// Sorts shorter texts first: "P2" before "P10".
struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
  bool operator()(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), *this);
  }
};

// Integer polynomial over printed atoms.
using Polynomial = std::map<std::vector<std::string>, Int128, NaturalOrder>;

Int128 magnitude(Int128 value) {
  return value < 0 ? -value : value;
}

std::string product_text(const std::vector<std::string>& factors) {
  std::string text;
  for (const std::string& factor : factors)
    text += (text.empty() ? "" : "*") + factor;
  return text;
}

// `2*a-b+3`: smaller factors first, the constant last.
std::string sum_text(const Polynomial& polynomial) {
  std::vector<std::pair<std::vector<std::string>, Int128>> order(polynomial.begin(), polynomial.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    if (a.first.empty() != b.first.empty()) return b.first.empty();
    return magnitude(a.second) < magnitude(b.second);
  });
  std::string text;
  for (const auto& [factors, coefficient] : order) {
    if (coefficient < 0)
      text += '-';
    else if (!text.empty())
      text += '+';
    Int128 size = magnitude(coefficient);
    if (factors.empty())
      text += to_string(size);
    else
      text += (size == 1 ? "" : to_string(size) + "*") + product_text(factors);
  }
  return text.empty() ? "0" : text;
}

std::string_view operator_text(ExpressionKind kind) {
  switch (kind) {
  case ExpressionKind::divide_signed:
  case ExpressionKind::divide_unsigned:
    return "/";
  case ExpressionKind::remainder_signed:
  case ExpressionKind::remainder_unsigned:
    return "%";
  case ExpressionKind::shift_left:
    return "<<";
  case ExpressionKind::shift_right_signed:
  case ExpressionKind::shift_right_unsigned:
    return ">>";
  case ExpressionKind::and_:
    return "&";
  case ExpressionKind::or_:
    return "|";
  case ExpressionKind::xor_:
    return "^";
  case ExpressionKind::product:
    return "*";
  default:
    return "";
  }
}

std::string_view function_text(ExpressionKind kind) {
  switch (kind) {
  case ExpressionKind::minimum_signed:
  case ExpressionKind::minimum_unsigned:
    return "min";
  case ExpressionKind::maximum_signed:
  case ExpressionKind::maximum_unsigned:
    return "max";
  case ExpressionKind::multiply_high_signed:
    return "mulhi_s";
  case ExpressionKind::multiply_high_unsigned:
    return "mulhi_u";
  default:
    return "";
  }
}

std::string_view comparison_text(Comparison comparison) {
  switch (comparison) {
  case Comparison::equal:
    return "==";
  case Comparison::not_equal:
    return "!=";
  case Comparison::less_signed:
  case Comparison::less_unsigned:
    return "<";
  case Comparison::less_equal_signed:
  case Comparison::less_equal_unsigned:
    return "<=";
  }
  return "";
}

bool reads_unsigned(const Expression& row) {
  switch (row.kind) {
  case ExpressionKind::divide_unsigned:
  case ExpressionKind::remainder_unsigned:
  case ExpressionKind::shift_right_unsigned:
  case ExpressionKind::minimum_unsigned:
  case ExpressionKind::maximum_unsigned:
  case ExpressionKind::and_:
  case ExpressionKind::or_:
  case ExpressionKind::xor_:
    return true;
  case ExpressionKind::compare:
    return Comparison(row.payload) == Comparison::less_unsigned ||
           Comparison(row.payload) == Comparison::less_equal_unsigned;
  default:
    return false;
  }
}

std::string leaf_text(const Expression& row, const Function* names) {
  switch (row.kind) {
  case ExpressionKind::parameter: {
    std::string text = "P" + std::to_string(row.payload);
    if (row.offset) text += "@" + std::to_string(row.offset);
    return text;
  }
  case ExpressionKind::special: {
    std::string text(info(SpecialRegister(row.payload)).name.substr(1));
    if (info(SpecialRegister(row.payload)).vector_width > 1) text += std::string(".") + "xyzw"[row.offset & 3];
    return text;
  }
  case ExpressionKind::symbol: {
    SymbolRef ref = SymbolRef::from_bits(row.payload);
    if (!names) return "symbol" + std::to_string(row.payload);
    const Module& module = names->module();
    switch (ref.kind()) {
    case SymbolRef::Kind::module_variable:
      return std::string(module.text(module.variables[ref.variable()].name));
    case SymbolRef::Kind::local_variable:
      return std::string(module.text(names->variables[ref.variable()].name));
    case SymbolRef::Kind::function:
      return std::string(module.text(module.function(ref.function()).name));
    case SymbolRef::Kind::undeclared:
      return std::string(module.text(ref.name()));
    }
    return "";
  }
  case ExpressionKind::window:
    return "window." + std::string(spelling(StateSpace(row.payload)));
  case ExpressionKind::value:
    return names ? names->value_name(ValueId(row.payload)) : "v" + std::to_string(row.payload);
  default:
    return "";
  }
}

enum class Style : uint8_t { short_, exact, ring };

class Printer {
public:
  Printer(const ExpressionPool& pool, const Function* names) : pool_(pool), names_(names) {}

  // Text without extensions.
  std::string short_text(ExpressionId id) {
    Polynomial polynomial;
    overflow_ = false;
    add_erased(id, polynomial);
    if (overflow_) return exact_text(id);
    Int128 divisor = 0;
    for (const auto& [factors, coefficient] : polynomial)
      divisor = gcd(divisor, magnitude(coefficient));
    if (polynomial.size() < 2 || divisor < 2) return sum_text(polynomial);
    for (auto& [factors, coefficient] : polynomial)
      coefficient /= divisor;
    return to_string(divisor) + "*(" + sum_text(polynomial) + ")";
  }

  std::string exact_text(ExpressionId id) { return ring_sum(id, Style::exact); }

  // An exact integer that is congruent to the expression modulo 2^width.
  std::string ring_text(ExpressionId id) { return ring_sum(id, Style::ring); }

  // The signed (or unsigned) representative as an exact integer.
  std::string integer_text(ExpressionId id, bool is_unsigned) {
    const Expression& row = pool_[id];
    std::string width = std::to_string(row.width);
    if (auto value = pool_.literal_value(id)) {
      if (is_unsigned) return to_string(Int128(*value));
      return to_string(Int128(signed_value(*value, row.width)));
    }
    if (row.kind == ExpressionKind::special && row.width == 32) return leaf_text(row, names_); // 1 .. 2^31 - 1
    if (row.kind == ExpressionKind::compare) return atom_text(id, Style::ring);
    if (row.kind == ExpressionKind::sign_extend && !is_unsigned) return integer_text(pool_.operands(id)[0], false);
    if (row.kind == ExpressionKind::zero_extend) return integer_text(pool_.operands(id)[0], true);
    return (is_unsigned ? "zext" : "sext") + width + "(" + ring_text(id) + ")";
  }

private:
  static Int128 gcd(Int128 a, Int128 b) { return b == 0 ? a : gcd(b, a % b); }

  static std::string enclosed(const std::string& text) {
    return text.find_first_of("+-*/%<>&|^=? ") == std::string::npos ? text : "(" + text + ")";
  }

  std::string operand_text(ExpressionId id, Style style, bool is_unsigned) {
    if (style == Style::short_) return enclosed(short_text_of_operand(id));
    if (style == Style::exact) return enclosed(exact_text(id));
    return integer_text(id, is_unsigned);
  }

  std::string short_text_of_operand(ExpressionId id) { return Printer(pool_, names_).short_text(id); }

  std::string atom_text(ExpressionId id, Style style) {
    const Expression& row = pool_[id];
    auto list = pool_.operands(id);
    bool is_unsigned = reads_unsigned(row);
    auto part = [&](size_t i) { return operand_text(list[i], style, is_unsigned); };
    switch (row.kind) {
    case ExpressionKind::sign_extend:
    case ExpressionKind::zero_extend:
    case ExpressionKind::truncate:
      return extension_text(id, style);
    case ExpressionKind::compare:
      return "(" + part(0) + " " + std::string(comparison_text(Comparison(row.payload))) + " " + part(1) + ")";
    case ExpressionKind::select:
      return "(" + operand_text(list[0], style, true) + " ? " + part(1) + " : " + part(2) + ")";
    case ExpressionKind::load:
      return std::string(spelling(StateSpace(row.payload))) + "[" + part(0) +
             (row.offset ? "+" + std::to_string(row.offset) : "") + "]";
    default:
      break;
    }
    if (list.empty()) return leaf_text(row, names_);
    if (std::string_view name = function_text(row.kind); !name.empty()) {
      const bool is_high =
          row.kind == ExpressionKind::multiply_high_signed || row.kind == ExpressionKind::multiply_high_unsigned;
      // The result depends on the operands' width, which the text would not show otherwise.
      return std::string(name) + (is_high ? std::to_string(row.width) : "") + "(" + part(0) + ", " + part(1) + ")";
    }
    std::string second = row.kind == ExpressionKind::shift_left || row.kind == ExpressionKind::shift_right_signed
                             ? operand_text(list[1], style, true)
                             : part(1);
    return "(" + part(0) + std::string(operator_text(row.kind)) + second + ")";
  }

  std::string extension_text(ExpressionId id, Style style) {
    const Expression& row = pool_[id];
    ExpressionId inner = pool_.operands(id)[0];
    if (style == Style::short_) return enclosed(short_text_of_operand(inner));
    if (style == Style::ring) {
      if (row.kind == ExpressionKind::truncate) return enclosed(ring_text(inner));
      return integer_text(inner, row.kind == ExpressionKind::zero_extend);
    }
    const char* name = row.kind == ExpressionKind::sign_extend   ? "sext"
                       : row.kind == ExpressionKind::zero_extend ? "zext"
                                                                 : "trunc";
    return name + std::to_string(row.width) + "(" + exact_text(inner) + ")";
  }

  std::string ring_sum(ExpressionId id, Style style) {
    const Expression& row = pool_[id];
    if (row.kind != ExpressionKind::sum) return atom_text(id, style);
    Polynomial polynomial;
    if (row.offset) polynomial[{}] = signed_value(static_cast<uint64_t>(row.offset), row.width);
    for (const ExpressionTerm& term : pool_.terms(id)) {
      std::vector<std::string> factors;
      for (ExpressionId factor : pool_.factors(term.monomial))
        factors.push_back(atom_text(factor, style));
      std::ranges::sort(factors, NaturalOrder());
      polynomial[factors] += signed_value(term.coefficient, row.width);
    }
    return sum_text(polynomial);
  }

  // Adds coefficient * expression, where the expression's extensions are omitted.
  void add_erased(ExpressionId id, Polynomial& out) {
    const Expression& row = pool_[id];
    if (row.kind == ExpressionKind::sign_extend || row.kind == ExpressionKind::zero_extend ||
        row.kind == ExpressionKind::truncate) {
      add_erased(pool_.operands(id)[0], out);
      return;
    }
    if (row.kind != ExpressionKind::sum) {
      out[{atom_text(id, Style::short_)}] += 1;
      return;
    }
    if (row.offset) out[{}] += signed_value(static_cast<uint64_t>(row.offset), row.width);
    for (const ExpressionTerm& term : pool_.terms(id)) {
      Polynomial product{{{}, signed_value(term.coefficient, row.width)}};
      for (ExpressionId factor : pool_.factors(term.monomial)) {
        Polynomial part;
        add_erased(factor, part);
        product = multiplied(product, part);
      }
      for (const auto& [factors, coefficient] : product)
        add(out, factors, coefficient);
    }
    std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  }

  Polynomial multiplied(const Polynomial& a, const Polynomial& b) {
    Polynomial product;
    if (a.size() * b.size() > 256) {
      overflow_ = true;
      return product;
    }
    for (const auto& [left, x] : a)
      for (const auto& [right, y] : b) {
        std::vector<std::string> factors(left);
        factors.insert(factors.end(), right.begin(), right.end());
        std::ranges::sort(factors, NaturalOrder());
        Int128 coefficient;
        overflow_ |= __builtin_mul_overflow(x, y, &coefficient);
        add(product, factors, coefficient);
      }
    return product;
  }

  void add(Polynomial& out, const std::vector<std::string>& factors, Int128 coefficient) {
    Int128& sum = out[factors];
    overflow_ |= __builtin_add_overflow(sum, coefficient, &sum);
  }

  const ExpressionPool& pool_;
  const Function* names_;
  bool overflow_ = false;
};

} // namespace

std::string ExpressionPool::print_short(ExpressionId id, const Function* names) const {
  return Printer(*this, names).short_text(id);
}

std::string ExpressionPool::print_exact(ExpressionId id, const Function* names) const {
  return Printer(*this, names).exact_text(id);
}

std::string ExpressionPool::print_predicate(ExpressionId id) const {
  assert(expressions_[id].evaluable);
  return Printer(*this, nullptr).integer_text(id, false);
}

std::string print_exact_integer(const ExpressionPool& pool, ExpressionId id) {
  bool has_load = false;
  pool.for_each_atom(id, [&](ExpressionId atom) { has_load |= pool[atom].kind == ExpressionKind::load; });
  return has_load ? std::string() : Printer(pool, nullptr).integer_text(id, false);
}

} // namespace ptxrewrite::ir
