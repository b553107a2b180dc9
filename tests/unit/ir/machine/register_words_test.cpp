// Registers beside those of live values: of calls, temporaries, constants and addresses, against ptxas.
#include "ir/machine/figures/figures.h"
#include "ir/machine/registers/registers.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::register_words_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::string module_of(const std::string& body, const std::string& declarations = "") {
  return ".version 8.0\n.target sm_75\n.address_size 64\n" + declarations +
         ".visible .entry k(.param .u64 p, .param .u64 q, .param .u64 s, .param .u32 n)\n{\n"
         ".reg .f32 %f<100>; .reg .f64 %d<100>; .reg .b32 %r<100>; .reg .b64 %l<100>; .reg .b16 %h<9>;\n"
         ".reg .b64 %a, %b, %o, %s; .reg .b32 %t, %i; .reg .pred %p;\n" +
         body + "ret;\n}\n";
}

// Registers of kernels of that text: the estimate, and ptxas's number.
struct Registers {
  int estimate = 0, real = 0;
};

Registers registers_of(const std::string& ptx, uint32_t capability) {
  ReadText text(ptx);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Result<FiguresByFunction> figures = machine_figures(ptx, "sm_" + std::to_string(capability));
  REQUIRE(figures.ok());
  for (const auto& function : text.module->functions) {
    if (!function->is_entry) continue;
    REQUIRE(construct_ssa(*function).ok());
    return {static_cast<int>(register_need(*function, capability).registers),
            static_cast<int>(figures->at("k").registers)};
  }
  return {};
}

// Fails if the estimate is more than `tolerance` off on any of the targets. Numbers of both are mostly even.
void check_registers(const std::string& what, const std::string& ptx, std::initializer_list<uint32_t> capabilities,
                     int tolerance = 1) {
  for (uint32_t capability : capabilities) {
    const Registers registers = registers_of(ptx, capability);
    INFO(what << ", sm_" << capability << ": " << registers.estimate << " estimated, " << registers.real
              << " by ptxas");
    CHECK(std::abs(registers.estimate - registers.real) <= tolerance);
  }
}

bool has_no_ptxas() {
  if (find_ptxas()) return false;
  MESSAGE("skipped: no ptxas");
  return true;
}

const std::string own_address = "ld.param.u64 %a, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 512;\n"
                                "add.u64 %a, %a, %o;\n";

// Loads `count` values of the type to prefix0, prefix1 ...
std::string loads(const std::string& type, const std::string& prefix, int count) {
  std::string text;
  const int bytes = type.ends_with("64") ? 8 : 4;
  for (int i = 0; i < count; ++i)
    text += "ld.global." + type + " " + prefix + std::to_string(i) + ", [%a+" + std::to_string(bytes * i) + "];\n";
  return text;
}

} // namespace

// ptxas 13.0, sm_75 to sm_120: 20 registers and those that are live across the call, at least 24.
TEST_CASE("values that are live across a call of another module's function have registers that it does not write") {
  if (has_no_ptxas()) return;
  const std::string declaration = ".extern .func (.param .b64 r) malloc(.param .b64 a);\n";
  for (int live : {1, 4, 8, 12}) {
    std::string body = own_address + "ld.param.u64 %b, [q]; add.u64 %b, %b, %o;\n" + loads("f32", "%f", live) +
                       "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 64; call.uni (r), malloc, (a);\n"
                       "ld.param.b64 %l0, [r]; }\nst.global.u64 [%b+512], %l0;\n";
    for (int i = 0; i < live; ++i) {
      const std::string value = "%f" + std::to_string(i);
      body += "add.f32 " + value + ", " + value + ", " + value + "; st.global.f32 [%b+" + std::to_string(4 * i) +
              "], " + value + ";\n";
    }
    check_registers(std::to_string(live) + " values", module_of(body, declaration), {75, 80, 90, 120}, 2);
  }
}

TEST_CASE("expansions have temporaries beside their operands and results") {
  if (has_no_ptxas()) return;
  struct Case {
    const char *type, *prefix, *combine, *instruction;
  };
  const Case cases[] = {{"u32", "%r", "mul.lo.u32", "div.u32 %r50, %r0, %r1;"},
                        {"u32", "%r", "mul.lo.u32", "rem.u32 %r50, %r0, %r1;"},
                        {"u32", "%r", "mul.lo.u32", "div.s32 %r50, %r0, %r1;"},
                        {"u32", "%r", "mul.lo.u32", "rem.s32 %r50, %r0, %r1;"},
                        {"u32", "%r", "mul.lo.u32", "div.u32 %r50, %r0, 7;"},
                        {"u32", "%r", "mul.lo.u32", "rem.s32 %r50, %r0, 7;"},
                        {"f32", "%f", "mul.f32", "ex2.approx.f32 %f50, %f0;"},
                        {"f32", "%f", "mul.f32", "ex2.approx.ftz.f32 %f50, %f0;"},
                        {"f32", "%f", "mul.f32", "rsqrt.approx.f32 %f50, %f0;"},
                        {"f32", "%f", "mul.f32", "div.approx.f32 %f50, %f0, %f1;"},
                        {"f32", "%f", "mul.f32", "rcp.rn.f32 %f50, %f0;"},
                        {"f64", "%d", "mul.f64", "min.f64 %d50, %d0, %d1;"}};
  for (const Case& one : cases)
    for (int count : {4, 6}) {
      const std::string result = std::string(one.prefix) + "50";
      std::string body = own_address + loads(one.type, one.prefix, count) + one.instruction + "\n";
      body += std::string("st.global.") + one.type + " [%a], " + result + ";\n";
      for (int i = 0; i < count; ++i)
        body += std::string(one.combine) + " " + result + ", " + result + ", " + one.prefix + std::to_string(i) + ";\n";
      body += std::string("st.global.") + one.type + " [%a+4096], " + result + ";\n";
      check_registers(std::string(one.instruction) + " of " + std::to_string(count), module_of(body),
                      {75, 80, 90, 120});
    }
}

// Pointers that are loaded, and stored where they point.
TEST_CASE("copies have no registers of their own") {
  if (has_no_ptxas()) return;
  std::string body = own_address + loads("u64", "%l", 6), stores = "bar.sync 0;\n";
  for (int i = 0; i < 6; ++i) {
    const std::string pointer = "%l" + std::to_string(i), copy = "%l" + std::to_string(20 + i);
    body += "cvta.to.global.u64 " + copy + ", " + pointer + ";\n";
    stores += "st.global.u64 [" + copy + "], " + pointer + ";\n";
  }
  check_registers("copies", module_of(body + stores), {75, 80, 90, 120}, 2);
}

// ptxas 13.0: 20 registers for four f64 (sm_80).
TEST_CASE("the address of several loads is not overwritten by the last one") {
  if (has_no_ptxas()) return;
  for (int count : {2, 4, 6}) {
    std::string body = own_address + loads("f64", "%d", count) + "ld.param.u64 %b, [q]; add.u64 %b, %b, %o;\n";
    for (int i = 0; i < count; ++i)
      body += "mul.f64 %d" + std::to_string(20 + i) + ", %d" + std::to_string(i) + ", %d" +
              std::to_string((i + 1) % count) + ";\n";
    for (int i = 0; i < count; ++i)
      body += "st.global.f64 [%b+" + std::to_string(8 * i) + "], %d" + std::to_string(20 + i) + ";\n";
    check_registers(std::to_string(count) + " products", module_of(body), {75, 80}, 2);
  }
}

// LDC before the loop.
TEST_CASE("a parameter that a loop reads has its registers in all of the loop") {
  if (has_no_ptxas()) return;
  const std::string body = "ld.param.u64 %a, [p]; ld.param.u64 %b, [q]; ld.param.u32 %r9, [n]; mov.u32 %t, %tid.x;\n"
                           "mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.u32 %i, %t;\n"
                           "L: mul.wide.s32 %o, %i, 4; add.u64 %l0, %a, %o; add.u64 %l1, %b, %o;\n"
                           "ld.global.f32 %f2, [%l0]; ld.global.f32 %f3, [%l1]; fma.rn.f32 %f0, %f2, %f3, %f0;\n"
                           "fma.rn.f32 %f1, %f3, %f3, %f1; add.s32 %i, %i, 4096; bar.sync 0;\n"
                           "setp.lt.s32 %p, %i, %r9; @%p bra L;\n"
                           "mul.wide.u32 %s, %t, 8; add.u64 %s, %a, %s; st.global.f32 [%s], %f0;\n"
                           "st.global.f32 [%s+4], %f1;\n";
  check_registers("loop", module_of(body), {90, 100, 120}, 2);
}

TEST_CASE("loads of constant memory at an index are issued early") {
  if (has_no_ptxas()) return;
  std::string body = own_address + "mov.u64 %s, table; mul.wide.u32 %l0, %t, 4; add.u64 %s, %s, %l0;\n"
                                   "mov.f32 %f90, 0f3F800000;\n";
  for (int i = 0; i < 8; ++i)
    body += "ld.const.f32 %f" + std::to_string(i) + ", [%s+" + std::to_string(256 * i) +
            "]; fma.rn.f32 %f90, %f90, %f90, %f" + std::to_string(i) + ";\n";
  check_registers("table", module_of(body + "st.global.f32 [%a], %f90;\n", ".const .align 4 .b8 table[4096];\n"),
                  {75, 80, 90, 120}, 2);
}

// ptxas 13.0: 18 registers, 20 on sm_90. The estimate is four short, and six to eight without the loads ahead.
// The loads of four trips, which are known to be at other places than the stores of the trips before.
TEST_CASE("copies of a loop load ahead of stores with the base of the loads") {
  if (has_no_ptxas()) return;
  const std::string body = own_address +
                           "ld.param.u32 %r9, [n]; mov.u32 %r1, 0; mov.u32 %i, %t;\n"
                           "L: ld.global.u32 %r2, [%a]; st.global.u32 [%a], %r1; add.s32 %r1, %r1, %r2;\n"
                           "add.u64 %a, %a, 4096; add.s32 %i, %i, 1024; setp.lt.s32 %p, %i, %r9; @%p bra L;\n"
                           "st.global.u32 [%a], %r1;\n";
  check_registers("scan", module_of(body), {75, 80, 90}, 4);
}

} // namespace ptxrewrite::tests::register_words_test
