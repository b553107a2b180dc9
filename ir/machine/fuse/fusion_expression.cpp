// Parses and evaluates the expressions of fuse.def, see fusion_expression.h.
#include "ir/machine/fuse/fusion_expression.h"

#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/fuse/fusion_pattern.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace ptxrewrite::ir {

namespace {

enum class About : uint8_t { instruction, operand, number };

struct NamedFunction {
  std::string_view name;
  About about;
};

constexpr NamedFunction functions[] = {
#define INSTRUCTION(name, ...) {#name, About::instruction},
#define OPERAND(name, ...) {#name, About::operand},
#define NUMBER(name, ...) {#name, About::number},
#include "ir/machine/fuse/fusion_functions.def"
#undef INSTRUCTION
#undef OPERAND
#undef NUMBER
    {"is", About::instruction}, // is(x, opcode)
};

enum class FusionFunction : uint16_t {
#define INSTRUCTION(name, ...) name,
#define OPERAND(name, ...) name,
#define NUMBER(name, ...) name,
#include "ir/machine/fuse/fusion_functions.def"
#undef INSTRUCTION
#undef OPERAND
#undef NUMBER
  is
};

int64_t of_instruction(const LoweringContext& context, FusionFunction function, InstructionId id) {
  switch (function) {
#define INSTRUCTION(name, ...)                                                                                         \
  case FusionFunction::name:                                                                                           \
    return static_cast<int64_t>(__VA_ARGS__);
#define OPERAND(name, ...) case FusionFunction::name:
#define NUMBER(name, ...) case FusionFunction::name:
#include "ir/machine/fuse/fusion_functions.def"
#undef INSTRUCTION
#undef OPERAND
#undef NUMBER
  case FusionFunction::is:
    break;
  }
  return 0;
}

int64_t of_operand(const LoweringContext& context, FusionFunction function, const Operand* operand) {
  switch (function) {
#define INSTRUCTION(name, ...) case FusionFunction::name:
#define OPERAND(name, ...)                                                                                             \
  case FusionFunction::name:                                                                                           \
    return static_cast<int64_t>(__VA_ARGS__);
#define NUMBER(name, ...) case FusionFunction::name:
#include "ir/machine/fuse/fusion_functions.def"
#undef INSTRUCTION
#undef OPERAND
#undef NUMBER
  case FusionFunction::is:
    break;
  }
  return 0;
}

int64_t of_number(FusionFunction function, int64_t k) {
  switch (function) {
#define INSTRUCTION(name, ...) case FusionFunction::name:
#define OPERAND(name, ...) case FusionFunction::name:
#define NUMBER(name, ...)                                                                                              \
  case FusionFunction::name:                                                                                           \
    return static_cast<int64_t>(__VA_ARGS__);
#include "ir/machine/fuse/fusion_functions.def"
#undef INSTRUCTION
#undef OPERAND
#undef NUMBER
  case FusionFunction::is:
    break;
  }
  return 0;
}

// By precedence, lowest first.
struct BinaryOperator {
  std::string_view text;
  char sign;
  int level;
};
constexpr BinaryOperator binary_operators[] = {
    {"||", 'O', 0}, {"&&", 'A', 1}, {"==", 'E', 5}, {"!=", 'N', 5}, {"<=", 'L', 6}, {">=", 'G', 6},
    {"<", '<', 6},  {">", '>', 6},  {"|", '|', 2},  {"^", '^', 3},  {"&", '&', 4},  {"+", '+', 7},
    {"-", '-', 7},  {"*", '*', 8},  {"/", '/', 8},  {"%", '%', 8},
};
constexpr int tightest = 8;

} // namespace

class FusionExpressionReader {
public:
  using Kind = FusionExpression::Kind;
  using Node = FusionExpression::Node;

  FusionExpressionReader(std::string_view text, std::vector<Node>& nodes, std::string& error)
      : text_(text), all_(text), nodes_(nodes), error_(error) {}

  void read() {
    (void)choice();
    if (!skip_blanks().empty()) fail();
  }

private:
  std::string_view skip_blanks() {
    while (text_.starts_with(' '))
      text_.remove_prefix(1);
    return text_;
  }

  void fail() {
    if (std::exchange(failed_, true)) return;
    error_ += (error_.empty() ? "" : "; ") + std::string("no expression: '") + std::string(all_) + "' at '" +
              std::string(text_) + "'";
    text_ = {};
  }

  bool takes(std::string_view what) {
    if (!skip_blanks().starts_with(what)) return false;
    text_.remove_prefix(what.size());
    return true;
  }

  uint16_t add(Node node) {
    nodes_.push_back(node);
    return static_cast<uint16_t>(nodes_.size() - 1);
  }

  uint16_t choice() {
    const uint16_t condition = binary(0);
    if (!takes("?")) return condition;
    const uint16_t first = choice();
    if (!takes(":")) fail();
    const uint16_t second = choice();
    Node node{.kind = Kind::choice};
    node.operands[0] = condition;
    node.operands[1] = first;
    node.operands[2] = second;
    return add(node);
  }

  uint16_t binary(int level) {
    if (level > tightest) return primary();
    uint16_t left = binary(level + 1);
    while (const BinaryOperator* found = next_operator(level)) {
      text_.remove_prefix(found->text.size());
      Node node{.kind = Kind::binary, .sign = found->sign};
      node.operands[0] = left;
      node.operands[1] = binary(level + 1);
      left = add(node);
    }
    return left;
  }

  // The first matching row is the longest operator.
  const BinaryOperator* next_operator(int level) {
    const std::string_view rest = skip_blanks();
    const auto* found =
        std::ranges::find_if(binary_operators, [&](const BinaryOperator& one) { return rest.starts_with(one.text); });
    return found != std::end(binary_operators) && found->level == level ? found : nullptr;
  }

  uint16_t primary() {
    if (takes("(")) {
      const uint16_t inside = choice();
      if (!takes(")")) fail();
      return inside;
    }
    for (const char sign : {'!', '-'})
      if (takes(std::string_view(&sign, 1))) {
        Node node{.kind = Kind::unary, .sign = sign};
        node.operands[0] = primary();
        return add(node);
      }
    const std::string_view rest = skip_blanks();
    if (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0]))) return number();
    const std::string_view name = word();
    if (takes("(")) return call(name);
    if (name == "count") return add({.kind = Kind::count});
    if (name.size() == 1 && variable_index(name[0]) != std::string_view::npos)
      return add({.kind = Kind::variable, .number = static_cast<int64_t>(variable_index(name[0]))});
    if (name == "p" || name == "r" || name == "t" || name == "s") return add({.kind = Kind::role, .number = name[0]});
    fail();
    return add({});
  }

  uint16_t number() {
    Node node;
    const bool hexadecimal = takes("0x");
    const std::from_chars_result end =
        std::from_chars(text_.data(), text_.data() + text_.size(), node.number, hexadecimal ? 16 : 10);
    if (end.ec != std::errc())
      fail();
    else
      text_.remove_prefix(static_cast<size_t>(end.ptr - text_.data()));
    return add(node);
  }

  std::string_view word() {
    const std::string_view rest = skip_blanks();
    size_t length = 0;
    while (length < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[length])) || rest[length] == '_'))
      ++length;
    text_.remove_prefix(length);
    return rest.substr(0, length);
  }

  uint16_t call(std::string_view name) {
    const auto* found = std::ranges::find(functions, name, &NamedFunction::name);
    if (found == std::end(functions)) {
      fail();
      return add({});
    }
    Node node{.kind = Kind::function, .function = static_cast<uint16_t>(found - functions)};
    node.operands[0] = choice();
    if (found->about != About::number && nodes_[node.operands[0]].kind != Kind::role &&
        nodes_[node.operands[0]].kind != Kind::variable)
      fail();
    if (name == "is") {
      if (!takes(",")) fail();
      const std::vector<Opcode> opcodes = parse_fusion_opcodes(word(), error_);
      node.opcode = opcodes.empty() ? 0 : static_cast<uint32_t>(opcodes[0]);
    }
    if (!takes(")")) fail();
    return add(node);
  }

  std::string_view text_, all_;
  std::vector<Node>& nodes_;
  std::string& error_;
  bool failed_ = false;
};

FusionExpression::FusionExpression(std::string_view text, std::string& error) {
  if (!text.empty()) FusionExpressionReader(text, nodes_, error).read();
}

int64_t FusionExpression::value(const LoweringContext& context, const FusionMatch& match) const {
  return nodes_.empty() ? 1 : value(context, match, nodes_.back());
}

namespace {

// Operands are evaluated already; && and || are handled elsewhere.
int64_t combined(char sign, int64_t a, int64_t b) {
  const auto wrapped = [](uint64_t number) { return static_cast<int64_t>(number); };
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (sign) {
  case '+':
    return wrapped(x + y);
  case '-':
    return wrapped(x - y);
  case '*':
    return wrapped(x * y);
  case '/':
    return b <= 0 ? 0 : a / b;
  case '%':
    return b <= 0 ? 0 : a % b;
  case '&':
    return a & b;
  case '|':
    return a | b;
  case '^':
    return a ^ b;
  case '<':
    return a < b;
  case '>':
    return a > b;
  case 'L':
    return a <= b;
  case 'G':
    return a >= b;
  case 'E':
    return a == b;
  case 'N':
    return a != b;
  default:
    return 0;
  }
}

InstructionId instruction_of(const LoweringContext& context, const FusionMatch& match,
                             const FusionExpression::Node& node) {
  if (node.kind == FusionExpression::Kind::variable)
    return context.definition(match.operands[static_cast<size_t>(node.number)]);
  switch (node.number) {
  case 'p':
    return match.producer;
  case 't':
    return match.through;
  case 's':
    return match.source;
  default:
    return match.reader;
  }
}

} // namespace

int64_t FusionExpression::value(const LoweringContext& context, const FusionMatch& match, const Node& node) const {
  const auto at = [&](size_t index) { return value(context, match, nodes_[node.operands[index]]); };
  switch (node.kind) {
  case Kind::number:
    return node.number;
  case Kind::variable: {
    const Operand* operand = match.operands[static_cast<size_t>(node.number)];
    return operand && operand->is(OperandKind::integer) ? operand->immediate : 0;
  }
  case Kind::role:
    return static_cast<bool>(instruction_of(context, match, node));
  case Kind::count:
    return match.count;
  case Kind::unary:
    return node.sign == '!' ? !at(0) : combined('-', 0, at(0));
  case Kind::binary:
    if (node.sign == 'A') return at(0) && at(1);
    if (node.sign == 'O') return at(0) || at(1);
    return combined(node.sign, at(0), at(1));
  case Kind::choice:
    return at(0) ? at(1) : at(2);
  case Kind::function:
    break;
  }
  const auto function = static_cast<FusionFunction>(node.function);
  const About about = functions[node.function].about;
  const Node& what = nodes_[node.operands[0]];
  if (about == About::number) return of_number(function, at(0));
  if (about == About::operand)
    return what.kind == Kind::variable ? of_operand(context, function, match.operands[static_cast<size_t>(what.number)])
                                       : 0;
  const InstructionId id = instruction_of(context, match, what);
  if (!id || !context.form(id)) return 0;
  if (function == FusionFunction::is) return static_cast<uint32_t>(context.form(id)->opcode) == node.opcode;
  return of_instruction(context, function, id);
}

} // namespace ptxrewrite::ir
