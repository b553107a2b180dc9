// Launch expressions and the ledger's exact statements as terms. They are exact integers; 128 bits hold the low bits of
// each, from which added parameters are formed.
#include "evaluate/prove/symbolic.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

namespace ptxrewrite::prove {

namespace {

constexpr unsigned exact = 128;

class Builder : public launch::PostfixVisitor {
public:
  // `names`: the value of each name, in 128 bits.
  Builder(Terms& terms, std::vector<TermId> names) : terms_(terms), names_(std::move(names)) {}

  void number(const launch::Number& value) override {
    stack_.push_back(terms_.literal(exact, static_cast<UInt128>(value.integer)));
  }

  void name(size_t index) override { stack_.push_back(names_[index]); }

  void operation(std::string_view spelling, unsigned operands) override {
    std::vector<TermId> taken(stack_.end() - operands, stack_.end());
    stack_.resize(stack_.size() - operands);
    stack_.push_back(apply(spelling, taken));
  }

  TermId result() const { return stack_.back(); }

private:
  TermId apply(std::string_view spelling, const std::vector<TermId>& operands) {
    if (operands.size() == 2) {
      if (spelling == "+") return terms_.add(operands[0], operands[1]);
      if (spelling == "-") return terms_.subtract(operands[0], operands[1]);
      if (spelling == "*") return terms_.multiply(operands[0], operands[1]);
      if (spelling == "<<")
        if (auto amount = terms_.literal_value(operands[1]); amount && *amount < exact)
          return terms_.scale(operands[0], UInt128(1) << static_cast<unsigned>(*amount));
      // Values that do not fit 128 bits are undefined here.
      if (spelling == "<<")
        return terms_.multiply(operands[0], terms_.operation("shl", exact, {terms_.literal(exact, 1), operands[1]}));
    }
    if (spelling == "?:") return terms_.select(truth(operands[0]), operands[1], operands[2]);
    if (spelling == "!") return from_bit(terms_.negation(truth(operands[0])));
    if (spelling == "!!") return from_bit(truth(operands[0]));
    if (spelling == "&&") return from_bit(terms_.multiply(truth(operands[0]), truth(operands[1])));
    if (auto bit = comparison(spelling, operands)) return from_bit(*bit);
    if (spelling == "neg") return terms_.scale(operands[0], ~UInt128(0));
    for (std::string_view kind : {"sext", "zext", "trunc"}) {
      if (!spelling.starts_with(kind) || operands.size() != 1) continue;
      unsigned width = 0;
      std::from_chars(spelling.data() + kind.size(), spelling.data() + spelling.size(), width);
      const TermId low = terms_.truncate(operands[0], width);
      return kind == "sext" ? terms_.sign_extend(low, exact) : terms_.zero_extend(low, exact);
    }
    if (auto known = remainder_by_power(spelling, operands)) return *known;
    if (auto known = as_instruction(spelling, operands)) return *known;
    if (auto known = high_product(spelling, operands)) return *known;
    return terms_.operation("exact " + std::string(spelling), exact, operands);
  }

  TermId from_bit(TermId bit) { return terms_.zero_extend(bit, exact); }
  TermId truth(TermId number) { return terms_.negation(terms_.is_zero(number)); }

  std::optional<TermId> comparison(std::string_view spelling, const std::vector<TermId>& operands) {
    if (operands.size() != 2) return std::nullopt;
    if (spelling == "==") return terms_.is_zero(terms_.subtract(operands[0], operands[1]));
    if (spelling == "!=") return terms_.negation(terms_.is_zero(terms_.subtract(operands[0], operands[1])));
    if (spelling == ">") return comparison("<", {operands[1], operands[0]});
    if (spelling == "<=" || spelling == ">=") {
      const auto greater = comparison(spelling == "<=" ? ">" : "<", operands);
      return terms_.negation(*greater);
    }
    if (spelling != "<") return std::nullopt;
    if (auto narrow = narrowed(operands))
      return terms_.less(narrow->operands[0], narrow->operands[1], narrow->is_signed);
    return terms_.less(operands[0], operands[1], true);
  }

  // The operands before extension, if both are extensions, so that the exact operation equals the instruction of that
  // width.
  struct Narrow {
    std::vector<TermId> operands;
    unsigned width = 0;
    bool is_signed = false;
  };
  std::optional<Narrow> narrowed(const std::vector<TermId>& operands) {
    Narrow result;
    for (TermId operand : operands)
      if (auto atom = terms_.as_atom(operand)) {
        const Atom& row = terms_.atom(*atom);
        if (row.kind != AtomKind::sign_extend && row.kind != AtomKind::zero_extend) return std::nullopt;
        const unsigned width = terms_.width(row.operands[0]);
        const bool is_signed = row.kind == AtomKind::sign_extend;
        if (result.width != 0 && (result.width != width || result.is_signed != is_signed)) return std::nullopt;
        result.width = width;
        result.is_signed = is_signed;
      }
    if (result.width == 0) return std::nullopt;
    for (TermId operand : operands) {
      const TermId low = terms_.truncate(operand, result.width);
      if (terms_.resize(low, exact, result.is_signed) != operand) return std::nullopt; // a literal outside of the range
      result.operands.push_back(low);
    }
    return result;
  }

  // x % 2^k, truncating as in C: the low k bits of x, less 2^k if x is negative and they are not 0.
  std::optional<TermId> remainder_by_power(std::string_view spelling, const std::vector<TermId>& operands) {
    if (spelling != "%" || operands.size() != 2) return std::nullopt;
    const auto divisor = terms_.literal_value(operands[1]);
    if (!divisor || !std::has_single_bit(static_cast<uint64_t>(*divisor)) || *divisor >> 32 != 0 || *divisor == 1)
      return std::nullopt;
    const auto bits = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(*divisor)));
    const TermId low = terms_.truncate(operands[0], bits), rest = terms_.zero_extend(low, exact);
    const TermId is_negative = terms_.less(operands[0], terms_.literal(exact, 0), true);
    const TermId is_below_zero = terms_.multiply(is_negative, terms_.negation(terms_.is_zero(low)));
    return terms_.select(is_below_zero, terms_.subtract(rest, operands[1]), rest);
  }

  // Division by zero is undefined here; the variant does not run then.
  std::optional<TermId> as_instruction(std::string_view spelling, const std::vector<TermId>& operands) {
    if (operands.size() != 2) return std::nullopt;
    std::optional<Narrow> narrow = narrowed(operands);
    if (!narrow) return std::nullopt;
    const std::string type = (narrow->is_signed ? ".s" : ".u") + std::to_string(narrow->width) + ".0";
    if (spelling == "&" || spelling == "|" || spelling == "^") {
      const char* word = spelling == "&" ? "and" : spelling == "|" ? "or" : "xor";
      return terms_.resize(terms_.bitwise(word, narrow->operands[0], narrow->operands[1]), exact, narrow->is_signed);
    }
    std::string name;
    if (spelling == "/") name = "div" + type;
    if (spelling == "%") name = "rem" + type;
    if (spelling == ">>") name = narrow->is_signed ? "ashr" : "lshr";
    if (spelling == "min" || spelling == "max") name = (narrow->is_signed ? "s" : "u") + std::string(spelling);
    if (name.empty()) return std::nullopt;
    return terms_.resize(terms_.operation(name, narrow->width, narrow->operands), exact, narrow->is_signed);
  }

  // mulhi_u32(a, b): the instruction on the operands' low bits.
  std::optional<TermId> high_product(std::string_view spelling, const std::vector<TermId>& operands) {
    constexpr std::string_view prefix = "mulhi_";
    if (!spelling.starts_with(prefix) || operands.size() != 2) return std::nullopt;
    spelling.remove_prefix(prefix.size()); // s32
    unsigned width = 0;
    std::from_chars(spelling.data() + 1, spelling.data() + spelling.size(), width);
    std::vector<TermId> narrow{terms_.truncate(operands[0], width), terms_.truncate(operands[1], width)};
    const TermId product = terms_.operation("mul.hi." + std::string(spelling) + ".0", width, std::move(narrow));
    return terms_.resize(product, exact, spelling[0] == 's');
  }

  Terms& terms_;
  std::vector<TermId> names_;
  std::vector<TermId> stack_;
};

// The bytes of a parameter from an offset on, and dimensions; not negative.
TermId value_of(Terms& terms, const launch::LaunchSymbol& symbol, const std::vector<unsigned>& parameter_bytes) {
  if (symbol.kind != launch::LaunchSymbol::Kind::parameter) {
    const std::string prefix = symbol.kind == launch::LaunchSymbol::Kind::block ? "%ntid." : "%nctaid.";
    return terms.zero_extend(terms.leaf(prefix + "xyzw"[symbol.index & 3], 32, true), exact);
  }
  const unsigned bytes = symbol.index < parameter_bytes.size() ? parameter_bytes[symbol.index] : symbol.byte_offset + 8;
  std::string text = "P" + std::to_string(symbol.index);
  if (symbol.byte_offset != 0) text += "@" + std::to_string(symbol.byte_offset);
  const unsigned width = 8 * std::clamp(bytes - std::min(bytes - 1, symbol.byte_offset), 1u, 8u);
  return terms.zero_extend(terms.leaf(text, width), exact);
}

} // namespace

TermId launch_value(Terms& terms, const launch::LaunchExpression& expression,
                    const std::vector<unsigned>& parameter_bytes) {
  std::vector<TermId> names;
  for (const launch::LaunchSymbol& symbol : expression.symbols())
    names.push_back(value_of(terms, symbol, parameter_bytes));
  Builder builder(terms, std::move(names));
  expression.visit(builder);
  return builder.result();
}

std::optional<TermId> exact_value(Terms& terms, std::string_view text,
                                  const std::function<std::optional<TermId>(const std::string&)>& name) {
  Result<launch::ArithmeticExpression> expression = launch::parse_exact_expression(text);
  if (!expression) return std::nullopt;
  std::vector<TermId> names;
  for (const std::string& word : expression->names()) {
    std::optional<TermId> value = name(word);
    if (!value) return std::nullopt;
    names.push_back(*value);
  }
  Builder builder(terms, std::move(names));
  expression->visit(builder);
  return builder.result();
}

} // namespace ptxrewrite::prove
