// Positions and rendered diagnostics against hand-counted ones.
#include "support/diagnostic.h"
#include "support/source.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::source_test {

using namespace ptxrewrite;

TEST_CASE("line and column are 1-based and count bytes") {
  SourceFile source("a.ptx", "ab\ncde\r\n\nf");
  CHECK(source.locate(0).line == 1);
  CHECK(source.locate(4).line == 2);
  CHECK(source.locate(4).column == 2);
  CHECK(source.locate(9).line == 4);
  CHECK(source.locate(9).column == 1);
  CHECK(source.line(2) == "cde");
  CHECK(source.line(3) == "");
  CHECK(source.line(4) == "f");
  CHECK(source.line(5) == "");
}

TEST_CASE("a diagnostic shows file, position, line and caret") {
  SourceFile source("k.ptx", "ret;\nadd.q32 %r1;\n");
  std::string text = render({Severity::error, {9, 12}, "unknown type '.q32'", {}}, source);
  CHECK(text == "k.ptx:2:5: error: unknown type '.q32'\n  add.q32 %r1;\n      ^~~\n");
}

TEST_CASE("a diagnostic without a position names the file only") {
  SourceFile source("k.ptx", "");
  CHECK(render({Severity::warning, {}, "empty file", {}}, source) == "k.ptx: warning: empty file\n");
}

} // namespace ptxrewrite::tests::source_test
