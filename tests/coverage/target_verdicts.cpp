// Prints what the reader says of each statement of the ISA table for a target, for judge_targets.py, which asks ptxas.
//
// usage: target_verdicts TARGET [--every N]
//
// A line for each text of each statement that PTX 9.0 has (table_statements.h): the statement's number, "+" (read
// without a message) or "-", and the text, separated by tabs. The first lines, up to one that is empty, are the text
// that has to stand before the statements; "LAST" precedes what has to follow them.
#include "grammar/reader.h"
#include "tests/coverage/table_statements.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace ptxrewrite::tests {
namespace {

std::string before_statements(std::string_view target) {
  return fmt::format(".version 9.0\n.target {}\n.address_size 64\n{}.visible .entry k() {{\n{}\n", target,
                     module_declarations(), register_declarations());
}
std::string behind_statements() {
  return label_statements() + "ret;\n}\n";
}

bool is_read_silently(const std::string& text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("statement.ptx", text), diagnostics) && diagnostics.list().empty();
}

int run(std::string_view target, size_t every) {
  const std::string before = before_statements(target), behind = behind_statements();
  if (!is_read_silently(before + behind)) {
    fmt::print(stderr, "target_verdicts: the declarations alone give a message for {}\n", target);
    return 1;
  }
  fmt::print("{}\n", before);
  size_t number = 0;
  for (std::string_view opcode : ir::list_opcodes()) {
    if (opcode.find('.') != std::string_view::npos) continue; // a modifier's row of its opcode
    for (const TableStatement& statement : table_statements(opcode))
      if (statement.version <= "9.0" && number++ % every == 0)
        for (const std::string& text : statement.texts)
          fmt::print("{}\t{}\t{}\n", number, is_read_silently(before + text + "\n" + behind) ? '+' : '-', text);
  }
  fmt::print("LAST\n{}", behind);
  return 0;
}

} // namespace
} // namespace ptxrewrite::tests

int main(int count, char** arguments) {
  const bool has_every = count == 4 && std::string_view(arguments[2]) == "--every";
  if (count == 2 || has_every)
    return ptxrewrite::tests::run(arguments[1],
                                  has_every ? std::max<size_t>(std::strtoul(arguments[3], nullptr, 10), 1) : 1);
  std::fprintf(stderr, "usage: target_verdicts TARGET [--every N]\n");
  return 2;
}
