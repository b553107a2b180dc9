// Single statements and directives against ptxas' verdicts (tests/grammar/*.tsv).
#include "tests/unit/grammar/read.h"

#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>
#include <sstream>
#include <vector>

namespace ptxrewrite::tests::probes_test {

using namespace ptxrewrite;

namespace {

std::vector<std::vector<std::string>> rows_of(const std::string& file) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(*read_file(tests::source_path("tests/grammar/" + file)));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '\t');)
      cells.push_back(cell);
    if (line.back() == '\t') cells.emplace_back();
    rows.push_back(cells);
  }
  return rows;
}

// Declarations for the statements of statement_probes.tsv.
std::string around_statement(const std::string& statement) {
  return R"(.version 9.0
.target sm_90
.address_size 64
.global .align 16 .b8 gvar[256];
.shared .align 16 .b8 svar[256];
.const .align 16 .b8 cvar[256];
.global .u32 gu32;
.func (.param .b32 fr) fn1(.param .b32 fa){ .reg .b32 %t; ld.param.b32 %t,[fa]; st.param.b32 [fr],%t; ret; }
.func fn0(){ ret; }
.func fn2(.param .b32 fa){ ret; }
.func (.param .b32 fr) fn3(.param .b32 fa){ .reg .b32 %t; ld.param.b32 %t,[fa]; st.param.b32 [fr],%t; ret; }
.entry k(.param .b64 kp, .param .align 64 .b8 ktm[128], .param .b32 kp32)
{
.reg .pred %p<16>;
.reg .b8 %c<16>;
.reg .b16 %h<40>;
.reg .b32 %r<320>;
.reg .b64 %l<80>;
.reg .f32 %f<140>;
.reg .f64 %d<40>;
.reg .b128 %q<16>;
.param .b32 cpa; .param .b32 cpr; .param .align 16 .b8 cparr[64];
.local .align 16 .b8 lvar[256];
)" + statement +
         "\nLEND: exit;\n}\n";
}

std::string around_directive(const std::string& place, const std::string& text) {
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
  const std::string kernel = ".entry k(){ .reg .u32 %r1; ret; }\n";
  const std::string open = "{ .reg .u32 %r1; mov.u32 %r1, 1;\n";
  if (place == "module") return head + text + "\n" + kernel;
  if (place == "module-after") return head + kernel + text + "\n";
  if (place == "entry-hdr") return head + ".entry k() " + text + "\n{ ret; }\n";
  if (place == "func-hdr") return head + ".func f() " + text + "\n{ ret; }\n" + kernel;
  if (place == "funcret-hdr") return head + ".func (.param .u32 r) f() " + text + "\n{ ret; }\n" + kernel;
  if (place == "entry-prefix") return head + text + " .entry k(){ ret; }\n";
  if (place == "func-prefix") return head + text + " .func f(){ ret; }\n" + kernel;
  if (place == "func-proto") return head + text + " .func f();\n" + kernel;
  if (place == "entry-proto") return head + text + " .entry e();\n" + kernel;
  if (place == "body") return head + ".entry k()" + open + text + "\nret; }\n";
  if (place == "body-top") return head + ".entry k(){\n" + text + "\n.reg .u32 %r1; ret; }\n";
  if (place == "func-body") return head + kernel + ".func f()" + open + text + "\nret; }\n";
  if (place == "entry-params") return head + ".entry k(" + text + "){ ret; }\n";
  if (place == "func-params") return head + ".func f(" + text + "){ ret; }\n" + kernel;
  REQUIRE(place == "func-ret");
  return head + ".func (" + text + ") f(){ ret; }\n" + kernel;
}

std::string with_line_ends(std::string text) {
  for (size_t at; (at = text.find("\\n")) != std::string::npos;)
    text.replace(at, 2, "\n");
  return text;
}

} // namespace

TEST_CASE("statements are accepted and refused as by ptxas") {
  auto rows = rows_of("statement_probes.tsv");
  CHECK(rows.size() == 187);
  for (const auto& row : rows) {
    CAPTURE(row[1]);
    ReadText text(around_statement(row[1]));
    CAPTURE(text.messages());
    CHECK(text.ok() == (row[0] != "refused"));
    if (row[0] == "refused") {
      // The caret is on the statement's line or, when something is missing, at the next word.
      REQUIRE(!text.diagnostics.list().empty());
      const uint32_t line = text.source.locate(text.diagnostics.list()[0].range.begin).line;
      CHECK(line >= 24);
      CHECK(line <= 25);
    }
    if (!text.ok()) continue;
    bool any_opaque = false;
    for (const auto& function : text.module->functions)
      for (const auto& instruction : function->instructions)
        any_opaque |= instruction.kind == ir::InstructionKind::real && ir::form(instruction.form).opaque;
    CHECK(any_opaque == (row[0] == "opaque"));
    // Accepted text prints to accepted text, which prints the same again.
    const std::string printed = ir::print(*text.module);
    ReadText again(printed);
    CAPTURE(printed);
    CAPTURE(again.messages());
    REQUIRE(again.ok());
    CHECK(ir::print(*again.module) == printed);
  }
}

TEST_CASE("directives are accepted and refused as by ptxas, in every place") {
  unsigned count = 0;
  for (const auto& row : rows_of("directive_probes.tsv")) {
    REQUIRE(row.size() == 4);
    for (size_t column = 1; column < 4; ++column) {
      if (row[column] == "-") continue;
      std::istringstream places(row[column]);
      for (std::string place; std::getline(places, place, ',');) {
        ++count;
        CAPTURE(place);
        CAPTURE(row[0]);
        ReadText text(around_directive(place, with_line_ends(row[0])));
        CAPTURE(text.messages());
        CHECK(text.ok() == (column != 2));
        if (!text.ok()) continue;
        const std::string printed = ir::print(*text.module);
        ReadText again(printed);
        CAPTURE(printed);
        CAPTURE(again.messages());
        REQUIRE(again.ok());
        CHECK(ir::print(*again.module) == printed);
      }
    }
  }
  CHECK(count == 984);
}

} // namespace ptxrewrite::tests::probes_test
