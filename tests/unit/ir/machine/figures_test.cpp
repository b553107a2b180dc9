// The order of the criteria of -O: spilling first, then machine instructions, then registers.
#include "ir/machine/figures/figures.h"
#include "support/ptxas.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::figures_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

TEST_CASE("a rewrite is worse when it spills more, is longer, or as long with more registers") {
  MachineFigures before{.instructions = 100, .registers = 32, .spilled_bytes = 8};
  CHECK_FALSE(is_worse(before, before));
  CHECK(is_worse({90, 32, 12}, before));
  CHECK_FALSE(is_worse({110, 40, 0}, before));
  CHECK(is_worse({101, 20, 8}, before));
  CHECK_FALSE(is_worse({99, 40, 8}, before));
  CHECK(is_worse({100, 33, 8}, before));
}

TEST_CASE("only functions of both texts can lose") {
  FiguresByFunction before{{"a", {10, 8, 0}}, {"b", {10, 8, 0}}, {"gone", {1, 1, 0}}};
  FiguresByFunction after{{"a", {11, 8, 0}}, {"b", {9, 8, 0}}, {"new", {99, 99, 99}}};
  CHECK(worse_functions(before, after) == std::vector<std::string>{"a"});
}

TEST_CASE("figures are what ptxas says, and asking again says the same") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                          ".reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"
                          "st.global.u32 [%rd1], %r1;\nret;\n}\n";
  Result<PtxasRun> run = assemble(ptx, {.arch = "sm_80"});
  REQUIRE(run.ok());
  REQUIRE(run->ok);
  for (int round = 0; round < 2; ++round) {
    Result<FiguresByFunction> figures = machine_figures(ptx, "sm_80");
    REQUIRE(figures.ok());
    REQUIRE(figures->size() == 1);
    CHECK(figures->at("k").registers == run->find("k")->registers);
    CHECK(figures->at("k").spilled_bytes == 0);
    CHECK(figures->at("k").instructions > 4);
  }
  CHECK_FALSE(machine_figures(ptx + "nonsense", "sm_80").ok());
  CHECK_FALSE(machine_figures(ptx, "sm_1").ok());
}

} // namespace ptxrewrite::tests::figures_test
