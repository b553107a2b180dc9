// Reports which forms of the ISA table the emulator executes, by opcode, and the reasons for the others.
//
// usage: isa_coverage_tool [--list FILE [--bless]] [--every N] [--only OPCODE] [--statements FILE] [--examples]
//
// A form is a mnemonic of the table with one of its operand lists: it is written as a statement, read, and given to the
// emulator, which reports unsupported forms before it runs anything.
// `--list` compares the missing forms with a committed list and fails if they differ, so that gained and lost forms are
// visible in a change's review; `--bless` writes it. With `--every N` each N-th form is tested, and only reasons are
// compared: the list must have each of them. `--statements` reads one statement per line instead of the
// table's ("mnemonic operands;", with registers as in tests/isa/statement.h and the names of statement_declarations()).
#include "emulator/core/emulator.h"
#include "grammar/reader.h"
#include "tests/coverage/table_statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace ptxrewrite::tests {
namespace {

struct Settings {
  std::string list, only, statements;
  bool examples = false, bless = false;
  unsigned every = 1;
};

// Names of variables, functions and labels that statements of a file may use, in the module and in the function.
constexpr const char* statement_declarations =
    ".global .u32 gu32;\n.shared .align 16 .b8 svar[256];\n.const .align 16 .b8 cvar[256];\n"
    ".global .texref gtex;\n.global .surfref gsurf;\n"
    ".func (.param .b32 r) fn1(.param .b32 a) { st.param.b32 [r], 0; ret; }\n.func fn0() { ret; }\n"
    ".func fn2(.param .b32 a) { ret; }\n.func (.param .b32 r) fn3(.param .b32 a) { st.param.b32 [r], 0; ret; }\n";
constexpr const char* statement_parameters = ".param .b64 kp, .param .align 64 .b8 ktm[128], .param .b32 kp32";
constexpr const char* statement_locals =
    ".param .b32 cpa; .param .b32 cpr; .param .align 16 .b8 cparr[64]; .local .align 16 .b8 lvar[256];\n";

// Returns why the emulator rejects the text, or an empty string. Sets `unread` if the reader rejects it.
std::string reason_against(const TableStatement& statement, const std::string& instruction, bool& unread) {
  const bool has_sampler = instruction.find("gsmp") != std::string::npos;
  const std::string text = fmt::format(
      ".version 9.5\n.target {}{}\n.address_size 64\n{}{}{}.visible .entry k({}) {{\n{}\n{}{}\n{}LEND: ret;\n}}\n",
      statement.target, has_sampler ? ", texmode_independent" : "", module_declarations(), statement_declarations,
      has_sampler ? ".global .samplerref gsmp;\n" : "", statement_parameters, register_declarations(), statement_locals,
      instruction, label_statements());
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("form.ptx", text), diagnostics);
  unread = !module;
  if (!module) return diagnostics.list().empty() ? "not read" : diagnostics.list().front().message;
  emulator::DeviceMemory memory;
  auto program = emulator::Program::load(*module, memory);
  if (!program) return program.error().message;
  const Status supported = (*program)->check_supported("k");
  return supported ? std::string() : supported.error().message;
}

// Replaces the parts of a reason that differ from form to form, as in "'multimem.st.global.f32' is not emulated".
std::string general(std::string reason) {
  if (reason.starts_with('\'')) return "no semantics";
  if (const size_t quote = reason.find('\''); quote != std::string::npos)
    reason.replace(quote, reason.find('\'', quote + 1) + 1 - quote, "the instruction");
  return reason;
}

struct Opcode {
  unsigned forms = 0, emulated = 0, unread = 0;
};

struct Missing {
  unsigned forms = 0;
  std::string example;
};

class Coverage {
public:
  void take(std::string_view opcode, const std::vector<TableStatement>& statements, unsigned every) {
    Opcode& counts = opcodes_[std::string(opcode)];
    for (size_t i = 0; i < statements.size(); i += every) {
      const TableStatement& statement = statements[i];
      bool unread = true;
      std::string why;
      for (const std::string& text : statement.texts) {
        bool unread_text = false;
        std::string reason = reason_against(statement, text, unread_text);
        unread = unread && unread_text;
        if (why.empty() || reason.empty()) why = reason;
        if (reason.empty()) break;
      }
      ++counts.forms;
      if (why.empty()) {
        ++counts.emulated;
        continue;
      }
      counts.unread += unread;
      Missing& missing = missing_[{std::string(opcode), general(why)}];
      if (missing.forms++ == 0) missing.example = statement.texts.front();
    }
  }

  bool show(const Settings& settings) const {
    Opcode all;
    for (const auto& [name, counts] : opcodes_) {
      all.forms += counts.forms;
      all.emulated += counts.emulated;
      all.unread += counts.unread;
      if (counts.emulated != counts.forms) fmt::print("{:<20} {:>6} of {:>6}\n", name, counts.emulated, counts.forms);
    }
    fmt::print("\n");
    for (const auto& [key, missing] : missing_) {
      fmt::print("{:<16} {:>6}  {}\n", key.first, missing.forms, key.second);
      if (settings.examples) fmt::print("{:24}{}\n", "", missing.example);
    }
    fmt::print("\n{} of {} forms are emulated ({:.2f} %), {} are not read\n", all.emulated, all.forms,
               all.forms ? 100.0 * all.emulated / all.forms : 0.0, all.unread);
    return all.unread == 0;
  }

  // Reasons that are not in the list, each with its opcode.
  std::vector<std::string> reasons_beside(const std::string& list) const {
    std::vector<std::string> beside;
    for (const auto& [key, missing] : missing_) {
      bool listed = false;
      std::istringstream lines(list);
      for (std::string line; !listed && std::getline(lines, line);)
        listed = line.starts_with(key.first + "\t") && line.ends_with("\t" + key.second);
      if (!listed) beside.push_back(key.first + ": " + key.second);
    }
    return beside;
  }

  std::string list() const {
    std::string text = "# Forms of the ISA table that the emulator refuses: opcode, how many, why. Rewritten by\n"
                       "# `ninja bless_isa_coverage`; an example of each is printed by `ninja isa_coverage`.\n";
    for (const auto& [key, missing] : missing_)
      text += fmt::format("{}\t{}\t{}\n", key.first, missing.forms, key.second);
    return text;
  }

private:
  std::map<std::string, Opcode> opcodes_;
  std::map<std::pair<std::string, std::string>, Missing> missing_;
};

std::vector<TableStatement> read_statements(const std::string& path) {
  std::vector<TableStatement> statements;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) statements.push_back({line.substr(0, line.find_first_of(" ;")), {line}, "9.5", "sm_100a"});
  return statements;
}

bool is_as_listed(const Coverage& coverage, const Settings& settings) {
  if (settings.list.empty()) return true;
  if (settings.bless) {
    std::ofstream(settings.list) << coverage.list();
    return true;
  }
  std::stringstream committed;
  committed << std::ifstream(settings.list).rdbuf();
  if (settings.every > 1) {
    const std::vector<std::string> beside = coverage.reasons_beside(committed.str());
    for (const std::string& reason : beside)
      fmt::print("not in {}: {}\n", settings.list, reason);
    return beside.empty();
  }
  if (committed.str() == coverage.list()) return true;
  fmt::print("this differs from {}; bless_isa_coverage rewrites it\n", settings.list);
  return false;
}

std::optional<Settings> read_settings(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const bool has_value = i + 1 < count;
    if (word == "--examples")
      settings.examples = true;
    else if (word == "--bless")
      settings.bless = true;
    else if (word == "--list" && has_value)
      settings.list = arguments[++i];
    else if (word == "--every" && has_value)
      settings.every = std::max(1, std::atoi(arguments[++i]));
    else if (word == "--only" && has_value)
      settings.only = arguments[++i];
    else if (word == "--statements" && has_value)
      settings.statements = arguments[++i];
    else
      return std::nullopt;
  }
  return settings;
}

int run(const Settings& settings) {
  Coverage coverage;
  if (!settings.statements.empty()) {
    std::map<std::string, std::vector<TableStatement>> by_opcode;
    for (TableStatement& statement : read_statements(settings.statements))
      by_opcode[statement.mnemonic.substr(0, statement.mnemonic.find('.'))].push_back(std::move(statement));
    for (const auto& [opcode, statements] : by_opcode)
      coverage.take(opcode, statements, settings.every);
  } else {
    for (std::string_view opcode : ir::list_opcodes())
      if (opcode.find('.') == std::string_view::npos && (settings.only.empty() || settings.only == opcode))
        coverage.take(opcode, table_statements(opcode), settings.every);
  }
  const bool all_read = coverage.show(settings);
  return all_read && is_as_listed(coverage, settings) ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::tests

int main(int count, char** arguments) {
  const auto settings = ptxrewrite::tests::read_settings(count, arguments);
  if (settings) return ptxrewrite::tests::run(*settings);
  std::fprintf(stderr, "usage: isa_coverage_tool [--list FILE [--bless]] [--every N] [--only OPCODE] "
                       "[--statements FILE] [--examples]\n");
  return 2;
}
