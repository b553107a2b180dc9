#include "tests/emulator/forms.h"

#include "ir/isa/isa_operands.h"
#include "ir/isa/matrix_shape.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace ptxrewrite::test {

using ir::Alternative;
using ir::ScalarType;
using ir::SummaryKind;

namespace {

void add_products(const ir::table::Row& row, size_t slot, std::string mnemonic, std::vector<std::string>& result) {
  if (slot == row.slots.size()) {
    result.push_back(std::move(mnemonic));
    return;
  }
  if (row.slots[slot].optional) add_products(row, slot + 1, mnemonic, result);
  for (const auto& words : row.slots[slot].alternatives) {
    std::string longer = mnemonic;
    for (ir::Modifier word : words)
      longer.append(".").append(ir::spelling(word));
    add_products(row, slot + 1, std::move(longer), result);
  }
}

// Numbers registers of one statement: the first operand has 1, the next 2 ...
class Spelling {
public:
  explicit Spelling(unsigned number) : number_(number) {}

  std::optional<std::string> operand(const Alternative& alternative) {
    switch (alternative.kind) {
    case SummaryKind::register_:
      return register_name(alternative.type, alternative.minus_required ? "-" : "");
    case SummaryKind::integer_immediate:
      return immediate(alternative);
    case SummaryKind::float_immediate:
      return "0f3F800000";
    case SummaryKind::sink:
      return "_";
    case SummaryKind::address:
      return address(alternative);
    case SummaryKind::vector:
      return vector(alternative);
    case SummaryKind::predicate_pair:
      return grouped(alternative, "", "|", "");
    case SummaryKind::symbol:
      return "global_variable";
    case SummaryKind::label:
      return "END";
    case SummaryKind::special_register:
      return "%tid.x";
    default:
      return std::nullopt;
    }
  }

private:
  std::string register_name(ScalarType type, std::string_view prefix) {
    const char* letters = "r";
    switch (ir::bit_width(type)) {
    case 1:
      letters = "p";
      break;
    case 16:
      letters = "h";
      break;
    case 32:
      letters = type == ScalarType::f32 ? "f" : "r";
      break;
    case 64:
      letters = type == ScalarType::f64 ? "d" : "l";
      break;
    case 128:
      letters = "q";
      break;
    default:
      letters = ir::bit_width(type) <= 8 ? "c" : "r";
    }
    return std::string(prefix) + "%" + letters + std::to_string(number_++);
  }

  static std::string immediate(const Alternative& alternative) {
    switch (alternative.rule) {
    case ir::table::ImmediateRule::any:
      return "1";
    case ir::table::ImmediateRule::range:
      return std::to_string((*alternative.values)[0]);
    default:
      return std::to_string((*alternative.values)[0]);
    }
  }

  // The plainest of an operand's alternatives: the first one with a name in the preamble.
  std::optional<std::string> plainest(const ir::OperandPattern& pattern) {
    for (const Alternative& alternative : pattern.alternatives)
      if (auto text = operand(alternative)) return text;
    return std::nullopt;
  }

  std::optional<std::string> grouped(const Alternative& alternative, std::string_view open, std::string_view separator,
                                     std::string_view close) {
    std::string text(open);
    const size_t count = alternative.repeated ? alternative.count : alternative.elements.size();
    for (size_t i = 0; i < count; ++i) {
      auto element = plainest(alternative.elements[alternative.repeated ? 0 : i]);
      if (!element) return std::nullopt;
      if (i > 0) text += separator;
      text += *element;
    }
    return text += close;
  }
  std::optional<std::string> vector(const Alternative& alternative) { return grouped(alternative, "{", ", ", "}"); }

  std::optional<std::string> address(const Alternative& alternative) {
    const bool wide = (alternative.types >> static_cast<unsigned>(ScalarType::b64)) & 1;
    std::string text = wide ? "[%l9" : "[%r9";
    for (const ir::OperandPattern& pattern : alternative.elements) {
      auto element = plainest(pattern);
      if (!element) return std::nullopt;
      text += ", " + *element;
    }
    return text += alternative.unified ? "].unified" : "]";
  }

  unsigned number_;
};

const ir::Form* form_of(std::string_view mnemonic) {
  auto id = ir::resolve_form(mnemonic);
  return id ? &ir::form(*id) : nullptr;
}

// Number of registers of a transfer of tensor memory, or of words of disabled lanes of a tcgen05 product.
std::optional<size_t> tensor_memory_registers(std::string_view mnemonic) {
  const ir::Form& form = *form_of(mnemonic);
  if (form.has(ir::Modifier::mma)) return form.has(ir::Modifier::cta_group_2) ? 8 : 4;
  constexpr ir::Modifier words[] = {ir::Modifier::x1,  ir::Modifier::x2,  ir::Modifier::x4,  ir::Modifier::x8,
                                    ir::Modifier::x16, ir::Modifier::x32, ir::Modifier::x64, ir::Modifier::x128};
  const size_t once = form.has(ir::Modifier::_16x256b) ? 4 : form.has(ir::Modifier::_16x128b) ? 2 : 1;
  for (size_t i = 0; i < std::size(words); ++i)
    if (form.has(words[i]) && !form.has(ir::Modifier::spcompress)) return once << i;
  return std::nullopt;
}

// Number of registers of D (0), A (1), B (2) or C (3) of a matrix product, by its shape and types; nullopt for other
// instructions. A register of all lanes has 1,024 bits together, and twice as many for f64.
std::optional<size_t> product_registers(std::string_view mnemonic, size_t operand) {
  if (mnemonic.starts_with("tcgen05")) return tensor_memory_registers(mnemonic);
  const bool of_group = mnemonic.starts_with("wgmma.mma_async");
  if ((!of_group && !mnemonic.starts_with("mma.")) || operand > 3) return std::nullopt;
  const ir::Form& form = *form_of(mnemonic);
  const ir::MatrixShape shape = ir::matrix_shape(form);
  if (of_group && operand > 0) return std::nullopt;
  if (of_group) return shape.n / (form.types[0] == ScalarType::f16 ? 4u : 2u);
  if (shape.m == 8 && shape.k == 4 && form.types[1] == ScalarType::f16) // four products at once
    return operand == 1 || operand == 2 ? 2u : form.types[operand] == ScalarType::f32 ? 8u : 4u;
  const bool in_bytes = form.has(ir::Modifier::kind_f8f6f4) || form.has(ir::Modifier::kind_mxf8f6f4);
  const bool sparse = form.has(ir::Modifier::sp) || form.has(ir::Modifier::sp_ordered_metadata);
  const size_t width = ir::bit_width(form.types[operand]);
  const size_t bits = in_bytes && (operand == 1 || operand == 2) ? 8 : width;
  const size_t rows = operand == 2 ? shape.k : shape.m, columns = operand == 1 ? shape.k / (sparse ? 2u : 1u) : shape.n;
  return rows * columns * bits / (width == 64 ? 2048 : 1024);
}

// Returns the plainest operands of a shape, or nullopt if one of them cannot be spelled.
std::optional<std::vector<std::string>> plain_operands(std::string_view mnemonic, const ir::OperandShape& shape) {
  std::vector<std::string> result;
  unsigned number = 1;
  for (const ir::OperandPattern& pattern : shape.operands) {
    std::optional<std::string> text;
    if (mnemonic.starts_with("mov.v4") && pattern.alternatives.back().kind == SummaryKind::special_register)
      text = "%tid"; // the only vector without braces
    const std::optional<size_t> count = product_registers(mnemonic, result.size());
    for (const Alternative& alternative : pattern.alternatives) {
      const bool other_shape = count && alternative.kind == SummaryKind::vector && alternative.count != *count;
      if (!text && !other_shape) text = Spelling(number).operand(alternative);
    }
    if (!text) return std::nullopt;
    result.push_back(*text);
    // A group uses as many numbers as it has elements.
    number += static_cast<unsigned>(std::max<ptrdiff_t>(1, std::count(text->begin(), text->end(), '%')));
  }
  return result;
}

std::string statement(std::string_view mnemonic, const std::vector<std::string>& operands) {
  std::string text(mnemonic);
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i == 0 ? " " : ", ") + operands[i];
  return text + ";";
}

bool may_be_sink(const ir::OperandPattern& pattern) {
  return std::any_of(pattern.alternatives.begin(), pattern.alternatives.end(),
                     [](const Alternative& alternative) { return alternative.kind == SummaryKind::sink; });
}

// Registers wider than the instruction's type, if allowed.
void add_wider_registers(const Alternative& alternative, const std::string& number, std::vector<std::string>& result) {
  for (auto [type, letter] : {std::pair(ScalarType::b16, "%h"), {ScalarType::b32, "%r"}, {ScalarType::b64, "%l"}})
    if (ir::bit_width(type) > ir::bit_width(alternative.type) && (alternative.types >> static_cast<unsigned>(type)) & 1)
      result.push_back(letter + number);
}

// Other spellings of an operand whose current spelling is `plain`.
std::vector<std::string> variations(const ir::OperandPattern& pattern, const std::string& plain) {
  std::vector<std::string> result;
  const bool is_group = plain.find_first_of("{[|") != std::string::npos;
  for (const Alternative& alternative : pattern.alternatives) {
    if (alternative.kind == SummaryKind::register_ && !is_group && plain.front() == '%') {
      if (alternative.negatable && alternative.type == ScalarType::pred) result.push_back("!" + plain);
      if (alternative.minus) result.push_back("-" + plain);
      add_wider_registers(alternative, plain.substr(2), result);
    } else if (alternative.kind == SummaryKind::integer_immediate) {
      if (alternative.rule != ir::table::ImmediateRule::any) continue;
      for (const char* value : {"0", "-1", "5", "33", "0x80000000", "0x7fffffff", "-32768"})
        result.emplace_back(value);
    } else if (alternative.kind == SummaryKind::float_immediate) {
      if (plain.starts_with("%l") || plain.starts_with("%d"))
        result.insert(result.end(), {"0d3FF0000000000000", "0dBFF0000000000001"});
      else
        result.insert(result.end(), {"0f3F800000", "0fBF800001"});
    } else if (alternative.kind == SummaryKind::sink) {
      result.emplace_back("_");
    } else if (alternative.kind == SummaryKind::predicate_pair) {
      const std::string pair = plain.find('|') != std::string::npos ? plain : *Spelling(1).operand(alternative);
      if (pair != plain) result.push_back(pair);
      if (may_be_sink(alternative.elements[0])) result.push_back("_" + pair.substr(pair.find('|')));
      if (may_be_sink(alternative.elements[1])) result.push_back(pair.substr(0, pair.find('|')) + "|_");
    } else if (alternative.kind == SummaryKind::vector && is_group && plain.front() == '{') {
      const size_t comma = plain.find(',');
      if (comma == plain.npos) continue;
      if (alternative.sink_elements) result.push_back("{_" + plain.substr(comma));
      if (alternative.sink_elements) result.push_back(plain.substr(0, plain.rfind(',')) + ", _}");
      if (alternative.literal_elements) result.push_back("{-2" + plain.substr(comma));
    }
  }
  return result;
}

} // namespace

std::vector<std::string> mnemonics_of(std::string_view opcode) {
  std::vector<std::string> all;
  for (const ir::table::Row& row : ir::table::rows_of(*ir::table::find_opcode(opcode)).rows)
    if (!row.lax) add_products(row, 0, std::string(opcode), all);
  std::vector<std::string> result;
  for (std::string& mnemonic : all) {
    if (!form_of(mnemonic)) mnemonic += ".u32";
    if (const ir::Form* form = form_of(mnemonic); form && !form->opaque && !form->lax)
      result.push_back(std::move(mnemonic));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool runs_on(std::string_view mnemonic, unsigned sm) {
  // By opcode: mnemonics of rows that need later or specific GPUs.
  static std::map<std::pair<std::string, unsigned>, std::set<std::string, std::less<>>> lacking;
  const std::string opcode(mnemonic.substr(0, mnemonic.find('.')));
  auto [known, is_new] = lacking.try_emplace({opcode, sm});
  if (is_new)
    for (const ir::table::Row& row : ir::table::rows_of(*ir::table::find_opcode(opcode)).rows) {
      const std::string_view targets = row.text->targets; // "sm_80+"
      unsigned first = 0;
      const char* const past = targets.data() + targets.size();
      const auto [end, error] = std::from_chars(targets.data() + std::min<size_t>(targets.size(), 3), past, first);
      const bool has_it = error == std::errc() && std::string_view(end, past) == "+" && first <= sm;
      std::vector<std::string> of_row;
      if (!has_it && !row.lax) add_products(row, 0, opcode, of_row);
      known->second.insert(of_row.begin(), of_row.end());
    }
  return !known->second.contains(mnemonic);
}

std::vector<std::string> plain_statements(std::string_view mnemonic) {
  // Instructions on functions and label tables of the preambles.
  const std::string text(mnemonic);
  if (mnemonic.starts_with("brx")) return {text + " %r1, TARGETS;"};
  if (mnemonic.starts_with("call"))
    return {text + " without_results;",
            text + " with_argument, (argument);",
            text + " (result), with_result;",
            text + " (result), with_both, (argument);",
            text + " %l1, FUNCTION;",
            text + " %l1, (argument), FUNCTION_OF_ARGUMENT;",
            text + " (result), %l1, FUNCTION_WITH_RESULT;",
            text + " (result), %l1, (argument), FUNCTION_WITH_BOTH;"};
  std::vector<std::string> result;
  for (const ir::OperandShape& shape : form_of(mnemonic)->shapes) {
    auto operands = plain_operands(mnemonic, shape);
    result.push_back(operands ? statement(mnemonic, *operands) : std::string());
  }
  return result;
}

std::vector<PlainOperands> plain_operands_of(std::string_view mnemonic) {
  std::vector<PlainOperands> result;
  for (const ir::OperandShape& shape : form_of(mnemonic)->shapes)
    if (auto operands = plain_operands(mnemonic, shape)) result.push_back({&shape, *std::move(operands)});
  return result;
}

std::vector<std::string> varied_statements(std::string_view mnemonic) {
  std::vector<std::string> result;
  for (const ir::OperandShape& shape : form_of(mnemonic)->shapes) {
    auto operands = plain_operands(mnemonic, shape);
    if (!operands) continue;
    for (size_t i = 0; i < operands->size(); ++i)
      for (const std::string& variation : variations(shape.operands[i], (*operands)[i])) {
        std::vector<std::string> changed = *operands;
        changed[i] = variation;
        result.push_back(statement(mnemonic, changed));
      }
  }
  return result;
}

std::string_view module_preamble() {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.global .align 16 .b8 global_variable[64];\n"
         ".func without_results()\n{\nret;\n}\n"
         ".func with_argument(.param .b32 a)\n{\nret;\n}\n"
         ".func (.param .b32 r) with_result()\n{\nret;\n}\n"
         ".func (.param .b32 r) with_both(.param .b32 a)\n{\nret;\n}\n";
}

#define KERNEL_REGISTERS                                                                                               \
  ".reg .pred %p<160>;\n.reg .b8 %c<40>;\n.reg .b16 %h<40>;\n.reg .b32 %r<260>;\n.reg .b64 %l<160>;\n"                 \
  ".reg .b128 %q<40>;\n.reg .f32 %f<160>;\n.reg .f64 %d<40>;\n"

std::string_view kernel_registers() {
  return KERNEL_REGISTERS;
}

std::string_view kernel_preamble() {
  return KERNEL_REGISTERS ".param .b32 argument;\n.param .b32 result;\n"
                          "TARGETS: .branchtargets END;\n"
                          "FUNCTION: .callprototype _ ();\n"
                          "FUNCTION_OF_ARGUMENT: .callprototype _ (.param .b32 _);\n"
                          "FUNCTION_WITH_RESULT: .callprototype (.param .b32 _) _ ();\n"
                          "FUNCTION_WITH_BOTH: .callprototype (.param .b32 _) _ (.param .b32 _);\n";
}

std::string_view kernel_end() {
  return "END:\nret;\n}\n";
}

} // namespace ptxrewrite::test
