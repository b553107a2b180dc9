// Sunk computations stand behind what they read and before what reads them: the verifier finds no fault in any kernel.
#include "ir/machine/registers/sinking.h"

#include "ir/core/module.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/nested_kernel.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace ptxrewrite::tests::sinking_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

// Returns the number of functions in which something moved.
unsigned check(const std::string& ptx) {
  unsigned moved = 0;
  for (const bool with_predicates : {false, true}) {
    ReadText text(ptx);
    REQUIRE(text.ok());
    for (const auto& function : text.module->functions) {
      if (!function->has_body || !construct_ssa(*function).ok()) continue;
      moved += sink_computations(*function, with_predicates) ? 1 : 0;
      for (const VerifierFinding& finding : verify(*function))
        FAIL_CHECK(finding.rule);
    }
  }
  return moved;
}

} // namespace

TEST_CASE("chains of computations stay in order") {
  unsigned moved = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    moved += check(NestedKernel(seed).text());
  }
  CHECK(moved > 60);
}

TEST_CASE("samples stay in order") {
  unsigned moved = 0;
  for (const auto& folder : std::filesystem::directory_iterator(source_path("samples"))) {
    const std::string name = folder.path().filename().string();
    const std::filesystem::path path = folder.path() / (name + ".ptx");
    if (!std::filesystem::exists(path)) continue;
    CAPTURE(name);
    const Result<std::string> text = read_file(path.string());
    REQUIRE(text.ok());
    moved += check(*text);
  }
  CHECK(moved > 100);
}

} // namespace ptxrewrite::tests::sinking_test
