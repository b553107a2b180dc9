// Side files: reading, writing, refused contents, and the selected variant.
#include "launch/side_file.h"
#include "launch/variants.h"
#include "support/text/json_document.h"

#include "grammar/reader.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <cstring>

namespace ptxrewrite::tests::side_file_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

std::optional<SideFile> read(const std::string& text, std::string& errors) {
  Diagnostics diagnostics;
  SourceFile source("k.launch.json", text);
  auto file = read_side_file(source, diagnostics);
  errors.clear();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    LineColumn at = source.locate(diagnostic.range.begin);
    errors += (errors.empty() ? "" : "\n") + std::to_string(at.line) + ": " +
              std::string(source.text(diagnostic.range)) + ": " + diagnostic.message;
  }
  CHECK(file.has_value() == errors.empty());
  return file;
}

std::string errors_of(const std::string& text) {
  std::string errors;
  (void)read(text, errors);
  return errors;
}

std::string kernels(const std::string& inside) {
  return "{\"format\":1,\"kernels\":[" + inside + "]}";
}

const char* const module_text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 P0, .param .u32 P1)
{
ret;
}
.visible .entry k__narrow(.param .u64 P0, .param .u32 P1)
{
//@ r2d2 original k
//@ r2d2 requires sext32(P1) >= 0 && P1 < 100
//@ r2d2 requires ntid.x == 32
ret;
}
.visible .entry k__wide(.param .u64 P0, .param .u32 P1, .param .u64 extra, .param .u16 small)
{
ret;
}
.visible .entry k__broken(.param .u64 P0, .param .u32 P1)
{
//@ dac original k
//@ dac requires tid.x == 3
ret;
}
)";

std::unique_ptr<ir::Module> module() {
  Diagnostics diagnostics;
  auto read_back = grammar::read_module(SourceFile("k.ptx", module_text), diagnostics);
  REQUIRE(read_back);
  return read_back;
}

std::vector<std::byte> block_of(uint64_t first, uint32_t second) {
  std::vector<std::byte> bytes(12);
  std::memcpy(bytes.data(), &first, 8);
  std::memcpy(bytes.data() + 8, &second, 4);
  return bytes;
}

std::string chosen(const Variants& variants, uint32_t p1, uint32_t threads) {
  Result<VariantChoice> choice = variants.choose("k", block_of(0x1000, p1), {1, 1, 1}, {threads, 1, 1});
  REQUIRE(choice);
  return std::string(choice->entry->module().text(choice->entry->name));
}

} // namespace

TEST_CASE("the example of the format's description reads, and writing it gives it back") {
  const std::string text =
      R"json({"format":1,"kernels":[{"name":"k","original":"k","variants":[{"entry":"k__r2d2",)json"
      R"json("when":"sext32(4*P1)+12 < 2147483648 && ntid.x == 16",)json"
      R"json("params":[{"type":"u64","value":"P5+4*P1"}],"grid":"persistent"},{"entry":"other"}]}]})json";
  std::string errors;
  auto file = read(text, errors);
  REQUIRE(file);
  REQUIRE(file->kernels.size() == 1);
  const SideKernel& kernel = file->kernels[0];
  CHECK(kernel.name == "k");
  REQUIRE(kernel.variants.size() == 2);
  CHECK(kernel.variants[0].entry == "k__r2d2");
  CHECK(kernel.variants[0].when->text() == "sext32(4*P1)+12 < 2147483648 && ntid.x == 16");
  CHECK(kernel.variants[0].grid == GridMode::persistent);
  REQUIRE(kernel.variants[0].parameters.size() == 1);
  CHECK(kernel.variants[0].parameters[0].type == ir::ScalarType::u64);
  CHECK(!kernel.variants[1].when);
  CHECK(kernel.variants[1].grid == GridMode::same);
  const std::string written = write_side_file(*file);
  auto again = read(written, errors);
  REQUIRE(again);
  CHECK(write_side_file(*again) == written);
  CHECK(again->kernels[0].variants[0].parameters[0].value.text() == "P5+4*P1");
}

TEST_CASE("what is wrong with a side file is said where it stands") {
  CHECK(errors_of("").starts_with("1: : JSON: syntax error"));
  CHECK(errors_of("{\"format\":1,\n \"kernels\": [}").starts_with("2: }: JSON: syntax error"));
  CHECK(errors_of("[]") == "1: [: the file: expected an object");
  CHECK(errors_of("{}") == "1: {: the file: 'format' is missing\n1: {: the file: 'kernels' is missing");
  CHECK(errors_of("{\"format\": 2, \"kernels\": []}") == "1: 2: the file.format: expected 1");
  CHECK(errors_of("{\"format\": \"1\", \"kernels\": []}") == "1: \"1\": the file.format: expected an integer");
  CHECK(errors_of("{\"format\":1,\"kernels\":[],\"kernals\":1}") ==
        "1: \"kernals\": 'kernals' is no key of the file; did you mean 'kernels'?");
  CHECK(errors_of("{\"format\":1,\"format\":1,\"kernels\":[]}") == "1: \"format\": 'format' stands here twice");
  CHECK(errors_of(kernels("\n{\"name\":\"\",\"original\":\"k\",\"variants\":[]}")) ==
        "2: \"\": the file.kernels[0].name: expected a string that is not empty");
  CHECK(
      errors_of(kernels("\n{\"name\":\"k\",\"original\":\"k\",\"variants\":[{\"entry\":\"e\",\"grid\":\"both\"}]}")) ==
      "2: \"both\": the file.kernels[0].variants[0].grid: expected one of \"same\", \"persistent\"");
  CHECK(errors_of(
            kernels("\n{\"name\":\"k\",\"original\":\"k\",\"variants\":[{\"entry\":\"e\",\"when\":\"P1 < tid\"}]}")) ==
        "2: tid: when: 'tid' is no parameter (P0, P1, ...) and no dimension (ntid.x, nctaid.x, ...)");
  CHECK(errors_of(
            kernels("\n{\"name\":\"k\",\"original\":\"k\",\"variants\":[{\"entry\":\"e\",\"params\":[{\"type\":\"f32\","
                    "\"value\":\"1\"}]}]}"))
            .starts_with("2: \"f32\": the file.kernels[0].variants[0].params[0].type: expected one of \"s8\", "));
  const std::string k = "{\"name\":\"k\",\"original\":\"k\",\"variants\":[]}";
  CHECK(errors_of(kernels(k + ",\n" + k)) == "2: \"k\": kernel 'k' is described twice");
  CHECK(errors_of(kernels(std::string(200, '[') + std::string(200, ']'))).ends_with("JSON: nested too deeply"));
}

TEST_CASE("the published schema is what side files are checked against") {
  Result<std::string> text = read_file(tests::source_path("docs/side_file.schema.json"));
  REQUIRE(text);
  Diagnostics diagnostics;
  auto schema = read_json(SourceFile("side_file.schema.json", *text), diagnostics);
  REQUIRE(schema);
  CHECK(schema->find("$defs")->members.size() == 3);
  auto file = read_json(SourceFile("x.json", "{\"format\":1,\"kernels\":[{\"name\":1}]}"), diagnostics);
  check_schema(*file, *schema, diagnostics);
  CHECK(diagnostics.error_count() == 3);
}

TEST_CASE("annotations choose the variant whose conditions all hold") {
  auto m = module();
  Result<Variants> variants = Variants::of(*m, nullptr);
  REQUIRE(variants);
  CHECK(variants->of_kernel("k").size() == 2);
  CHECK(chosen(*variants, 50, 32) == "k__narrow");
  CHECK(chosen(*variants, 100, 32) == "k");
  CHECK(chosen(*variants, 50, 33) == "k");
  CHECK(chosen(*variants, 0xffffffff, 32) == "k");
  Result<VariantChoice> refused = variants->choose("k", block_of(0, 50), {1, 1, 1}, {33, 1, 1});
  REQUIRE(refused);
  CHECK(refused->is_original);
  CHECK(refused->parameter_block == block_of(0, 50));
  REQUIRE(refused->reasons.size() == 2);
  CHECK(refused->reasons[0] == "k__narrow: not fulfilled: ntid.x == 32");
  CHECK(refused->reasons[1] == "k__broken: cannot be read: tid.x == 3");
  // A variant may be launched by its own name.
  CHECK(variants->choose("k__narrow", block_of(0, 500), {1, 1, 1}, {1, 1, 1})->is_original);
  CHECK(!variants->choose("missing", {}, {1, 1, 1}, {1, 1, 1}));
}

TEST_CASE("a side file chooses, computes parameters, and replaces annotations") {
  auto m = module();
  std::string errors;
  auto side = read(kernels(R"json({"name":"k","original":"k","variants":[{"entry":"k__wide","when":"P1 > 7",)json"
                           R"json("params":[{"type":"u64","value":"P0 + 4*sext32(P1)"
},{"type":"u16","value":"P1"}],)json"
                           R"json("grid":"persistent"}]})json"),
                   errors);
  REQUIRE(side);
  Result<Variants> variants = Variants::of(*m, &*side);
  REQUIRE(variants);
  CHECK(chosen(*variants, 5, 32) == "k");
  Result<VariantChoice> choice = variants->choose("k", block_of(0x1000, 10), {1, 1, 1}, {32, 1, 1});
  REQUIRE(choice);
  CHECK(!choice->is_original);
  CHECK(choice->grid == GridMode::persistent);
  REQUIRE(choice->parameter_block.size() == 26); // u64, u32, 4 bytes of padding, u64, u16
  uint64_t computed = 0;
  std::memcpy(&computed, choice->parameter_block.data() + 16, 8);
  CHECK(computed == 0x1000 + 40);
  // 70000 does not fit u16: the variant cannot run.
  CHECK(chosen(*variants, 70000, 32) == "k");
  auto missing = read(kernels(R"json({"name":"k","original":"k","variants":[{"entry":"nobody"}]})json"), errors);
  CHECK(Variants::of(*m, &*missing).error().message == "k.launch.json: the module has no kernel 'nobody'");
}

TEST_CASE("annotations give parameters and a persistent grid; as a side file they say the same") {
  Diagnostics diagnostics;
  auto annotated = grammar::read_module(SourceFile("k.ptx", R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 P0, .param .u32 P1)
{
ret;
}
.visible .entry k__r2d2(.param .u64 P0, .param .u32 P1, .param .u64 more, .param .s32 less)
{
//@ r2d2 original k
//@ r2d2 requires P1 < 100 || P1 == 200
//@ r2d2 requires ntid.x == 32
//@ r2d2 parameter u64 P0 + 4*P1
//@ r2d2 parameter s32 -7
//@ r2d2 grid persistent
ret;
}
.visible .entry k__other(.param .u64 P0, .param .u32 P1)
{
//@ other original k
//@ other parameter f32 1
ret;
}
)"),
                                        diagnostics);
  REQUIRE(annotated);
  auto variants = Variants::of(*annotated, nullptr);
  REQUIRE(variants);
  auto check = [&](const Variants& tried) {
    auto choice = tried.choose("k", block_of(0x1000, 200), {5, 1, 1}, {32, 1, 1});
    REQUIRE(choice);
    CHECK(annotated->text(choice->entry->name) == "k__r2d2");
    CHECK(choice->grid == GridMode::persistent);
    REQUIRE(choice->parameter_block.size() == 28); // 8, 4, padding of 4, 8, 4
    uint64_t more = 0;
    int32_t less = 0;
    std::memcpy(&more, choice->parameter_block.data() + 16, 8);
    std::memcpy(&less, choice->parameter_block.data() + 24, 4);
    CHECK(more == 0x1000 + 800);
    CHECK(less == -7);
    // "P1 < 100 || P1 == 200" keeps its parentheses when predicates are joined.
    auto other = tried.choose("k", block_of(0x1000, 50), {5, 1, 1}, {64, 1, 1});
    REQUIRE(other);
    CHECK(other->is_original);
  };
  check(*variants);
  std::vector<LeftOut> left_out;
  SideFile side_file = variants->as_side_file(left_out);
  REQUIRE(left_out.size() == 1);
  CHECK(left_out[0].entry == "k__other");
  CHECK(left_out[0].reason == "a condition or parameter cannot be read: f32 1");
  REQUIRE(side_file.kernels.size() == 1);
  CHECK(side_file.kernels[0].variants.size() == 1);
  std::string errors;
  auto read_back = read(write_side_file(side_file), errors);
  REQUIRE(read_back);
  auto again = Variants::of(*annotated, &*read_back);
  REQUIRE(again);
  check(*again);
}

TEST_CASE("a variant with a producer warp gets its block in one row and 32 threads more, through the side file too") {
  Diagnostics diagnostics;
  auto annotated = grammar::read_module(SourceFile("k.ptx", R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 P0, .param .u32 P1)
{
ret;
}
.visible .entry k__dac(.param .u64 P0, .param .u32 P1)
{
//@ dac original k
//@ dac requires ntid.y < 8
//@ dac block producer
ret;
}
)"),
                                        diagnostics);
  REQUIRE(annotated);
  auto variants = Variants::of(*annotated, nullptr);
  REQUIRE(variants);
  auto check = [&](const Variants& tried) {
    auto choice = tried.choose("k", block_of(0x1000, 200), {5, 1, 1}, {16, 4, 2});
    REQUIRE(choice);
    CHECK(!choice->is_original);
    CHECK(choice->block == Dim3{16 * 4 * 2 + 32, 1, 1});
    auto other = tried.choose("k", block_of(0x1000, 200), {5, 1, 1}, {16, 8, 2});
    REQUIRE(other);
    CHECK(other->is_original);
    CHECK(other->block == Dim3{16, 8, 2});
  };
  check(*variants);
  std::string errors;
  std::vector<LeftOut> left_out;
  auto read_back = read(write_side_file(variants->as_side_file(left_out)), errors);
  REQUIRE_MESSAGE(read_back, errors);
  auto again = Variants::of(*annotated, &*read_back);
  REQUIRE(again);
  check(*again);
}

TEST_CASE("a variant whose conditions are too long for a side file together is left out of it, and said so") {
  // Each is well within the limit of an expression, both together are not.
  std::string condition = "ntid.y < 8";
  for (int i = 0; i < 40'000; ++i)
    condition += " && ntid.x < 1024";
  Diagnostics diagnostics;
  auto annotated = grammar::read_module(SourceFile("k.ptx", R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
ret;
}
.visible .entry k__dac()
{
//@ dac original k
//@ dac requires )" + condition + "\n//@ dac requires " + condition +
                                                                " && ntid.z < 2" + R"(
ret;
}
)"),
                                        diagnostics);
  REQUIRE(annotated);
  auto variants = Variants::of(*annotated, nullptr);
  REQUIRE(variants);
  REQUIRE(variants->of_kernel("k").size() == 1);
  CHECK(variants->of_kernel("k")[0].requirements.size() == 2);
  std::vector<LeftOut> left_out;
  CHECK(variants->as_side_file(left_out).kernels.empty());
  REQUIRE(left_out.size() == 1);
  CHECK(left_out[0].kernel == "k");
  CHECK(left_out[0].entry == "k__dac");
  CHECK(left_out[0].reason == "its 2 conditions together: the expression is longer than a million characters");
}

} // namespace ptxrewrite::tests::side_file_test
