// DARSIE's marks: the paper's Figures 3 and 6, promotion against brute force over block shapes, and cases where source
// operands alone are not enough: joins, loop exits, memory written by others.
#include "grammar/reader.h"
#include "ir/analysis/redundancy/redundancy.h"
#include "ir/core/module.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace ptxrewrite::tests::redundancy_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Marked {
  std::unique_ptr<Module> module;
  const Function* function = nullptr;
  std::vector<DarsieMark> marks;

  // The mark of the only instruction whose text contains `part`.
  std::string operator[](std::string_view part) const {
    std::string found;
    for (BlockId block : function->layout)
      for (InstructionId id : function->instructions_in(block)) {
        if (function->instructions[id].kind != InstructionKind::real) continue;
        if (print_instruction(*function, id).find(part) == std::string::npos) continue;
        REQUIRE_MESSAGE(found.empty(), "two instructions hold " << part);
        found = to_string(marks[id.index()]);
      }
    REQUIRE_MESSAGE(!found.empty(), "no instruction holds " << part);
    return found;
  }
  std::string promoted(std::string_view part, const std::array<uint32_t, 3>& block) const {
    return to_string(promote(*parse_mark((*this)[part]), block));
  }
};

Marked mark_text(std::string text, std::string_view kernel = {}, MarkRules rules = MarkRules::all) {
  Marked result;
  Diagnostics diagnostics;
  result.module = grammar::read_module(SourceFile("test.ptx", std::move(text)), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    INFO(diagnostic.message);
  REQUIRE(result.module);
  for (auto& function : result.module->functions)
    if (function->has_body && (kernel.empty() || result.module->text(function->name) == kernel))
      result.function = function.get();
  REQUIRE(result.function);
  result.marks = marks_of(*result.function, rules);
  return result;
}

Marked mark(const std::string& body, MarkRules rules = MarkRules::all) {
  return mark_text(".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 tile[4096];\n"
                   ".const .align 4 .b8 table[64];\n.global .align 4 .u32 flag;\n"
                   ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                   ".reg .pred %p<9>;\n.reg .f32 %f<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n" +
                       body + "\nret;\n}\n",
                   {}, rules);
}

Marked mark_sample(const std::string& path, std::string_view kernel) {
  std::ifstream file(tests::source_path("samples/" + path));
  std::stringstream text;
  text << file.rdbuf();
  return mark_text(text.str(), kernel);
}

// The values of tid.x and tid.y in the lanes of every warp of a block. Lanes are threads in the order x, y, z.
using Lanes = std::vector<uint32_t>;
std::set<Lanes> vectors(const std::array<uint32_t, 3>& block, unsigned component) {
  std::set<Lanes> different;
  const uint32_t threads = block[0] * block[1] * block[2];
  for (uint32_t first = 0; first + 32 <= threads; first += 32) { // whole warps
    Lanes lanes;
    for (uint32_t thread = first; thread < first + 32; ++thread)
      lanes.push_back(component == 0 ? thread % block[0] : thread / block[0] % block[1]);
    different.insert(lanes);
  }
  return different;
}

} // namespace

TEST_CASE("marks as text") {
  using S = MarkStrength;
  using K = MarkKind;
  CHECK(to_string(DarsieMark{S::definite, K::uniform}) == "DR uniform");
  CHECK(to_string(DarsieMark{S::conditional_x, K::affine}) == "CR x affine");
  CHECK(to_string(DarsieMark{S::conditional_xy, K::unstructured}) == "CR xy unstructured");
  CHECK(to_string(DarsieMark{}) == "V");
  for (S strength : {S::definite, S::conditional_x, S::conditional_xy})
    for (K kind : {K::uniform, K::affine, K::unstructured})
      CHECK(parse_mark(to_string(DarsieMark{strength, kind})) == DarsieMark{strength, kind});
  CHECK(parse_mark("V") == DarsieMark{});
  CHECK(parse_mark(" CR  affine ") == DarsieMark{S::conditional_x, K::affine});
  for (const char* wrong : {"", "DR", "DR x uniform", "CR y affine", "V uniform", "CRx affine", "DR uniform too"})
    CHECK_MESSAGE(!parse_mark(wrong), wrong);
}

// DARSIE §4.2 names tid.x, parameters, block indices and dimensions, and joins marks by their operands alone.
TEST_CASE("the paper's rules: no %laneid, no tid.y, no arithmetic") {
  const std::string body = "mov.u32 %r1, %laneid;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %tid.x;\n"
                           "sub.u32 %r4, %r3, %r3;\nmov.u32 %r5, %ctaid.x;\nadd.u32 %r6, %r5, %r3;";
  const Marked all = mark(body), paper = mark(body, MarkRules::paper);
  CHECK(all["%laneid"] == "DR affine");
  CHECK(paper["%laneid"] == "V");
  CHECK(all["%tid.y"] == "CR xy affine");
  CHECK(paper["%tid.y"] == "V");
  CHECK(all["sub.u32"] == "DR uniform");
  CHECK(paper["sub.u32"] == "CR x affine");
  for (const char* same : {"%tid.x", "%ctaid.x", "add.u32"})
    CHECK_MESSAGE(paper[same] == all[same], same);
}

TEST_CASE("the weakest of two marks is what both promise") {
  using S = MarkStrength;
  using K = MarkKind;
  CHECK(weakest({S::definite, K::uniform}, {S::conditional_x, K::affine}) == DarsieMark{S::conditional_x, K::affine});
  CHECK(weakest({S::conditional_xy, K::affine}, {S::conditional_x, K::unstructured}) ==
        DarsieMark{S::conditional_xy, K::unstructured});
  CHECK(weakest({S::definite, K::uniform}, {}) == DarsieMark{});
  CHECK(weakest({S::vector, K::uniform}, {S::definite, K::uniform}) == DarsieMark{}); // V has one spelling
}

TEST_CASE("promotion is right for every block shape, by brute force") {
  const DarsieMark x{MarkStrength::conditional_x, MarkKind::affine}, xy{MarkStrength::conditional_xy, MarkKind::affine};
  for (uint32_t bx = 1; bx <= 80; ++bx)
    for (uint32_t by = 1; by <= 36 && bx * by <= 1024; ++by)
      for (uint32_t bz = 1; bz <= 9 && bx * by * bz <= 1024; ++bz) {
        const std::array<uint32_t, 3> block{bx, by, bz};
        INFO(bx << " x " << by << " x " << bz);
        // A promoted value is the same vector in all whole warps.
        if (promote(x, block).is_definite()) REQUIRE(vectors(block, 0).size() <= 1);
        if (promote(xy, block).is_definite()) {
          REQUIRE(vectors(block, 1).size() <= 1);
          REQUIRE(promote(x, block).is_definite()); // CR xy is the weaker condition
        }
        CHECK(promote(x, block).is_definite() != promote(x, block).is_vector());
        // With several whole warps nothing is missed either, except one-dimensional blocks with the paper's rule.
        if (bx * by * bz < 64) continue;
        if (by > 1 || bz > 1) CHECK(promote(x, block).is_definite() == (vectors(block, 0).size() == 1));
        if (bz > 1 && by > 1) CHECK(promote(xy, block).is_definite() == (vectors(block, 1).size() == 1));
      }
}

TEST_CASE("promotion by examples: 1D, 2D, 3D, no powers of two, wider than a warp, partial warps") {
  const DarsieMark x{MarkStrength::conditional_x, MarkKind::affine}, xy{MarkStrength::conditional_xy, MarkKind::affine};
  struct Row {
    std::array<uint32_t, 3> block;
    bool x, xy;
  };
  for (const Row& row : std::initializer_list<Row>{{{256, 1, 1}, false, false},
                                                   {{32, 1, 1}, false, false},
                                                   {{16, 16, 1}, true, false},
                                                   {{32, 8, 1}, true, false},
                                                   {{64, 4, 1}, false, false},
                                                   {{12, 8, 1}, false, false},
                                                   {{24, 8, 1}, false, false},
                                                   {{8, 4, 8}, true, true},
                                                   {{4, 4, 4}, true, true},
                                                   {{8, 8, 8}, true, false},
                                                   {{16, 1, 16}, true, true},
                                                   {{8, 3, 8}, true, false},
                                                   {{6, 4, 8}, false, false},
                                                   {{16, 5, 1}, true, false},    // 2.5 warps
                                                   {{4, 2, 7}, true, true},      // 1.75 warps
                                                   {{1, 1024, 1}, true, false}}) // tid.x is 0
  {
    INFO(row.block[0] << " x " << row.block[1] << " x " << row.block[2]);
    CHECK(promote(x, row.block).is_definite() == row.x);
    CHECK(promote(xy, row.block).is_definite() == row.xy);
    CHECK(promote({MarkStrength::definite, MarkKind::uniform}, row.block).is_definite());
    CHECK(promote({}, row.block).is_vector());
  }
  CHECK(promote(x, {16, 16, 1}).kind == MarkKind::affine);
}

TEST_CASE("Figure 3: an array read by tid.x, in a block of one row and in one of two") {
  Marked k = mark("mov.u32 %r1, %tid.x;\nmul.lo.u32 %r2, %r1, 4;\nadd.u32 %r3, %r2, 10;\nld.shared.u32 %r4, [%r3];");
  CHECK(k["mul.lo"] == "CR x affine");
  CHECK(k["add.u32"] == "CR x affine");
  CHECK(k["ld.shared"] == "CR x unstructured");
  const std::array<uint32_t, 3> one_row{8, 1, 1}, two_rows{4, 2, 1};
  for (const char* part : {"mul.lo", "add.u32", "ld.shared"})
    CHECK(k.promoted(part, one_row) == "V");
  CHECK(k.promoted("mul.lo", two_rows) == "DR affine");
  CHECK(k.promoted("add.u32", two_rows) == "DR affine");
  CHECK(k.promoted("ld.shared", two_rows) == "DR unstructured");
}

TEST_CASE("Figure 6: the matrix product reads its tile by tid.x alike in all warps, by tid.y not") {
  Marked k = mark_sample("matmul/matmul.ptx", "matmul_tiled");
  // Parameters and block indices.
  CHECK(k["%ctaid.y"] == "DR uniform");
  CHECK(k["mov.u32 %r39, %tid.x"] == "CR x affine");
  CHECK(k["shl.b32 %r26, %r39, 2"] == "CR x affine");
  CHECK(k["add.s32 %r8, %r27, %r26"] == "CR x affine");
  CHECK(k["shl.b32 %r3,"] == "DR uniform");
  // The loop: the columns of b by tid.x, the rows of a by tid.y, and the result of both.
  CHECK(k.promoted("ld.global.f32 %f60", {16, 16, 1}) == "V");
  for (const char* column : {"%f12, [%r8]", "%f15, [%r8+64]", "%f57, [%r8+960]"})
    CHECK(k[column] == "CR x unstructured");
  for (const char* row : {"%f13, [%r34]", "%f16, [%r34+4]", "%f58, [%r34+60]"})
    CHECK(k.promoted(row, {16, 16, 1}) == "V");
  CHECK(k.promoted("%f12, [%r8]", {16, 16, 1}) == "DR unstructured");
  CHECK(k.promoted("fma.rn.f32 %f14", {16, 16, 1}) == "V");
  CHECK(k.promoted("%f12, [%r8]", {64, 4, 1}) == "V");
}

TEST_CASE("sources") {
  Marked k = mark("mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.y;\nmov.u32 %r3, %nctaid.z;\nmov.u32 %r4, 7;\n"
                  "ld.param.u32 %r5, [n];\nmov.u32 %r6, tile;\nmov.u32 %r7, %tid.x;\nmov.u32 %r8, %tid.y;\n"
                  "mov.u32 %r9, %tid.z;\nmov.u32 %r10, %laneid;\nmov.u32 %r11, %warpid;\nmov.u32 %r12, %smid;\n"
                  "mov.u32 %r13, %clock;\nmov.u32 %r14, %lanemask_lt;\nadd.u32 %r15, %r10, 3;\n");
  for (const char* uniform : {"%r1,", "%r2,", "%r3,", "%r4,", "%r5,", "%r6,"})
    CHECK(k[uniform] == "DR uniform");
  CHECK(k["%r7,"] == "CR x affine");
  CHECK(k["%r8,"] == "CR xy affine");
  CHECK(k["%laneid"] == "DR affine");
  CHECK(k["%r15,"] == "DR affine");
  for (const char* vector : {"%r9,", "%r11,", "%r12,", "%r13,", "%r14,"})
    CHECK(k[vector] == "V");
}

TEST_CASE("an instruction takes the weakest of its sources, guard and old value") {
  Marked k = mark("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %tid.z;\nmov.u32 %r4, 1;\n"
                  "add.u32 %r5, %r1, %r4;\nadd.u32 %r6, %r1, %r2;\nadd.u32 %r7, %r6, %r3;\n"
                  "setp.lt.u32 %p1, %r1, 8;\nsetp.lt.u32 %p2, %r3, 8;\n"
                  "mov.u32 %r8, 5;\n@%p1 mov.u32 %r8, 6;\nmov.u32 %r9, 5;\n@%p2 mov.u32 %r9, 6;\n"
                  "@%p1 mov.u32 %r3, 9;\nxor.b32 %r10, %r1, 3;\nst.shared.u32 [tile], %r10;");
  CHECK(k["add.u32 %r5"] == "CR x affine");
  CHECK(k["add.u32 %r6"] == "CR xy affine");
  CHECK(k["add.u32 %r7"] == "V");
  CHECK(k["setp.lt.u32 %p1"] == "CR x unstructured");
  CHECK(k["mov.u32 %r8, 6"] == "CR x unstructured");
  CHECK(k["mov.u32 %r9, 6"] == "V");
  CHECK(k["mov.u32 %r3, 9"] == "V"); // the old value was tid.z
  CHECK(k["xor.b32"] == "CR x unstructured");
  CHECK(k["st.shared"] == "V"); // no result that warps could share
}

TEST_CASE("a join is at most as strong as the branches that choose") {
  auto chosen_by = [](const std::string& index) {
    return mark("mov.u32 %r1, " + index +
                ";\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra ONE;\nmov.u32 %r2, 2;\nbra.uni BOTH;\nONE:\nmov.u32 %r2, 1;\n"
                "BOTH:\nadd.u32 %r3, %r2, 5;\nadd.u32 %r4, %r1, 1;\nmov.u32 %r5, 8;");
  };
  Marked vector = chosen_by("%tid.z"), conditional = chosen_by("%tid.x"), definite = chosen_by("%ctaid.x");
  CHECK(vector["add.u32 %r3"] == "V");
  CHECK(conditional["add.u32 %r3"] == "CR x unstructured");
  CHECK(definite["add.u32 %r3"] == "DR uniform");
  // In the arms and after the join all other instructions keep their marks.
  CHECK(vector["mov.u32 %r2, 1"] == "DR uniform");
  CHECK(vector["mov.u32 %r5, 8"] == "DR uniform");
  CHECK(conditional["add.u32 %r4"] == "CR x affine");
}

TEST_CASE("an inner vector branch does not reach joins behind its own") {
  Marked k = mark("mov.u32 %r1, %tid.z;\nld.param.u32 %r2, [n];\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r2, 0;\n"
                  "mov.u32 %r3, 1;\nmov.u32 %r4, 1;\n@%p2 bra OUTER;\n@%p1 bra INNER;\nmov.u32 %r4, 2;\nINNER:\n"
                  "mov.u32 %r3, 3;\nOUTER:\nadd.u32 %r5, %r3, 1;\nadd.u32 %r6, %r4, 1;");
  CHECK(k["add.u32 %r5"] == "DR uniform");
  CHECK(k["add.u32 %r6"] == "V");
}

TEST_CASE("a loop's own values keep their marks, what leaves it takes the exit's") {
  auto loop_until = [](const std::string& limit) {
    return mark("mov.u32 %r1, " + limit +
                ";\nmov.u32 %r2, 0;\nLOOP:\nadd.u32 %r2, %r2, 1;\nmul.lo.u32 %r3, %r2, 4;\n"
                "setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra LOOP;\nadd.u32 %r4, %r2, 7;");
  };
  Marked vector = loop_until("%tid.z"), conditional = loop_until("%tid.x"), definite = loop_until("%ntid.x");
  for (const Marked* k : {&vector, &conditional, &definite})
    CHECK((*k)["mul.lo.u32"] == "DR uniform");
  CHECK(vector["add.u32 %r4"] == "V");
  CHECK(conditional["add.u32 %r4"] == "CR x unstructured");
  CHECK(definite["add.u32 %r4"] == "DR uniform");
}

TEST_CASE("a break inside a loop weakens what leaves it, and the header's join only where ways meet there") {
  Marked k = mark("mov.u32 %r1, %tid.z;\nmov.u32 %r2, 0;\nLOOP:\nadd.u32 %r2, %r2, 1;\nsetp.eq.u32 %p2, %r2, %r1;\n"
                  "@%p2 bra DONE;\nsetp.lt.u32 %p1, %r2, 9;\nshl.b32 %r6, %r2, 1;\n@%p1 bra LOOP;\nDONE:\n"
                  "add.u32 %r4, %r2, 7;");
  CHECK(k["shl.b32 %r6"] == "DR uniform");
  CHECK(k["add.u32 %r4"] == "V");
  // Two back edges: the branch determines which one was taken.
  Marked c = mark("mov.u32 %r1, %tid.z;\nmov.u32 %r2, 0;\nmov.u32 %r5, 0;\nLOOP:\nadd.u32 %r2, %r2, 1;\n"
                  "add.u32 %r5, %r5, 1;\nsetp.gt.u32 %p3, %r2, 99;\n@%p3 bra DONE;\nsetp.eq.u32 %p2, %r2, %r1;\n"
                  "@%p2 bra LOOP;\nadd.u32 %r2, %r2, 2;\nbra.uni LOOP;\nDONE:\nshl.b32 %r4, %r5, 7;");
  CHECK(c["add.u32 %r2, %r2, 1"] == "V");
}

TEST_CASE("loads: same address, same value, unless memory or time is the thread's own") {
  Marked k = mark("ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, %tid.x;\n"
                  "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nmov.u32 %r2, %tid.z;\n"
                  "mul.wide.u32 %rd5, %r2, 4;\nadd.s64 %rd6, %rd2, %rd5;\n"
                  "ld.global.u32 %r3, [%rd2];\nld.global.u32 %r4, [%rd4];\nld.global.u32 %r5, [%rd6];\n"
                  "ld.u32 %r6, [%rd1];\nld.const.u32 %r7, [table+4];\nld.shared.u32 %r8, [tile];\n"
                  "ld.global.v2.u32 {%r9, %r10}, [%rd4+8];\n"
                  "ld.volatile.global.u32 %r11, [%rd2];\nld.global.u32 %r20, [%rd2+64];\nbar.sync 0;\n"
                  "ld.global.u32 %r21, [%rd2+68];\nld.relaxed.gpu.global.u32 %r12, [%rd2];\nbar.sync 0;\n"
                  "ld.acquire.gpu.global.u32 %r13, [%rd2];\nbar.sync 0;\natom.global.add.u32 %r14, [%rd2], 1;\n"
                  "add.u32 %r15, %r14, 1;\nld.global.u32 %r22, [%rd2+72];\nld.global.nc.u32 %r23, [%rd2+76];\n"
                  "bar.sync 0;\nshfl.sync.idx.b32 %r16, %r3, 0, 31, -1;\nvote.sync.ballot.b32 %r17, %p1, -1;");
  CHECK(k["ld.global.u32 %r3"] == "DR uniform");
  CHECK(k["ld.global.u32 %r4"] == "CR x unstructured");
  CHECK(k["ld.global.u32 %r5"] == "V");
  CHECK(k["ld.u32 %r6"] == "DR uniform");
  CHECK(k["ld.const.u32 %r7"] == "DR uniform");
  CHECK(k["ld.shared.u32 %r8"] == "DR uniform");
  CHECK(k["{%r9, %r10}"] == "CR x unstructured");
  for (const char* vector : {"ld.volatile", "ld.relaxed", "ld.acquire", "atom", "add.u32 %r15", "shfl", "vote"})
    CHECK(k[vector] == "V");
  // After reading another thread's data, warps may be at different points of its work; a barrier ends that.
  CHECK(k["%r20, ["] == "V");
  CHECK(k["%r21, ["] == "DR uniform");
  CHECK(k["%r22, ["] == "V");
  CHECK(k["%r23, ["] == "DR uniform");
}

TEST_CASE("a lock makes each warp read what the one before it wrote") {
  Marked k = mark("ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nTRY:\n"
                  "atom.acquire.gpu.global.cas.b32 %r1, [%rd2], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra TRY;\n"
                  "ld.global.u32 %r2, [%rd2+4];\nadd.u32 %r3, %r2, 1;\nst.global.u32 [%rd2+4], %r3;");
  CHECK(k["ld.global.u32 %r2"] == "V");
  CHECK(k["add.u32 %r3"] == "V");
}

TEST_CASE("what may be local memory is the thread's own") {
  Marked k = mark(".local .align 4 .b8 depot[16];\nmov.u64 %rd1, depot;\nld.local.u32 %r1, [depot];\n"
                  "cvta.local.u64 %rd2, %rd1;\nld.u32 %r2, [%rd2];\nld.param.u64 %rd3, [p];\nld.u32 %r3, [%rd3];\n"
                  "cvta.to.global.u64 %rd4, %rd3;\nld.global.u32 %r4, [%rd4];");
  CHECK(k["ld.local"] == "V");
  CHECK(k["%r2, ["] == "V");
  CHECK(k["%r3, ["] == "V");
  CHECK(k["%r4, ["] == "DR uniform");
}

TEST_CASE("the carry flag is a source") {
  Marked k = mark("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.z;\nadd.cc.u32 %r3, %r1, 1;\naddc.u32 %r4, 0, 0;\n"
                  "add.cc.u32 %r5, %r2, 1;\naddc.u32 %r6, 0, 0;\nadd.cc.u32 %r7, 1, 1;\naddc.u32 %r8, 0, 0;");
  CHECK(k["addc.u32 %r4"] == "CR x unstructured");
  CHECK(k["addc.u32 %r6"] == "V");
  CHECK(k["addc.u32 %r8"] == "DR uniform");
}

TEST_CASE("conditional by the text, uniform by arithmetic") {
  Marked k = mark("mov.u32 %r1, %tid.x;\nadd.u32 %r2, %r1, 8;\nsub.u32 %r3, %r2, %r1;\nadd.u32 %r4, %r3, 1;");
  CHECK(k["sub.u32 %r3"] == "DR uniform");
  CHECK(k["add.u32 %r4"] == "DR uniform");
}

TEST_CASE("device functions and bodies without loops' structure are vector") {
  Marked f = mark_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .func f(.param .u32 n)\n{\n"
                       ".reg .b32 %r<4>;\nmov.u32 %r1, 3;\nret;\n}\n");
  CHECK(f["mov.u32 %r1"] == "V");
  // Two entries into one cycle.
  Marked k = mark("ld.param.u32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 0;\nmov.u32 %r2, 0;\n@%p1 bra B;\nA:\n"
                  "add.u32 %r2, %r2, 1;\nB:\nadd.u32 %r2, %r2, 2;\nsetp.lt.u32 %p2, %r2, 50;\n@%p2 bra A;");
  CHECK(k["ld.param"] == "V");
}

TEST_CASE("written marks count, and what they leave out is vector") {
  Marked k = mark("mov.u32 %r1, %tid.z; //@ darsie DR uniform\nmov.u32 %r2, 4;\n.pragma \"darsie CR xy affine\";\n"
                  "add.u32 %r3, %r1, 4;");
  CHECK(k["mov.u32 %r1"] == "DR uniform");
  CHECK(k["mov.u32 %r2"] == "V");
  CHECK(k["add.u32 %r3"] == "CR xy affine");
}

} // namespace ptxrewrite::tests::redundancy_test
