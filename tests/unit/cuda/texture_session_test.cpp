// Textures of a launch file, sampled by a kernel on the emulator: by handle and by the name of a reference.
#include "cuda/session.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"

#include <doctest/doctest.h>

#include <cstring>

namespace ptxrewrite::tests::texture_session_test {

using namespace ptxrewrite;

TEST_CASE("a kernel samples the textures of its launch file") {
  Diagnostics diagnostics;
  auto file = launch::read_launch_file(SourceFile("k.toml", R"(
ptx = "k.ptx"
[[launch]]
kernel = "k"
grid = 1
block = 4
args = [ { texture = "image" }, { buffer = "out" } ]
[buffer.bytes]
type = "u8"
values = [ 0, 51, 102, 255, 7, 8, 9 ]
[buffer.out]
type = "f32"
count = 8
output = true
[texture.image]
buffer = "bytes"
width = 4
normalised = true
address = "wrap"
read = "normalised_float"
[texture.named]
buffer = "bytes"
width = 2
height = 2
pitch = 5
)"),
                                       diagnostics);
  auto plan = file ? launch::make_plan(*file, {}, diagnostics) : std::nullopt;
  auto module = grammar::read_module(SourceFile("k.ptx", R"(
.version 8.7
.target sm_80
.address_size 64
.global .texref named;
.visible .entry k(.param .u64 image, .param .u64 out) {
  .reg .b64 %handle, %p, %o;
  .reg .b32 %t, %x, %y, %r<4>;
  .reg .f32 %c, %f<4>;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  ld.param.u64 %handle, [image];
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  cvt.rn.f32.u32 %c, %t;
  fma.rn.f32 %c, %c, 0.25, 1.125;                  // once around
  tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%handle, {%c}];
  st.global.f32 [%p], %f0;
  and.b32 %x, %t, 1;
  shr.u32 %y, %t, 1;
  tex.2d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [named, {%x, %y}];
  cvt.rn.f32.u32 %f0, %r0;
  st.global.f32 [%p+16], %f0;
  ret;
}
)"),
                                     diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE((plan && module));
  auto device = cuda::make_emulator_device();
  Result<cuda::SessionResult> result = cuda::run_plan(*plan, *module, *device);
  if (!result) MESSAGE(result.error().message);
  REQUIRE(result);
  REQUIRE_FALSE(result->failed_launch);
  std::vector<float> out(8);
  REQUIRE(result->buffers[1].size() == 32);
  std::memcpy(out.data(), result->buffers[1].data(), 32);
  CHECK(out == std::vector<float>{0, 0.2f, 0.4f, 1, 0, 51, 8, 9});
}

} // namespace ptxrewrite::tests::texture_session_test
