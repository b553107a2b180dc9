// emulator_coverage [--all] LIST: the number of forms of the ISA table that the emulator supports, per opcode.
//
// A form counts as emulated if a kernel that consists of it can be decoded, for each of its operand lists. LIST gives
// the forms that are not emulated and the reasons: lines of an opcode, optionally with modifiers of the form, a tab and
// a reason. Exit code 1: no line explains a missing form. --all prints every missing form, otherwise only the first few
// of each opcode are printed.
#include "emulator/core/emulator.h"
#include "grammar/reader.h"
#include "support/file_io.h"
#include "tests/emulator/forms.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

struct Reason {
  std::string selection;
  std::string why;
  bool used = false;
};

std::vector<Reason> read_reasons(const std::string& text) {
  std::vector<Reason> reasons;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    const size_t tab = line.find('\t');
    if (tab != std::string::npos && line[0] != '#') reasons.push_back({line.substr(0, tab), line.substr(tab + 1)});
    start = end + 1;
  }
  return reasons;
}

std::vector<std::string_view> words_of(std::string_view mnemonic) {
  std::vector<std::string_view> words;
  while (!mnemonic.empty()) {
    const size_t end = std::min(mnemonic.find('.'), mnemonic.size());
    words.push_back(mnemonic.substr(0, end));
    mnemonic.remove_prefix(std::min(end + 1, mnemonic.size()));
  }
  return words;
}

// Do the opcodes match (`*`: any), and does the mnemonic have all further words of `selection`?
bool is_selected(std::string_view mnemonic, std::string_view selection) {
  const std::vector<std::string_view> words = words_of(mnemonic);
  const std::vector<std::string_view> wanted = words_of(selection);
  const bool same_opcode = wanted.front() == "*" || wanted.front() == words.front();
  return same_opcode && std::all_of(wanted.begin() + 1, wanted.end(), [&](std::string_view word) {
           return std::find(words.begin(), words.end(), word) != words.end();
         });
}

std::string module_text(const std::vector<std::string>& statements) {
  std::string text(module_preamble());
  for (size_t i = 0; i < statements.size(); ++i)
    text.append(".visible .entry k")
        .append(std::to_string(i))
        .append("()\n{\n")
        .append(kernel_preamble())
        .append(statements[i])
        .append("\n")
        .append(kernel_end());
  return text;
}

// For each statement: why it is not emulated; empty if it is. Statements that the reader rejects count as rejected.
void check(const std::vector<std::string>& statements, std::vector<std::string>& answers) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("coverage.ptx", module_text(statements)), diagnostics);
  if (!module && statements.size() > 1) {
    const size_t half = statements.size() / 2;
    check({statements.begin(), statements.begin() + static_cast<ptrdiff_t>(half)}, answers);
    check({statements.begin() + static_cast<ptrdiff_t>(half), statements.end()}, answers);
    return;
  }
  if (!module) {
    answers.push_back("the reader refuses it");
    return;
  }
  emulator::DeviceMemory memory(uint64_t(1) << 28);
  auto program = emulator::Program::load(*module, memory);
  for (size_t i = 0; i < statements.size(); ++i) {
    Status status = program ? (*program)->check_supported("k" + std::to_string(i)) : Status(program.error());
    answers.push_back(status ? std::string() : status.error().message);
  }
}

struct Missing {
  std::string mnemonic;
  std::string why;
};

struct OpcodeCoverage {
  size_t forms = 0;
  std::vector<Missing> missing;
};

OpcodeCoverage cover(std::string_view opcode) {
  OpcodeCoverage result;
  std::vector<std::string> statements;
  std::vector<std::string> owners;
  for (const std::string& mnemonic : mnemonics_of(opcode)) {
    ++result.forms;
    const std::vector<std::string> plain = plain_statements(mnemonic);
    if (std::find(plain.begin(), plain.end(), "") != plain.end() && result.missing.empty())
      result.missing.push_back({mnemonic, "an operand that this test cannot spell"});
    for (const std::string& statement : plain)
      if (!statement.empty()) {
        statements.push_back(statement);
        owners.push_back(mnemonic);
      }
  }
  constexpr size_t batch = 64;
  std::vector<std::string> answers;
  for (size_t start = 0; start < statements.size(); start += batch)
    check({statements.begin() + static_cast<ptrdiff_t>(start),
           statements.begin() + static_cast<ptrdiff_t>(std::min(start + batch, statements.size()))},
          answers);
  for (size_t i = 0; i < answers.size(); ++i)
    if (!answers[i].empty() && (result.missing.empty() || result.missing.back().mnemonic != owners[i]))
      result.missing.push_back({owners[i], statements[i] + " " + answers[i]});
  return result;
}

int run(bool all, const std::string& list) {
  std::vector<Reason> reasons = read_reasons(list);
  size_t forms = 0, missing = 0, unexplained = 0;
  std::printf("%-20s %8s %8s\n", "opcode", "emulated", "forms");
  for (std::string_view opcode : ir::list_opcodes()) {
    if (opcode.find('.') != std::string_view::npos) continue; // an instruction of a hardware form
    const OpcodeCoverage coverage = cover(opcode);
    forms += coverage.forms;
    missing += coverage.missing.size();
    std::printf("%-20s %8zu %8zu\n", std::string(opcode).c_str(), coverage.forms - coverage.missing.size(),
                coverage.forms);
    size_t shown = 0;
    for (const Missing& one : coverage.missing) {
      Reason* reason = nullptr;
      for (Reason& candidate : reasons)
        if (is_selected(one.mnemonic, candidate.selection)) reason = &candidate;
      if (reason) reason->used = true;
      unexplained += !reason;
      if (all || (shown < 3 && !reason)) std::printf("    %s: %s\n", one.mnemonic.c_str(), one.why.c_str());
      shown += !reason;
    }
  }
  std::printf("%zu of %zu forms are emulated, %zu are not; of these %zu have no reason in the list\n", forms - missing,
              forms, missing, unexplained);
  size_t idle = 0;
  for (const Reason& reason : reasons) {
    idle += !reason.used;
    std::printf("%s %s: %s\n", reason.used ? "not emulated:" : "no form needs the line", reason.selection.c_str(),
                reason.why.c_str());
  }
  return unexplained == 0 && idle == 0 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::test

int main(int argument_count, char** arguments) {
  bool all = false;
  std::string list;
  for (int i = 1; i < argument_count; ++i) {
    if (std::string_view(arguments[i]) == "--all") {
      all = true;
      continue;
    }
    auto text = ptxrewrite::read_file(arguments[i]);
    if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 2;
    list += *text;
  }
  return ptxrewrite::test::run(all, list);
}
