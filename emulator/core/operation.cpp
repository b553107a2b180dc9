// Parses the patterns of operation rows, and finds the row of a form.
#include "emulator/core/operation.h"

#include <algorithm>
#include <cassert>

namespace ptxrewrite::emulator {
namespace {

ir::Opcode parse_opcode(std::string_view word) {
#define OPCODE(name, modifiers, operands, version, targets, kind, effects, ...)                                        \
  if (ir::spelling(ir::Opcode::name) == word) return ir::Opcode::name;
#define EXTENSION(name, mnemonic, modifiers, operands, kind, effects)                                                  \
  if (ir::spelling(ir::Opcode::name) == word) return ir::Opcode::name;
#define FORM(name, modifiers, operands, version, targets, kind, effects, ...)
#define EXTENSION_FORM(name, mnemonic, modifiers, operands, kind, effects)
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef EXTENSION
#undef FORM
#undef EXTENSION_FORM
  return ir::Opcode::opaque;
}

std::vector<ir::Modifier> parse_alternatives(std::string_view text) {
  std::vector<ir::Modifier> words;
  while (!text.empty()) {
    const size_t bar = std::min(text.find('|'), text.size());
    std::optional<ir::Modifier> word = ir::parse_modifier(text.substr(0, bar));
    assert(word && "a word in an operation's pattern that the ISA does not have");
    if (word) words.push_back(*word);
    text.remove_prefix(std::min(bar + 1, text.size()));
  }
  return words;
}

void add_required(Operation& operation, std::vector<ir::Modifier> words) {
  if (!words.empty() && ir::is_type(words.front())) {
    std::vector<ir::ScalarType> types;
    for (ir::Modifier word : words)
      types.push_back(static_cast<ir::ScalarType>(word));
    operation.types.push_back(std::move(types));
  } else {
    operation.required.push_back(std::move(words));
  }
}

void parse_pattern(std::string_view pattern, Operation& operation) {
  if (pattern.ends_with('*')) {
    operation.open = true;
    pattern.remove_suffix(1);
  }
  size_t end = std::min(pattern.find_first_of(".[{"), pattern.size());
  operation.opcode = parse_opcode(pattern.substr(0, end));
  if (operation.opcode == ir::Opcode::opaque && end < pattern.size()) { // an extension, such as r2d2.mov
    end = std::min(pattern.find_first_of(".[{", end + 1), pattern.size());
    operation.opcode = parse_opcode(pattern.substr(0, end));
  }
  assert(operation.opcode != ir::Opcode::opaque && "an operation of an opcode that the ISA does not have");
  for (size_t i = end; i < pattern.size();) {
    const char kind = pattern[i];
    if (kind == '.') {
      // `.{a|b}` is the same as `{a|b}`; `.[...]` does not exist.
      if (i + 1 < pattern.size() && pattern[i + 1] == '{') {
        ++i;
        continue;
      }
      const size_t stop = std::min(pattern.find_first_of(".[{", i + 1), pattern.size());
      add_required(operation, parse_alternatives(pattern.substr(i, stop - i)));
      i = stop;
    } else {
      const size_t close = pattern.find(kind == '[' ? ']' : '}', i);
      assert(close != std::string_view::npos && "an open bracket in an operation's pattern");
      std::vector<ir::Modifier> words = parse_alternatives(pattern.substr(i + 1, close - i - 1));
      if (kind == '[')
        operation.optional.push_back(std::move(words));
      else
        add_required(operation, std::move(words));
      i = close + 1;
    }
  }
}

bool contains(const std::vector<ir::Modifier>& words, ir::Modifier word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool matches(const Operation& operation, const ir::Form& form) {
  auto has_one_of = [&](const std::vector<ir::Modifier>& words) {
    return std::any_of(words.begin(), words.end(), [&](ir::Modifier word) { return form.has(word); });
  };
  if (!std::all_of(operation.required.begin(), operation.required.end(), has_one_of)) return false;
  if (operation.open) return true;
  if (operation.types.size() != form.types.size()) return false;
  for (size_t i = 0; i < form.types.size(); ++i)
    if (std::find(operation.types[i].begin(), operation.types[i].end(), form.types[i]) == operation.types[i].end())
      return false;
  for (ir::Modifier word : form.modifiers) {
    if (ir::is_type(word)) continue;
    auto has = [&](const std::vector<ir::Modifier>& words) { return contains(words, word); };
    if (std::none_of(operation.required.begin(), operation.required.end(), has) &&
        std::none_of(operation.optional.begin(), operation.optional.end(), has))
      return false;
  }
  return true;
}

// Counts results and sources as written: `p|q` counts as two results, a group as one source.
std::pair<unsigned, unsigned> count_operands(std::span<const ir::Operand> operands) {
  unsigned results = 0, sources = 0;
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    if (operands[i].has(ir::OperandFlag::old_value)) continue;
    if (i != 0)
      ++sources;
    else
      results = operands[i].is(ir::OperandKind::pair) ? 2 : 1;
  }
  return {results, sources};
}

struct FlagWord {
  ir::Modifier word;
  uint32_t flag;
};
constexpr FlagWord flag_words[] = {
    {ir::Modifier::ftz, flag_ftz},
    {ir::Modifier::sat, flag_sat},
    {ir::Modifier::relu, flag_relu},
    {ir::Modifier::rn, flag_rn},
    {ir::Modifier::rz, flag_rz},
    {ir::Modifier::rm, flag_rm},
    {ir::Modifier::rp, flag_rp},
    {ir::Modifier::rna, flag_rna},
    {ir::Modifier::NaN, flag_nan},
    {ir::Modifier::xorsign, flag_xorsign_abs},
    {ir::Modifier::abs, flag_abs},
    {ir::Modifier::oob, flag_oob},
    {ir::Modifier::satfinite, flag_satfinite},
    {ir::Modifier::rni, flag_rni},
    {ir::Modifier::rzi, flag_rzi},
    {ir::Modifier::rmi, flag_rmi},
    {ir::Modifier::rpi, flag_rpi},
    {ir::Modifier::approx, flag_approx},
    {ir::Modifier::full, flag_full},
    {ir::Modifier::rs, flag_rs},
    {ir::Modifier::eq, flag_equal},
    {ir::Modifier::ne, flag_less | flag_greater},
    {ir::Modifier::lt, flag_less},
    {ir::Modifier::lo, flag_less},
    {ir::Modifier::le, flag_less | flag_equal},
    {ir::Modifier::ls, flag_less | flag_equal},
    {ir::Modifier::gt, flag_greater},
    {ir::Modifier::hi, flag_greater}, // also a modifier of mul.hi, which does not use the flag
    {ir::Modifier::ge, flag_greater | flag_equal},
    {ir::Modifier::hs, flag_greater | flag_equal},
    {ir::Modifier::equ, flag_equal | flag_unordered},
    {ir::Modifier::neu, flag_less | flag_greater | flag_unordered},
    {ir::Modifier::ltu, flag_less | flag_unordered},
    {ir::Modifier::leu, flag_less | flag_equal | flag_unordered},
    {ir::Modifier::gtu, flag_greater | flag_unordered},
    {ir::Modifier::geu, flag_greater | flag_equal | flag_unordered},
    {ir::Modifier::num, flag_less | flag_equal | flag_greater},
    {ir::Modifier::nan, flag_unordered},
    {ir::Modifier::and_, flag_and},
    {ir::Modifier::or_, flag_or},
    {ir::Modifier::xor_, flag_xor},
};

} // namespace

uint32_t modifier_flags(const ir::Form& form) {
  uint32_t flags = 0;
  for (const FlagWord& row : flag_words)
    if (form.has(row.word)) flags |= row.flag;
  return flags;
}

void OperationTable::add(std::string_view pattern, Operation operation) {
  operation.pattern = pattern;
  parse_pattern(pattern, operation);
  const auto opcode = static_cast<size_t>(operation.opcode);
  if (by_opcode_.size() <= opcode) by_opcode_.resize(opcode + 1);
  by_opcode_[opcode].push_back(static_cast<uint32_t>(rows_.size()));
  rows_.push_back(std::move(operation));
}

void OperationTable::special(std::string_view pattern, SpecialDecoder decoder) {
  Operation operation;
  operation.special = decoder;
  add(pattern, std::move(operation));
}

const Operation* OperationTable::find(const ir::Form& form, std::span<const ir::Operand> operands) const {
  const auto opcode = static_cast<size_t>(form.opcode);
  if (form.opaque || opcode >= by_opcode_.size()) return nullptr;
  const auto [results, sources] = count_operands(operands);
  const Operation* second_best = nullptr;
  for (uint32_t index : by_opcode_[opcode]) {
    const Operation& operation = rows_[index];
    if (!matches(operation, form)) continue;
    if (operation.special) return &operation;
    // The carry flag is an operand of the row, but it is not written in the instruction.
    const unsigned own_sources = operation.sources - (form.effects.reads_carry ? 1 : 0);
    const unsigned own_results = operation.destinations - (form.effects.writes_carry ? 1 : 0);
    if (own_sources != sources) continue;
    if (own_results == results) return &operation;
    if (own_results > results && !second_best) second_best = &operation;
  }
  return second_best;
}

} // namespace ptxrewrite::emulator
