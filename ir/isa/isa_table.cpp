// Parses the rows of ir/isa/opcodes.def, one opcode at a time and on first use, so that program start stays fast.
#include "ir/isa/isa_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <mutex>

namespace ptxrewrite::ir::table {

namespace {

// `and_` -> "and".
constexpr std::string_view opcode_spelling(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

constexpr RowText all_rows[] = {
#define OPCODE(name, modifiers, operands, version, targets, kind, effects, ...)                                        \
  {Opcode::name,                                                                                                       \
   opcode_spelling(#name),                                                                                             \
   modifiers,                                                                                                          \
   operands,                                                                                                           \
   version,                                                                                                            \
   targets,                                                                                                            \
   InstructionClass::kind,                                                                                             \
   effects,                                                                                                            \
   false __VA_OPT__(, Operation::__VA_ARGS__)},
#define FORM OPCODE
#define EXTENSION(name, mnemonic, modifiers, operands, kind, effects)                                                  \
  {Opcode::name, mnemonic, modifiers, operands, "", "", InstructionClass::kind, effects, true},
#define EXTENSION_FORM EXTENSION
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef FORM
#undef EXTENSION
#undef EXTENSION_FORM
#define TEXTURE_FORM(name, modifiers, operands, version, targets)                                                      \
  {Opcode::name, #name, modifiers, operands, version, targets, InstructionClass::texture, "load", false},
#include "ir/isa/texture_forms.def"
#undef TEXTURE_FORM
};

constexpr unsigned opcode_count = 1
#define OPCODE(...) +1
#define FORM(...)
#define EXTENSION(...) +1
#define EXTENSION_FORM(...)
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef FORM
#undef EXTENSION
#undef EXTENSION_FORM
    ;

// The rows of each opcode are adjacent, but for those of texture_forms.def.
struct RowRange {
  uint16_t begin = 0;
  uint16_t end = 0;
};
constexpr std::array<std::array<RowRange, 2>, opcode_count> row_ranges = [] {
  std::array<std::array<RowRange, 2>, opcode_count> ranges{};
  Opcode previous = Opcode::opaque;
  for (size_t i = 0; i < std::size(all_rows); ++i) {
    auto& [first, second] = ranges[static_cast<size_t>(all_rows[i].opcode)];
    RowRange& range = first.end == 0 || (all_rows[i].opcode == previous && second.end == 0) ? first : second;
    if (range.end == 0) range.begin = static_cast<uint16_t>(i);
    range.end = static_cast<uint16_t>(i + 1);
    previous = all_rows[i].opcode;
  }
  return ranges;
}();

constexpr Ordering modifier_orderings[] = {
    Ordering::free_order,
#define SCALAR_TYPE(name, bits, kind) Ordering::types,
#include "ir/isa/types.def"
#undef SCALAR_TYPE
#define MODIFIER(name, spelling, ordering) Ordering::ordering,
#include "ir/isa/modifiers.def"
#undef MODIFIER
};
static_assert(std::size(modifier_orderings) <= ModifierSet().size());

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

// By character: 1 for opening brackets, -1 for closing ones.
constexpr std::array<int8_t, 256> bracket_depths = [] {
  std::array<int8_t, 256> depths{};
  for (unsigned char opening : {'[', '{', '('})
    depths[opening] = 1;
  for (unsigned char closing : {']', '}', ')'})
    depths[closing] = -1;
  return depths;
}();

// Calls `visit` with each part of `text` between separators outside of brackets.
template <class Visit> void for_each_part(std::string_view text, char separator, Visit visit) {
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += bracket_depths[static_cast<unsigned char>(text[i])];
    if (text[i] != separator || depth != 0) continue;
    visit(trim(text.substr(start, i - start)));
    start = i + 1;
  }
  visit(trim(text.substr(start)));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for_each_part(text, separator, [&](std::string_view part) { parts.push_back(part); });
  return parts;
}

// Parses one row; the first error goes to `error`.
class RowParser {
public:
  explicit RowParser(const RowText& text) : text_(text) {}

  Row parse() {
    Row row;
    row.text = &text_;
    std::string_view modifiers = text_.modifiers;
    for (auto [name, aspect] : {std::pair{"access:", Aspect::access}, std::pair{"cache:", Aspect::cache},
                                std::pair{"eviction:", Aspect::eviction}})
      if (modifiers.starts_with(name)) {
        row.aspect = aspect;
        modifiers.remove_prefix(std::string_view(name).size());
      }
    for_each_part(modifiers, ' ', [&](std::string_view word) {
      if (!word.empty()) row.slots.push_back(slot(word));
    });
    for (const Slot& slot : row.slots) {
      size_t longest = 0;
      for (const Words& alternative : slot.alternatives) {
        longest = std::max(longest, alternative.size());
        for (Modifier word : alternative)
          row.words.set(static_cast<size_t>(word));
      }
      row.max_words += longest;
    }
    effects(row);
    return row;
  }

  // The operand lists of `row`, which parse() returned.
  std::vector<ShapeText> parse_shapes(const Row& row) {
    slots_ = &row.slots;
    std::vector<ShapeText> shapes;
    for_each_part(text_.operands, ';', [&](std::string_view text) { optional_shapes(text, shapes); });
    return shapes;
  }
  const std::string& error() const { return error_; }

private:
  void fail(std::string_view what, std::string_view where) {
    if (error_.empty()) error_ = std::string(what) + " '" + std::string(where) + "'";
  }

  Words words(std::string_view text) {
    Words list;
    if (!text.starts_with('.')) fail("modifier without dot", text);
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = std::min(rest.find('.'), rest.size());
      const std::string_view word = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (word.empty()) continue;
      const auto modifier = parse_modifier(word);
      if (!modifier)
        fail("unknown modifier word", word);
      else if (!list.push_back(*modifier))
        fail("too many words in one alternative", text);
    }
    return list;
  }

  Slot slot(std::string_view text) {
    Slot result;
    if (text.starts_with('!')) {
      result.adjacent = true;
      text.remove_prefix(1);
    }
    if (size_t equals = text.find('='); equals != std::string_view::npos) {
      result.name = text.substr(0, equals);
      text.remove_prefix(equals + 1);
    }
    if (text.ends_with('?')) {
      result.optional = true;
      text.remove_suffix(1);
    }
    result.alternatives.reserve(1 + static_cast<size_t>(std::ranges::count(text, '|')));
    for_each_part(text, '|', [&](std::string_view part) { result.alternatives.push_back(words(part)); });
    return result;
  }

  // Appends one list for each combination of optional operands (those followed by `?`) present or absent.
  void optional_shapes(std::string_view text, std::vector<ShapeText>& shapes) {
    const size_t mark = text.find('?');
    if (mark == std::string_view::npos) {
      shapes.push_back(shape(text));
      return;
    }
    size_t begin = mark; // position of the comma before the operand
    for (int depth = 0; begin > 0 && (text[begin] != ',' || depth > 0); --begin)
      depth += (text[begin] == '}' || text[begin] == ')') - (text[begin] == '{' || text[begin] == '(');
    if (begin == 0) return fail("optional first operand", text);
    const std::string_view rest = text.substr(mark + 1);
    optional_shapes(std::string(text.substr(0, mark)).append(rest), shapes);
    optional_shapes(std::string(text.substr(0, begin)).append(rest), shapes);
  }

  ShapeText shape(std::string_view text) {
    ShapeText result;
    std::string_view uses = text;
    if (size_t arrow = text.find("<-"); arrow != std::string_view::npos) {
      list(text.substr(0, arrow), result.operands);
      result.definitions = static_cast<unsigned>(result.operands.size());
      uses = text.substr(arrow + 2);
    }
    list(uses, result.operands);
    return result;
  }

  void list(std::string_view text, std::vector<OperandText>& operands) {
    for_each_part(text, ',', [&](std::string_view part) {
      if (!part.empty()) operands.push_back(operand(part));
    });
  }

  OperandText operand(std::string_view text) {
    OperandText result;
    // Inside brackets a condition belongs to an element.
    const size_t condition = text.rfind(" if .");
    if (condition != std::string_view::npos && text.find_first_of("]})", condition) == std::string_view::npos) {
      auto list = words(text.substr(condition + 4));
      if (list.size() == 1) result.condition = list.front();
      text = text.substr(0, condition);
    }
    for_each_part(text, '|', [&](std::string_view part) { result.alternatives.push_back(term(part)); });
    return result;
  }

  OperandTerm term(std::string_view text) {
    OperandTerm result;
    if (text == "_") {
      result.kind = SummaryKind::sink;
    } else if (text.starts_with("imm")) {
      immediate(text.substr(3), result);
    } else if (text == "fimm") {
      result.kind = SummaryKind::float_immediate;
    } else if (text == "sym") {
      result.kind = SummaryKind::symbol;
    } else if (text == "label") {
      result.kind = SummaryKind::label;
    } else if (text == "sreg") {
      result.kind = SummaryKind::special_register;
    } else if (text == "list") {
      result.kind = SummaryKind::list;
    } else if (text.starts_with("pair(") && text.ends_with(')')) {
      result.kind = SummaryKind::predicate_pair;
      list(text.substr(5, text.size() - 6), result.elements);
    } else if (text.starts_with('[')) {
      address(text, result);
    } else if (text.starts_with('{') && text.ends_with('}')) {
      vector(text.substr(1, text.size() - 2), result);
    } else {
      register_(text, result);
    }
    return result;
  }

  int64_t number(std::string_view text) {
    int64_t value = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size()) fail("not a number", text);
    return value;
  }

  void immediate(std::string_view text, OperandTerm& result) {
    result.kind = SummaryKind::integer_immediate;
    if (text.empty()) return;
    if (!text.starts_with('(') || !text.ends_with(')')) return fail("constant", text);
    text = text.substr(1, text.size() - 2);
    if (size_t dots = text.find(".."); dots != std::string_view::npos) {
      result.rule = ImmediateRule::range;
      result.values = {number(text.substr(0, dots)), number(text.substr(dots + 2))};
    } else if (text.starts_with('*')) {
      result.rule = ImmediateRule::multiple;
      result.values = {number(text.substr(1))};
    } else {
      result.rule = ImmediateRule::set;
      for (std::string_view value : split(text, '/'))
        result.values.push_back(number(value));
    }
  }

  void address(std::string_view text, OperandTerm& result) {
    result.kind = SummaryKind::address;
    if (text.ends_with(".unified")) {
      result.unified = true;
      text.remove_suffix(8);
    }
    if (!text.ends_with(']')) return fail("address", text);
    auto parts = split(text.substr(1, text.size() - 2), ',');
    std::string_view base = parts.front();
    if (base == "a|imm") {
      result.constant_base = true;
      base = "a";
    }
    if (base.size() != 1 || std::string_view("abhtx").find(base[0]) == std::string_view::npos)
      fail("address base", base);
    result.base = base[0];
    for (size_t i = 1; i < parts.size(); ++i) {
      // A handle in second position ([texture, sampler, ...]) is written like an address base.
      if (parts[i] == "h") {
        OperandText handle;
        handle.alternatives.resize(2);
        handle.alternatives[0].type = ScalarType::u64;
        handle.alternatives[1].kind = SummaryKind::symbol;
        result.elements.push_back(std::move(handle));
      } else {
        result.elements.push_back(operand(parts[i]));
      }
    }
  }

  void vector(std::string_view text, OperandTerm& result) {
    result.kind = SummaryKind::vector;
    auto parts = split(text, ' ');
    const size_t name_end = std::min(parts[0].find_first_of("*/-"), parts[0].size());
    const std::string_view slot = parts.size() == 2 ? slot_named(parts[0].substr(0, name_end)) : "";
    if (!slot.empty()) {
      result.slot = slot;
      if (name_end < parts[0].size()) {
        result.count_operation = parts[0][name_end];
        result.count_amount = static_cast<unsigned>(number(parts[0].substr(name_end + 1)));
        if (result.count_amount == 0) fail("count", parts[0]);
      }
      result.elements.push_back(operand(parts[1]));
    } else if (parts.size() == 2 && parts[0][0] >= '1' && parts[0][0] <= '9') {
      for (std::string_view count : split(parts[0], '/'))
        result.counts.push_back(static_cast<unsigned>(number(count)));
      result.elements.push_back(operand(parts[1]));
    } else {
      for (std::string_view part : parts)
        result.elements.push_back(operand(part));
    }
  }

  // The name as the row spells it, which stays allocated; "" if no slot has it.
  std::string_view slot_named(std::string_view name) const {
    for (const Slot& slot : *slots_)
      if (slot.name == name) return slot.name;
    return {};
  }

  void register_(std::string_view text, OperandTerm& result) {
    std::string_view whole = text;
    if (text.starts_with('!')) {
      result.negatable = true;
      text.remove_prefix(1);
    } else if (text.starts_with('-')) {
      result.minus = true;
      result.minus_required = text.starts_with("--");
      text.remove_prefix(result.minus_required ? 2 : 1);
    }
    if (text.ends_with(".sel")) {
      result.selector = true;
      text.remove_suffix(4);
    }
    if (text.ends_with('+')) {
      result.wider = true;
      text.remove_suffix(1);
    }
    if (text.starts_with("wide(") && text.ends_with(')')) {
      result.twice = true;
      text = text.substr(5, text.size() - 6);
    }
    result.slot = slot_named(text);
    if (!result.slot.empty()) return;
    if (auto type = parse_type(text))
      result.type = *type;
    else
      fail("operand", whole);
  }

  void effects(Row& row) {
    Effects& e = row.effects;
    for_each_part(text_.effects, ' ', [&](std::string_view word) {
      if (word == "load") {
        e.reads_memory = e.may_trap = true;
      } else if (word == "store") {
        e.writes_memory = e.may_trap = e.side_effect = true;
      } else if (word == "atomic") {
        e.reads_memory = e.writes_memory = e.may_trap = e.side_effect = e.atomic = true;
      } else if (word == "barrier") {
        e.barrier = e.side_effect = true;
      } else if (word == "convergent") {
        e.convergent = true;
      } else if (word == "branch") {
        e.branch = e.side_effect = true;
      } else if (word == "call") {
        e.call = e.side_effect = true;
      } else if (word == "end") {
        e.terminates = e.side_effect = true;
      } else if (word == "volatile") {
        e.volatile_result = true;
      } else if (word == "carry_in") {
        e.reads_carry = true;
      } else if (word == "trap") {
        e.may_trap = true;
      } else if (word == "effect") {
        e.side_effect = true;
      } else if (word == "lax") {
        row.lax = true;
      } else if (!word.empty()) {
        fail("effect", word);
      }
    });
  }

  const RowText& text_;
  const std::vector<Slot>* slots_ = nullptr;
  std::string error_;
};

void add_row(const RowText& text, OpcodeRows& rows) {
  RowParser parser(text);
  Row row = parser.parse();
  assert(parser.error().empty());
  rows.words |= row.words;
  rows.aspect_words[static_cast<size_t>(row.aspect)] |= row.words;
  rows.has_aspects |= row.aspect != Aspect::whole;
  rows.rows.push_back(std::move(row));
}

OpcodeRows parse_opcode(Opcode opcode) {
  OpcodeRows result;
  for (const RowRange& range : row_ranges[static_cast<size_t>(opcode)])
    for (size_t i = range.begin; i < range.end; ++i)
      add_row(all_rows[i], result);
  return result;
}

// Finds names by hash. The compiler fills the table, so that a process does not build it first. The element with index
// 0 of `names` has no name.
template <size_t count> class NameTable {
public:
  constexpr explicit NameTable(const std::string_view (&names)[count]) : names_(names) {
    for (size_t i = 1; i < count; ++i) {
      size_t slot = slot_of(names[i]);
      while (slots_[slot] != 0)
        slot = (slot + 1) % slots_.size();
      slots_[slot] = static_cast<uint16_t>(i);
    }
  }

  // Returns 0 if no name is equal.
  constexpr uint16_t find(std::string_view name) const {
    for (size_t slot = slot_of(name); slots_[slot] != 0; slot = (slot + 1) % slots_.size())
      if (names_[slots_[slot]] == name) return slots_[slot];
    return 0;
  }

private:
  static constexpr size_t slot_of(std::string_view name) {
    uint32_t hash = static_cast<uint32_t>(name.size());
    for (char c : name)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u; // FNV-1a
    return (hash ^ hash >> 15) % slot_count;
  }

  static constexpr size_t slot_count = std::bit_ceil(4 * count);

  const std::string_view (&names_)[count];
  std::array<uint16_t, slot_count> slots_{}; // indices into names_; 0 is free
};

} // namespace

std::span<const RowText> row_texts() {
  return all_rows;
}

const OpcodeRows& rows_of(Opcode opcode) {
  static std::array<std::once_flag, opcode_count> once;
  static std::array<OpcodeRows, opcode_count> parsed;
  auto index = static_cast<size_t>(opcode);
  std::call_once(once[index], [&] { parsed[index] = parse_opcode(opcode); });
  return parsed[index];
}

std::span<const ShapeText> shapes_of(const Row& row) {
  static std::array<std::once_flag, std::size(all_rows)> once;
  static std::array<std::vector<ShapeText>, std::size(all_rows)> parsed;
  const auto index = static_cast<size_t>(row.text - all_rows);
  std::call_once(once[index], [&] {
    RowParser parser(*row.text);
    parsed[index] = parser.parse_shapes(row);
    assert(parser.error().empty());
  });
  return parsed[index];
}

Ordering ordering(Modifier modifier) {
  return modifier_orderings[static_cast<size_t>(modifier)];
}

std::string row_error(const RowText& text) {
  RowParser parser(text);
  const Row row = parser.parse();
  parser.parse_shapes(row);
  return parser.error();
}

} // namespace ptxrewrite::ir::table

namespace ptxrewrite::ir {

namespace {

constexpr std::string_view opcode_spellings[] = {
    "",
#define OPCODE(name, ...) table::opcode_spelling(#name),
#define FORM(...)
#define EXTENSION(name, mnemonic, ...) mnemonic,
#define EXTENSION_FORM(...)
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef FORM
#undef EXTENSION
#undef EXTENSION_FORM
};

constexpr std::string_view modifier_spellings[] = {
    "",
#define SCALAR_TYPE(name, bits, kind) #name,
#include "ir/isa/types.def"
#undef SCALAR_TYPE
#define MODIFIER(name, spelling, ordering) spelling,
#include "ir/isa/modifiers.def"
#undef MODIFIER
};

constexpr std::string_view class_spellings[] = {
    "not in the table",
#define INSTRUCTION_CLASS(name, text) text,
#include "ir/isa/instruction_classes.def"
#undef INSTRUCTION_CLASS
};

} // namespace

std::string_view spelling(Opcode opcode) {
  return opcode_spellings[static_cast<size_t>(opcode)];
}
std::string_view spelling(Modifier modifier) {
  return modifier_spellings[static_cast<size_t>(modifier)];
}
std::string_view spelling(InstructionClass kind) {
  return class_spellings[static_cast<size_t>(kind)];
}

std::optional<Modifier> parse_modifier(std::string_view word) {
  static constexpr table::NameTable names(modifier_spellings);
  if (word.starts_with('.')) word.remove_prefix(1);
  const uint16_t found = names.find(word);
  return found != 0 ? std::optional(Modifier(found)) : std::nullopt;
}

std::optional<Opcode> table::find_opcode(std::string_view name) {
  static constexpr NameTable names(opcode_spellings);
  const uint16_t found = names.find(name);
  return found != 0 ? std::optional(Opcode(found)) : std::nullopt;
}

std::vector<std::string_view> list_opcodes() {
  std::vector<std::string_view> list(std::begin(opcode_spellings) + 1, std::end(opcode_spellings));
  return list;
}

size_t row_count() {
  return table::row_texts().size();
}

} // namespace ptxrewrite::ir
