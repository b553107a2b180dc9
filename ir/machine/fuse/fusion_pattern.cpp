// Parses the terms of fuse.def, see fusion_pattern.h.
#include "ir/machine/fuse/fusion_pattern.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ptxrewrite::ir {

namespace {

struct NamedOpcode {
  std::string_view name;
  Opcode opcode;
};

constexpr NamedOpcode opcode_names[] = {
#define OPCODE(name, ...) {#name, Opcode::name},
#define EXTENSION(...)
#define FORM(...)
#define EXTENSION_FORM(...)
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef EXTENSION
#undef FORM
#undef EXTENSION_FORM
};

struct NamedClass {
  std::string_view name;
  InstructionClass kind;
};

// Classes that patterns use.
constexpr NamedClass class_names[] = {
    {"integer", InstructionClass::integer},       {"floating_point", InstructionClass::floating_point},
    {"comparison", InstructionClass::comparison}, {"logic", InstructionClass::logic},
    {"shift", InstructionClass::shift},           {"conversion", InstructionClass::conversion},
    {"selection", InstructionClass::selection},   {"load", InstructionClass::load},
};

constexpr uint64_t bit_of(ScalarType type) {
  return uint64_t(1) << static_cast<unsigned>(type);
}

// The types that a word names, as a bit mask; 0 for other words.
uint64_t types_of(std::string_view word) {
  if (word == "int32") return bit_of(ScalarType::b32) | bit_of(ScalarType::u32) | bit_of(ScalarType::s32);
  if (word == "int64") return bit_of(ScalarType::b64) | bit_of(ScalarType::u64) | bit_of(ScalarType::s64);
  uint64_t floating = 0;
  for (unsigned i = 0; i < scalar_type_count; ++i)
    if (is_float(static_cast<ScalarType>(i))) floating |= uint64_t(1) << i;
  if (word == "float") return floating;
  if (word == "int") return ~floating;
  const std::optional<Modifier> modifier = parse_modifier(word);
  return modifier && is_type(*modifier) ? bit_of(static_cast<ScalarType>(*modifier)) : 0;
}

// Removes the text before the separator, outside of parentheses, from the front and returns it.
std::string_view take(std::string_view& text, std::string_view separator) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth == 0 && text.substr(i).starts_with(separator)) {
      const std::string_view head = text.substr(0, i);
      text = text.substr(i + separator.size());
      return trimmed(head);
    }
  }
  const std::string_view all = text;
  text = {};
  return trimmed(all);
}

class TermReader {
public:
  explicit TermReader(std::string& error) : error_(error) {}

  FusionTerm term(std::string_view text) {
    FusionTerm result;
    const size_t open = text.find('(');
    result.form = form(text.substr(0, open));
    if (open == std::string_view::npos) return result;
    if (!text.ends_with(')')) fail("no ')' at the end", text);
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    std::string_view probe = rest;
    if (take(probe, "~").size() != trimmed(rest).size()) {
      result.commutes = true;
      result.operands.push_back(operand(take(rest, "~")));
    }
    while (!rest.empty())
      result.operands.push_back(operand(take(rest, ",")));
    return result;
  }

  std::vector<Opcode> opcodes(std::string_view text) {
    std::vector<Opcode> found;
    while (!text.empty()) {
      const std::string_view word = take(text, "|");
      const auto named = std::ranges::find_if(opcode_names, [&](const NamedOpcode& one) {
        return one.name == word || (one.name.ends_with('_') && one.name.substr(0, one.name.size() - 1) == word);
      });
      if (named == std::end(opcode_names))
        fail("no such opcode", word);
      else
        found.push_back(named->opcode);
    }
    return found;
  }

private:
  void fail(std::string_view what, std::string_view text) {
    error_ += (error_.empty() ? "" : "; ") + std::string(what) + ": '" + std::string(text) + "'";
  }

  FormTest form(std::string_view text) {
    FormTest test;
    std::string_view head = take(text, ".");
    if (head.starts_with("class:")) {
      const auto named =
          std::ranges::find_if(class_names, [&](const NamedClass& one) { return one.name == head.substr(6); });
      if (named == std::end(class_names))
        fail("no such class", head);
      else
        test.classes.push_back(named->kind);
    } else {
      test.opcodes = opcodes(head);
    }
    size_t place = 0; // index of the next type
    while (!text.empty())
      add_word(test, take(text, "."), place);
    return test;
  }

  void add_word(FormTest& test, std::string_view group, size_t& place) {
    FormTest::Words words;
    if (group.starts_with('!')) {
      words.absent = true;
      group.remove_prefix(1);
    }
    uint64_t types = 0;
    for (std::string_view rest = group; !rest.empty();) {
      const std::string_view word = take(rest, "|");
      if (const uint64_t named = types_of(word); named && !words.absent)
        types |= named;
      else if (const std::optional<Modifier> modifier = parse_modifier(word))
        words.any.push_back(*modifier);
      else
        fail("no such word", word);
    }
    if (types && (!words.any.empty() || place == test.types.size())) fail("types among other words", group);
    if (types)
      test.types[std::min(place++, test.types.size() - 1)] = types;
    else
      test.words.push_back(std::move(words));
  }

  FusionOperand operand(std::string_view text) {
    using Kind = FusionOperand::Kind;
    FusionOperand result;
    if (text == "_") return result;
    if (text == "@") {
      result.kind = Kind::result;
      return result;
    }
    const std::string_view letter = text.starts_with('#') || text.starts_with('$') ? text.substr(1) : text;
    if (letter.size() == 1 && variable_index(letter[0]) != std::string_view::npos) {
      result.kind = text[0] == '#' ? Kind::integer : text[0] == '$' ? Kind::literal : Kind::variable;
      result.variable = static_cast<uint8_t>(variable_index(letter[0]));
      return result;
    }
    if (std::from_chars(text.data(), text.data() + text.size(), result.number).ptr == text.data() + text.size() &&
        !text.empty()) {
      result.kind = Kind::number;
      return result;
    }
    result.kind = Kind::term;
    result.term.push_back(term(text));
    return result;
  }

  std::string& error_;
};

} // namespace

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

bool FormTest::fits(const Form& form) const {
  if (std::ranges::find(opcodes, form.opcode) == opcodes.end() &&
      std::ranges::find(classes, form.kind) == classes.end())
    return false;
  if ((form.opcode == Opcode::add || form.opcode == Opcode::sub) && classes.empty() &&
      (form.carry_out || form.has(Modifier::sat)))
    return false;
  for (unsigned place = 0; place < types.size(); ++place)
    if (!(types[place] & bit_of(form.type(place)))) return false;
  return std::ranges::all_of(words, [&](const Words& group) {
    return group.absent != std::ranges::any_of(group.any, [&](Modifier word) { return form.has(word); });
  });
}

FusionAlternatives parse_fusion_terms(std::string_view text, std::string& error) {
  FusionAlternatives terms;
  while (!text.empty())
    terms.push_back(TermReader(error).term(take(text, " or ")));
  return terms;
}

std::vector<FusionAlternatives> parse_fusion_chain(std::string_view text, std::string& error) {
  std::vector<FusionAlternatives> chain;
  while (!text.empty())
    chain.push_back(parse_fusion_terms(take(text, " > "), error));
  return chain;
}

std::vector<Opcode> parse_fusion_opcodes(std::string_view text, std::string& error) {
  return TermReader(error).opcodes(text);
}

} // namespace ptxrewrite::ir
