// Registers that are certainly needed, since all values are live across a barrier.
#include "ir/machine/registers/registers.h"

#include "ir/machine/figures/figures.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::registers_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Loads `count` values, waits, and stores them.
std::string held_values(unsigned count, const std::string& type) {
  std::string loads, stores;
  for (unsigned i = 0; i < count; ++i) {
    std::string value = "%v" + std::to_string(i), place = std::to_string(8 * i) + "]";
    loads += "ld.global." + type + " " + value + ", [%a+" + place + ";\n";
    stores += "st.global." + type + " [%a+" + place + ", " + value + ";\n";
  }
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %a; .reg ." +
         type + " %v<" + std::to_string(count) + ">;\nld.param.u64 %a, [p];\n" + loads + "bar.sync 0;\n" + stores +
         "ret;\n}\n";
}

} // namespace

TEST_CASE("values that are live at the same time have registers of their own") {
  for (bool ssa : {false, true})
    for (unsigned count : {1, 8, 40, 90})
      for (const char* type : {"f32", "f64"}) {
        CAPTURE(count);
        CAPTURE(type);
        std::string ptx = held_values(count, type);
        ReadText text(ptx);
        REQUIRE(text.ok());
        if (ssa) REQUIRE(construct_ssa(text.function()).ok());
        unsigned units = count * (type[1] == '6' ? 2 : 1);
        uint32_t need = register_need(text.function(), 80).registers;
        CHECK(need >= units + 2); // plus the address
        CHECK(need <= units + 12);
        if (!find_ptxas()) continue;
        Result<FiguresByFunction> figures = machine_figures(ptx, "sm_80");
        REQUIRE(figures.ok());
        int real = static_cast<int>(figures->at("k").registers);
        CHECK(std::abs(static_cast<int>(need) - real) <= 4 + real / 10);
      }
}

TEST_CASE("loads of shared memory are issued next to their readers") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  // All loads first, then their readers.
  std::string loads, sums;
  for (unsigned i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i);
    loads += "ld.shared.f32 %f" + number + ", [%r2+" + std::to_string(36 * i) + "];\n";
    sums += "fma.rn.f32 %s, %s, %s, %f" + number + ";\n";
  }
  const std::string ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                          ".reg .b64 %a; .reg .b32 %r<80>; .reg .f32 %f<80>, %s; .shared .b8 tile[8192];\n"
                          "ld.param.u64 %a, [p]; mov.u32 %r1, %tid.x; shl.b32 %r3, %r1, 2; mov.u32 %r2, tile;\n"
                          "add.s32 %r2, %r2, %r3; mov.f32 %s, 0f3F800000;\n" +
                          loads + sums + "st.global.f32 [%a], %s; ret;\n}\n";
  ReadText text(ptx);
  REQUIRE(text.ok());
  REQUIRE(construct_ssa(text.function()).ok());
  const int need = static_cast<int>(register_need(text.function(), 80).registers);
  Result<FiguresByFunction> figures = machine_figures(ptx, "sm_80");
  REQUIRE(figures.ok());
  const int real = static_cast<int>(figures->at("k").registers);
  INFO(need << " estimated, " << real << " by ptxas");
  CHECK(real <= 32);
  CHECK(need <= 32); // the estimate fills the registers that cost no warps
}

TEST_CASE("predicates are counted apart") {
  ReadText text(kernel("ld.global.u32 %r1, [%rd1]; setp.lt.u32 %p1, %r1, 5; setp.lt.u32 %p2, %r1, 9; bar.sync 0;\n"
                       "@%p1 st.global.u32 [%rd1], %r1; @%p2 st.global.u32 [%rd1+4], %r1;"));
  REQUIRE(text.ok());
  RegisterNeed need = register_need(text.function(), 80);
  CHECK(need.predicates == 2);
  CHECK(need.registers < 16);
}

} // namespace ptxrewrite::tests::registers_test
