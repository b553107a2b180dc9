// Unusual PTX in practice: from compilers, inline assembly and old toolkits. Each case is text
// that ptxas accepts for the version it names (undeclared callees aside), reduced to the smallest
// form.
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::wild_test {

using namespace ptxrewrite;

namespace {

// Reads, prints, reads again and compares the second output. Returns the printed text.
std::string survives(const std::string& source) {
  ReadText first(source);
  REQUIRE_MESSAGE(first.ok(), first.messages() << source);
  const std::string printed = ir::print(*first.module);
  ReadText second(printed);
  REQUIRE_MESSAGE(second.ok(), second.messages() << printed);
  CHECK(ir::print(*second.module) == printed);
  return printed;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const head = ".version 9.0\n.target sm_90\n.address_size 64\n";

} // namespace

TEST_CASE("wild: call sequences over many lines with declarations of their own") {
  const std::string printed = survives(
      kernel("{ // callseq 5, 0\n.reg .b32 temp_param_reg;\n.param .b64 param0;\nst.param.b64 \t[param0+0], %rd1;\n"
             ".param .b32 retval0;\ncall.uni (retval0), \nvprintf, \n(\nparam0, \nparam0\n);\nld.param.b32 %r1, "
             "[retval0+0];\n} // callseq 5",
             ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0,\n\t.param .b64 "
             "vprintf_param_1\n)\n;\n"));
  CHECK(contains(printed, "(retval0), vprintf, (param0, param0);"));
}

TEST_CASE("wild: a labelled prototype before its indirect call") {
  survives(kernel("{ .param .b32 a; .param .b32 r;\nprototype_0 : .callprototype (.param .b32 _) _ (.param .b32 "
                  "_);\ncall (r), \n%rd1, \n(\na\n)\n, prototype_0;\n}"));
}

TEST_CASE("wild: the same labels and registers in every brace scope of a kernel") {
  std::string body;
  for (int i = 0; i < 3; ++i)
    body += "{\n.reg .pred P1;\nLAB_WAIT: \nmbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2;\n@P1 bra.uni "
            "DONE;\nbra.uni     LAB_WAIT;\nDONE: \n}\n";
  survives(kernel(body));
}

TEST_CASE("wild: names without %, names of instructions, $ and _ names") {
  const std::string printed =
      survives(std::string(head) +
               ".global .u32 mov;\n.visible .entry vadd(.param .u64 add)\n{ .reg .pred p, $q; .reg .b32 ld, _t, $u; "
               ".reg .b64 st;\n"
               "ld.param.u64 st, [add]; setp.eq.u32 p, ld, 0; @!p bra bra; add.u32 ld, _t, $u; bra: ret; }\n");
  CHECK(contains(printed, "@!p bra \tbra;"));
}

TEST_CASE("wild: several statements on a line, one over many lines") {
  survives(kernel("mov.u32 %r1, 1; mov.u32 %r2, 2; L: @%p1 bra L; add\n.u32\n%r1\n,\n%r2 /* x */ , // y\n 3\n;"));
}

TEST_CASE("wild: destinations with a predicate and a sink") {
  survives(kernel("elect.sync _|%p1, %r1;\n elect.sync %r2|%p1, -1;\n shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;\n "
                  "setp.lt.and.s32 %p1|%p2, %r1, %r2, %p1;"));
}

TEST_CASE("wild: packing with literals and sinks") {
  survives(
      kernel("mov.b32 %f1, {0,%h1};\n mov.b64 {%r1, _}, %rd1;\n mov.b32 %r1, {%h1, %h2};\n mov.b64 %rd1, {%r1,0};"));
}

TEST_CASE("wild: addresses") {
  const std::string printed =
      survives(kernel("ld.global.u32 %r1, [%rd1+-4];\n ld.param.u64 %rd2, [p+0];\n ld.local.u32 %r2, [1];\n "
                      "ld.global.u32 %r1, [ %rd1 + 0 ];\n"
                      "ld.global.u32 %r1, g[%rd1];\n ld.global.u32 %r1, g[4];\n ld.global.u32 %r1, [g+4];",
                      ".global .u32 g[4];\n"));
  CHECK(contains(printed, "[%rd1+-4]"));
  CHECK(contains(printed, "[1]"));
  CHECK(contains(printed, "g[%rd1]"));
}

TEST_CASE("wild: predicated vector accesses with odd blanks") {
  survives(kernel(
      "@%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];\n@!%p1 st.global.v4.b32 [ %rd1 + 16 ], { %r1,%r2 ,%r3, %r4};\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r1,%r2},{%f1,%f2,%f3,%f4};"));
}

TEST_CASE("wild: pragmas between instructions") {
  const std::string printed = survives(kernel("L: .pragma \"nounroll\";\n .pragma \"used_bytes_mask 61695\";\n "
                                              "ld.global.u32 %r1, [%rd1];\n .pragma \"a\", \"b\";"));
  CHECK(contains(printed, ".pragma \"a\", \"b\";"));
}

TEST_CASE("wild: opcodes of more than a hundred characters, with :: inside") {
  survives(
      kernel("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2:"
             ":cache_hint [%r1], [%rd1, {%r1, %r2, %r3, %r4, %r1}], [%r2], {%h1, %h2, %h1}, %h1, %rd2;"));
}

TEST_CASE("wild: 128-bit registers") {
  survives(kernel(".reg .b128 %q<2>;\n mov.b128 %q1, {%rd1, %rd2};\n mov.b128 {%rd1, %rd2}, %q1;"));
}

TEST_CASE("wild: header directives behind the parameters, in any order") {
  const std::string printed =
      survives(std::string(head) + ".visible .entry k(\n\t.param .u64 a\n)\n.minnctapersm 2\n.maxntid 128, 1, "
                                   "1\n.pragma \"nounroll\";\n.maxnreg 64\n{ ret; }\n.func f() .noreturn { exit; }\n");
  CHECK(printed.find(".minnctapersm 2") < printed.find(".maxntid 128, 1, 1"));
}

TEST_CASE("wild: debug information") {
  const std::string printed = survives(
      ".version 8.0\n.target sm_80, debug\n.address_size 64\n.visible .entry k()\n{\n$L__func_begin0:\n.loc\t1 3 0\n"
      "\t.loc\t1 9 5, function_name $L__info_string0, inlined_at 1 3 0\n\t.loc 1 9 5, function_name "
      "$L__info_string0+4, inlined_at 1 3 0\nret;\n$L__func_end0:\n}\n"
      "\t.file\t1 \"/a b.cu\", 1700000000, 512\n.section\t.debug_abbrev\n{\n.b8 1                                // "
      "Abbreviation Code\n.b8 17\n}\n"
      ".section\t.debug_info\n{\n.b32 .debug_abbrev                                 // Offset\n.b8 8\n.b64 "
      "$L__func_begin0\n.b32 $L__x-$L__y\n$L__x:\n.b16 -1\n}\n.section .debug_str\n{\n$L__info_string0:\n.b8 "
      "95,90,0\n}\n");
  CHECK(contains(printed, "function_name $L__info_string0+4, inlined_at 1 3 0"));
  CHECK(contains(printed, "// Offset")); // debug sections are kept unchanged
}

TEST_CASE("wild: a section of raw text, in which braces and quotes have no meaning") {
  const std::string printed = survives(".version 9.0\n.target sm_80\n.address_size 64\n"
                                       ".nv_intermediate_source_section\n{\n.source_begin\nchar c = '\"'; // }} {\n"
                                       ".source_end\n}\n.visible .entry k()\n{\nret;\n}\n");
  CHECK(contains(printed, "char c = '\"'; // }} {"));
  CHECK(contains(printed, ".entry k"));
}

TEST_CASE("wild: local depots") {
  survives(kernel(".local .align 16 .b8 \t__local_depot0[2064];\n.reg .b64 \t%SP;\n.reg .b64 \t%SPL;\n mov.u64 %SPL, "
                  "__local_depot0;\n cvta.local.u64 %SP, %SPL;\n add.u64 %rd1, %SPL, 0;"));
}

TEST_CASE("wild: initial values") {
  survives(std::string(head) + ".extern .shared .align 16 .b8 x[];\n.global .align 8 .b8 foo[16];\n.visible .global "
                               ".align 8 .u64 p = generic(foo)+4;\n"
                               ".global .align 8 .u64 q[2] = {foo, foo+8};\n.global .attribute(.managed) .align 4 .u32 "
                               "m;\n.common .global .u32 c;\n"
                               ".const .align 4 .f32 f[2] = {0f3fb18a86, 0F3FB18A86};\n.func g() { ret; }\n.global "
                               ".align 8 .u64 v[1] = {g};\n.global .texref t;\n");
}

TEST_CASE("wild: old dialects") {
  survives(".version 1.4\n.target sm_10, map_f64_to_f32\n.tex .u32 t;\n.entry k { .reg .u32 $r<3>; .param .u32 p; "
           "mov.u32 $r1, 0; exit; }\n");
  survives(".version 2.0\n.target sm_20\n.func (.reg .u32 %o) f (.reg .u32 %a, .reg .f32 %b) { mov.u32 %o, %a; ret; "
           "}\n.entry k (.param .u32 p) { .reg .u32 %r<3>; .reg .f32 %g; call (%r1), f, (%r2, %g); exit; }\n");
}

TEST_CASE("wild: a register with an offset as operand is computed by an instruction in front") {
  // ptxas adds, though the manual has no such operand: same machine code as with an explicit sum.
  const std::string printed = survives(kernel("st.global.u32 [%rd1], %r1+5;\n@%p1 add.u32 %r3, %r1+1, %r2+-9;"));
  CHECK(contains(printed, ".reg .b32 $sum0;\n\tadd.s32 \t$sum0, %r1, 5;\n\tst.global.u32 \t[%rd1], $sum0;"));
  CHECK(contains(printed, "@%p1 add.u32 \t%r3, $sum1, $sum2;"));
  CHECK(!ReadText(kernel("add.f32 %f1, %f2+1, %f3;")).ok());
}

TEST_CASE("wild: undeclared callees") {
  survives(kernel("call (%r1), _optix_get_launch_index_x, ();\n call _optix_throw, (%r1);"));
}

TEST_CASE("wild: CRLF, byte order mark, comments anywhere, line markers, form feeds") {
  std::string crlf;
  for (char c : kernel("mov/**/.u32 %r1, 1; /* two\nlines */ add.u32 %r1, %r1, /* a /* b */ 2; // end"))
    crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  survives(crlf);
  survives("\xef\xbb\xbf" + kernel(""));
  survives("/* before */ // it\n# 1 \"x.cu\"\n" + kernel("# 5 \"x.cu\"\n#line 7 \"y.cu\"\n\f mov.u32 %r1, 1;"));
}

TEST_CASE("wild: size of a line, of a brace list, of a name") {
  std::string line, list, wide = kernel("");
  for (int i = 0; i < 21000; ++i)
    line += "add.u32 %r1, %r1, " + std::to_string(i) + "; ";
  CHECK(line.size() > 500000);
  survives(kernel(line));
  for (int i = 0; i < 128; ++i)
    list += (i ? ", %w" : "%w") + std::to_string(i);
  survives(kernel(".reg .f32 %w<128>;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" + list +
                  "}, %rd1, %rd2, 1, 1, 1, 0, 0;"));
  const std::string name(2074, 'n');
  CHECK(contains(survives(std::string(head) + ".entry " + name + "() { ret; }\n"), name));
}

} // namespace ptxrewrite::tests::wild_test
