// The rows of composite_rules.def, parsed once: terms as trees, conditions and computed literals as expressions.
#pragma once

#include "ir/isa/isa.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

// An expression over a rule's literals, in 32-bit unsigned arithmetic that wraps around; comparisons give 1 or 0.
struct RuleExpression {
  enum class Kind : uint8_t {
    number,
    name,      // a literal of the pattern
    operation, // `code` is that of `text`, the operator or the function; "?:" has three operands
    fact,      // zeros(a, m) or fits(a, k): `text` is its name, `variable` the register, one operand
  };
  enum class Code : uint8_t {
    none,
    complement,
    ones, // ones(n): a mask of the n lowest bits
    popc,
    choice,
    add,
    subtract,
    multiply,
    bit_and,
    bit_or,
    bit_xor,
    shift_left,
    shift_right,
    equal,
    not_equal,
    less,
    greater,
    at_most,
    at_least,
    either,
    both
  };
  Kind kind = Kind::number;
  uint32_t number = 0;
  std::string text;
  std::string variable;
  Code code = Code::none;
  std::vector<RuleExpression> operands;
};

// The meaning of an expression's names. Facts are queried by (name of the fact, variable, number).
struct Meaning {
  std::function<uint32_t(const std::string&)> literal;
  std::function<bool(const std::string&, const std::string&, uint32_t)> fact;
};
uint32_t evaluate(const RuleExpression& expression, const Meaning& meaning);

// A canonical mnemonic as a number, so that terms and instructions are compared without their text.
using MnemonicId = uint32_t;

struct RuleTerm {
  enum class Kind : uint8_t {
    variable,    // `text` its name, `bits` its width; 1 for a predicate
    literal,     // a number; in a pattern, the operand must be this number
    name,        // #n: any literal, which is bound to the name
    computed,    // #(...): a computed literal in a replacement
    application, // `text` is the mnemonic
  };
  Kind kind = Kind::literal;
  std::string text;
  unsigned bits = 32;
  uint32_t number = 0;
  RuleExpression expression;
  std::vector<RuleTerm> operands;

  // Of an application.
  MnemonicId mnemonic = 0;
  bool commutes = false, is_float = false;
  bool is_byte = false; // byte0.u32(a)
};

enum class Family : uint8_t { rotate, field, mask, sad, select, sum, dot, bytes, permute, logic };
inline constexpr std::array<std::string_view, 10> family_names{"rotate", "field", "mask",  "sad",     "select",
                                                               "sum",    "dot",   "bytes", "permute", "logic"};

// One row; a row with alternatives yields one rule for each.
struct Rule {
  Family family = Family::rotate;
  std::string name;
  RuleTerm pattern;
  std::vector<RuleExpression> conditions; // all must hold
  RuleTerm replacement;
  unsigned version = 0; // of PTX, times 10
  unsigned target = 0;  // compute capability, times 10
  unsigned saves = 0;   // machine instructions
  std::string pattern_text, condition_text, replacement_text;
  // For family bytes: each of the four bytes is the low byte of one of these; the pattern assembles them in one of many
  // ways.
  std::vector<RuleTerm> elements;
};

// One byte of a value.
struct Byte {
  enum class Kind : uint8_t { zero, byte, sign }; // sign: eight copies of the byte's highest bit
  Kind kind = Kind::zero;
  uint8_t index = 0; // index of the byte
  char variable = 0; // the operand it is taken from
  bool operator==(const Byte&) const = default;
};
struct ByteRule {
  RuleTerm pattern;
  std::vector<RuleExpression> conditions;
  std::array<Byte, 4> bytes; // lowest first
  std::string text;
};

struct LogicRule {
  RuleTerm pattern;     // variables a, b, c
  RuleExpression table; // over A, B, C and the pattern's literals; 8 bits
  std::string text;
};

// The text of a row. Most kernels need few of the rules: a row is parsed when its rules are first asked for.
struct RuleRow {
  Family family = Family::rotate;
  std::string_view name, pattern, condition, replacement; // `pattern`: the element of rows of four bytes
  unsigned version = 0, target = 0, saves = 0;            // as in Rule
  bool is_element = false;
};
std::span<const RuleRow> rule_rows();
// The rows of a pattern whose root has this mnemonic, in the order of the table.
std::span<const RuleRow* const> rows_with_root(std::string_view mnemonic);
// The rules of a row of rule_rows().
std::span<const Rule> rules_of(const RuleRow& row);
// The rules of all rows.
std::span<const Rule> rules();
std::span<const ByteRule> byte_rules();
std::span<const LogicRule> logic_rules();

// Returns the mnemonic that rows use instead of a synonym; other mnemonics are returned unchanged.
std::string_view canonical(std::string_view mnemonic);
MnemonicId mnemonic_id(std::string_view canonical);
// Of the form's canonical mnemonic.
MnemonicId mnemonic_id(const ir::Form& form);
struct Synonym {
  std::string_view canonical, other;
};
std::span<const Synonym> synonyms();
// Are the first two operands of this canonical mnemonic interchangeable?
bool commutes(std::string_view mnemonic);

// For tests that add rows of their own. Asserts that the text is a valid row.
std::vector<Rule> parse_rule(Family family, std::string_view name, std::string_view pattern, std::string_view condition,
                             std::string_view replacement, unsigned version, unsigned target, unsigned saves);

} // namespace ptxrewrite::transforms::legal::composite
