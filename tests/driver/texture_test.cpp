// Textures and surfaces on the fake driver: kernels read and write the same as directly on the emulator.
#include "cuda/session.h"
#include "cuda/texture_use.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace ptxrewrite;

namespace {

std::unique_ptr<ir::Module> read_text(const std::string& text) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("k.ptx", text), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(module);
  return module;
}

launch::LaunchPlan make_plan(const std::string& text) {
  Diagnostics diagnostics;
  auto file = launch::read_launch_file(SourceFile("k.toml", text), diagnostics);
  auto plan = file ? launch::make_plan(*file, {}, diagnostics) : std::nullopt;
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(plan);
  return *plan;
}

std::unique_ptr<cuda::Device> open_fake(const char* path = PTXREWRITE_FAKE_DRIVER_PATH) {
  auto device = cuda::make_cuda_device(path);
  REQUIRE_MESSAGE(device.ok(), device.error().message);
  return std::move(*device);
}

const std::string header = R"(.version 8.7
.target sm_80
.address_size 64
.global .texref named;
.global .texref list;
.global .surfref board;
)";

// Samples by an object (2D, linear, wrapped), by a reference (2D, bytes as numbers) and by element number (1D).
const std::string sampling = header + R"(
.visible .entry sample(.param .u64 image, .param .u64 out) {
  .reg .b64 %handle, %p, %o;
  .reg .b32 %t, %x, %r<4>;
  .reg .f32 %c, %d, %f<4>;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  ld.param.u64 %handle, [image];
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  cvt.rn.f32.u32 %c, %t;
  mul.f32 %d, %c, 0f3e4ccccd;
  fma.rn.f32 %c, %c, 0f3dcccccd, 0f3f800000;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%handle, {%c, %d}];
  st.global.f32 [%p], %f0;
  st.global.f32 [%p+256], %f1;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [named, {%d, %d}];
  st.global.f32 [%p+512], %f0;
  ret;
}
)";
const std::string sampling_launch = R"toml(
ptx = "k.ptx"
[[launch]]
kernel = "sample"
grid = 1
block = 64
args = [ { texture = "image" }, { buffer = "out" } ]
[buffer.pairs]
type = "f32"
count = 160
init = "uniform(-1, 1, seed=3)"
[buffer.bytes]
type = "u8"
count = 71
init = "uniform(0, 255, seed=4)"
[buffer.out]
type = "f32"
count = 192
output = true
[texture.image]
buffer = "pairs"
width = 10
height = 8
channels = 2
normalised = true
address = "wrap"
filter = "linear"
[texture.named]
buffer = "bytes"
width = 8
height = 8
pitch = 9
address = "border"
read = "normalised_float"
)toml";

// One launch stores to a surface object and a surface reference; the next samples the values.
const std::string storing = header + R"(
.visible .entry draw(.param .u64 canvas) {
  .reg .b64 %handle;
  .reg .b32 %t, %x, %y;
  ld.param.u64 %handle, [canvas];
  mov.u32 %t, %tid.x;
  and.b32 %x, %t, 7;
  shl.b32 %x, %x, 2;
  shr.u32 %y, %t, 3;
  sust.b.2d.b32.trap [%handle, {%x, %y}], {%t};
  not.b32 %t, %t;
  sust.b.2d.b32.trap [board, {%x, %y}], {%t};
  ret;
}
.visible .entry look(.param .u64 picture, .param .u64 out) {
  .reg .b64 %handle, %p, %o;
  .reg .b32 %t, %x, %y, %r<4>;
  .reg .f32 %c, %d;
  ld.param.u64 %handle, [picture];
  ld.param.u64 %p, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  add.u64 %p, %p, %o;
  and.b32 %x, %t, 7;
  shr.u32 %y, %t, 3;
  cvt.rn.f32.u32 %c, %y;
  cvt.rn.f32.u32 %d, %x;
  tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%handle, {%c, %d}];
  st.global.u32 [%p], %r0;
  ret;
}
)";
const std::string storing_launch = R"toml(
ptx = "k.ptx"
[[launch]]
kernel = "draw"
grid = 1
block = 64
args = [ { texture = "canvas" } ]
[[launch]]
kernel = "look"
grid = 1
block = 64
args = [ { texture = "canvas" }, { buffer = "out" } ]
[buffer.texels]
type = "u32"
count = 64
output = true
[buffer.others]
type = "u32"
count = 64
output = true
[buffer.out]
type = "u32"
count = 64
output = true
[texture.canvas]
buffer = "texels"
width = 8
height = 8
[texture.board]
buffer = "others"
width = 8
height = 8
)toml";

// More elements than an array can have in one dimension, read by index.
const std::string fetching = header + R"(
.visible .entry fetch(.param .u64 long, .param .u64 out) {
  .reg .b64 %handle, %p, %o;
  .reg .b32 %t, %i, %r<4>;
  ld.param.u64 %handle, [long];
  ld.param.u64 %p, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  add.u64 %p, %p, %o;
  mul.lo.u32 %i, %t, 5000;
  tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%handle, {%i}];
  tex.1d.v4.u32.s32 {%r1, %r2, %r3, _}, [list, {%t}];
  add.u32 %r0, %r0, %r1;
  st.global.u32 [%p], %r0;
  ret;
}
)";
const std::string fetching_launch = R"toml(
ptx = "k.ptx"
[[launch]]
kernel = "fetch"
grid = 1
block = 64
args = [ { texture = "long" }, { buffer = "out" } ]
[buffer.numbers]
type = "u32"
count = 300000
init = "iota"
[buffer.out]
type = "u32"
count = 64
output = true
[texture.long]
buffer = "numbers"
width = 300000
[texture.list]
buffer = "numbers"
width = 64
)toml";

// Levels of 8 x 4, 4 x 2, 2 x 1 texels: blended between two levels, and level 1 by gradients.
const std::string levels = header + R"(
.visible .entry shrink(.param .u64 image, .param .u64 out) {
  .reg .b64 %handle, %p, %o;
  .reg .b32 %t;
  .reg .f32 %c, %l, %z, %f<4>;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  ld.param.u64 %handle, [image];
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  cvt.rn.f32.u32 %c, %t;
  mul.f32 %l, %c, 0f3d800000;
  mul.f32 %c, %c, 0f3d000000;
  mov.f32 %z, 0f00000000;
  tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%handle, {%c, %c}], %l;
  st.global.f32 [%p], %f0;
  tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%handle, {%c, %c}], {0f3e800000, %z}, {%z, %z};
  st.global.f32 [%p+128], %f0;
  ret;
}
)";
const std::string levels_launch = R"toml(
ptx = "k.ptx"
[[launch]]
kernel = "shrink"
grid = 1
block = 32
args = [ { texture = "image" }, { buffer = "out" } ]
[buffer.texels]
type = "f32"
count = 42
init = "iota"
[buffer.out]
type = "f32"
count = 64
output = true
[texture.image]
buffer = "texels"
width = 8
height = 4
normalised = true
levels = 3
level_filter = "linear"
most_level = 1.5
)toml";

cuda::SessionResult run_on(cuda::Device& device, const std::string& ptx, const std::string& launch) {
  auto module = read_text(ptx);
  auto result = cuda::run_plan(make_plan(launch), *module, device);
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  if (result->failed_launch) MESSAGE(result->runs.back().failure->message);
  REQUIRE(!result->failed_launch);
  return std::move(*result);
}

} // namespace

TEST_CASE("sampling on the driver gives what it gives on the emulator") {
  auto gpu = open_fake();
  auto emulator = cuda::make_emulator_device();
  for (const auto& [ptx, launch] : {std::pair(sampling, sampling_launch), std::pair(storing, storing_launch),
                                    std::pair(fetching, fetching_launch), std::pair(levels, levels_launch)}) {
    const cuda::SessionResult on_gpu = run_on(*gpu, ptx, launch), on_emulator = run_on(*emulator, ptx, launch);
    CHECK(on_gpu.buffers == on_emulator.buffers);
  }
}

TEST_CASE("what is stored to surfaces comes back to the buffers and is sampled by the next launch") {
  auto gpu = open_fake();
  const cuda::SessionResult result = run_on(*gpu, storing, storing_launch);
  std::vector<uint32_t> texels(64), others(64), out(64);
  std::memcpy(texels.data(), result.buffers[0].data(), 256);
  std::memcpy(others.data(), result.buffers[1].data(), 256);
  std::memcpy(out.data(), result.buffers[2].data(), 256);
  for (uint32_t i = 0; i < 64; ++i) {
    CHECK(texels[i] == i);
    CHECK(others[i] == ~i);
    CHECK(out[i] == i % 8 * 8 + i / 8); // read across the diagonal
  }
}

TEST_CASE("textures with levels of detail") {
  auto emulator = cuda::make_emulator_device();
  const cuda::SessionResult result = run_on(*emulator, levels, levels_launch);
  std::vector<float> out(64);
  std::memcpy(out.data(), result.buffers[1].data(), 256);
  // Texels are numbered through: level 0 from 0, level 1 from 32, level 2 from 40.
  auto nearest = [](int level, float c) {
    const int width = 8 >> level, height = 4 >> level, first[] = {0, 32, 40};
    return static_cast<float>(first[level] + static_cast<int>(c * static_cast<float>(height)) * width +
                              static_cast<int>(c * static_cast<float>(width)));
  };
  for (int i = 0; i < 32; ++i) {
    const float c = static_cast<float>(i) / 32, level = std::min(static_cast<float>(i) / 16, 1.5f);
    const int finer = static_cast<int>(level);
    const float weight = level - static_cast<float>(finer);
    const float coarse = weight > 0 ? nearest(finer + 1, c) : 0;
    CHECK(out[i] == (1 - weight) * nearest(finer, c) + weight * coarse);
    CHECK(out[32 + i] == nearest(1, c)); // a quarter of 8 texels is 2: level 1
  }
}

TEST_CASE("long one-dimensional textures are read by element number, beyond the end as zeros") {
  auto gpu = open_fake();
  const cuda::SessionResult result = run_on(*gpu, fetching, fetching_launch);
  std::vector<uint32_t> out(64);
  std::memcpy(out.data(), result.buffers[1].data(), 256);
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(out[i] == (i < 60 ? 5000 * i : 0) + i);
}

TEST_CASE("handles are told apart by what a kernel does with them") {
  auto module = read_text(storing);
  const cuda::TextureUse draw = cuda::texture_use_of(*module->functions[0]);
  CHECK(draw.surfaces == std::vector<bool>{true});
  CHECK(draw.textures == std::vector<bool>{false});
  CHECK(draw.surface_references == std::set<std::string>{"board"});
  const cuda::TextureUse look = cuda::texture_use_of(*module->functions[1]);
  CHECK(look.surfaces == std::vector<bool>{false, false});
  CHECK(look.textures == std::vector<bool>{true, false});
  const cuda::TextureUse fetch = cuda::texture_use_of(*read_text(fetching)->functions[0]);
  CHECK((fetch.samples_elements_1d && !fetch.samples_numbers_1d));
}

TEST_CASE("whatever texture call fails, the error names it and nothing leaks") {
  const std::string report = "texture_leaks_of_driver_tests";
  const std::pair<const char*, const std::string*> failures[] = {
      {"cuArray3DCreate_v2", &sampling},     {"cuMemcpy3D_v2", &sampling},
      {"cuTexObjectCreate", &sampling},      {"cuModuleGetTexRef", &sampling},
      {"cuTexRefSetArray", &sampling},       {"cuTexRefSetFlags", &sampling},
      {"cuTexRefSetAddressMode", &sampling}, {"cuTexRefSetFilterMode", &sampling},
      {"cuSurfObjectCreate", &storing},      {"cuModuleGetSurfRef", &storing},
      {"cuSurfRefSetArray", &storing},       {"cuTexRefSetFormat", &fetching},
      {"cuTexRefSetAddress_v2", &fetching},  {"cuMipmappedArrayCreate", &levels},
      {"cuMipmappedArrayGetLevel", &levels},
  };
  for (const auto& [symbol, ptx] : failures) {
    CAPTURE(std::string(symbol));
    setenv("PTXREWRITE_FAKE_DRIVER_REPORT", report.c_str(), 1);
    setenv("PTXREWRITE_FAKE_DRIVER", (std::string(symbol) + "=2").c_str(), 1);
    {
      auto gpu = open_fake();
      auto module = read_text(*ptx);
      const launch::LaunchPlan plan = make_plan(ptx == &sampling  ? sampling_launch
                                                : ptx == &storing ? storing_launch
                                                : ptx == &levels  ? levels_launch
                                                                  : fetching_launch);
      auto result = cuda::run_plan(plan, *module, *gpu);
      REQUIRE(!result.ok());
      CHECK(result.error().message.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
      const std::string name = std::string(symbol).substr(0, std::string(symbol).find('_'));
      CHECK_MESSAGE(result.error().message.find(name) != std::string::npos, result.error().message);
    }
    unsetenv("PTXREWRITE_FAKE_DRIVER");
    unsetenv("PTXREWRITE_FAKE_DRIVER_REPORT");
    std::string text(100, '\0');
    if (FILE* file = std::fopen(report.c_str(), "r")) {
      text.resize(std::fread(text.data(), 1, text.size(), file));
      std::fclose(file);
    }
    std::remove(report.c_str());
    CHECK(text == "never given back: 0 allocations, 0 modules, 0 events, 0 arrays, 0 textures\n");
  }
}

TEST_CASE("a driver without textures runs all else, and says what it lacks") {
  auto gpu = open_fake(PTXREWRITE_PLAIN_DRIVER_PATH);
  auto module = read_text(sampling);
  auto result = cuda::run_plan(make_plan(sampling_launch), *module, *gpu);
  REQUIRE(!result.ok());
  CHECK(result.error().message.find("has no cuArray3DCreate_v2") != std::string::npos);
}
