// Pass `darsie`: marks are added and removed byte for byte, mean the same after printing, and leave the machine code
// alone; kernels for one launch shape compute the original's results there and state when they may run.
#include "grammar/reader.h"
#include "ir/analysis/redundancy/redundancy.h"
#include "ir/core/print.h"
#include "ir/machine/figures/cubin.h"
#include "launch/variants.h"
#include "support/ptxas.h"
#include "tests/unit/paths.h"
#include "transforms/darsie/darsie_text.h"
#include "transforms/manager/pipeline.h"
#include "transforms/manager/text_insertion.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace ptxrewrite::tests::darsie_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;

namespace {

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE_MESSAGE(module, (diagnostics.list().empty() ? text : diagnostics.list()[0].message));
  return module;
}

std::string sample_text(const std::string& path) {
  std::ifstream file(tests::source_path("samples/" + path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string marked(const ir::Module& module, MarkCarrier carrier) {
  std::vector<TextInsertion> insertions;
  for (const auto& function : module.functions)
    std::ranges::move(mark_insertions(*function, ir::marks_of(*function), carrier), std::back_inserter(insertions));
  return with_insertions(module.source.text(), insertions);
}

// The marks of a module's real instructions in the order of the text.
std::vector<std::string> marks_in_order(const ir::Module& module) {
  std::vector<std::string> marks;
  for (const auto& function : module.functions) {
    const std::vector<ir::DarsieMark> all = ir::marks_of(*function);
    for (ir::BlockId block : function->layout)
      for (ir::InstructionId id : function->instructions_in(block))
        if (function->instructions[id].kind == ir::InstructionKind::real) marks.push_back(to_string(all[id.index()]));
  }
  return marks;
}

std::string body(const std::string& statements) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
         ".reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<9>;\n" +
         statements + "}";
}

struct Specialised {
  std::unique_ptr<ir::Module> module;
  std::string text;
  PipelineReport report;
};

Specialised specialised(const std::string& source, const std::string& shape) {
  Specialised result;
  result.module = read(source);
  auto pipeline = parse_pipeline("darsie(specialise=\"" + shape + "\")");
  REQUIRE(pipeline);
  auto report = run_pipeline(*result.module, *pipeline, {.verify_each = true});
  REQUIRE_MESSAGE(report, report.error().message);
  result.report = *std::move(report);
  result.text = print(*result.module);
  return result;
}

// The text of one function of a module.
std::string text_of(const ir::Module& module, std::string_view name) {
  std::string text;
  for (const auto& function : module.functions)
    if (module.text(function->name) == name) ir::print(*function, text);
  return text;
}

const std::string bounds_checked = body("ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %ntid.x;\n"
                                        "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %tid.x;\nmov.u32 %r5, %tid.y;\n"
                                        "mad.lo.s32 %r6, %r3, %r2, %r4;\nsetp.ge.u32 %p1, %r4, 32;\n@%p1 bra DONE;\n"
                                        "setp.ge.s32 %p2, %r6, %r1;\n@%p2 bra DONE;\nmul.wide.u32 %rd2, %r6, 4;\n"
                                        "add.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r5;\nDONE:\nret;\n");

} // namespace

TEST_CASE("marks go in behind their instructions or in front of them") {
  auto module = read(body("mov.u32 %r1, %tid.x;\n\tadd.u32 %r2, %r1, 4;\nret;\n"));
  const std::string comments = marked(*module, MarkCarrier::comment), pragmas = marked(*module, MarkCarrier::pragma);
  CHECK(comments.find("mov.u32 %r1, %tid.x; //@ darsie CR x affine\n\tadd.u32 %r2, %r1, 4; //@ darsie CR x affine\n"
                      "ret; //@ darsie V\n") != std::string::npos);
  CHECK(
      pragmas.find(".pragma \"darsie CR x affine\"; mov.u32 %r1, %tid.x;\n\t.pragma \"darsie CR x affine\"; add.u32") !=
      std::string::npos);
}

TEST_CASE("whatever stands around instructions: marks are read back, and stripping gives the input") {
  for (const std::string& source :
       {body("mov.u32 %r1, %tid.x; mov.u32 %r2, 5;  add.u32 %r3, %r1, %r2; ret; "),
        body("mov.u32 %r1, %tid.x;\r\nadd.u32 %r2, %r1, 4;\t \r\nret;\r\n"),
        body("mov.u32 %r1, %tid.x; // %r1: the column\nadd.u32 %r2, %r1, 4; /* four\n more */ L: ret;"),
        body("setp.eq.u32 %p1, 1, 2;\n@%p1 bra L; mov.u32 %r1, 0;\nL: @%p1\n add.u32 %r2,\n %r1, 4\n; ret;\n"),
        body("{ .reg .b32 t; mov.u32 t, %tid.x; { mov.u32 %r1, t; } }\n.pragma \"nounroll\";\nadd.u32 %r2, %r1, "
             "1;\nret;"),
        body("//@ somebody else's note\nmov.u32 %r1, 3; //@ and another\n.loc 1 2 3\nret;\n")}) {
    auto module = read(source);
    for (MarkCarrier carrier : {MarkCarrier::comment, MarkCarrier::pragma}) {
      const std::string text = marked(*module, carrier);
      INFO(text);
      auto again = read(text);
      CHECK(marks_in_order(*again) == marks_in_order(*module));
      for (const auto& function : again->functions)
        for (ir::BlockId block : function->layout)
          for (ir::InstructionId id : function->instructions_in(block))
            if (function->instructions[id].kind == ir::InstructionKind::real)
              CHECK(ir::written_mark(*function, id).has_value());
      CHECK(without_marks(*again) == source);
      CHECK(without_marks(*module) == source);
    }
  }
}

TEST_CASE("marks survive printing, on their lines") {
  for (const char* path : {"matmul/matmul.ptx", "backprop/backprop.ptx", "bfs/bfs.ptx"}) {
    auto module = read(sample_text(path));
    const std::vector<std::string> marks = marks_in_order(*module);
    for (MarkCarrier carrier : {MarkCarrier::comment, MarkCarrier::pragma}) {
      auto first = read(marked(*module, carrier));
      const std::string printed = print(*first);
      auto second = read(printed);
      CHECK(marks_in_order(*second) == marks);
      CHECK(print(*second) == printed);
      std::istringstream lines(printed);
      for (std::string line; std::getline(lines, line);)
        CHECK_MESSAGE(!line.starts_with("//@ darsie"), line);
    }
  }
}

TEST_CASE("in a pipeline the marks are those of the rewritten code") {
  auto module = read(sample_text("matmul/matmul.ptx"));
  auto pipeline = parse_pipeline("dce,darsie");
  REQUIRE(pipeline);
  auto report = run_pipeline(*module, *pipeline, {.form = OutputForm::annotated, .verify_each = true});
  REQUIRE_MESSAGE(report, report.error().message);
  auto again = read(print(*module));
  size_t written = 0, real = 0;
  for (const auto& function : again->functions)
    for (ir::BlockId block : function->layout)
      for (ir::InstructionId id : function->instructions_in(block)) {
        if (function->instructions[id].kind != ir::InstructionKind::real) continue;
        ++real;
        written += ir::written_mark(*function, id).has_value();
      }
  CHECK(real > 100);
  // Copies added by leaving SSA form have no marks.
  CHECK(written * 100 >= real * 95);
  CHECK(report->statistics["darsie.conditional"] > 20);
  CHECK(!only_annotates(*pipeline, OutputForm::annotated));
  CHECK(only_annotates(*parse_pipeline("darsie"), OutputForm::annotated));
  CHECK(!only_annotates(*parse_pipeline("darsie"), OutputForm::legal));
}

TEST_CASE("the assembler makes the same code of marked text") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas on this machine");
    return;
  }
  for (const char* path : {"matmul/matmul.ptx", "hotspot/hotspot.ptx"}) {
    const std::string plain = sample_text(path);
    auto module = read(plain);
    auto code = [&](const std::string& text) {
      auto run = assemble(text, {.arch = "sm_90", .extra_flags = {"-w"}});
      REQUIRE(run);
      REQUIRE_MESSAGE(run->ok, run->messages);
      auto cubin = ir::read_cubin(run->cubin);
      REQUIRE(cubin);
      return *cubin;
    };
    const ir::Cubin before = code(plain);
    for (MarkCarrier carrier : {MarkCarrier::comment, MarkCarrier::pragma})
      CHECK(first_code_difference(before, code(marked(*module, carrier))) == "");
  }
}

TEST_CASE("a kernel for one block shape: indices, conditions, dead code") {
  Specialised result = specialised(bounds_checked, "block=32x4");
  const std::string text = text_of(*result.module, "k__darsie");
  INFO(text);
  CHECK(text.find(".reqntid 32, 4, 1") != std::string::npos);
  CHECK(text.find("%ntid") == std::string::npos);
  CHECK(text.find("%tid.x") != std::string::npos);
  // tid.x < 32 is always true; the bound on the parameter is kept.
  CHECK(text.find("setp.ge.u32") == std::string::npos);
  CHECK(text.find("setp.ge.s32") != std::string::npos);
  CHECK(text_of(*result.module, "k").find("%ntid.x") != std::string::npos);
}

TEST_CASE("with grid and parameters known the bound goes, too") {
  Specialised enough = specialised(bounds_checked, "block=32x4,grid=8,param.1=256");
  CHECK(text_of(*enough.module, "k__darsie").find("setp") == std::string::npos);
  CHECK(text_of(*enough.module, "k__darsie").find("[p]") != std::string::npos);
  Specialised one_short = specialised(bounds_checked, "block=32x4,grid=8,param.1=255");
  CHECK(text_of(*one_short.module, "k__darsie").find("setp.ge.s32") != std::string::npos);
  Specialised none = specialised(bounds_checked, "block=32x4,grid=8,param.1=-5");
  CHECK(text_of(*none.module, "k__darsie").find("st.global") == std::string::npos);
}

TEST_CASE("the number of blocks is not guessed") {
  const std::string source = body("ld.param.u64 %rd1, [p];\nmov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %ctaid.x;\n"
                                  "setp.lt.u32 %p1, %r2, %r1;\nsetp.gt.u32 %p2, %r1, 8;\nselp.u32 %r3, 1, %r1, %p1;\n"
                                  "selp.u32 %r4, 2, %r3, %p2;\nst.global.u32 [%rd1], %r4;\nret;\n");
  const std::string any = text_of(*specialised(source, "block=32").module, "k__darsie");
  CHECK(any.find("%nctaid.x") != std::string::npos);
  CHECK(any.find("setp.gt.u32") != std::string::npos);
  const std::string known = text_of(*specialised(source, "block=32,grid=9").module, "k__darsie");
  CHECK(known.find("%nctaid.x") == std::string::npos);
  CHECK(known.find("setp.gt.u32") == std::string::npos);
}

TEST_CASE("guards that are known go, with what they guard") {
  const std::string source =
      body("ld.param.u64 %rd1, [p];\nmov.u32 %r1, %ntid.x;\nsetp.eq.u32 %p1, %r1, 64;\nmov.u32 %r2, %tid.x;\n"
           "mov.u32 %r3, %r2;\n@%p1 add.u32 %r3, %r2, 100;\n@!%p1 st.global.u32 [%rd1], %r2;\n"
           "st.global.u32 [%rd1+4], %r3;\n@%p1 exit;\nst.global.u32 [%rd1+8], %r3;\nret;\n");
  const std::string yes = text_of(*specialised(source, "block=64").module, "k__darsie");
  CHECK(yes.find('@' + std::string("%")) == std::string::npos);
  CHECK(yes.find("add.u32") != std::string::npos);
  CHECK(yes.find("[%rd1+8]") == std::string::npos);
  const std::string no = text_of(*specialised(source, "block=32").module, "k__darsie");
  CHECK(no.find("add.u32") == std::string::npos);
  CHECK(no.find("[%rd1+8]") != std::string::npos);
  CHECK(no.find("exit") == std::string::npos);
}

TEST_CASE("the variant runs in its launch and in no other") {
  Specialised result = specialised(bounds_checked, "block=32x4,param.1=256");
  auto variants = launch::Variants::of(*result.module, nullptr);
  REQUIRE(variants);
  auto chosen = [&](uint32_t n, launch::Dim3 grid, launch::Dim3 block) {
    std::vector<std::byte> parameters(12);
    std::memcpy(parameters.data() + 8, &n, 4);
    auto choice = variants->choose("k", parameters, grid, block);
    REQUIRE(choice);
    return std::string(result.module->text(choice->entry->name));
  };
  CHECK(chosen(256, {8, 1, 1}, {32, 4, 1}) == "k__darsie");
  CHECK(chosen(256, {9, 2, 1}, {32, 4, 1}) == "k__darsie");
  CHECK(chosen(255, {8, 1, 1}, {32, 4, 1}) == "k");
  CHECK(chosen(256, {8, 1, 1}, {32, 4, 2}) == "k");
  CHECK(chosen(256, {8, 1, 1}, {16, 8, 1}) == "k");
}

TEST_CASE("what cannot be specialised stays as it is, and says why") {
  auto why = [](const std::string& source, const std::string& shape) {
    Specialised result = specialised(source, shape);
    CHECK(result.text.find("__darsie") == std::string::npos);
    return result.report.remarks.empty() ? std::string() : result.report.remarks[0].text;
  };
  CHECK(why(bounds_checked, "").find("--specialise") != std::string::npos);
  for (const char* shape : {"0", "1024x2", "8x8x8x8", "1x1x65", "99999", "16x", "x16", "-1", "16y16", ""})
    CHECK(why(bounds_checked, "block=" + std::string(shape)) ==
          "left as it is: '" + std::string(shape) +
              "' is no block shape: at most 1024x1024x64, and 1024 threads in all");
  CHECK(why(bounds_checked, "grid=4") == "left as it is: block=.. is missing");
  for (const char* shape : {"1x70000", "0", "2147483648", "1x1x65536"})
    CHECK(why(bounds_checked, "block=32,grid=" + std::string(shape)) ==
          "left as it is: '" + std::string(shape) + "' is no grid shape: at most 2147483647x65535x65535");
  CHECK(why(bounds_checked, "block=32,param.x=1") ==
        "left as it is: 'param.x' is no parameter: they are param.0, param.1 ...");
  CHECK(why(bounds_checked, "block=32,param.1=many") == "left as it is: 'many' is no integer");
  CHECK(why(bounds_checked, "block=32,param.2=1") == "left as it is: the kernel has no parameter 'param.2'");
  CHECK(why(bounds_checked, "block=32,param.1=4294967296") == "left as it is: '4294967296' does not fit parameter 1");
  CHECK(why(bounds_checked, "block=32,size=1") == "left as it is: 'size' is none of block, grid, param.N");
  CHECK(why(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n.reqntid 16, 16\n{\nret;\n}\n",
            "block=32") == "left as it is: its own directives exclude this block shape");
  CHECK(why(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n.maxntid 16, 16\n{\nret;\n}\n",
            "block=512") == "left as it is: its own directives exclude this block shape");
}

// Each needs a second look: what the branch tests is known only once the parameter is a literal in the text. The CPU's
// arithmetic says that no thread takes the branch.
TEST_CASE("a parameter's literal decides what is computed from it") {
  const std::string head = "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n";
  const std::string tail = "@%p1 bra DONE;\nst.global.u32 [%rd1], %r2;\nDONE:\nret;\n";
  const std::string cases[] = {
      "mov.u32 %r3, %ctaid.x;\nsetp.eq.u32 %p2, %r3, 3;\nselp.b32 %r4, %r1, 8, %p2;\nshl.b32 %r5, %r4, 2;\n"
      "setp.ge.u32 %p1, %r5, 64;\n", // both values of the choice are 8
      "ld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 3;\nmov.u32 %r4, 8;\n@%p2 bra M;\nmov.u32 %r4, %r1;\nM:\n"
      "shl.b32 %r5, %r4, 2;\nsetp.ge.u32 %p1, %r5, 64;\n", // both paths pass 8
      "mov.u32 %r3, %nctaid.x;\nsetp.gt.u32 %p2, %r3, 3;\nsetp.eq.u32 %p3, %r1, 0;\nand.pred %p1, %p2, %p3;\n"};
  for (const std::string& test : cases) {
    const Specialised kernel = specialised(body(head + test + tail), "block=8,param.1=8\",force,cost=\"model");
    const std::string text = text_of(*kernel.module, "k__darsie");
    INFO(text);
    CHECK(text.find("st.global.u32") != std::string::npos);
    CHECK(text.find("DONE;") == std::string::npos);
  }
}

TEST_CASE("a kernel for one launch that is worse is not kept, unless by force") {
  // By the model: fewer instructions.
  CHECK(specialised(bounds_checked, "block=32x4").report.statistics.at("darsie.specialised") == 1);
  if (!find_ptxas()) {
    MESSAGE("left out: there is no ptxas");
    return;
  }
  // ptxas unrolls a loop of a few trips if their number is known.
  const std::string loop =
      body("ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u32 %r3, 1;\n"
           "LOOP:\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
           "ld.global.u32 %r4, [%rd3];\nmad.lo.u32 %r3, %r3, %r4, %r2;\nst.global.u32 [%rd3], %r3;\n"
           "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra LOOP;\nret;\n");
  auto weighed = [&](const std::string& options) {
    Specialised result;
    result.module = read(loop);
    auto pipeline = parse_pipeline("darsie(specialise=\"block=32,param.1=30\"" + options + ")");
    REQUIRE(pipeline);
    auto report = run_pipeline(*result.module, *pipeline, {.run_ptxas = true, .verify_each = true});
    REQUIRE(report);
    result.report = *std::move(report);
    result.text = print(*result.module);
    return result;
  };
  const Specialised refused = weighed("");
  CHECK(refused.text.find("__darsie") == std::string::npos);
  REQUIRE(!refused.report.remarks.empty());
  CHECK(refused.report.remarks[0].text.starts_with(
      "left as it is: the kernel for this launch is worse (force keeps it): sm_80: "));
  CHECK(weighed(",force").text.find("k__darsie") != std::string::npos);
  CHECK(weighed(",cost=model").text.find("k__darsie") != std::string::npos);
}

} // namespace ptxrewrite::tests::darsie_test
