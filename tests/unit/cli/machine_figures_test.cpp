// The order by which -O chooses: spilling first, then machine instructions, then registers.
#include "cli/machine_figures.h"

#include <doctest/doctest.h>

using namespace ptxrewrite::cli;

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
