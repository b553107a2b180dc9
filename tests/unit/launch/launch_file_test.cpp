// Launch files: the resulting plans, and the messages for wrong files.
#include "launch/launch_file.h"
#include "launch/shapes.h"

#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <cstring>

namespace ptxrewrite::tests::launch_file_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

std::optional<LaunchPlan> plan_of(const std::string& text, Diagnostics& diagnostics, const std::string& size = {},
                                  const std::string& target = {}) {
  auto file = read_launch_file(SourceFile("folder/k.toml", text), diagnostics);
  return file ? make_plan(*file, {size, target}, diagnostics) : std::nullopt;
}

// The plan of a text without errors.
LaunchPlan good(const std::string& text, const std::string& size = {}) {
  Diagnostics diagnostics;
  auto plan = plan_of(text, diagnostics, size);
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(render(diagnostic, SourceFile("k.toml", text)));
  REQUIRE(plan);
  return *plan;
}

std::vector<float> floats_of(const Buffer& buffer) {
  std::vector<float> out(buffer.count);
  REQUIRE(buffer.initialise(std::as_writable_bytes(std::span(out))).ok());
  return out;
}

// "line:column: message" of every error.
std::string errors_of(const std::string& text, const std::string& size = {}) {
  Diagnostics diagnostics;
  SourceFile source("k.toml", text);
  auto plan = plan_of(text, diagnostics, size);
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    LineColumn at = source.locate(diagnostic.range.begin);
    if (!out.empty()) out += '\n';
    if (!diagnostic.range.empty()) out += std::to_string(at.line) + ":" + std::to_string(at.column) + ": ";
    out += diagnostic.message;
    for (const std::string& note : diagnostic.notes)
      out += " [" + note + "]";
  }
  CHECK(plan.has_value() == out.empty());
  return out;
}

const std::string head = "ptx = 'k.ptx'\n";
const std::string launch_lines = "[[launch]]\nkernel = 'k'\ngrid = 1\nblock = 32\n";

TEST_CASE("heap says what malloc of kernels takes from; sizes override it") {
  const std::string text = "ptx = \"k.ptx\"\nheap = \"n << 20\"\n[let]\nn = 64\n"
                           "[[launch]]\nkernel = \"k\"\ngrid = 1\nblock = 1\nargs = []\n[size.big]\nheap = 1024\n";
  CHECK(good(text).heap_bytes == uint64_t(64) << 20);
  CHECK(good(text, "big").heap_bytes == 1024);
  CHECK_FALSE(good("ptx = \"k.ptx\"\n[[launch]]\nkernel = \"k\"\ngrid = 1\nblock = 1\nargs = []\n").heap_bytes);
  CHECK(errors_of("ptx = \"k.ptx\"\nheap = -1\n[[launch]]\nkernel = \"k\"\ngrid = 1\nblock = 1\nargs = []\n")
            .find("2:8: heap") != std::string::npos);
}

} // namespace

TEST_CASE("the samples' launch files give plans in all their sizes") {
  for (const char* path : {"samples/vecadd/vecadd.toml", "samples/backprop/backprop.toml"}) {
    Result<std::string> text = read_file(tests::source_path(path));
    REQUIRE(text);
    for (const char* size : {"", "small", "medium"}) {
      LaunchPlan plan = good(*text, size);
      CHECK(plan.size == (*size ? size : "small"));
      for (const Buffer& buffer : plan.buffers) {
        std::vector<std::byte> memory(buffer.bytes());
        CHECK(buffer.initialise(memory).ok());
      }
    }
  }
  LaunchPlan plan = good(*read_file(tests::source_path("samples/backprop/backprop.toml")), "medium");
  REQUIRE(plan.launches.size() == 2);
  CHECK(plan.launches[1].kernel == "bp_adjust_weights");
  CHECK(plan.launches[1].grid == Dim3{1, 4096, 1});
  CHECK(plan.launches[1].block == Dim3{16, 16, 1});
  CHECK(plan.find_buffer("weights")->count == 65537 * 17);
}

TEST_CASE("names, sizes and overrides") {
  const std::string text = head + R"toml(
[let]
rows = "columns / 2"
columns = "n + 2"
n = 6
[[launch]]
kernel = "k"
grid = ["rows", 2]
block = "columns"
args = [ { buffer = "a", offset = "rows" }, { s32 = "rows * 10" }, { f32 = "1.0 / rows" } ]
[[launch]]
kernel = "other"
grid = 1
block = 1
[buffer.a]
type = "f32"
count = "columns"
init = "constant(2)"
[size.large]
n = 98
[size.large.launch.k]
grid = 7
[size.large.launch.1]
block = [1, 2, 3]
shared = "n"
[size.large.buffer.a]
values = [1, "n"]
count = 2
[size.large.let] # no such table
)toml";
  CHECK(errors_of(text) == "30:13: 'let' is no table of a size; there are: buffer, launch, constant, global, texture, "
                           "ptx");
  const std::string right = text.substr(0, text.find("[size.large.let]"));
  LaunchPlan plan = good(right);
  CHECK(plan.ptx == "folder/k.ptx");
  CHECK(plan.launches[0].grid == Dim3{4, 2, 1});
  CHECK(plan.launches[0].block == Dim3{8, 1, 1});
  CHECK(plan.launches[0].arguments[0].offset == 16); // bytes
  int32_t number = 0;
  std::memcpy(&number, plan.launches[0].arguments[1].bytes.data(), 4);
  CHECK(number == 40);
  float quarter = 0;
  std::memcpy(&quarter, plan.launches[0].arguments[2].bytes.data(), 4);
  CHECK(quarter == 0.25f);
  CHECK(floats_of(plan.buffers[0]) == std::vector<float>(8, 2.0f));
  // 100 columns, 50 rows; the argument's offset is now after the buffer's end.
  CHECK(errors_of(right, "large") == "11:35: args[0].offset is 50; expected 0 to 2");
  std::string moved = right;
  moved.replace(moved.find(", offset = \"rows\""), std::string(", offset = \"rows\"").size(), "");
  LaunchPlan large = good(moved, "large");
  CHECK(large.launches[0].grid == Dim3{7, 1, 1});
  CHECK(large.launches[0].block == Dim3{100, 1, 1});
  CHECK(large.launches[1].block == Dim3{1, 2, 3});
  CHECK(large.launches[1].dynamic_shared == 98);
  CHECK(floats_of(large.buffers[0]) == std::vector<float>{1, 98});
}

TEST_CASE("names that only sizes define") {
  const std::string text =
      head + launch_lines + "[buffer.a]\ntype = 'f32'\ncount = 'n'\n[size.s]\nn = 3\n[size.m]\nn = 5\n";
  CHECK(good(text, "s").buffers[0].count == 3);
  CHECK(errors_of(text) == "8:10: 'n' has a value only with a size: choose one with --size (s, m)");
  CHECK(good("default_size = 'm'\n" + text).buffers[0].count == 5);
  CHECK(errors_of(text, "x") == "there is no size 'x'; there are: s, m");
  // Of several sizes the first one that exists in the file.
  CHECK(good(text, "x,m,s").size == "m");
  CHECK(good(text, "s,m").size == "s");
  CHECK(errors_of(text, "x,y") == "there is no size 'y'; there are: s, m");
  CHECK(errors_of("default_size = 'mm'\n" + text).starts_with("1:16: there is no size 'mm'; did you mean 'm'?"));
}

TEST_CASE("loops, groups and buffers by parity are unrolled") {
  LaunchPlan plan = good(head + R"toml(
[[launch]]
kernel = "first"
grid = "4 - t"
block = 1
group = "step"
repeat = { count = 3, as = "t" }
args = [ { buffer = ["ping", "pong"], index = "t % 2" }, { s32 = "t" } ]
[[launch]]
kernel = "second"
grid = 1
block = 1
group = "step"
when = "t != 1"
[[launch]]
kernel = "nested"
grid = 1
block = 1
repeat = [ { count = 2, as = "a" }, { count = "a + 1", as = "b" } ]
args = [ { s32 = "10 * a + b" } ]
[[launch]]
kernel = "never"
grid = 0
block = 1
repeat = { count = 0 }
[buffer.ping]
type = "f32"
count = 1
[buffer.pong]
type = "f32"
count = 1
)toml");
  std::string order;
  for (const Launch& launch : plan.launches)
    order += launch.kernel + "(" + launch.trip + ") ";
  CHECK(order == "first(t = 0) second(t = 0) first(t = 1) first(t = 2) second(t = 2) nested(a = 0, b = 0) "
                 "nested(a = 1, b = 0) nested(a = 1, b = 1) ");
  CHECK(plan.launches[2].grid.x == 3);
  CHECK(plan.launches[0].arguments[0].index == 0);
  CHECK(plan.launches[2].arguments[0].index == 1);
  CHECK(plan.launches[3].arguments[0].index == 0);
  CHECK(std::to_integer<int>(plan.launches[7].arguments[0].bytes[0]) == 11);
}

TEST_CASE("arguments by value: scalars in a row, bytes, structs with C's layout") {
  LaunchPlan plan = good(head + launch_lines + R"toml(
args = [ { f32 = [1, 2.5] }, { bytes = [1, 255] }, { pred = true },
         { struct = [ { u8 = 1 }, { s32 = -1 }, { struct = [ { u16 = 7 }, { buffer = "a" } ] }, { u8 = 2 } ] } ]
[buffer.a]
type = "s32"
count = 4
)toml");
  const auto& arguments = plan.launches[0].arguments;
  CHECK(size_of(arguments[0], 8).bytes == 8);
  CHECK(size_of(arguments[0], 8).alignment == 4);
  CHECK(size_of(arguments[1], 8).bytes == 2);
  CHECK(size_of(arguments[1], 8).alignment == 1);
  // The layout of a C compiler.
  struct Inner {
    uint16_t a;
    uint64_t b;
  };
  struct Outer {
    uint8_t a;
    int32_t b;
    Inner c;
    uint8_t d;
  };
  CHECK(size_of(arguments[3], 8).bytes == sizeof(Outer));
  CHECK(size_of(arguments[3], 8).alignment == alignof(Outer));
  Outer expected;
  std::memset(&expected, 0, sizeof expected);
  expected = {1, -1, {7, 0x123456789a}, 2};
  std::vector<std::byte> packed(sizeof(Outer));
  pack(arguments[3], {.buffers = {0x123456789a}}, packed);
  Outer got;
  std::memcpy(&got, packed.data(), sizeof got);
  CHECK(got.a == expected.a);
  CHECK(got.b == expected.b);
  CHECK(got.c.a == expected.c.a);
  CHECK(got.c.b == expected.c.b);
  CHECK(got.d == expected.d);
}

TEST_CASE("files, comparison rules, module variables and textures") {
  auto folder = TempDirectory::create();
  REQUIRE(folder);
  const float numbers[] = {1.5f, -2.0f, 8.0f};
  REQUIRE(write_file(folder->file("x.bin"), {reinterpret_cast<const char*>(numbers), sizeof numbers}).ok());
  const std::string text = "ptx = '/somewhere/k.ptx'\n" + launch_lines + R"toml(
[buffer.a]
type = "f32"
count = 2
file = ")toml" + folder->file("x.bin") +
                           R"toml("
output = true
tolerance = 0.5
[buffer.b]
type = "f16"
count = 64
atomics = true
tolerance = { absolute = 1, relative = "1.0/4" }
[constant.weights]
type = "f32"
values = [1, 2]
[global.state]
value = [ { s32 = 1 }, { buffer = "a" } ]
[texture.t]
buffer = "a"
width = 2
address = "border"
filter = "linear"
layout = "linear"
)toml";
  LaunchPlan plan = good(text);
  CHECK(plan.ptx == "/somewhere/k.ptx");
  CHECK(floats_of(plan.buffers[0]) == std::vector<float>{1.5f, -2.0f});
  CHECK(plan.buffers[0].output);
  CHECK(plan.buffers[0].tolerance.absolute == 0.5);
  CHECK(!plan.buffers[0].any_order);
  CHECK(plan.buffers[1].any_order);
  CHECK(plan.buffers[1].tolerance.relative == 0.25);
  REQUIRE(plan.variables.size() == 2);
  CHECK(plan.variables[0].space == ir::StateSpace::constant);
  CHECK(floats_of(plan.variables[0].data) == std::vector<float>{1, 2});
  REQUIRE(plan.variables[1].value);
  CHECK(size_of(*plan.variables[1].value, 8).bytes == 16);
  REQUIRE(plan.textures.size() == 1);
  CHECK(plan.textures[0].address == AddressMode::border);
  CHECK(plan.textures[0].filter == FilterMode::linear);
  CHECK(plan.textures[0].is_linear);
}

TEST_CASE("several PTX files by target") {
  const std::string text = "ptx = { sm_80 = 'a.ptx', sm_90 = 'b.ptx' }\n" + launch_lines;
  Diagnostics diagnostics;
  CHECK(plan_of(text, diagnostics)->ptx == "folder/a.ptx");
  CHECK(plan_of(text, diagnostics, {}, "sm_90")->ptx == "folder/b.ptx");
  CHECK(!plan_of(text, diagnostics, {}, "sm_70"));
  CHECK(diagnostics.list().back().message == "ptx: there is none for 'sm_70'; did you mean 'sm_80'?");
}

TEST_CASE("shapes: as given, as listed, derived") {
  LaunchPlan plan = good(head + "[[launch]]\nkernel = 'k'\ngrid = [4, 2]\nblock = 64\n"
                                "shapes = [ { block = 32 }, { grid = 9, shared = 16 } ]\n");
  auto list = shapes(plan);
  auto find = [&](const std::string& name) -> const LaunchShape& {
    for (const LaunchShape& shape : list)
      if (shape.name == name) return shape;
    FAIL("no shape " << name);
    return list[0];
  };
  CHECK(list[0].name == "as given");
  CHECK(!list[0].derived);
  CHECK(find("shapes[0]").launches[0] == Geometry{{4, 2, 1}, {32, 1, 1}, 0});
  CHECK(find("shapes[1]").launches[0] == Geometry{{9, 1, 1}, {64, 1, 1}, 16});
  CHECK(find("one block").launches[0].grid == Dim3{1, 1, 1});
  CHECK(find("one block").grid_only);
  CHECK(find("partial warp").launches[0].block == Dim3{63, 1, 1});
  CHECK(find("block in two rows").launches[0].block == Dim3{32, 2, 1});
  CHECK(find("block in two layers").launches[0].block == Dim3{32, 1, 2});
  CHECK(with_shape(plan, find("shapes[1]")).launches[0].dynamic_shared == 16);
  // Equal shapes occur once.
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      CHECK(list[i].launches != list[j].launches);
}

// Long: a table of wrong files.
TEST_CASE("what is wrong with a file is said where it stands") {
  struct Row {
    std::string text;
    const char* errors;
  };
  const std::string buffer = "[buffer.a]\n";
  const Row rows[] = {
      {"ptx = ", "1:6: TOML: Error while parsing key-value pair: encountered end-of-file"},
      {"", "ptx is missing: the file with the kernels, like ptx = \"kernel.ptx\"\n"
           "there is no launch: write [[launch]] with kernel, grid, block and args"},
      {"ptx = 5\n" + launch_lines, "1:7: ptx: expected a string, not an integer"},
      {head + "kernal = 1\n" + launch_lines,
       "2:1: 'kernal' is no key of a launch file; there are: about, ptx, "
       "default_size, heap, let, launch, buffer, global, constant, texture, size"},
      {head + "[launch]\nkernel = 'k'\n", "2:1: launch is a list: write [[launch]]"},
      {head + launch_lines + "gird = 2\n", "6:1: 'gird' is no key of a launch; did you mean 'grid'?"},
      {head + "[[launch]]\nkernel = 'k'\n", "2:1: launch: grid is missing\n2:1: launch: block is missing"},
      {head + "[[launch]]\nkernel = 'k'\ngrid = 0\nblock = 1025\n",
       "4:8: grid.x is 0; expected 1 to 2147483647\n5:9: block.x is 1025; expected 1 to 1024"},
      {head + "[[launch]]\nkernel = 'k'\ngrid = [1, 65536]\nblock = [64, 32]\n",
       "4:12: grid.y is 65536; expected 1 to 65535\n5:9: block has 2048 threads; at most 1024 are possible"},
      {head + "[[launch]]\nkernel = 'k'\ngrid = [1, 1, 1, 1]\nblock = []\n",
       "4:8: grid: expected 1 to 3 dimensions, not 4\n5:9: block: expected 1 to 3 dimensions, not 0"},
      {head + launch_lines + "shared = 300000\n", "6:10: shared is 300000; expected 0 to 232448"},
      {head + launch_lines + "args = 5\n", "6:8: args: expected an array, one entry per parameter"},
      {head + launch_lines + "args = [5]\n",
       "6:9: args[0]: expected a table like { s32 = 5 } or { buffer = \"a\" }, not an integer"},
      {head + launch_lines + "args = [{ i32 = 5 }]\n",
       "6:11: args[0]: 'i32' is no kind of argument; did you mean 's32'?"},
      {head + launch_lines + "args = [{}]\n",
       "6:9: args[0]: expected a kind of argument, like { s32 = 5 } or { buffer = \"a\" }"},
      {head + launch_lines + "args = [{ s32 = 1, u32 = 2 }]\n",
       "6:20: args[0]: one argument has one kind, not both s32 and u32"},
      {head + launch_lines + "args = [{ u8 = 256 }, { s32 = 1.5 }, { s32 = 'n' }]\n",
       "6:16: args[0]: 256 does not fit u8 (0 to 255)\n"
       "6:31: args[1]: 1.5 is no integer, which s32 wants: use int(...)\n"
       "6:47: there is no name 'n'"},
      {head + launch_lines + "args = [{ buffer = 'aa' }]\n" + buffer + "type = 'f32'\ncount = 1\n",
       "6:20: args[0].buffer: there is no buffer 'aa'; did you mean 'a'?"},
      {head + launch_lines + "args = [{ s32 = 1, offset = 2 }]\n", "6:29: args[0]: offset is for buffers"},
      {head + launch_lines + "args = [{ bytes = [256] }, { pred = 1 }, { struct = [] }]\n",
       "6:20: args[0].bytes: 256 does not fit u8 (0 to 255)\n"
       "6:37: args[1].pred: expected true or false, not an integer\n"
       "6:53: args[2]: expected an array of arguments: the members in their order"},
      {head + launch_lines + buffer, "6:1: buffer.a: type is missing; expected one of s8, s16, s32, s64, u8, u16, "
                                     "u32, u64, b8, b16, b32, b64, f16, bf16, f32, f64"},
      {head + launch_lines + buffer + "type = 'float'\n",
       "7:8: buffer.a.type: expected one of s8, s16, s32, s64, u8, u16, u32, u64, b8, b16, b32, b64, f16, bf16, f32, "
       "f64"},
      {head + launch_lines + buffer + "type = 'f32'\n", "6:1: buffer.a: count is missing: how many elements"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 0\n",
       "8:9: buffer.a.count is 0; expected 1 to 17179869184"},
      {head + launch_lines + buffer + "type = 'f64'\ncount = '10 * pow(10, 12)'\n",
       "8:9: buffer.a.count is 10000000000000; expected 1 to 8589934592"},
      {head + launch_lines + buffer + "type = 'f64'\ncount = '1 << 200'\n",
       "8:12: buffer.a.count: a value does not fit in 128 bits"},
      {head + launch_lines + buffer + "type = 'f64'\ncount = '4 / (2 - 2)'\n",
       "8:12: buffer.a.count: division by zero"},
      {head + launch_lines + buffer + "type = 'f64'\ncount = '4 ++* 2'\n",
       "8:14: buffer.a.count: expected a number, a name or '(', not '*'"},
      {head + launch_lines + buffer + "type = 'f64'\ncount = 2.5\n", "8:9: buffer.a.count is 2.5; expected an integer"},
      {head + launch_lines + buffer +
           "type = 'f64'\ncount = 'pow(2, 32)'\n[buffer.b]\ntype = 'f64'\ncount = "
           "'pow(2, 32) + 1'\n[buffer.c]\ntype = 'f64'\ncount = 'pow(2, 32)'\n",
       "9:1: with this, the buffers take 68719476744 bytes; the limit is 68719476736"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 2\nvalues = [1]\n",
       "8:9: buffer.a.count is 2, but values has 1"},
      {head + launch_lines + buffer + "type = 'f32'\nvalues = [1]\ninit = 'zeros'\n",
       "8:10: buffer.a: expected one of init, values and file, not several"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 2\nfile = 'missing.bin'\n",
       "9:8: buffer.a.file: there is no file folder/missing.bin"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 2\ninit = 'unifrom(0, 1)'\n",
       "9:9: buffer.a.init: there is no function 'unifrom'; did you mean 'uniform'?"},
      {head + launch_lines + buffer + "type = 'u8'\ncount = 300\ninit = 'iota'\n",
       "9:8: buffer.a.init, element 299: 299 does not fit u8 (0 to 255)"},
      {head + launch_lines + buffer + "type = 's32'\ncount = 3\ninit = 'normal(0, 1)'\n",
       "9:8: buffer.a.init, element 0: only for buffers of floating-point numbers"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 'iota'\n",
       "8:9: buffer.a.count: functions like uniform and iota are for the contents of buffers"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 1\ntolerance = -1\n",
       "9:13: buffer.a.tolerance: expected a number that is not negative"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 1\ntolerance = { abs = 1 }\n",
       "9:15: 'abs' is no key of a tolerance; did you mean 'absolute'?"},
      {head + launch_lines + buffer + "type = 'f32'\ncount = 1\noutput = 1\n",
       "9:10: buffer.a.output: expected true or false, not an integer"},
      {head + "[let]\na = 'b + 1'\nb = 'a - 1'\n" + launch_lines, "3:1: 'a' is defined by itself"},
      {head + "[let]\nn = 'row'\nrows = 3\n" + launch_lines, "3:6: there is no name 'row'; did you mean 'rows'?"},
      {head + "[let]\nmin = 3\n2x = 1\ni = 3\n" + launch_lines,
       "3:1: 'min' is a function of expressions\n4:1: a name is made of letters, digits and _, and starts with no "
       "digit\n5:1: 'i' means something else in a launch file"},
      {head + launch_lines + "repeat = 3\n", "6:10: repeat: expected a table like { count = \"n-1\", as = \"t\" }"},
      {head + launch_lines + "repeat = { count = 1000000000 }\n",
       "6:20: repeat.count is 1000000000; expected 0 to 200000"},
      {head + launch_lines + "repeat = [{ count = 1000 }, { count = 1000 }]\n", "2:1: more than 200000 launches"},
      {head + launch_lines + "when = 0\nrepeat = [{ count = 10000 }, { count = 10000 }]\n",
       "7:40: the loops make more than 800000 trips"},
      {head + launch_lines + "repeat = { count = 3, as = 't' }\nargs = [{ u8 = '254 + t' }]\n",
       "7:16: args[0]: 256 does not fit u8 (0 to 255) [with t = 2]"},
      {head + launch_lines + "group = 'g'\n", "6:9: the first launch of a group states repeat"},
      {head + launch_lines + "group = 'g'\nrepeat = { count = 1 }\n" + launch_lines +
           "group = 'g'\nrepeat = { count = "
           "1 }\n",
       "13:10: only the first launch of a group states repeat"},
      {head + launch_lines + "group = 'g'\nrepeat = { count = 1 }\n" + launch_lines + launch_lines +
           "group = 'g'\nrepeat = { count = 1 }\n",
       "16:9: the launches of group 'g' do not follow one another"},
      {head + launch_lines + "[size.s.buffer.b]\ncount = 1\n", ""}, // the size is not chosen
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 5\n" + buffer + "type = 'f32'\ncount = 4\n",
       "6:1: texture.t: needs 5 elements; buffer 'a' has 4"},
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 3\nheight = 2\npitch = 2\n" + buffer +
           "type = 'f32'\ncount = 9\n",
       "10:9: texture.t.pitch: a row has 3 elements"},
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 3\nheight = 2\npitch = 5\n" + buffer +
           "type = 'f32'\ncount = 7\n",
       "6:1: texture.t: needs 8 elements; buffer 'a' has 7"},
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 4\nheight = 2\nlevels = 3\n" + buffer +
           "type = 'f32'\ncount = 10\n",
       "6:1: texture.t: needs 11 elements; buffer 'a' has 10"},
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 4\nheight = 2\nlevels = 4\n" + buffer +
           "type = 'f32'\ncount = 12\n",
       "10:10: texture.t.levels is 4; expected 1 to 3"},
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 4\nlevel_bias = 1\n" + buffer +
           "type = 'f32'\ncount = 12\n",
       "9:14: texture.t.level_bias: is for textures with levels"},
      {head + launch_lines + "[texture.t]\nbuffer = 'a'\nwidth = 4\naddress = 'warp'\n" + buffer +
           "type = 'f32'\ncount = 4\n",
       "9:11: texture.t.address: expected one of \"clamp\", \"wrap\", \"mirror\", \"border\""},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(errors_of(row.text) == row.errors);
  }
  CHECK(errors_of(head + launch_lines + "[size.s.buffer.b]\ncount = 1\n", "s") == "6:16: there is no buffer 'b' above");
  CHECK(errors_of(head + launch_lines + "[size.s.launch.kk]\ngrid = 1\n", "s") ==
        "6:16: no launch above has this kernel or place; did you mean 'k'?");
}

TEST_CASE("hostile files end in errors") {
  std::string chain = head + "[let]\nx0 = 1\n";
  for (int i = 1; i < 5000; ++i)
    chain += "x" + std::to_string(i) + " = 'x" + std::to_string(i - 1) + "'\n";
  // In the order of the file each name is known when the next one uses it.
  CHECK(errors_of(chain + launch_lines) == "");
  std::string backwards = head + "[let]\n";
  for (int i = 5000; i > 0; --i)
    backwards += "x" + std::to_string(i) + " = 'x" + std::to_string(i - 1) + "'\n";
  CHECK(errors_of(backwards + "x0 = 1\n" + launch_lines).find("names depend on one another") != std::string::npos);
  CHECK(errors_of(std::string(100000, '[')).find("TOML: ") != std::string::npos);
  CHECK(errors_of("a = " + std::string(100000, '[')).find("TOML: ") != std::string::npos);
  CHECK(errors_of(std::string("ptx = \"\xff\xfe\"\n")).find("TOML: ") != std::string::npos);
  std::string deep = head + launch_lines + "args = [";
  for (int i = 0; i < 60; ++i)
    deep += "{ struct = [";
  deep += "{ s32 = 1 }";
  for (int i = 0; i < 60; ++i)
    deep += "] }";
  CHECK(errors_of(deep + "]\n").find("structs are nested too deeply") != std::string::npos);
}

} // namespace ptxrewrite::tests::launch_file_test
