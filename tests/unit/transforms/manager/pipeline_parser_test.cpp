// Pipeline texts: their meaning, and the caret's position in wrong ones.
#include "tests/unit/paths.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::pipeline_parser_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;

namespace {

Change do_nothing(ir::Function&, PassContext&) {
  return Change::unchanged;
}

const RegisterPass first({"test-first",
                          "for the parser's tests",
                          do_nothing,
                          {{"limit", "a number", PassOptionKind::number},
                           {"fast", "a flag", PassOptionKind::flag},
                           {"block", "a text", PassOptionKind::text}}});
const RegisterPass second({"test-second", "for the parser's tests", do_nothing});
const RegisterPass second_again({"test-second", "the later one", do_nothing});

// "begin-end message" of the error, or "" if there is none.
std::string error_of(std::string_view text) {
  Result<Pipeline> result = parse_pipeline(text);
  if (result) return "";
  SourceRange range = result.error().range;
  return std::to_string(range.begin) + "-" + std::to_string(range.end) + " " + result.error().message;
}

bool starts_with(const std::string& text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

} // namespace

TEST_CASE("passes keep their order and their options") {
  Result<Pipeline> result = parse_pipeline(" test-first ( limit = -8, fast ,block=16x16) ,test-second,test-first");
  REQUIRE(result.ok());
  REQUIRE(result->steps.size() == 3);
  const PassOptions& options = result->steps[0].options;
  CHECK(result->steps[0].pass.name == "test-first");
  CHECK(options.number("limit", 1) == -8);
  CHECK(options.flag("fast"));
  CHECK(options.text("block", "") == "16x16");
  CHECK(result->steps[1].pass.name == "test-second");
  CHECK(result->steps[2].options.all().empty());
  CHECK(result->steps[2].options.number("limit", 7) == 7);
  CHECK_FALSE(result->steps[2].options.flag("fast"));
}

TEST_CASE("an empty pipeline is the identity") {
  for (std::string_view text : {"", "  ", "\n"}) {
    Result<Pipeline> result = parse_pipeline(text);
    REQUIRE(result.ok());
    CHECK(result->steps.empty());
  }
}

TEST_CASE("empty parentheses, quoted values, spelled flags") {
  Result<Pipeline> result = parse_pipeline("test-second(),test-first(block=\"a,b) c\",fast=false)");
  REQUIRE(result.ok());
  CHECK(result->steps[1].options.text("block", "") == "a,b) c");
  CHECK_FALSE(result->steps[1].options.flag("fast"));
}

TEST_CASE("printed pipelines parse to themselves") {
  std::string text = "test-first(block=\"a,b c\",fast,limit=3),test-second";
  Result<Pipeline> once = parse_pipeline(text);
  REQUIRE(once.ok());
  CHECK(to_string(*once) == text);
}

TEST_CASE("errors point at what is wrong") {
  CHECK(starts_with(error_of("test-second,nonsense"), "12-20 no pass is called 'nonsense'; there are: "));
  CHECK(error_of("test-first(speed=1)") ==
        "11-16 pass 'test-first' has no option 'speed'; there are: limit, fast, block");
  CHECK(error_of("test-second(x)") == "12-13 pass 'test-second' has no options");
  CHECK(starts_with(error_of("test-first(limit=8k)"), "17-19 "));
  CHECK(starts_with(error_of("test-first(limit=99999999999999999999)"), "17-37 "));
  CHECK(starts_with(error_of("test-first(limit)"), "11-16 "));
  CHECK(starts_with(error_of("test-first(block)"), "11-16 "));
  CHECK(starts_with(error_of("test-first(fast=maybe)"), "16-21 "));
  CHECK(starts_with(error_of("test-first(fast,fast)"), "16-20 "));
  CHECK(starts_with(error_of("test-first(block=\"a"), "17-18 "));
  CHECK(starts_with(error_of("test-first test-second"), "11-12 expected ','"));
  CHECK(starts_with(error_of("test-first(fast"), "14-15 the pipeline ends"));
  for (std::string_view text : {",", "test-first,", "(", "test-first)", "test-first((", "test-first(fast,)", "=", "\"",
                                "test-first(block=)", "test-first()()"})
    CHECK_MESSAGE(error_of(text) != "", text);
}

TEST_CASE("the first pass of a name stays, and the list is sorted") {
  const PassDescription* pass = find_pass("test-second");
  REQUIRE(pass);
  CHECK(pass->doc == "for the parser's tests");
  CHECK(find_pass("test-third") == nullptr);
  const auto& passes = all_passes();
  for (size_t i = 1; i < passes.size(); ++i)
    CHECK(passes[i - 1].name < passes[i].name);
}

TEST_CASE("a pass library that is not there, or is none, is an error that names it") {
  Status missing = load_pass_library("/nonexistent/passes.so");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("/nonexistent/passes.so") != std::string::npos);
  CHECK_FALSE(load_pass_library(tests::source_path("CMakeLists.txt")).ok());
}

} // namespace ptxrewrite::tests::pipeline_parser_test
