// Launch expressions as terms. They are exact integers; 128 bits hold the low bits of each, which is what further
// parameters are made of.
#include "cli/prove/symbolic.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ptxrewrite::prove {

namespace {

constexpr unsigned exact = 128;

class Builder : public launch::PostfixVisitor {
public:
  Builder(Terms& terms, std::span<const launch::LaunchSymbol> symbols, const std::vector<unsigned>& parameter_bytes)
      : terms_(terms), symbols_(symbols), parameter_bytes_(parameter_bytes) {}

  void number(const launch::Number& value) override {
    stack_.push_back(terms_.literal(exact, static_cast<UInt128>(value.integer)));
  }

  void name(size_t index) override {
    const launch::LaunchSymbol& symbol = symbols_[index];
    TermId leaf;
    if (symbol.kind == launch::LaunchSymbol::Kind::parameter) {
      const unsigned bytes =
          symbol.index < parameter_bytes_.size() ? parameter_bytes_[symbol.index] : symbol.byte_offset + 8;
      std::string text = "P" + std::to_string(symbol.index);
      if (symbol.byte_offset != 0) text += "@" + std::to_string(symbol.byte_offset);
      leaf = terms_.leaf(text, 8 * std::clamp(bytes - std::min(bytes - 1, symbol.byte_offset), 1u, 8u));
    } else {
      const std::string prefix = symbol.kind == launch::LaunchSymbol::Kind::block ? "%ntid." : "%nctaid.";
      leaf = terms_.leaf(prefix + "xyzw"[symbol.index & 3], 32, true);
    }
    stack_.push_back(terms_.zero_extend(leaf, exact));
  }

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
      // What does not fit 128 bits has no value here.
      if (spelling == "<<")
        return terms_.multiply(operands[0], terms_.operation("shl", exact, {terms_.literal(exact, 1), operands[1]}));
    }
    if (spelling == "neg") return terms_.scale(operands[0], ~UInt128(0));
    for (std::string_view kind : {"sext", "zext", "trunc"}) {
      if (!spelling.starts_with(kind) || operands.size() != 1) continue;
      unsigned width = 0;
      std::from_chars(spelling.data() + kind.size(), spelling.data() + spelling.size(), width);
      const TermId low = terms_.truncate(operands[0], width);
      return kind == "sext" ? terms_.sign_extend(low, exact) : terms_.zero_extend(low, exact);
    }
    if (auto known = as_instruction(spelling, operands)) return *known;
    return terms_.operation("exact " + std::string(spelling), exact, operands);
  }

  // What both operands are extensions of, so that the operation on exact integers is the instruction of that width.
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
      if (terms_.resize(low, exact, result.is_signed) != operand) return std::nullopt; // a literal of other range
      result.operands.push_back(low);
    }
    return result;
  }

  // Division by zero has no value here, and the variant does not run then.
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

  Terms& terms_;
  std::span<const launch::LaunchSymbol> symbols_;
  const std::vector<unsigned>& parameter_bytes_;
  std::vector<TermId> stack_;
};

} // namespace

std::optional<TermId> launch_value(Terms& terms, const launch::LaunchExpression& expression,
                                   const std::vector<unsigned>& parameter_bytes) {
  Builder builder(terms, expression.symbols(), parameter_bytes);
  if (!expression.visit(builder)) return std::nullopt;
  return builder.result();
}

} // namespace ptxrewrite::prove
