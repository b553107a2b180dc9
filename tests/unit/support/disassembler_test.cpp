// The disassembler's output, as nvdisasm 13.5 prints it, and, if ptxas and nvdisasm are installed, a kernel with each
// instruction on its own line.
#include "support/disassembler.h"
#include "support/ptxas.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace ptxrewrite::tests::disassembler_test {

using namespace ptxrewrite;

namespace {

constexpr const char* printed = R"(	.target	sm_90

//--------------------- .text.first         --------------------------
	.section	.text.first,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=26"
	.align	128
        .global         first
first:
.text.first:
	//## File ".nv_debug_ptx_txt", line 118
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/home/user/first.cu", line 7
	//## File ".nv_debug_ptx_txt", line 132
        /*0010*/                   S2R R9, SR_CTAID.X ;
.L_x_14:
        /*0020*/               @P0 EXIT ;
	.section	.nv.constant0.first,"a",@progbits
        /*0000*/ 	.byte	0x00
	.section	.text._Z6secondv,"ax",@progbits
        /*0000*/              @!P0 BRA `(.L_x_0) ;
        /*zz10*/                   NOP ;
)";

constexpr const char* kernel = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<2>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [p];
  ld.global.f32 %f1, [%rd1];
  sqrt.approx.f32 %f2, %f1;
  st.global.f32 [%rd1], %f2;
  ret;
}
)";

} // namespace

TEST_CASE("functions, offsets, and lines of the assembled text") {
  const std::vector<SassFunction> functions = parse_disassembly(printed);
  REQUIRE(functions.size() == 2);
  CHECK(functions[0].name == "first");
  REQUIRE(functions[0].instructions.size() == 3);
  CHECK(functions[0].instructions[0].text == "LDC R1, c[0x0][0x28]");
  CHECK(functions[0].instructions[0].ptx_line == 118);
  CHECK(functions[0].instructions[1].offset == 16);
  CHECK(functions[0].instructions[1].ptx_line == 132);
  CHECK(functions[0].instructions[2].text == "@P0 EXIT");
  CHECK(functions[0].instructions[2].ptx_line == 132);
  CHECK(functions[1].name == "_Z6secondv");
  REQUIRE(functions[1].instructions.size() == 1);
  CHECK(functions[1].instructions[0].ptx_line == 0);
}

TEST_CASE("text that is no disassembly has no functions") {
  CHECK(parse_disassembly("").empty());
  CHECK(parse_disassembly("/*0000*/ EXIT ;\n.section\t.text.\n/*\n/*0000*/\n//## File\n").empty());
}

TEST_CASE("the square root of line 10 is a MUFU of line 10") {
  if (!find_ptxas().ok() || !find_nvdisasm().ok()) {
    MESSAGE("skipped: ptxas or nvdisasm is missing");
    return;
  }
  const Result<PtxasRun> run = assemble(kernel, {"sm_80", 3, {"-lineinfo"}});
  REQUIRE(run.ok());
  REQUIRE(run->ok);
  const Result<std::vector<SassFunction>> functions = disassemble(run->cubin);
  REQUIRE(functions.ok());
  REQUIRE(functions->size() == 1);
  const auto& instructions = functions->front().instructions;
  const auto of_line_10 = [](const SassInstruction& instruction) {
    return instruction.ptx_line == 10 && instruction.text.find("MUFU") != std::string::npos;
  };
  CHECK(std::ranges::count_if(instructions, of_line_10) == 1);
}

TEST_CASE("what is no cubin is refused") {
  if (!find_nvdisasm().ok()) {
    MESSAGE("skipped: no nvdisasm on this machine");
    return;
  }
  const Result<std::vector<SassFunction>> functions = disassemble("no cubin");
  REQUIRE(!functions.ok());
  CHECK(functions.error().message.find("nvdisasm") != std::string::npos);
}

} // namespace ptxrewrite::tests::disassembler_test
