// What a read module holds: items, blocks, edges, names, annotations, hardware forms.
#include "tests/unit/grammar/read.h"

#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>
#include <filesystem>

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

TEST_CASE("the samples are read without a word, and read the same again after printing") {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests::source_path("samples"))) {
    if (entry.path().extension() != ".ptx") continue;
    ++count;
    CAPTURE(entry.path().string());
    ReadText first(*read_file(entry.path().string()));
    CHECK(first.messages() == "");
    REQUIRE(first.ok());
    const std::string printed = print(*first.module);
    ReadText second(printed);
    CHECK(second.messages() == "");
    REQUIRE(second.ok());
    CHECK(print(*second.module) == printed);
  }
  CHECK(count >= 7);
}
