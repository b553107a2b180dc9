// docs/composite_rules.md, generated from composite_rules.def: `rules_page FILE` checks that the file is current,
// `rules_page --bless FILE` writes it.
#include "transforms/composite/composite_rules.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

using namespace ptxrewrite::transforms::legal::composite;

// Escapes a text for a cell of a table.
std::string cell(const std::string& text) {
  std::string result = "`";
  for (char c : text)
    result += c == '|' ? std::string("\\|") : std::string(1, c);
  return text.empty() ? "" : result + "`";
}

std::string number(unsigned tenths) {
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string page() {
  std::string text =
      "# The rules of composite's legal form\n\n"
      "Made from `transforms/composite/composite_rules.def`, which says how the terms are to be read; `ninja "
      "bless_rules`\n"
      "writes it again. Each row is proved for all inputs by `tests/rules`. Saves: machine instructions, sm_80 and\n"
      "sm_90, where nothing else reads what is inside; 0: ptxas does it by itself.\n\n"
      "| family | rule | term | where | becomes | PTX | sm | saves |\n|---|---|---|---|---|---|---|---|\n";
  std::string last;
  for (const Rule& rule : rules()) {
    // A row with alternatives occurs once.
    if (last == rule.pattern_text + rule.condition_text) continue;
    last = rule.pattern_text + rule.condition_text;
    text += "| " + std::string(family_names[static_cast<size_t>(rule.family)]) + " | " + rule.name + " | " +
            cell(rule.pattern_text) + " | " + cell(rule.condition_text) + " | " + cell(rule.replacement_text) + " | " +
            number(rule.version) + " | " + std::to_string(rule.target) + " | " + std::to_string(rule.saves) + " |\n";
  }
  text += "\nFamily `permute` follows bytes through these, and through `prmt`, and puts together what `or`, `xor` and\n"
          "`add` join without overlap:\n\n";
  for (const ByteRule& rule : byte_rules())
    text += "* `" + rule.text + "`\n";
  text += "\nFamily `logic` makes one truth table of any tree of these over three inputs:\n\n";
  for (const LogicRule& rule : logic_rules())
    text += "* `" + rule.text + "`\n";
  return text;
}

} // namespace

int main(int count, char** arguments) {
  const bool bless = count == 3 && std::strcmp(arguments[1], "--bless") == 0;
  if (count != 2 && !bless) {
    std::puts("usage: rules_page [--bless] FILE");
    return 2;
  }
  const std::string wanted = page();
  if (bless) return std::ofstream(arguments[2]) << wanted ? 0 : 1;
  std::ostringstream found;
  found << std::ifstream(arguments[1]).rdbuf();
  if (found.str() == wanted) return 0;
  std::printf("%s is not what the rules say: ninja bless_rules\n", arguments[1]);
  return 1;
}
