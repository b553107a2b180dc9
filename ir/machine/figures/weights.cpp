// Parses the rows of weights.def and finds the first that matches a form.
#include "ir/machine/figures/weights.h"

#include "ir/machine/figures/form_pattern.h"

#include <array>
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

struct Row {
  const WeightRow* text = nullptr;
  FormPattern pattern;
};

// Rows by opcode, in the order of the file.
const std::vector<std::vector<Row>>& rows_by_opcode() {
  static const std::vector<std::vector<Row>> table = [] {
    std::vector<std::vector<Row>> rows;
    for (const WeightRow& text : weight_rows) {
      size_t index = static_cast<size_t>(text.opcode);
      if (rows.size() <= index) rows.resize(index + 1);
      rows[index].push_back({&text, FormPattern(text.words, text.targets)});
    }
    return rows;
  }();
  return table;
}

FormWeight first_row(const Form& form, uint32_t compute_capability, bool literal) {
  const auto& table = rows_by_opcode();
  size_t index = static_cast<size_t>(form.opcode);
  if (index < table.size())
    for (const Row& row : table[index])
      if (row.pattern.fits(form, compute_capability, literal)) return row.text->weight;
  return class_weight(form.kind);
}

} // namespace

FormWeight weight_of(const Form& form, uint32_t compute_capability, bool literal) {
  // A kernel has few forms, and every version of it asks for all of them again.
  struct Entry {
    FormId form;
    uint32_t capability_and_literal = 0;
    FormWeight weight;
  };
  constexpr size_t kept = 1024;
  thread_local std::array<Entry, kept> recent;
  if (!form.id) return first_row(form, compute_capability, literal);
  const uint32_t key = compute_capability << 1 | static_cast<uint32_t>(literal);
  Entry& entry = recent[(form.id.index() << 1 | static_cast<uint32_t>(literal)) % kept];
  if (entry.form != form.id || entry.capability_and_literal != key)
    entry = {form.id, key, first_row(form, compute_capability, literal)};
  return entry.weight;
}

SubroutineSize size_of(Subroutine subroutine) {
  return subroutine_sizes[static_cast<size_t>(subroutine)];
}

} // namespace ptxrewrite::ir
