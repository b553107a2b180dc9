// Annotations of RegLess in text: their contents, that they are read back, and that the text is unchanged without them.
#include "transforms/regless/regless_text.h"

#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"
#include "transforms/darsie/darsie_text.h"
#include "transforms/manager/text_insertion.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace ptxrewrite::tests::regless_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::transforms;

namespace {

std::string annotated(const Module& module, const RegLessOptions& options = {}) {
  std::vector<TextInsertion> insertions;
  for (const auto& function : module.functions) {
    if (!function->has_body) continue;
    Result<RegLessPlan> plan = plan_regless(*function, options);
    if (!plan) FAIL(plan.error().message);
    for (TextInsertion& insertion : regless_insertions(*function, *plan))
      insertions.push_back(std::move(insertion));
  }
  return with_insertions(module.source.text(), std::move(insertions));
}

RegisterSet registers(std::initializer_list<unsigned> numbers) {
  RegisterSet set;
  for (unsigned number : numbers)
    set.set(number);
  return set;
}

unsigned count(const std::string& text, const std::string& what) {
  unsigned found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

} // namespace

TEST_CASE("a load, its use in the next region, and the marks in between") {
  ReadText text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                ".reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
                "  ld.param.u64 %rd1, [p];\n  ld.global.u64 %rd2, [%rd1];\n  mul.lo.s64 %rd2, %rd2, 3;\n"
                "  ld.global.u32 %r1, [%rd2];\n  not.b32 %r2, %r1;\n  st.global.u32 [%rd2], %r2;\n  ret;\n}\n");
  REQUIRE(text.ok());
  std::string result = annotated(*text.module);
  CAPTURE(result);
  CHECK(count(result, "//@ regless alloc") == 1);
  CHECK(count(result, "//@ regless region") == 3);
  CHECK(count(result, "  //@ regless region 0 ") == 1);
  // The first region has only the load, and its result is an input of the next one.
  CHECK(result.find("preload") > result.find("mul.lo") - 60);
  CHECK(result.find("ld.global.u64 %rd2, [%rd1]; //@ regless ") != result.npos);
}

TEST_CASE("all samples: readable, and byte for byte the same without") {
  unsigned files = 0;
  for (const auto& folder : std::filesystem::directory_iterator(tests::source_path("samples"))) {
    if (!folder.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().extension() != ".ptx") continue;
      CAPTURE(file.path().string());
      std::string source = read_file(file.path()).value();
      ReadText text(source);
      REQUIRE(text.ok());
      ReadText again(annotated(*text.module));
      REQUIRE(again.ok());
      CHECK(without_marks(*again.module) == source);
      for (const auto& function : again.module->functions) {
        if (!function->has_body) continue;
        CHECK(has_regless_marks(*function));
        for (BlockId block : function->layout)
          for (InstructionId id : function->instructions_in(block))
            if (function->instructions[id].kind == InstructionKind::annotation)
              CHECK(parse_regless_mark(function->module().text(Symbol(function->operands_of(id)[0].id))).ok());
      }
      ++files;
    }
  }
  CHECK(files > 50);
}

TEST_CASE("several instructions on a line, and names that scopes declare again") {
  std::string source =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .b32 %r<4>, t; .reg .b64 %rd<3>;\n"
      "ld.param.u64 %rd1, [p]; ld.global.u32 t, [%rd1]; ld.global.u32 %r1, [%rd1+4]; { .reg .b32 t; add.u32 t, %r1, 1;"
      " mul.lo.u32 %r2, t, t; }\nL: add.u32 %r3, %r2, t; st.global.u32 [%rd1], %r3; ret;\n}\n";
  ReadText text(source);
  REQUIRE(text.ok());
  std::string result = annotated(*text.module);
  CAPTURE(result);
  ReadText again(result);
  REQUIRE(again.ok());
  CHECK(without_marks(*again.module) == source);
  CHECK(count(result, "//@ regless alloc") == 3); // at the start, in the scope, and after it
}

TEST_CASE("what an annotation says") {
  auto parsed = [](std::string_view text) {
    Result<std::optional<RegLessMark>> mark = parse_regless_mark(text);
    REQUIRE(mark.ok());
    REQUIRE(mark->has_value());
    return **mark;
  };
  RegLessMark alloc = parsed("@ regless alloc %rd4=R4:R5 %r1=R6");
  CHECK(alloc.kind == RegLessMark::Kind::alloc);
  REQUIRE(alloc.registers.size() == 2);
  CHECK(alloc.registers[0].first == "%rd4");
  CHECK(alloc.registers[0].second == std::vector<uint16_t>{4, 5});
  RegLessMark region = parsed("@ regless region 3 live 7 banks 1,1,1,0,1,1,1,1 preload R4 R6! invalidate R9");
  CHECK(region.kind == RegLessMark::Kind::region);
  CHECK(region.number == 3);
  CHECK(region.live == 7);
  CHECK(region.banks == std::array<uint8_t, 8>{1, 1, 1, 0, 1, 1, 1, 1});
  CHECK(region.preload == registers({4, 6}));
  CHECK(region.last_reads == registers({6}));
  CHECK(region.invalidate == registers({9}));
  CHECK(parsed("@ regless machine 52").compute_capability == 52);
  RegLessMark release = parsed("@ regless erase R6 evict R4 +");
  CHECK(release.erase == registers({6}));
  CHECK(release.evict == registers({4}));
  CHECK(!parse_regless_mark("@ darsie DR uniform")->has_value());
  for (const char* wrong :
       {"@ regless alloc %r1", "@ regless region x live 1 banks 0,0,0,0,0,0,0,0", "@ regless erase 6",
        "@ regless machine x", "@ regless region 1 live 1 banks 0,0", "@ regless erase R6!", "@ regless erase R256",
        "@ regless frobnicate", "@ regless evict R1 preload R2"})
    CHECK(!parse_regless_mark(wrong).ok());
}

} // namespace ptxrewrite::tests::regless_test
