// Arguments against a kernel's signature, and the parameter block's layout.
#include "launch/launch_file.h"
#include "launch/signature.h"

#include "grammar/reader.h"

#include <doctest/doctest.h>

#include <cstring>

namespace ptxrewrite::tests::signature_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

const char* const module_text = R"(.version 8.0
.target sm_80
.address_size 64
.const .f32 weights[4];
.global .align 8 .b8 state[16];
.visible .entry scale(.param .u64 data, .param .u32 count, .param .f32 factor)
{
ret;
}
.visible .entry by_value(.param .u8 flag, .param .align 8 .b8 pair[16], .param .b16 half, .param .f64 wide)
.maxntid 64, 2, 1
{
ret;
}
.visible .entry fixed()
.reqntid 32, 4, 1
{
ret;
}
.func helper()
{
ret;
}
)";

std::unique_ptr<ir::Module> module_of(const std::string& text) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("k.ptx", text), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(module);
  return module;
}

std::string errors_of(const std::string& launch_lines) {
  static const auto module = module_of(module_text);
  const std::string text = "ptx = 'k.ptx'\n[buffer.a]\ntype = 'f32'\ncount = 4\n" + launch_lines;
  Diagnostics diagnostics;
  auto file = read_launch_file(SourceFile("k.toml", text), diagnostics);
  auto plan = file ? make_plan(*file, {}, diagnostics) : std::nullopt;
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(plan);
  const bool right = check_arguments(*module, *plan, diagnostics);
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    LineColumn at = file->source.locate(diagnostic.range.begin);
    out += (out.empty() ? "" : "\n") + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
           diagnostic.message;
    for (const std::string& note : diagnostic.notes)
      out += " [" + note + "]";
  }
  CHECK(right == out.empty());
  return out;
}

std::string launch_of(const std::string& kernel, const std::string& arguments, const std::string& block = "32") {
  return "[[launch]]\nkernel = '" + kernel + "'\ngrid = 1\nblock = " + block + "\nargs = [" + arguments + "]\n";
}

} // namespace

TEST_CASE("arguments that fit") {
  CHECK(errors_of(launch_of("scale", "{ buffer = 'a' }, { s32 = 4 }, { f32 = 2 }")) == "");
  CHECK(errors_of(launch_of("scale", "{ u64 = 0 }, { b32 = 4 }, { b32 = 2 }")) == "");
  CHECK(errors_of(launch_of("by_value", "{ pred = true }, { struct = [{ s32 = 1 }, { f64 = 2 }] }, { f16 = 1 }, "
                                        "{ f64 = 1 }")) == "");
  CHECK(errors_of(launch_of("by_value", "{ u8 = 1 }, { f32 = [1, 2, 3, 4] }, { s16 = 1 }, { b64 = 1 }")) == "");
  CHECK(errors_of(launch_of("fixed", "", "[32, 4]")) == "");
}

TEST_CASE("arguments that do not") {
  CHECK(errors_of(launch_of("scale", "{ buffer = 'a' }, { s32 = 4 }")) ==
        "9:8: kernel 'scale' has 3 parameters; args has 2 [its parameters: .u64, .u32, .f32]");
  CHECK(errors_of(launch_of("fixed", "{ s32 = 1 }", "[32, 4]")) ==
        "9:8: kernel 'fixed' has 0 parameters; args has 1 [its parameters: none]");
  CHECK(errors_of(launch_of("scale", "{ s32 = 1 }, { buffer = 'a' }, { s32 = 2 }")) ==
        "9:9: args[0] is s32; parameter data is .u64 (8 bytes)\n"
        "9:22: args[1] is the address of a buffer (8 bytes); parameter count is .u32 (4 bytes)\n"
        "9:40: args[2] is s32; parameter factor is .f32 (4 bytes)");
  CHECK(errors_of(launch_of("scale", "{ buffer = 'a' }, { f32 = 1 }, { f64 = 2 }")) ==
        "9:27: args[1] is f32; parameter count is .u32 (4 bytes)\n"
        "9:40: args[2] is f64; parameter factor is .f32 (4 bytes)");
  CHECK(errors_of(launch_of("by_value", "{ bytes = [1, 2] }, { struct = [{ s32 = 1 }] }, { f16 = 1 }, { f64 = 1 }")) ==
        "9:9: args[0] is 2 bytes; parameter flag is .u8 (1 bytes)\n"
        "9:29: args[1] is a struct of 4 bytes; parameter pair is .b8[16] (16 bytes)");
  CHECK(errors_of(launch_of("scal", "")) == "6:10: k.ptx has no kernel 'scal'; did you mean 'scale'?");
  CHECK(errors_of(launch_of("xyz", "")) == "6:10: k.ptx has no kernel 'xyz'; there are: scale, by_value, fixed");
  CHECK(errors_of(launch_of("helper", "")) ==
        "6:10: 'helper' is a device function; only kernels (.entry) are launched");
  CHECK(errors_of(launch_of("fixed", "", "[4, 32]")) == "8:9: block is 4x32x1; kernel 'fixed' states .reqntid 32x4x1");
  CHECK(errors_of(launch_of("by_value", "{ u8 = 1 }, { f32 = [1, 2, 3, 4] }, { s16 = 1 }, { b64 = 1 }", "129")) ==
        "8:9: block is 129x1x1; kernel 'by_value' states .maxntid 64x2x1");
}

TEST_CASE("module variables") {
  const std::string launch = launch_of("fixed", "", "[32, 4]");
  CHECK(errors_of(launch + "[constant.weights]\ntype = 'f32'\nvalues = [1, 2]\n") == "");
  CHECK(errors_of(launch + "[constant.weights]\ntype = 'f32'\ncount = 5\n") ==
        "10:1: constant.weights has 20 bytes; the variable has 16");
  CHECK(errors_of(launch + "[global.state]\nvalue = [{ buffer = 'a' }, { s32 = 1 }]\n") == "");
  CHECK(errors_of(launch + "[global.weights]\ntype = 'f32'\ncount = 1\n") ==
        "10:1: k.ptx has no .global variable 'weights'; there is: state");
}

TEST_CASE("the parameter block lies as PTX says") {
  auto module = module_of(module_text);
  const ir::Function* kernel = find_kernel(*module, "by_value");
  REQUIRE(kernel);
  Signature signature = signature_of(*kernel);
  REQUIRE(signature.parameters.size() == 4);
  CHECK(signature.parameters[0].offset == 0);
  CHECK(signature.parameters[1].offset == 8); // .align 8
  CHECK(signature.parameters[2].offset == 24);
  CHECK(signature.parameters[3].offset == 32); // an f64 after two bytes
  CHECK(signature.bytes == 40);
  Launch launch;
  Argument flag, pair, half, wide;
  flag.bytes = {std::byte{1}};
  pair.kind = Argument::Kind::structure;
  Argument address;
  address.kind = Argument::Kind::buffer;
  address.offset = 4;
  Argument word;
  word.type = ir::ScalarType::s32;
  word.bytes = {std::byte{9}, std::byte{8}, std::byte{7}, std::byte{6}};
  pair.members = {word, address};
  half.bytes = {std::byte{2}, std::byte{3}};
  wide.bytes.assign(8, std::byte{5});
  launch.arguments = {flag, pair, half, wide};
  Result<std::vector<std::byte>> packed = pack_parameters(launch, signature, {.buffers = {0x1000}});
  REQUIRE(packed);
  const std::vector<std::byte>& block = *packed;
  REQUIRE(block.size() == 40);
  uint64_t packed_address = 0;
  std::memcpy(&packed_address, block.data() + 16, 8);
  CHECK(packed_address == 0x1004);
  CHECK(block[0] == std::byte{1});
  CHECK(block[8] == std::byte{9});
  CHECK(block[12] == std::byte{0});
  CHECK(block[25] == std::byte{3});
  CHECK(block[39] == std::byte{5});
  launch.arguments.pop_back();
  CHECK(pack_parameters(launch, signature, {.buffers = {0x1000}}).error().message ==
        "kernel '' has 4 parameters; args has 3");
  launch.arguments.push_back(flag);
  CHECK(pack_parameters(launch, signature, {.buffers = {0x1000}}).error().message ==
        "args[3] has 1 bytes; parameter wide has 8");
}

} // namespace ptxrewrite::tests::signature_test
