// The forms printed in the papers: R2D2's Figures 6 and 7 on nvcc's code for backprop, DAC's Figure 5 on its example
// kernel, and other index code that nvcc generates. Values are found by their definitions.
#include "grammar/reader.h"
#include "ir/analysis/linear/linear.h"
#include "ir/analysis/linear/report.h"
#include "ir/core/module.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

namespace ptxrewrite::tests::linear_goldens_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Analysed {
  std::unique_ptr<Module> module;
  Function* function = nullptr;
  std::unique_ptr<LinearForms> forms;

  // The first value of this name (as the text spells it), or the `occurrence`-th.
  ValueId named(std::string_view name, unsigned occurrence = 0) const {
    for (ValueId id : function->values.ids()) {
      if (function->value_name(id) != name || !forms->def_use().definition(id).block) continue;
      if (occurrence-- == 0) return id;
    }
    FAIL("no value " << name);
    return {};
  }
  const LinearForm& form(std::string_view name, unsigned occurrence = 0) const {
    return forms->form(named(name, occurrence));
  }
  std::string print(std::string_view name, unsigned occurrence = 0) const {
    return forms->print(form(name, occurrence));
  }
  // Whether a value defined by an instruction with this mnemonic has a form with this text.
  bool has(std::string_view mnemonic, std::string_view text) const {
    for (BlockId block : function->layout)
      for (InstructionId id : function->instructions_in(block)) {
        if (function->instructions[id].kind != InstructionKind::real) continue;
        if (function->form_of(id).mnemonic != mnemonic) continue;
        bool found = false;
        for_each_definition(*function, id, [&](ValueId value) { found |= forms->print(forms->form(value)) == text; });
        if (found) return true;
      }
    return false;
  }
  std::vector<ObligationId> open(std::string_view name, unsigned occurrence = 0) const {
    std::vector<ObligationId> list;
    for (ObligationId id : forms->obligations(named(name, occurrence)))
      if (!forms->obligation(id).proved) list.push_back(id);
    return list;
  }
};

Analysed analyse(std::string text, std::string_view kernel = {}) {
  Analysed result;
  Diagnostics diagnostics;
  result.module = grammar::read_module(SourceFile("test.ptx", std::move(text)), diagnostics);
  REQUIRE(result.module);
  for (auto& function : result.module->functions)
    if (function->has_body && (kernel.empty() || result.module->text(function->name) == kernel))
      result.function = function.get();
  REQUIRE(result.function);
  Status status = construct_ssa(*result.function);
  REQUIRE(status.ok());
  result.forms = std::make_unique<LinearForms>(*result.function);
  return result;
}

Analysed sample(const std::string& path, std::string_view kernel) {
  std::ifstream file(ptxrewrite::tests::source_path("samples/" + std::string(path)));
  std::stringstream text;
  text << file.rdbuf();
  return analyse(text.str(), kernel);
}

// A kernel k(u64 P0, u32 P1, u32 P2, u64 P3) around a body.
Analysed kernel(const std::string& body, const std::string& directives = "") {
  return analyse(".version 8.0\n.target sm_80\n.address_size 64\n"
                 ".visible .entry k(.param .u64 P0, .param .u32 P1, .param .u32 P2, .param .u64 P3)\n" +
                 directives + "{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n" +
                 body + "\nret;\n}\n");
}

LaunchValues launch_of(std::array<uint32_t, 3> block, std::array<uint32_t, 3> grid, uint64_t p0, uint32_t p1,
                       uint32_t p2, uint64_t p3) {
  LaunchValues launch;
  launch.block = block;
  launch.grid = grid;
  launch.add_parameter(p0, 8);
  launch.add_parameter(p1, 4);
  launch.add_parameter(p2, 4);
  launch.add_parameter(p3, 8);
  return launch;
}

} // namespace

TEST_CASE("R2D2 Figure 7: the coefficient vectors of bp_adjust_weights from nvcc's PTX") {
  Analysed k = sample("backprop/backprop.ptx", "bp_adjust_weights");
  // Rows of the figure in its order; the mnemonics are nvcc's for the same step.
  CHECK(k.has("ld.param.u64", "{P0, 0, 0, 0, 0, 0, 0}"));                  // %rd4
  CHECK(k.has("ld.param.u32", "{P1, 0, 0, 0, 0, 0, 0}"));                  // %r4
  CHECK(k.has("ld.param.u64", "{P2, 0, 0, 0, 0, 0, 0}"));                  // %rd5
  CHECK(k.has("mov.u32", "{0, 0, 0, 0, 0, 1, 0}"));                        // %r1
  CHECK(k.has("shl.b32", "{0, 0, 0, 0, 0, 16, 0}"));                       // %r5
  CHECK(k.has("mov.u32", "{0, 0, 1, 0, 0, 0, 0}"));                        // %r2
  CHECK(k.has("add.s32", "{0, 0, 1, 0, 0, 16, 0}"));                       // %r6
  CHECK(k.has("add.s32", "{P1+1, 0, 0, 0, 0, 0, 0}"));                     // %r7
  CHECK(k.has("mul.wide.s32", "{4*P1, 4, 4*(P1+1), 0, 0, 64*(P1+1), 0}")); // %rd13
  CHECK(k.has("add.s64", "{P5+4*P1, 4, 4*(P1+1), 0, 0, 64*(P1+1), 0}"));   // %rd14
  for (const char* data : {"%f1", "%fd1", "%fd2", "%f3", "%fd4", "%fd5"})
    CHECK(k.form(data).kind == ValueClass::any);
  // The width-carrying form of the oldw address: 32-bit coefficients, each extended.
  CHECK(k.forms->print_exact(k.form("%rd14")) == "{P5+4*sext64(P1), 4, 4*sext64(P1+1), 0, 0, 4*sext64(16*P1+16), 0}");
}

TEST_CASE("bp_adjust_weights: small indices are proved, the weight index is a question to the launch") {
  Analysed k = sample("backprop/backprop.ptx", "bp_adjust_weights");
  CHECK(k.open("%rd9").empty());  // 4*tid.x
  CHECK(k.open("%rd11").empty()); // 16*ctaid.y + tid.y: 65535 blocks
  auto open = k.open("%rd14");
  REQUIRE(open.size() == 1);
  auto evaluate = [&](uint32_t hid, uint32_t blocks) {
    LaunchValues launch;
    launch.block = {16, 16, 1};
    launch.grid = {1, blocks, 1};
    for (unsigned bytes : {8, 4, 8, 4, 8, 8})
      launch.add_parameter(bytes == 4 ? hid : 0x7f0000000000, bytes);
    return k.forms->evaluate(open[0], launch);
  };
  CHECK(evaluate(16, 4096));
  CHECK(evaluate(16, 65535));
  CHECK_FALSE(evaluate(2048, 65535)); // 2049 * 16 * 65534 alone is past 2^31
  // index = hid + 15 + 15 * (hid + 1) + 16 * (hid + 1) * by <= 2^31 - 1 is an exact bound: by = 1, hid = 67108861 or
  // less.
  CHECK(evaluate(67108862 - 1, 2));
  CHECK_FALSE(evaluate(67108864, 2));
  CHECK(k.forms->statement(open[0]) == "-2147483648 <= P1 + tid.x + (P1+1)*tid.y + 16*(P1+1)*ctaid.y <= 2147483647");
  CHECK(k.forms->launch_predicate(open[0]) ==
        "sext32(P1) + min(0, sext32(P1+1)*(ntid.y - 1)) + min(0, sext32(16*P1+16)*(nctaid.y - 1)) >= -2147483648 && "
        "sext32(P1) + (ntid.x - 1) + max(0, sext32(P1+1)*(ntid.y - 1)) + max(0, sext32(16*P1+16)*(nctaid.y - 1)) <= "
        "2147483647");
}

TEST_CASE("R2D2 Figure 6: each listed operation on coefficient vectors") {
  Analysed k = kernel(R"(
ld.param.u32 %r1, [P1];           mov.u32 %r2, %tid.x;          mov.u32 %r3, %ctaid.z;
mad.lo.s32 %r4, %r2, %r1, %r3;    // {0, P1, 0, 0, 0, 0, 1}
mov.b32 %r5, %r4;                 // mov
cvt.u64.u32 %rd1, %r2;            // cvt
add.s32 %r6, %r4, %r4;            // add
sub.s32 %r7, %r6, %r2;            // sub
mul.lo.s32 %r8, %r7, %r1;         // mul by a uniform value
shl.b32 %r9, %r7, 3;              // shl
mad.lo.s32 %r10, %r7, 5, %r1;     // mad
neg.s32 %r11, %r10;
not.b32 %r12, %r2;
mul.lo.s32 %r13, %r2, %r2;        // not linear
)");
  CHECK(k.print("%r1") == "{P1, 0, 0, 0, 0, 0, 0}");
  CHECK(k.print("%r4") == "{0, P1, 0, 0, 0, 0, 1}");
  CHECK(k.print("%r5") == "{0, P1, 0, 0, 0, 0, 1}");
  CHECK(k.print("%rd1") == "{0, 1, 0, 0, 0, 0, 0}");
  CHECK(k.print("%r6") == "{0, 2*P1, 0, 0, 0, 0, 2}");
  CHECK(k.print("%r7") == "{0, 2*P1-1, 0, 0, 0, 0, 2}");
  CHECK(k.print("%r8") == "{0, -P1+2*P1*P1, 0, 0, 0, 0, 2*P1}");
  CHECK(k.print("%r9") == "{0, 8*(2*P1-1), 0, 0, 0, 0, 16}");
  CHECK(k.print("%r10") == "{P1, 5*(2*P1-1), 0, 0, 0, 0, 10}");
  CHECK(k.print("%r11") == "{-P1, 5*(-2*P1+1), 0, 0, 0, 0, -10}");
  CHECK(k.print("%r12") == "{-1, -1, 0, 0, 0, 0, 0}");
  CHECK(k.form("%r13").kind == ValueClass::any);
  CHECK(k.open("%rd1").empty());
}

TEST_CASE("value classes") {
  Analysed k = kernel(R"(
ld.param.u32 %r1, [P1];       mov.u32 %r2, %tid.x;        mov.u32 %r3, %ctaid.x;      mov.u32 %r4, 42;
div.u32 %r5, %r1, 7;          // launch-uniform, opaque
mul.lo.s32 %r6, %r3, %r3;     // block-uniform without a form
popc.b32 %r7, %r1;            // launch-uniform without an expression
rem.u32 %r8, %r2, 12;         // mod-linear
mad.lo.s32 %r9, %r8, 4, %r1;
and.b32 %r10, %r2, 15;
setp.lt.s32 %p1, %r2, %r1;    shl.b32 %r11, %r2, 2;
selp.b32 %r12, %r11, 0, %p1;  // divergent-linear
mov.u32 %r13, %laneid;        mov.u32 %r14, %clock;
min.s32 %r15, %r2, %r1;
)");
  auto class_of = [&](const char* name) { return spelling(k.form(name).kind); };
  CHECK(class_of("%r4") == "constant");
  CHECK(class_of("%r5") == "launch-uniform");
  CHECK(k.print("%r5") == "{(P1/7), 0, 0, 0, 0, 0, 0}");
  CHECK(class_of("%r6") == "block-uniform");
  CHECK_FALSE(k.form("%r6").has_coefficients());
  CHECK(class_of("%r3") == "block-uniform");
  CHECK(class_of("%r7") == "launch-uniform");
  CHECK(class_of("%r2") == "linear");
  CHECK(class_of("%r8") == "mod-linear");
  CHECK(k.print("%r9") == "({0, 1, 0, 0, 0, 0, 0} mod 12)*(4) + P1");
  CHECK(k.print("%r10") == "({0, 1, 0, 0, 0, 0, 0} mod 16)");
  CHECK(k.forms->obligations(k.named("%r10")).empty()); // a power of two needs no fact
  CHECK(k.open("%r8").empty());                         // 0 <= tid.x, proved
  CHECK(k.print("%r12") == "[{0, 0, 0, 0, 0, 0, 0} | {0, 4, 0, 0, 0, 0, 0}]");
  CHECK(k.print("%r15") == "[{0, 1, 0, 0, 0, 0, 0} | {P1, 0, 0, 0, 0, 0, 0}]");
  CHECK(class_of("%r13") == "any");
  CHECK(class_of("%r14") == "any");
}

TEST_CASE("loads: parameters by byte, constants, and memory that somebody may write") {
  Analysed k = analyse(R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 table[64];
.visible .entry k(.param .align 8 .b8 S[24], .param .u64 P1)
{
.reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<4>;
ld.param.u32 %r1, [S+8];
ld.param.v2.u32 {%r2, %r3}, [S+16];
ld.param.s8 %h1, [S+3];
mov.b64 %rd1, S;
ld.param.u64 %rd2, [%rd1+16];
ld.const.u32 %r4, [table+4];
ld.param.u64 %rd3, [P1];
ld.global.nc.u32 %r5, [%rd3];
ld.global.u32 %r6, [%rd3];
mov.u32 %r7, %ctaid.x;
mul.wide.u32 %rd4, %r7, 4;
add.s64 %rd5, %rd3, %rd4;
ld.global.nc.u32 %r8, [%rd5];
st.global.u32 [%rd3], %r1;
ret;
}
)");
  CHECK(k.print("%r1") == "{P0@8, 0, 0, 0, 0, 0, 0}");
  CHECK(k.print("%r2") == "{P0@16, 0, 0, 0, 0, 0, 0}");
  CHECK(k.print("%r3") == "{P0@20, 0, 0, 0, 0, 0, 0}");
  CHECK(k.forms->print_exact(k.form("%h1")) == "{sext16(P0@3), 0, 0, 0, 0, 0, 0}");
  CHECK(k.print("%rd2") == "{P0@16, 0, 0, 0, 0, 0, 0}");
  CHECK(k.print("%r4") == "{const[(table+4)], 0, 0, 0, 0, 0, 0}");
  CHECK(k.form("%r5").kind == ValueClass::launch_uniform); // read-only for the whole kernel
  CHECK(k.form("%r6").kind == ValueClass::any);            // the kernel stores
  CHECK(k.form("%r8").kind == ValueClass::block_uniform);
}

TEST_CASE("loads of global memory are uniform in a block if nothing writes memory and the address is uniform") {
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 P0)
{
.reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [P0];
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
mov.u32 %r3, %tid.x;
mul.wide.u32 %rd4, %r3, 4;
add.s64 %rd5, %rd1, %rd4;
ld.global.u32 %r4, [%rd5];
ld.u32 %r5, [%rd3];
)";
  Analysed silent = analyse(text + "ret;\n}\n");
  CHECK(silent.form("%r2").kind == ValueClass::block_uniform);
  CHECK(silent.form("%r4").kind == ValueClass::any);
  CHECK(silent.form("%r5").kind == ValueClass::any); // may be local memory
  Analysed writing = analyse(text + "atom.global.add.u32 %r6, [%rd1], 1;\nret;\n}\n");
  CHECK(writing.form("%r2").kind == ValueClass::any);
}

TEST_CASE("DAC Figure 5: the tuples of the example kernel in its loop, and after it") {
  Analysed k = sample("dac_example/dac_example.ptx", "dac_example");
  CHECK(k.has("mul.wide.s32", "{0, 4, 0, 0, 4*ntid.x, 0, 0}"));              // r1 = tid * 4
  CHECK(k.has("add.s64", "{P0, 4, 0, 0, 4*ntid.x, 0, 0}"));                  // addrA = A + r1
  CHECK(k.has("add.s64", "{P1, 4, 0, 0, 4*ntid.x, 0, 0}"));                  // addrB
  CHECK(k.has("mul.wide.s32", "{4*P3, 0, 0, 0, 0, 0, 0}"));                  // r3 = num * 4
  CHECK(k.has("add.s64", "{P0+4*P3, 4, 0, 0, 4*ntid.x, 0, 0} + k0*(4*P3)")); // addrA of the next trip
  // With the figure's numbers: A = 0x80000, num = 0x400; threads 0, 1, 2 in trip 0, then after one more step.
  LaunchValues launch;
  launch.block = {32, 1, 1};
  launch.add_parameter(0x80000, 8);
  launch.add_parameter(0x90000, 8);
  launch.add_parameter(3, 4);
  launch.add_parameter(0x400, 4);
  bool seen = false;
  for (BlockId block : k.function->layout)
    for (ValueId parameter : k.function->parameters(block)) {
      if (k.forms->print(k.forms->form(parameter)) != "{P0, 4, 0, 0, 4*ntid.x, 0, 0} + k0*(4*P3)") continue;
      seen = true;
      for (uint32_t thread : {0u, 1u, 2u})
        for (uint64_t trip : {0u, 1u}) {
          ThreadPosition position;
          position.tid = {thread, 0, 0};
          position.trips = {{LoopId(0), trip}};
          CHECK(k.forms->evaluate(k.forms->form(parameter), launch, position) ==
                std::optional<uint64_t>(0x80000 + 4 * thread + 0x1000 * trip));
        }
    }
  CHECK(seen);
}

TEST_CASE("a value carried out of a counted loop is its last trip's; out of a divergent one it is nothing") {
  const char* loop = R"(
ld.param.u64 %rd1, [P0];  ld.param.u32 %r1, [P1];  ld.param.u32 %r2, [P2];
mov.u32 %r3, %tid.x;
mul.wide.u32 %rd2, %r3, 4;
add.s64 %rd3, %rd1, %rd2;
mul.wide.s32 %rd4, %r2, 4;
mov.u32 %r4, 0;
setp.lt.s32 %p1, %r1, 1;
@%p1 bra DONE;
LOOP:
st.global.u32 [%rd3], %r4;
add.s64 %rd3, %rd3, %rd4;
add.s32 %r4, %r4, 1;
setp.lt.s32 %p2, %r4, LIMIT;
@%p2 bra LOOP;
add.s64 %rd5, %rd3, 8;
st.global.u32 [%rd5], %r4;
DONE:
)";
  auto with_limit = [&](const std::string& limit) {
    std::string text(loop);
    text.replace(text.find("LIMIT"), 5, limit);
    return kernel(text);
  };
  Analysed uniform = with_limit("%r1");
  // dim = P1 trips of num = P2 words: base + 4*P1*P2 after the loop.
  CHECK(uniform.print("%rd5") == "{P0+4*P1*P2+8, 4, 0, 0, 0, 0, 0}");
  Analysed divergent = with_limit("%r3");
  CHECK(divergent.form("%rd5").kind == ValueClass::any);
  CHECK(divergent.print("%rd3", 1) == uniform.print("%rd3", 1)); // inside it is linear all the same
}

TEST_CASE("reversed index as nvcc writes it: not, add, mul.wide.u32 with coefficient -1") {
  // float x = a[n - 1 - threadIdx.x]
  Analysed k = kernel(R"(
ld.param.u64 %rd1, [P0];  ld.param.u32 %r1, [P1];
mov.u32 %r2, %tid.x;      not.b32 %r3, %r2;      add.s32 %r4, %r3, %r1;
mul.wide.u32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
)");
  CHECK(k.print("%r4") == "{P1-1, -1, 0, 0, 0, 0, 0}");
  CHECK(k.print("%rd3") == "{P0+4*P1-4, -4, 0, 0, 0, 0, 0}");
  auto open = k.open("%rd3");
  REQUIRE(open.size() == 1);
  CHECK(k.forms->obligation(open[0]).range == unsigned_range(32));
  CHECK(k.forms->evaluate(open[0], launch_of({64, 1, 1}, {1, 1, 1}, 0, 64, 0, 0)));
  CHECK_FALSE(k.forms->evaluate(open[0], launch_of({64, 1, 1}, {1, 1, 1}, 0, 63, 0, 0))); // thread 63 wraps to 2^32 - 1
  ThreadPosition last;
  last.tid = {63, 0, 0};
  CHECK(k.forms->evaluate(k.form("%rd3"), launch_of({64, 1, 1}, {1, 1, 1}, 4096, 64, 0, 0), last) ==
        std::optional<uint64_t>(4096));
}

TEST_CASE("launches that wrap 32 bits on purpose report their obligation false, and only those") {
  Analysed k = kernel(R"(
ld.param.u64 %rd1, [P0];
mov.u32 %r1, %ctaid.x;  mov.u32 %r2, %ntid.x;  mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
mul.wide.s32 %rd2, %r4, 8;
mul.wide.u32 %rd3, %r4, 8;
)");
  auto sign = k.open("%rd2"), zero = k.open("%rd3");
  REQUIRE(sign.size() == 1);
  REQUIRE(zero.size() == 1);
  // 2^21 blocks of 1024 threads end exactly at 2^31 - 1.
  auto at = [&](uint32_t blocks) { return launch_of({1024, 1, 1}, {blocks, 1, 1}, 0, 0, 0, 0); };
  CHECK(k.forms->evaluate(sign[0], at(1u << 21)));
  CHECK_FALSE(k.forms->evaluate(sign[0], at((1u << 21) + 1)));
  CHECK(k.forms->evaluate(zero[0], at(1u << 22)));
  CHECK_FALSE(k.forms->evaluate(zero[0], at((1u << 22) + 1)));
}

TEST_CASE("what proves an obligation: .reqntid, .maxntid, a dominating branch") {
  const char* body = R"(
ld.param.u32 %r1, [P1];  mov.u32 %r2, %tid.x;  mov.u32 %r3, %tid.y;
shl.b32 %r4, %r3, 22;    add.s32 %r5, %r4, %r2;
mul.wide.s32 %rd1, %r5, 4;
)";
  CHECK(kernel(body).open("%rd1").size() == 1); // tid.y may be 1023
  CHECK(kernel(body, ".reqntid 32, 16, 1\n").open("%rd1").empty());
  CHECK(kernel(body, ".maxntid 512, 1, 1\n").open("%rd1").empty());
  CHECK(kernel(body, ".maxntid 32, 32, 1\n").open("%rd1").size() == 1); // 1024 threads may still be 1 x 1024
  Analysed guarded = kernel(R"(
ld.param.u32 %r1, [P1];  mov.u32 %r2, %tid.x;
setp.lt.s32 %p1, %r1, 0;
@%p1 bra END;
setp.gt.s32 %p2, %r1, 1000;
@%p2 bra END;
mul.lo.s32 %r3, %r2, %r1;
mul.wide.s32 %rd1, %r3, 4;
END:
)");
  CHECK(guarded.open("%rd1").empty());
  CHECK(guarded.forms->obligation(guarded.forms->obligations(guarded.named("%rd1"))[0]).reason ==
        "a branch that dominates it");
  Analysed index = kernel(R"(
mov.u32 %r2, %tid.y;
setp.gt.u32 %p1, %r2, 15;
@%p1 bra END;
shl.b32 %r3, %r2, 24;
mul.wide.s32 %rd1, %r3, 4;
END:
)");
  CHECK(index.open("%rd1").empty());
}

TEST_CASE("or of values without a common bit is a sum; where that depends on the block, the launch is asked") {
  Analysed k = kernel(R"(
mov.u32 %r1, %tid.x;   mov.u32 %r2, %ctaid.x;
shl.b32 %r3, %r2, 10;  or.b32 %r4, %r3, %r1;
shl.b32 %r5, %r2, 8;   or.b32 %r6, %r5, %r1;
shl.b32 %r7, %r2, 2;   or.b32 %r8, %r7, 3;
)");
  CHECK(k.print("%r4") == "{0, 1, 0, 0, 1024, 0, 0}");
  CHECK(k.open("%r4").empty());
  CHECK(k.print("%r6") == "{0, 1, 0, 0, 256, 0, 0}");
  REQUIRE(k.open("%r6").size() == 1);
  CHECK(k.forms->evaluate(k.open("%r6")[0], launch_of({256, 1, 1}, {9, 1, 1}, 0, 0, 0, 0)));
  CHECK_FALSE(k.forms->evaluate(k.open("%r6")[0], launch_of({257, 1, 1}, {9, 1, 1}, 0, 0, 0, 0)));
  CHECK(k.print("%r8") == "{3, 0, 0, 0, 4, 0, 0}");
}

TEST_CASE("an extension moves through a coefficient under an obligation over parameters alone") {
  Analysed k = kernel(R"(
ld.param.u32 %r1, [P1];  mov.u32 %r2, %ctaid.y;
shl.b32 %r3, %r1, 4;     add.s32 %r4, %r3, 16;   mul.lo.s32 %r5, %r4, %r2;   mul.wide.s32 %rd1, %r5, 4;
)");
  const ExpressionPool& pool = k.forms->expressions();
  ExpressionId coefficient = k.form("%rd1").coefficients[form_index::ctaid_y];
  CHECK(pool.print_exact(coefficient) == "4*sext64(16*P1+16)");
  ExpressionId extended = pool.factors(pool.terms(coefficient)[0].monomial)[0];
  auto moved = k.forms->move_extension(extended, k.forms->def_use().definition(k.named("%rd1")).instruction);
  CHECK(k.forms->expressions().print_exact(moved.expression) == "16*sext64(P1)+16");
  auto at = [&](uint32_t p1) { return launch_of({1, 1, 1}, {1, 1, 1}, 0, p1, 0, 0); };
  for (uint32_t p1 : {0u, 7u, (1u << 27) - 2, 0u - 5, 0u - (1u << 27)}) {
    CHECK(k.forms->evaluate(moved.obligation, at(p1)));
    CHECK(k.forms->expressions().evaluate(moved.expression, at(p1)) ==
          k.forms->expressions().evaluate(extended, at(p1)));
  }
  CHECK_FALSE(k.forms->evaluate(moved.obligation, at((1u << 27) - 1)));
  CHECK(k.forms->expressions().evaluate(moved.expression, at((1u << 27) - 1)) !=
        k.forms->expressions().evaluate(extended, at((1u << 27) - 1)));
}

TEST_CASE("trip bounds make loop indices checkable; without one the obligation can never be true") {
  const char* loop = R"(
ld.param.u64 %rd1, [P0];  ld.param.u32 %r1, [P1];  ld.param.u32 %r2, [P2];
mov.u32 %r3, %tid.x;      mov.u32 %r4, 0;
LOOP:
mad.lo.s32 %r5, %r4, %r2, %r3;
mul.wide.s32 %rd2, %r5, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r6, [%rd3];
add.s32 %r4, %r4, 1;
setp.lt.s32 %p1, %r4, LIMIT;
@%p1 bra LOOP;
)";
  auto with_limit = [&](const std::string& limit) {
    std::string text(loop);
    text.replace(text.find("LIMIT"), 5, limit);
    return kernel(text);
  };
  Analysed counted = with_limit("%r1");
  CHECK(counted.print("%rd3") == "{P0, 4, 0, 0, 0, 0, 0} + k0*(4*P2)");
  auto open = counted.open("%rd3");
  REQUIRE(open.size() == 1);
  // The last of P1 trips: 31 + (P1 - 1) * P2.
  CHECK(counted.forms->evaluate(open[0], launch_of({32, 1, 1}, {1, 1, 1}, 0, 65536, 32768, 0)));
  CHECK_FALSE(counted.forms->evaluate(open[0], launch_of({32, 1, 1}, {1, 1, 1}, 0, 65537, 32768, 0)));
  CHECK_FALSE(counted.forms->launch_predicate(open[0]).empty());
  Analysed endless = with_limit("%r6");
  open = endless.open("%rd3");
  REQUIRE(open.size() == 1);
  CHECK_FALSE(endless.forms->obligation(open[0]).launch_checkable);
  CHECK_FALSE(endless.forms->evaluate(open[0], launch_of({32, 1, 1}, {1, 1, 1}, 0, 1, 1, 0)));
}

TEST_CASE("whether a launch can decide an obligation is known without its text") {
  // Bounds that a launch knows, and loops that count away from them.
  size_t texts = 0, none = 0;
  for (const char* test : {"lt.s32", "le.u32", "gt.s32", "ge.u32", "ne.s32", "eq.s32"})
    for (const char* step : {"1", "-1", "3", "-4", "%r2", "%r3"}) {
      Analysed k = kernel(std::string(R"(
ld.param.u64 %rd1, [P0];  ld.param.u32 %r1, [P1];  ld.param.u32 %r2, [P2];
mov.u32 %r3, %tid.x;      mov.u32 %r4, 7;
LOOP:
mad.lo.s32 %r5, %r4, %r2, %r3;
mul.wide.s32 %rd2, %r5, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r6, [%rd3];
add.s32 %r4, %r4, )") + step +
                          ";\nsetp." + test + " %p1, %r4, %r1;\n@%p1 bra LOOP;\n");
      for (ObligationId id : k.forms->all_obligations().ids()) {
        if (k.forms->obligation(id).proved) continue;
        const bool has_text = !k.forms->launch_predicate(id).empty();
        INFO(test << " " << step);
        CHECK(k.forms->has_launch_predicate(id) == has_text);
        texts += has_text ? 1 : 0;
        none += !has_text && k.forms->obligation(id).launch_checkable ? 1 : 0;
      }
    }
  CHECK(texts > 5);
  CHECK(none > 2);
}

TEST_CASE("a value after a loop has the obligations of the test that ends it") {
  Analysed k = kernel(R"(
ld.param.u32 %r1, [P1];  cvt.s64.s32 %rd5, %r1;  mov.u32 %r4, 0;  ld.param.u32 %r2, [P2];
LOOP:
add.s32 %r4, %r4, %r2;
cvt.s64.s32 %rd4, %r4;
setp.lt.s64 %p1, %rd4, %rd5;
@%p1 bra LOOP;
add.s32 %r9, %r4, 5;
)");
  REQUIRE_FALSE(k.forms->obligations(k.named("%rd4")).empty());
  CHECK_FALSE(k.forms->obligations(k.named("%r9")).empty());
}

TEST_CASE("the listing names classes, forms, obligations and their source lines") {
  Analysed k = sample("backprop/backprop.ptx", "bp_adjust_weights");
  std::string report = analyze_report(*k.function);
  CHECK(report.find("{P5+4*P1, 4, 4*(P1+1), 0, 0, 64*(P1+1), 0}  needs o2") != std::string::npos);
  CHECK(report.find("(line 187): to check at launch") != std::string::npos);
  CHECK(report.find("proved, block and grid limits") != std::string::npos);
  std::string json = analyze_report_json(*k.function);
  CHECK(json.find("\"form\": \"{P5+4*P1, 4, 4*(P1+1), 0, 0, 64*(P1+1), 0}\"") != std::string::npos);
}

TEST_CASE("cost grows with the kernel, not with its square") {
  // One long chain, many terms, many obligations, nested minima.
  auto expressions = [](unsigned count) {
    std::string body = "ld.param.u64 %rd1, [P0]; ld.param.u32 %r1, [P1]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;\n";
    for (unsigned i = 0; i < count / 5; ++i)
      body += "mad.lo.s32 %r2, %r3, " + std::to_string(i) +
              ", %r2;\nmul.wide.s32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n" + "min.s32 %r1, %r1, " +
              std::to_string(i * 7919 % 65536) + ";\nadd.s32 %r1, %r1, %r1;\n";
    Analysed k = kernel(body);
    size_t terms = 0;
    for (uint32_t i = 0; i < k.forms->expressions().size(); ++i)
      terms += k.forms->expressions()[ExpressionId(i)].size;
    return terms;
  };
  CHECK(expressions(20000) < 12 * expressions(2000));
}

} // namespace ptxrewrite::tests::linear_goldens_test
