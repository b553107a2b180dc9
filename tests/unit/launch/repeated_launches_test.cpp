// Keys of launches, and which launches are repeated.
#include "launch/repeated_launches.h"

#include "grammar/reader.h"
#include "launch/signature.h"

#include <doctest/doctest.h>

#include <cstring>

namespace ptxrewrite::tests::repeated_launches_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

const char* const module_text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .s32 n, .param .f32 factor, .param .u8 flag, .param .u64 wide, .param .u32 unread,
                  .param .align 8 .b8 pair[16])
{
.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .b16 %h<2>; .reg .f32 %f<2>;
ld.param.u64 %rd1, [out]; ld.param.s32 %r1, [n]; ld.param.f32 %f1, [factor]; ld.param.u8 %h1, [flag];
ld.param.u64 %rd2, [wide]; ld.param.u32 %r3, [pair+8];
cvt.u32.u16 %r2, %h1; add.s32 %r1, %r1, %r2; cvt.u32.u64 %r4, %rd2; add.s32 %r1, %r1, %r4; add.s32 %r1, %r1, %r3;
mul.wide.s32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3;
st.global.f32 [%rd4], %f1;
ret;
}
)";

} // namespace

TEST_CASE("key of a launch: its shape, and integers that are no addresses") {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("k.ptx", module_text), diagnostics);
  REQUIRE(module);
  const ir::Function* kernel = find_kernel(*module, "k");
  REQUIRE(kernel);
  const Signature signature = signature_of(*kernel);
  std::vector<std::byte> parameters(signature.bytes, std::byte{0x5a});
  const int32_t n = -3;
  const uint64_t wide = uint64_t(1) << 40;
  std::memcpy(parameters.data() + signature.parameters[1].offset, &n, sizeof n);
  std::memcpy(parameters.data() + signature.parameters[4].offset, &wide, sizeof wide);
  parameters[signature.parameters[3].offset] = std::byte{200};
  const LaunchKeys keys(*module, *kernel);
  // 4294967293 is -3 in 32 bits; the address, the float, the parameter that is not read and the structure are left out.
  CHECK(keys.of({64, 2, 1}, {32, 4, 1}, parameters) ==
        "block=32x4x1,grid=64x2x1,param.1=4294967293,param.3=200,param.4=1099511627776");
  CHECK(keys.of({1, 1, 1}, {1, 1, 1}, {}) == "block=1x1x1,grid=1x1x1"); // a block of parameters that is too short
}

TEST_CASE("a launch is due once, by its number, for few launches of a kernel") {
  RepeatedLaunches repeated;
  CHECK(!repeated.is_due("a", 3));
  CHECK(!repeated.is_due("b", 3));
  CHECK(!repeated.is_due("a", 3));
  CHECK(repeated.is_due("a", 3));
  CHECK(!repeated.is_due("a", 3));
  CHECK(repeated.is_due("c", 1));
  CHECK(repeated.is_due("d", 1));
  CHECK(repeated.is_due("e", 1));
  CHECK(!repeated.is_due("f", 1)); // four kernels are enough
  RepeatedLaunches many;
  for (size_t i = 0; i < RepeatedLaunches::most_counted; ++i)
    CHECK(!many.is_due(std::to_string(i), 2));
  CHECK(many.is_due("0", 2));
  CHECK(!many.is_due("new", 1)); // no longer counted
}

} // namespace ptxrewrite::tests::repeated_launches_test
