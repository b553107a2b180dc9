// The place of texels in block-linear arrays: against the layout as a selection of address bits, and by the rectangle
// that a cache line covers. Sources: Linux, drm_fourcc.h.
#include "emulator/memory/texture_layout.h"

#include "tests/unit/emulator/timing/timed_kernel.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::tests::texture_layout_test {

using namespace ptxrewrite;
using emulator::block_linear_offset;
using emulator::TextureBinding;
using emulator::TextureLayout;

namespace {

TextureBinding array_of(uint64_t width, uint64_t height, uint64_t depth = 0, unsigned bits = 32) {
  TextureBinding texture;
  texture.address = 0x10000;
  texture.channel_bits = bits;
  texture.width = width;
  texture.height = height;
  texture.depth = depth;
  return texture;
}

// Moves the low bits of `value` to the set bits of `places`.
uint64_t deposited(uint64_t value, uint64_t places) {
  uint64_t result = 0;
  for (unsigned bit = 0; bit < 64; ++bit)
    if (places >> bit & 1) {
      result |= (value & 1) << bit;
      value >>= 1;
    }
  return result;
}

// Lines and sectors of one warp that reads a column of 32 texels.
timing::AccessCounts column_read(bool is_linear) {
  using namespace emulator;
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", kernel("k", ".param .u64 handle", R"(
  .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %handle;
  ld.param.u64 %handle, [handle];
  mov.u32 %r0, %tid.x; mov.u32 %r1, 3;
  tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%handle, {%r1, %r0}];
  ret;)")),
                                     diagnostics);
  REQUIRE(module);
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  TextureBinding texture = array_of(256, 32);
  texture.is_linear = is_linear;
  texture.address = *memory.allocate(texture.bytes(), "texels");
  const Result<uint64_t> handle = (*program)->bind_texture(texture);
  REQUIRE(handle);
  const ir::Machine& gpu = timing::machine_named("titanv");
  timing::Recorder recorder({.port = timing::port_law(gpu), .sms = gpu.sms});
  LaunchRequest request{.kernel = "k", .block = {32}};
  request.observer = &recorder;
  const auto bytes = std::as_bytes(std::span(&*handle, 1));
  request.parameters.assign(bytes.begin(), bytes.end());
  const Result<LaunchResult> result = (*program)->launch(request);
  REQUIRE(result);
  REQUIRE_FALSE(result->failure);
  const timing::Recording recording = recorder.finish();
  timing::AccessCounts sum;
  for (const timing::AccessCounts& counts : recording.global) {
    sum.lines += counts.lines;
    sum.sectors += counts.sectors;
  }
  return sum;
}

} // namespace

TEST_CASE("bits of column and row in a GOB") {
  const TextureBinding texture = array_of(64, 8, 0, 8); // one GOB of bytes
  for (uint64_t y = 0; y < 8; ++y)
    for (uint64_t x = 0; x < 64; ++x)
      CHECK(block_linear_offset(texture, y * 64 + x) == (deposited(x, 0b100101111) | deposited(y, 0b011010000)));
}

TEST_CASE("each byte of an image of whole GOBs has its own place, and the image is no larger") {
  const TextureBinding texture = array_of(48, 24, 3); // 192 bytes by 24 rows by 3 planes
  std::set<uint64_t> places;
  for (uint64_t offset = 0; offset < texture.bytes(); ++offset)
    places.insert(block_linear_offset(texture, offset));
  CHECK(places.size() == texture.bytes());
  CHECK(*places.rbegin() == texture.bytes() - 1);
}

TEST_CASE("widths and heights that are no multiples of a GOB") {
  const TextureBinding texture = array_of(5, 9, 2, 16); // 10 bytes by 9 rows: two GOBs a plane
  std::set<uint64_t> places;
  for (uint64_t offset = 0; offset < texture.bytes(); ++offset)
    places.insert(block_linear_offset(texture, offset));
  CHECK(places.size() == texture.bytes());
  CHECK(*places.rbegin() < 4 * 512);
  CHECK(block_linear_offset(texture, 90) == 2 * 512); // the second plane
}

TEST_CASE("a line of 128 bytes holds eight floats of four rows, a sector four of two rows") {
  const TextureBinding texture = array_of(1024, 1024);
  auto lines_of = [&](uint64_t columns, uint64_t rows, uint64_t bytes) {
    std::set<uint64_t> lines;
    for (uint64_t y = 0; y < rows; ++y)
      for (uint64_t x = 0; x < columns; ++x)
        lines.insert(block_linear_offset(texture, (y * 1024 + x) * 4) / bytes);
    return lines.size();
  };
  CHECK(lines_of(8, 4, 128) == 1);
  CHECK(lines_of(32, 1, 128) == 4);
  CHECK(lines_of(1, 32, 128) == 8);
  CHECK(lines_of(4, 2, 32) == 1);
  CHECK(lines_of(1, 32, 32) == 16);
}

TEST_CASE("one-dimensional and linear textures and other addresses stay") {
  TextureBinding line = array_of(4096, 0), pitched = array_of(64, 64), array = array_of(64, 64);
  line.address = 0x20000;
  pitched.address = 0x40000;
  pitched.is_linear = true;
  const TextureLayout layout({{1, line}, {2, pitched}, {3, array}});
  CHECK(layout.stored_at(0x20100) == 0x20100);
  CHECK(layout.stored_at(0x40100) == 0x40100);
  CHECK(layout.stored_at(0xfffc) == 0xfffc);
  CHECK(layout.stored_at(0x10000 + 64 * 64 * 4) == 0x10000 + 64 * 64 * 4);
  CHECK(layout.stored_at(0x10000 + 256) == 0x10000 + 16); // the first texel of the second row
}

TEST_CASE("a column of an array takes a quarter of the lines that it takes in linear memory") {
  CHECK(column_read(true).lines == 32);
  CHECK(column_read(true).sectors == 32);
  CHECK(column_read(false).lines == 8);
  CHECK(column_read(false).sectors == 16);
}

} // namespace ptxrewrite::tests::texture_layout_test
