// Diagnostics of wrong input, with their position; and that no input causes harm.
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::diagnostics_test {

using namespace ptxrewrite;

namespace {

// The first error's text under the caret.
std::string pointed_at(const ReadText& text) {
  for (const Diagnostic& diagnostic : text.diagnostics.list())
    if (diagnostic.severity == Severity::error) return std::string(text.source.text(diagnostic.range));
  return "no error";
}

} // namespace

TEST_CASE("the caret is under what is wrong") {
  const std::pair<const char*, const char*> cases[] = {
      {"add.u32 %r1, %r2, %r9;", "%r9"},                   // unknown register: %r<5>
      {"add.u32 %r1, %r2, %f1;", "%f1"},                   // wrong type
      {"add.u32 %r1, %r2;", "add.u32"},                    // missing operand
      {"mul.lo.u32.sat %r1, %r2, %r3;", "mul.lo.u32.sat"}, // wrong modifier
      {"bra NOWHERE;", "NOWHERE"},                         // bad target
      {"A: A: mov.u32 %r1, 1;", "A"},                      // duplicate label
      {".reg .u32 x, x;", "x"},                            // duplicate register
      {"@%r1 mov.u32 %r2, 1;", "%r1"},                     // guard that is no predicate
      {"mov.u32 %r1 %r2;", "%r2"},                         // missing comma
      {"mov.u32 %r1, nothing;", "nothing"},                // unknown symbol
      {"ld.global.u32 %r1, [%f1];", "[%f1]"},              // address in a float register
      {"mov.u32 %r1, 1/0;", "1/0"},                        // constant expression
      {"mov.u32 %r1, VV.s; .reg .v4 .u32 VV;", "VV.s"},    // declared too late
      {".reg .v2 .u32 VV; mov.u32 %r1, VV.z;", "VV.z"},    // third component of two
      {".shared .u32 s = 4;", "="},                        // initial value in shared memory
      {".local .align 3 .u32 s;", "3"},                    // alignment
      {"st.param.u32 [q], %r1;", "q"},                     // store to a kernel's parameter
      {".pragma nounroll;", "nounroll"},                   // no string
      {"mov.u32 %r1, 1;;", ";"},                           // empty statement
      {"mov.u32 %r1, 08;", "8"},                           // no octal digit
  };
  for (auto [statement, expected] : cases) {
    CAPTURE(statement);
    ReadText text(kernel(statement));
    CAPTURE(text.messages());
    CHECK(!text.ok());
    CHECK(pointed_at(text) == expected);
  }
}

TEST_CASE("a diagnostic names file, line and column") {
  ReadText text(kernel("mov.u32 %r1, 1;\n\tadd.u32 %r1, %r2, %r77;"));
  CHECK(text.messages().find("test.ptx:8:20: error: unknown register '%r77'") != std::string::npos);
}

TEST_CASE("several errors are reported, as many as the limit allows") {
  std::string body;
  for (int i = 0; i < 50; ++i)
    body += "add.u32 %r1, %r2, %bad" + std::to_string(i) + ";\n";
  CHECK(ReadText(kernel(body)).diagnostics.error_count() == 20);
  CHECK(ReadText(kernel(body), 3).diagnostics.error_count() == 3);
  CHECK(ReadText(kernel(body), 1000).diagnostics.error_count() == 50);
}

TEST_CASE("reading goes on behind an error") {
  ReadText text(kernel(
      "add.u32 %r1, , %r2;\n foo bar baz;\n{ mov.u32 %r1, ]; }\n ld.global.u32 %r1, [%rd1;\n mov.u32 %r4, %r9;"));
  CHECK(text.diagnostics.error_count() == 5);
}

TEST_CASE("duplicates say where the first one is") {
  ReadText text(kernel("A:\nmov.u32 %r1, 1;\nA:"));
  REQUIRE(text.diagnostics.list().size() == 1);
  REQUIRE(text.diagnostics.list()[0].notes.size() == 1);
  CHECK(text.diagnostics.list()[0].notes[0] == "first defined at line 7, column 1");
}

TEST_CASE("missing pieces of the frame") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the file must begin with .version"},
      {".target sm_80\n", "the file must begin with .version"},
      {".version 9\n", "not a PTX version"},
      {".version 2.5\n.target sm_20\n", "not a PTX version"},
      {".version 9.0\n.target gfx90\n", "unknown target"},
      {".version 9.0\n.target sm_90\n.address_size 48\n", ".address_size must be 32 or 64"},
      {".version 9.0\n.target sm_90\n.entry k(){ ret;\n", "the body has no closing '}'"},
      {".version 9.0\n.target sm_90\n.entry k(){ ret; } }\n", "unexpected '}'"},
      {".version 9.0\n.target sm_90\n.entry k(){ ret; /* never closed }\n", "the comment has no end"},
      {".version 9.0\n.target sm_90\n.file 1 \"never closed\n", "the string has no end"},
      {".version 9.0\n.target sm_90\n.entry k( { ret; }\n", "unexpected '{'"},
      {".version 9.0\n.target sm_90\nhello world\n", "unexpected 'hello'"},
      {"#define X\n.version 9.0\n", "unexpected '#'"},
  };
  for (auto [source, expected] : cases) {
    CAPTURE(source);
    ReadText text(source);
    CAPTURE(text.messages());
    CHECK(!text.ok());
    CHECK(text.messages().find(expected) != std::string::npos);
  }
}

TEST_CASE("bytes that no PTX may hold") {
  ReadText accent(kernel("// na\xc3\xafve"));
  CHECK(!accent.ok());
  CHECK(pointed_at(accent) == "\xc3\xaf");
  ReadText nul(kernel(std::string("mov.u32 %r1,\0 1;", 16)));
  CHECK(!nul.ok());
  CHECK(nul.messages().find("NUL byte") != std::string::npos);
  ReadText mark("\xef\xbb\xbf" + kernel(""));
  CHECK(mark.ok());
  CHECK(mark.diagnostics.list().size() == 1);
  CHECK(mark.diagnostics.list()[0].severity == Severity::warning);
}

TEST_CASE("nesting without end is refused, not followed") {
  auto repeat = [](const std::string& piece, unsigned count) {
    std::string all;
    for (unsigned i = 0; i < count; ++i)
      all += piece;
    return all;
  };
  for (const char* piece : {"(", "-", "~", "{", "[", "(.s64)", "1+("}) {
    CAPTURE(piece);
    CHECK(!ReadText(kernel("mov.u32 %r1, " + repeat(piece, 100000) + "1;")).ok());
  }
  CHECK(!ReadText(".version 9.0\n.target sm_90\n.global .u32 x[] = " + repeat("{", 100000) + ";\n").ok());
  // Scopes are not handled by recursion: these are accepted.
  CHECK(ReadText(kernel(repeat("{", 100000) + repeat("}", 100000))).ok());
}

TEST_CASE("every prefix of a module, and every module with one byte changed, gives a module or an error") {
  const std::string source = kernel(
      "{ .reg .b32 %t; L: @%p1 bra L; mov.b64 {%r1, _}, %rd1; }\n st.global.v2.f32 [%rd1+8], {%f1, 0f3F800000};\n"
      "T: .branchtargets M;\n brx.idx %r1, T;\nM: .loc 1 2 3\n .pragma \"nounroll\"; //@ note\n",
      ".global .u32 g[2] = {1, 2};\n.section .debug_str { s: .b8 1, 2 }\n");
  REQUIRE_MESSAGE(ReadText(source).ok(), ReadText(source).messages());
  unsigned modules = 0, refusals = 0;
  auto check = [&](const std::string& text) {
    ReadText read(text);
    (read.ok() ? modules : refusals)++;
    CHECK(read.ok() == !read.diagnostics.has_errors());
    if (read.ok()) (void)ir::print(*read.module);
  };
  for (size_t length = 0; length < source.size(); ++length)
    check(source.substr(0, length));
  for (size_t at = 0; at < source.size(); ++at)
    for (char c : {'{', '}', ';', '"', '.', '0', '%', '\n', '\0', '\xff', '(', ',', ':', '@', '/', '*'}) {
      std::string changed = source;
      changed[at] = c;
      check(changed);
    }
  CHECK(modules > 100);
  CHECK(refusals > 1000);
}

} // namespace ptxrewrite::tests::diagnostics_test
