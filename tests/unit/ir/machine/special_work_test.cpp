// Special-unit instructions of an expansion: as counted in the code of ptxas of CUDA 13.0 for sm_75 (MUFU, I2F, F2I,
// F2F, FLO, POPC, BREV on the path of every execution, disassembled with nvdisasm).
#include "ir/machine/figures/special_work.h"

#include "ir/machine/figures/expansion.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <string>

namespace ptxrewrite::tests::special_work_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Case {
  const char* instruction;
  uint16_t special;
};

constexpr Case cases[] = {
    {"rcp.rn.f32 %f1, %f2;", 1},        {"rcp.approx.f32 %f1, %f2;", 1}, {"div.rn.f32 %f1, %f2, %f3;", 1},
    {"div.full.f32 %f1, %f2, %f3;", 1}, {"sqrt.rn.f32 %f1, %f2;", 1},    {"sqrt.approx.f32 %f1, %f2;", 1},
    {"sin.approx.f32 %f1, %f2;", 1},    {"ex2.approx.f32 %f1, %f2;", 1}, {"lg2.approx.f32 %f1, %f2;", 1},
    {"div.rn.f64 %d1, %d2, %d3;", 1},   {"rem.u32 %r1, %r2, %r3;", 3},   {"div.s32 %r1, %r2, %r3;", 3},
    {"div.u64 %l1, %l2, %l3;", 3},      {"div.s32 %r1, %r2, 7;", 0},     {"rem.u32 %r1, %r2, 10;", 0},
    {"clz.b32 %r1, %r2;", 1},           {"bfind.u64 %r1, %l2;", 2},      {"popc.b64 %r1, %l2;", 2},
    {"brev.b64 %l1, %l2;", 2},          {"cvt.rn.f32.s32 %f1, %r2;", 1}, {"cvt.f64.f32 %d1, %f2;", 1},
    {"cvt.u64.u32 %l1, %r2;", 0},       {"add.f32 %f1, %f2, %f3;", 0},   {"mul.lo.s32 %r1, %r2, %r3;", 0},
};

} // namespace

TEST_CASE("what of an expansion the special unit does") {
  for (const Case& one : cases) {
    CAPTURE(one.instruction);
    const std::string text = std::string(".version 8.5\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n") +
                             "  .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b32 %r<4>; .reg .b64 %l<4>;\n  " +
                             one.instruction + "\n  ret;\n}\n";
    ReadText read(text);
    REQUIRE_MESSAGE(read.ok(), read.messages());
    const Function& function = read.function();
    InstructionId id;
    for (InstructionId other : function.instructions_in(function.layout.front()))
      if (!id.valid() && function.instructions[other].kind == InstructionKind::real) id = other;
    REQUIRE(id.valid());
    const Form& form = function.form_of(id);
    const std::string written = one.instruction;
    const bool literal = written.find(", 7;") != std::string::npos || written.find(", 10;") != std::string::npos;
    const Expansion& alone = expansion_of(form, 75, literal);
    const auto all = static_cast<uint16_t>(alone.instructions + size_of(alone.subroutine).executed);
    CHECK(special_instructions(form, {all, 0, alone.pipe()}) == one.special);
  }
}

} // namespace ptxrewrite::tests::special_work_test
