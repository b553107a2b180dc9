// Finds the matching row of mnemonics.def.
#include "ir/machine/figures/mnemonics.h"

#include "ir/machine/figures/form_pattern.h"

#include <algorithm>
#include <vector>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t first_named_target = 20;

struct MnemonicRow {
  std::string_view rule; // empty: nothing is fused into the instruction
  Opcode opcode;
  std::string_view words, targets, names;
};

constexpr MnemonicRow mnemonic_rows[] = {
#define MNEMONIC(opcode, words, targets, names) {{}, Opcode::opcode, words, targets, names},
#define FUSED_MNEMONIC(rule, opcode, words, targets, names) {rule, Opcode::opcode, words, targets, names},
#include "ir/machine/figures/mnemonics.def"
#undef MNEMONIC
#undef FUSED_MNEMONIC
};

struct ParsedMnemonic {
  const MnemonicRow* text;
  FormPattern pattern;
};

// Rows by opcode, in the order of the file.
const std::vector<std::vector<ParsedMnemonic>>& mnemonics_by_opcode() {
  static const std::vector<std::vector<ParsedMnemonic>> table = [] {
    std::vector<std::vector<ParsedMnemonic>> rows;
    for (const MnemonicRow& text : mnemonic_rows) {
      const auto index = static_cast<size_t>(text.opcode);
      if (rows.size() <= index) rows.resize(index + 1);
      rows[index].push_back({&text, FormPattern(text.words, text.targets)});
    }
    return rows;
  }();
  return table;
}

} // namespace

std::string_view machine_mnemonics(const Form& form, uint32_t compute_capability, bool literal,
                                   std::span<const std::string_view> fused) {
  const auto& table = mnemonics_by_opcode();
  const auto index = static_cast<size_t>(form.opcode);
  if (index >= table.size()) return {};
  const uint32_t target = std::max(compute_capability, first_named_target);
  std::string_view alone;
  for (const ParsedMnemonic& row : table[index]) {
    if (!row.pattern.fits(form, target, literal)) continue;
    if (row.text->rule.empty() && alone.empty()) alone = row.text->names;
    if (!row.text->rule.empty() && std::ranges::find(fused, row.text->rule) != fused.end()) return row.text->names;
  }
  return alone;
}

} // namespace ptxrewrite::ir
