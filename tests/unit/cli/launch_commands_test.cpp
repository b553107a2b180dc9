// The basis of `run` and `verify`: comparing buffers, showing elements, launches from the command line, templates.
#include "cuda/buffer_text.h"
#include "cuda/compare.h"
#include "evaluate/launches/launch_input.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"
#include "launch/launch_template.h"
#include "launch/scalar_bytes.h"
#include "launch/signature.h"
#include "support/file_io.h"
#include "support/text/table.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

namespace ptxrewrite::tests::launch_commands_test {

using namespace ptxrewrite;
using namespace ptxrewrite::cuda;
using namespace ptxrewrite::evaluate;

namespace {

template <class T> std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

launch::Buffer buffer_of(ir::ScalarType type, launch::Tolerance tolerance = {}, bool any_order = false) {
  launch::Buffer buffer;
  buffer.name = "b";
  buffer.type = type;
  buffer.tolerance = tolerance;
  buffer.any_order = any_order;
  return buffer;
}

uint64_t differing(const launch::Buffer& buffer, const std::vector<float>& a, const std::vector<float>& b) {
  return compare(buffer, bytes(a), bytes(b), 10).differing;
}

} // namespace

TEST_CASE("bit for bit: zeros of two signs and NaNs of two payloads differ") {
  const launch::Buffer exact = buffer_of(ir::ScalarType::f32);
  CHECK(differing(exact, {1, 2, 3}, {1, 2, 3}) == 0);
  CHECK(differing(exact, {0.0f}, {-0.0f}) == 1);
  CHECK(differing(exact, {NAN}, {NAN}) == 0);
  CHECK(differing(exact, {NAN}, {-NAN}) == 1);
  BufferComparison comparison =
      compare(exact, bytes(std::vector<float>{1, 2, 3, 4}), bytes(std::vector<float>{1, 2.5, 3, 5}), 1);
  CHECK(comparison.elements == 4);
  CHECK(comparison.differing == 2);
  REQUIRE(comparison.first.size() == 1);
  CHECK(comparison.first[0].index == 1);
  CHECK(comparison.first[0].original == "2 (0x40000000)");
  CHECK(comparison.first[0].rewritten == "2.5 (0x40200000)");
}

TEST_CASE("tolerances: within either one, measured at the original") {
  const launch::Buffer absolute = buffer_of(ir::ScalarType::f32, {0.5, 0});
  CHECK(differing(absolute, {1, 100}, {1.5, 99.5}) == 0);
  CHECK(differing(absolute, {1, 100}, {1.51f, 99.4f}) == 2);
  const launch::Buffer relative = buffer_of(ir::ScalarType::f32, {0, 0.25});
  CHECK(differing(relative, {100, 0}, {125, 0.001f}) == 1);
  CHECK(differing(relative, {100}, {126}) == 1);
  CHECK(differing(relative, {80}, {100}) == 0);
  CHECK(differing(relative, {100}, {80}) == 0);
  CHECK(differing(relative, {NAN, 1}, {-NAN, NAN}) == 1);
  CHECK(differing(relative, {INFINITY}, {-INFINITY}) == 1);
  CHECK(differing(buffer_of(ir::ScalarType::f32, {1, 0.25}), {100, 0.1f}, {101, 1}) == 0);
}

TEST_CASE("in any order: the same elements, however they lie") {
  std::mt19937 random(1);
  const launch::Buffer any = buffer_of(ir::ScalarType::f32, {}, true);
  std::vector<float> numbers = {3, -1, -0.0f, 0.0f, 1e30f, -1e30f, 5, 5, -INFINITY};
  for (int round = 0; round < 50; ++round) {
    std::vector<float> mixed = numbers;
    std::shuffle(mixed.begin(), mixed.end(), random);
    CHECK(differing(any, numbers, mixed) == 0);
    mixed[static_cast<size_t>(round) % mixed.size()] = 7;
    CHECK(differing(any, numbers, mixed) > 0);
  }
  // As a set with repetition, not as a set.
  CHECK(differing(any, {1, 1, 2}, {1, 2, 2}) == 1);
  const launch::Buffer integers = buffer_of(ir::ScalarType::s16, {1, 0}, true);
  const std::vector<int16_t> a = {5, -3, 100}, b = {101, 5, -4};
  CHECK(compare(integers, bytes(a), bytes(b), 10).same());
}

TEST_CASE("elements read back as the bits they show") {
  std::mt19937_64 random(2);
  for (ir::ScalarType type : launch::plain_types()) {
    for (int round = 0; round < 2000; ++round) {
      const uint64_t bits = random();
      std::byte element[8], again[8];
      std::memcpy(element, &bits, 8);
      const launch::Number number = launch::decode(type, element);
      if (number.is_decimal && !std::isfinite(number.decimal)) continue;
      const std::string text = element_text(type, element);
      launch::Number read;
      if (number.is_decimal)
        read = launch::Number::of(std::strtod(text.c_str(), nullptr));
      else if (text.starts_with("-"))
        read = launch::Number(launch::Int128(std::strtoll(text.c_str(), nullptr, 10)));
      else
        read = launch::Number(launch::Int128(std::strtoull(text.c_str(), nullptr, 0)));
      INFO(spelling(type) << " " << text);
      REQUIRE(launch::encode(type, read, again).empty());
      CHECK(std::memcmp(element, again, byte_width(type)) == 0);
    }
  }
  CHECK(head_text(ir::ScalarType::s32, bytes(std::vector<int32_t>{1, -2, 3}), 2) == "1 -2 ...");
  CHECK(head_text(ir::ScalarType::f32, bytes(std::vector<float>{0.1f, 1e10f}), 8) == "0.1 1e+10");
  CHECK(head_text(ir::ScalarType::b16, bytes(std::vector<uint16_t>{255}), 8) == "0xff");
}

TEST_CASE("the checksum is FNV-1a's") {
  const std::string text = "foobar"; // published test vector
  CHECK(checksum_text(std::as_bytes(std::span(text))) == "85944171f73967e8");
  CHECK(checksum_text({}) == "cbf29ce484222325");
}

TEST_CASE("tables: numbers to the right, no blanks at line ends") {
  TextTable table{{{"a"}, {"number", true}, {"b"}}, {{"longer", "1", "x"}, {"s", "123"}}};
  CHECK(table.text() == "a       number  b\nlonger       1  x\ns          123\n");
}

TEST_CASE("a launch on the command line is a launch file") {
  const std::string text = direct_launch_text(
      "dir/k \"1\".ptx", "k",
      {"ceil_div(10, 3),2", "16", "8", {"s32=-5", "pred=true", "buffer=f32:16:i > 3 ? 1.0 : 0:out", "buffer=u8:2"}});
  Diagnostics diagnostics;
  auto file = launch::read_launch_file(SourceFile("x.toml", text), diagnostics);
  auto plan = file ? launch::make_plan(*file, {}, diagnostics) : std::nullopt;
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(plan);
  CHECK(plan->ptx == "dir/k \"1\".ptx");
  CHECK(plan->launches[0].grid == launch::Dim3{4, 2, 1});
  CHECK(plan->launches[0].dynamic_shared == 8);
  REQUIRE(plan->launches[0].arguments.size() == 4);
  CHECK(plan->launches[0].arguments[1].bytes == std::vector<std::byte>{std::byte{1}});
  CHECK(plan->launches[0].arguments[3].index == 1);
  CHECK(plan->buffers[0].output);
  CHECK(!plan->buffers[1].output);
  std::vector<float> values(16);
  REQUIRE(plan->buffers[0].initialise(std::as_writable_bytes(std::span(values))).ok());
  CHECK(values[3] == 0);
  CHECK(values[4] == 1);
}

TEST_CASE("templates of all samples are launch files that fit their kernels") {
  unsigned kernels = 0;
  for (const auto& folder : std::filesystem::directory_iterator(tests::source_path("samples"))) {
    const auto path = folder.path() / folder.path().filename().replace_extension(".ptx");
    Result<std::string> text = read_file(path.string());
    if (!text) continue;
    Diagnostics diagnostics;
    auto module = grammar::read_module(SourceFile(path.string(), *text), diagnostics);
    REQUIRE(module);
    std::vector<const ir::Function*> entries;
    for (const auto& function : module->functions)
      if (function->is_entry && function->has_body) entries.push_back(function.get());
    kernels += static_cast<unsigned>(entries.size());
    const std::string skeleton = launch::launch_template(*module, entries, path.string());
    INFO(path.string() << '\n' << skeleton);
    auto file = launch::read_launch_file(SourceFile(path.string(), skeleton), diagnostics);
    REQUIRE(file);
    auto plan = launch::make_plan(*file, {}, diagnostics);
    REQUIRE(plan);
    CHECK(plan->launches.size() == entries.size());
    CHECK(launch::check_arguments(*module, *plan, diagnostics));
    // The outputs of the real launch file are found to be written.
    CHECK(std::ranges::any_of(plan->buffers, &launch::Buffer::output));
  }
  CHECK(kernels > 40);
}

} // namespace ptxrewrite::tests::launch_commands_test
