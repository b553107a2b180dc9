// Reads the rows of weights.def and finds the one that fits a form.
#include "ir/machine/figures/weights.h"

#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

namespace {

struct WeightRow {
  Opcode opcode;
  std::string_view words;
  std::string_view targets;
  FormWeight weight;
};

#define SUBROUTINE(name, instructions, at_place, executed, moves)
#define CLASS_WEIGHT(kind, instructions, pipe)
#define WEIGHT(opcode, words, targets, instructions, pipe, subroutine)                                                 \
  WeightRow{Opcode::opcode, words, targets, {instructions, Pipe::pipe, Subroutine::subroutine}},
constexpr WeightRow weight_rows[] = {
#include "ir/machine/figures/weights.def"
};
#undef WEIGHT
#undef CLASS_WEIGHT
#define WEIGHT(opcode, words, targets, instructions, pipe, subroutine)

FormWeight class_weight(InstructionClass kind) {
  switch (kind) {
#define CLASS_WEIGHT(kind, instructions, pipe)                                                                         \
  case InstructionClass::kind:                                                                                         \
    return {instructions, Pipe::pipe, Subroutine::none};
#include "ir/machine/figures/weights.def"
  }
#undef CLASS_WEIGHT
#undef SUBROUTINE
  return {};
}

#define CLASS_WEIGHT(kind, instructions, pipe)
#define SUBROUTINE(name, instructions, at_place, executed, moves) {instructions, at_place, executed, moves},
constexpr SubroutineSize subroutine_sizes[] = {
    {},
#include "ir/machine/figures/weights.def"
};
#undef WEIGHT
#undef CLASS_WEIGHT
#undef SUBROUTINE

// Takes the text up to `separator` off the front.
std::string_view take(std::string_view& text, char separator) {
  size_t end = text.find(separator);
  std::string_view head = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return head;
}

enum class Place : uint8_t { anywhere, first_type, second_type, literal };

// One group of a row's words: some of these modifiers must be there.
struct WordGroup {
  Place place = Place::anywhere;
  std::vector<Modifier> alternatives;

  bool fits(const Form& form, bool literal) const {
    if (place == Place::literal) return literal;
    for (Modifier word : alternatives) {
      if (place == Place::anywhere && form.has(word)) return true;
      if (place != Place::anywhere && static_cast<ScalarType>(word) == form.type(place == Place::first_type ? 0 : 1))
        return true;
    }
    return false;
  }
};

struct Row {
  const WeightRow* text = nullptr;
  std::vector<WordGroup> groups;
  uint32_t first_target = 0, last_target = UINT32_MAX;
};

uint32_t target_number(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data() + 3, text.data() + text.size(), number); // behind "sm_"
  return number;
}

Row parse_row(const WeightRow& text) {
  Row row{&text, {}, 0, UINT32_MAX};
  std::string_view words = text.words;
  while (!words.empty()) {
    std::string_view group = take(words, ' ');
    WordGroup parsed;
    if (group.starts_with("dtype=")) parsed.place = Place::first_type;
    if (group.starts_with("atype=")) parsed.place = Place::second_type;
    if (parsed.place != Place::anywhere) group.remove_prefix(6);
    if (group == "imm") {
      parsed.place = Place::literal;
      group = {};
    }
    while (!group.empty())
      parsed.alternatives.push_back(parse_modifier(take(group, '|')).value());
    row.groups.push_back(std::move(parsed));
  }
  if (text.targets.empty()) return row;
  row.first_target = target_number(text.targets);
  if (size_t dots = text.targets.find(".."); dots != std::string_view::npos)
    row.last_target = target_number(text.targets.substr(dots + 2));
  return row;
}

// Rows by opcode, in the order of the file.
const std::vector<std::vector<Row>>& rows_by_opcode() {
  static const std::vector<std::vector<Row>> table = [] {
    std::vector<std::vector<Row>> rows;
    for (const WeightRow& text : weight_rows) {
      size_t index = static_cast<size_t>(text.opcode);
      if (rows.size() <= index) rows.resize(index + 1);
      rows[index].push_back(parse_row(text));
    }
    return rows;
  }();
  return table;
}

} // namespace

FormWeight weight_of(const Form& form, uint32_t compute_capability, bool literal) {
  const auto& table = rows_by_opcode();
  size_t index = static_cast<size_t>(form.opcode);
  if (index < table.size())
    for (const Row& row : table[index]) {
      bool fits = row.first_target <= compute_capability && compute_capability <= row.last_target;
      for (const WordGroup& group : row.groups)
        fits = fits && group.fits(form, literal);
      if (fits) return row.text->weight;
    }
  return class_weight(form.kind);
}

SubroutineSize size_of(Subroutine subroutine) {
  return subroutine_sizes[static_cast<size_t>(subroutine)];
}

} // namespace ptxrewrite::ir
