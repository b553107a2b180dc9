// The additions of PTX 9.1 to 9.5, against ptxas 13.5: statements of tests/isa/additions.tsv in the table, in the
// reader, and in the assembler itself if that release is installed.
#include "ir/isa/isa_availability.h"
#include "support/ptxas.h"
#include "tests/isa/statement.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ptxrewrite::tests::isa_additions_test {

using namespace ptxrewrite::ir;
using ptxrewrite::test::check_statement;
using ptxrewrite::test::Statement;

namespace {

struct Addition {
  char verdict = ' '; // `+`, `?` or `-`, see the file
  std::string text;
  std::map<std::string, PtxVersion> targets; // with the first version there
};

PtxVersion version_of(const std::string& text) {
  return *parse_version(text);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

std::vector<Addition> additions() {
  std::ifstream file(source_path("tests/isa/additions.tsv"));
  REQUIRE(file);
  std::vector<Addition> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> columns = split(line, '\t');
    REQUIRE(columns.size() == 3);
    Addition& addition = all.emplace_back();
    addition.verdict = columns[0][0];
    addition.text = columns[1];
    for (const std::string& target : split(columns[2], ',')) {
      const size_t at = target.find('@');
      addition.targets[target.substr(0, at)] =
          at == std::string::npos ? PtxVersion{9, 5} : version_of(target.substr(at + 1));
    }
  }
  return all;
}

// A kernel with the registers of tests/isa/statement.h. Each statement is on its own line from `first_line` on.
constexpr unsigned first_line = 9;
std::string kernel_of(const std::vector<std::string>& statements, const std::string& target) {
  std::string text = ".version 9.5\n.target " + target +
                     "\n.address_size 64\n.visible .entry k()\n{\n"
                     ".reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<99>;\n"
                     ".reg .b32 %r<400>; .reg .b64 %l<99>; .reg .f32 %f<99>;\n"
                     ".reg .f64 %d<9>; .reg .b128 %q<9>;\n";
  for (const std::string& statement : statements)
    text += statement + "\n";
  return text + "ret;\n}\n";
}

// Accepted statements by a target that supports them.
std::map<std::string, std::vector<std::string>> accepted_by_target() {
  std::map<std::string, std::vector<std::string>> result;
  for (const Addition& addition : additions())
    if (addition.verdict != '-') {
      const bool newest = addition.targets.contains("sm_107a");
      result[newest ? "sm_107a" : addition.targets.begin()->first].push_back(addition.text);
    }
  return result;
}

} // namespace

TEST_CASE("additions are in the table, for the versions and targets of ptxas 13.5") {
  std::vector<std::pair<PtxVersion, std::vector<std::string>>> versions;
  std::ifstream file(source_path("tests/isa/version_target.tsv"));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("9.")) versions.emplace_back(version_of(line), split(line.substr(line.find('\t') + 1), ' '));
  REQUIRE(versions.size() == 6);
  std::set<std::string> judged; // targets that were tried
  for (const Addition& addition : additions())
    for (const auto& [target, since] : addition.targets)
      judged.insert(target);
  size_t forms = 0, present = 0, absent = 0;
  for (const Addition& addition : additions()) {
    if (addition.verdict != '+') continue;
    CAPTURE(addition.text);
    CHECK(check_statement(addition.text) == "");
    const Statement statement(addition.text);
    const Form& f = form(*resolve_form(statement.mnemonic));
    CHECK(!f.opaque);
    ++forms;
    if (f.opcode == Opcode::mov) continue; // the special register is new, not the form
    for (const auto& [version, targets] : versions)
      for (const std::string& target : targets) {
        if (!judged.contains(target)) continue;
        CAPTURE(target);
        CAPTURE(version.minor);
        const auto known = addition.targets.find(target);
        const bool expected = known != addition.targets.end() && known->second <= version;
        CHECK(why_not_available(f, version, target).empty() == expected);
        ++(expected ? present : absent);
      }
  }
  CHECK(forms > 1000);
  CHECK(present > 5000);
  CHECK(absent > 50000);
}

TEST_CASE("changed additions are refused where ptxas 13.5 refuses them") {
  size_t taken = 0, refused = 0;
  for (const Addition& addition : additions()) {
    if (addition.verdict == '+') continue;
    CAPTURE(addition.text);
    const std::string& target = addition.targets.begin()->first;
    CAPTURE(target);
    std::string why = check_statement(addition.text);
    const Statement statement(addition.text);
    if (why.empty()) why = why_not_available(form(*resolve_form(statement.mnemonic)), {9, 5}, target);
    if (addition.verdict == '?')
      CHECK(why == "");
    else
      CHECK(why != "");
    ++(addition.verdict == '?' ? taken : refused);
  }
  CHECK(taken > 100);
  CHECK(refused > 1000);
}

TEST_CASE("additions are read, printed and read back unchanged") {
  size_t read = 0;
  for (const auto& [target, statements] : accepted_by_target()) {
    CAPTURE(target);
    const ReadText first(kernel_of(statements, target));
    CHECK(first.messages() == "");
    REQUIRE(first.ok());
    const std::string printed = print(*first.module);
    const ReadText second(printed);
    CHECK(second.messages() == "");
    REQUIRE(second.ok());
    CHECK(print(*second.module) == printed);
    for (const std::string& statement : statements) {
      const std::string mnemonic = statement.substr(0, statement.find_first_of(" ;"));
      CHECK_MESSAGE(printed.find(mnemonic) != std::string::npos, statement);
      ++read;
    }
  }
  CHECK(read > 1200);
}

TEST_CASE("ptxas 13.5 itself says of the additions what the file says") {
  std::string judge;
  for (const std::string& program : all_ptxas())
    if (const std::optional<PtxVersion> release = parse_version(ptxas_release(program));
        judge.empty() && release && *release >= PtxVersion{13, 5})
      judge = program;
  if (judge.empty()) {
    MESSAGE("skipped: no ptxas of release 13.5 or later (./bootstrap ptxas fetches one)");
    return;
  }
  PtxasOptions options;
  options.program = judge;
  options.optimization_level = 0;
  options.extra_flags = {"--compile-only"};
  size_t judged = 0;
  for (const auto& [target, statements] : accepted_by_target()) {
    CAPTURE(target);
    options.arch = target;
    const Result<PtxasRun> run = assemble(kernel_of(statements, target), options);
    REQUIRE(run);
    CHECK_MESSAGE(run->messages.find("; error") == std::string::npos, run->messages);
    judged += statements.size();
  }
  // ptxas reports all statements with invalid operands, but only the first one that it cannot parse.
  std::map<std::string, std::vector<std::string>> refused;
  for (const Addition& addition : additions())
    if (addition.verdict == '-') refused[addition.targets.begin()->first].push_back(addition.text);
  for (const auto& [target, statements] : refused) {
    options.arch = target;
    for (size_t i = 0; i < statements.size(); i += 30, ++judged) {
      CAPTURE(statements[i]);
      const Result<PtxasRun> run = assemble(kernel_of({statements[i]}, target), options);
      REQUIRE(run);
      CHECK(!run->ok);
      CHECK(run->messages.find("line " + std::to_string(first_line)) != std::string::npos);
    }
  }
  CHECK(judged > 1200);
}

} // namespace ptxrewrite::tests::isa_additions_test
