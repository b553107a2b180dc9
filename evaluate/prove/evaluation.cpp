#include "evaluate/prove/evaluation.h"

#ifdef PTXREWRITE_HAS_Z3
#include "evaluate/prove/instruction_meanings.h"
#endif

#include <algorithm>
#include <bit>
#include <charconv>

namespace ptxrewrite::prove {

namespace {

UInt128 cut(UInt128 value, unsigned width) {
  return width >= 128 ? value : value & ((UInt128(1) << width) - 1);
}

// Evaluates an instruction on words by the solver's semantics, for given operands.
std::optional<UInt128> by_meaning(const std::string& name, const std::vector<UInt128>& operands,
                                  const std::vector<unsigned>& widths) {
#ifdef PTXREWRITE_HAS_Z3
  if (!load_z3() || !has_meaning(name)) return std::nullopt;
  thread_local z3::context context;
  std::vector<z3::expr> literals;
  for (size_t i = 0; i < operands.size(); ++i)
    literals.push_back(context.bv_val(static_cast<uint64_t>(operands[i]), std::min(64u, widths[i])));
  const std::optional<z3::expr> value = meaning_of(name, literals);
  if (!value) return std::nullopt;
  const z3::expr literal = value->simplify();
  return literal.is_numeral() ? std::optional<UInt128>(literal.get_numeral_uint64()) : std::nullopt;
#else
  static_cast<void>(name), static_cast<void>(operands), static_cast<void>(widths);
  return std::nullopt;
#endif
}

// Evaluates div.u32.0, rem.s64.0, mul.hi.u32.0 and the like: instructions whose operands all have the width of the
// type.
std::optional<UInt128> by_instruction(const std::string& name, unsigned width, const std::vector<UInt128>& operands) {
  if (operands.size() != 2) return std::nullopt;
  const std::string bits = std::to_string(width) + ".0";
  for (const bool is_signed : {false, true}) {
    const std::string type = std::string(is_signed ? "s" : "u") + bits;
    const ir::Int128 x = is_signed ? as_signed(operands[0], width) : static_cast<ir::Int128>(operands[0]);
    const ir::Int128 y = is_signed ? as_signed(operands[1], width) : static_cast<ir::Int128>(operands[1]);
    if (name == "mul.hi." + type && width <= 64) {
      const UInt128 product = is_signed ? static_cast<UInt128>(x * y) : operands[0] * operands[1];
      return cut(product >> width, width);
    }
    if (y == 0) continue;
    if (name == "div." + type) return cut(static_cast<UInt128>(x / y), width);
    if (name == "rem." + type) return cut(static_cast<UInt128>(x % y), width);
  }
  return std::nullopt;
}

// Evaluates operations on exact integers (launch/predicate.h); nothing if a value does not fit 128 bits.
std::optional<UInt128> by_exact_operation(std::string_view spelling, const std::vector<UInt128>& operands) {
  std::vector<ir::Int128> numbers;
  for (UInt128 operand : operands)
    numbers.push_back(static_cast<ir::Int128>(operand));
  if (spelling == "log2" && numbers.size() == 1) {
    if (numbers[0] < 1) return std::nullopt;
    const auto high = static_cast<uint64_t>(operands[0] >> 64), low = static_cast<uint64_t>(operands[0]);
    return UInt128(high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(low));
  }
  if (numbers.size() != 2) return std::nullopt;
  const ir::Int128 x = numbers[0], y = numbers[1];
  if (spelling == "min") return static_cast<UInt128>(std::min(x, y));
  if (spelling == "max") return static_cast<UInt128>(std::max(x, y));
  if (spelling == "&") return operands[0] & operands[1];
  if (spelling == "|") return operands[0] | operands[1];
  if (spelling == "^") return operands[0] ^ operands[1];
  if (spelling == ">>" && y >= 0 && y < 128) return static_cast<UInt128>(x >> static_cast<unsigned>(y));
  if (y == 0 || y == -1) return std::nullopt;
  if (spelling == "/") return static_cast<UInt128>(x / y);
  if (spelling == "%") return static_cast<UInt128>(x % y);
  return std::nullopt;
}

// Evaluates the operations that Terms and SymbolicKernel create.
std::optional<UInt128> by_term_operation(const std::string& name, unsigned width, const std::vector<UInt128>& x) {
  if (name == "zero" && x.size() == 1) return UInt128(x[0] == 0);
  if (name == "select" && x.size() == 3) return x[0] != 0 ? x[1] : x[2];
  if (x.size() != 2) return std::nullopt;
  const bool signed_less = as_signed(x[0], width) < as_signed(x[1], width), less = x[0] < x[1];
  if (name == "and") return x[0] & x[1];
  if (name == "or") return x[0] | x[1];
  if (name == "xor") return x[0] ^ x[1];
  if (name == "ult") return UInt128(less);
  if (name == "slt") return UInt128(signed_less);
  if (name == "smin") return x[signed_less ? 0 : 1];
  if (name == "smax") return x[signed_less ? 1 : 0];
  if (name == "umin") return x[less ? 0 : 1];
  if (name == "umax") return x[less ? 1 : 0];
  const bool is_all = x[1] >= width; // amounts are clamped (ISA, shl and shr)
  const unsigned amount = is_all ? width - 1 : static_cast<unsigned>(x[1]);
  if (name == "shl") return is_all ? 0 : x[0] << amount;
  if (name == "lshr") return is_all ? 0 : x[0] >> amount;
  if (name == "ashr") return static_cast<UInt128>(as_signed(x[0], width) >> amount);
  return std::nullopt;
}

} // namespace

std::optional<UInt128> Evaluation::of_operation(const Atom& row, const std::vector<UInt128>& operands) {
  std::vector<unsigned> widths;
  for (TermId operand : row.operands)
    widths.push_back(terms_.width(operand));
  const unsigned width = widths.empty() ? row.width : widths[0];
  std::optional<UInt128> value = by_term_operation(row.name, width, operands);
  if (!value) value = by_instruction(row.name, row.width, operands);
  constexpr std::string_view exact = "exact ";
  if (!value && row.name.starts_with(exact))
    value = by_exact_operation(std::string_view(row.name).substr(exact.size()), operands);
  return value ? value : by_meaning(row.name, operands, widths);
}

std::optional<UInt128> Evaluation::of_atom(AtomId id) {
  if (auto known = known_.find(id); known != known_.end()) return known->second;
  const Atom& row = terms_.atom(id);
  std::optional<UInt128> value;
  if (row.kind == AtomKind::leaf) {
    value = leaf_(id);
  } else {
    std::vector<UInt128> operands;
    for (TermId operand : row.operands)
      if (const std::optional<UInt128> one = of(operand)) operands.push_back(*one);
    if (operands.size() == row.operands.size()) switch (row.kind) {
      case AtomKind::sign_extend:
        value = static_cast<UInt128>(as_signed(operands[0], terms_.width(row.operands[0])));
        break;
      case AtomKind::zero_extend:
      case AtomKind::truncate:
        value = operands[0];
        break;
      case AtomKind::product:
        value = operands[0] * operands[1];
        break;
      case AtomKind::operation:
        value = of_operation(row, operands);
        break;
      case AtomKind::leaf:
        break;
      }
  }
  if (value) value = cut(*value, row.width);
  known_[id] = value;
  return value;
}

std::optional<UInt128> Evaluation::of(TermId id) {
  const Term& term = terms_[id];
  UInt128 sum = 0;
  for (const auto& [monomial, coefficient] : term.coefficients) {
    UInt128 product = coefficient;
    for (AtomId factor : monomial) {
      const std::optional<UInt128> value = of_atom(factor);
      if (!value) return std::nullopt;
      product *= *value;
    }
    sum += product;
  }
  return cut(sum, term.width);
}

} // namespace ptxrewrite::prove
