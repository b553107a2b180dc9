// im2col::w and im2col::w::128 (PTX ISA 5.5.5), maps that an instruction overrides (PTX ISA 9.4) and the 96-byte
// swizzle, against statements of their own.
#include "tests/unit/emulator/tensor_copies/tensor_run.h"

#include <functional>
#include <optional>

namespace ptxrewrite::emulator::tensor_row_test {
namespace {

struct Pixel {
  int64_t w = 0, image = 0;
};

// The manual's words as lists: the pixels of the box's row in every image, one behind the other; the copy begins at one
// of them, or left of the first one. Nothing for a halo that leaves its row, which the manual does not speak of.
std::optional<std::vector<Pixel>> pixels_of(const TensorSetup& setup, int64_t pixels, int64_t group, int64_t halo,
                                            int64_t offset) {
  const ir::TensorMap& map = setup.map;
  const int64_t begin = map.lower_corner[0] + offset;
  const int64_t end = static_cast<int64_t>(map.dims[1]) + map.upper_corner[0] + offset;
  std::vector<Pixel> all;
  for (int64_t image = setup.coordinates.back(); static_cast<int64_t>(all.size()) < pixels; ++image)
    for (int64_t w = image == setup.coordinates.back() ? setup.coordinates[1] + offset : begin; w < end;
         w += map.element_strides[1])
      all.push_back({w, image});
  std::vector<Pixel> result;
  for (int64_t i = 0; i < pixels; ++i) {
    result.push_back(all[static_cast<size_t>(i)]);
    if ((i + 1) % group != 0) continue;
    for (int64_t k = 1; k <= halo; ++k) {
      const int64_t w = result[result.size() - static_cast<size_t>(k)].w + k * map.element_strides[1];
      if (w >= end) return std::nullopt;
      result.push_back({w, all[static_cast<size_t>(i)].image});
    }
  }
  return result;
}

// What the copy leaves in shared memory, without a swizzle.
std::vector<std::byte> loaded(const TensorSetup& setup, const std::vector<Pixel>& pixels) {
  const ir::TensorMap& map = setup.map;
  std::vector<std::byte> shared = setup.shared;
  size_t to = 0;
  for (const Pixel& pixel : pixels)
    for (uint32_t c = 0; c < map.channels; ++c, to += 2) {
      std::vector<int64_t> at = setup.coordinates;
      at[0] += c;
      at[1] = pixel.w;
      at.back() = pixel.image;
      bool inside = true;
      uint64_t from = 0;
      for (unsigned i = 0; i < map.rank; ++i) {
        inside = inside && at[i] >= 0 && at[i] < static_cast<int64_t>(map.dims[i]);
        from += static_cast<uint64_t>(at[i]) * (i == 0 ? 2 : map.strides[i]);
      }
      for (size_t i = 0; i < 2; ++i)
        shared[to + i] = inside ? setup.tensor[from + i] : std::byte(0);
    }
  return shared;
}

std::string load_text(const TensorSetup& setup, const std::string& mode) {
  return "cp.async.bulk.tensor." + std::to_string(setup.map.rank) + "d.shared::cta.global." + mode +
         ".mbarrier::complete_tx::bytes [%tile], [%map, {" + registers("c", setup.coordinates.size()) +
         "}], [%bar], {%h0, %h1};\n";
}

TensorSetup row_setup(std::vector<uint64_t> dims, uint32_t channels, uint32_t pixels) {
  TensorSetup setup;
  ir::TensorMap& map = setup.map;
  map.access = ir::TensorAccess::im2col_w;
  map.element = ir::TensorElement::f16;
  map.rank = static_cast<uint32_t>(dims.size());
  map.channels = channels;
  map.pixels = pixels;
  uint64_t stride = dims[0] * 2;
  for (unsigned i = 0; i < map.rank; ++i) {
    map.dims[i] = dims[i];
    map.element_strides[i] = 1;
    if (i == 0) continue;
    map.strides[i] = stride;
    stride *= dims[i];
  }
  setup.tensor = random_bytes(stride, 11);
  return setup;
}

// The pixels that are loaded, if there are any to compare.
bool check_row(TensorSetup setup, bool of_128, int64_t halo, int64_t offset) {
  const int64_t pixels = of_128 ? 128 : setup.map.pixels, group = of_128 ? 32 : pixels;
  if (of_128) setup.map.access = ir::TensorAccess::im2col_w128;
  setup.offsets = {halo, offset};
  setup.copy = load_text(setup, of_128 ? "im2col::w::128" : "im2col::w");
  const auto expected = pixels_of(setup, pixels, group, halo, offset);
  const int64_t rows = pixels + pixels / group * halo;
  setup.expected_bytes = static_cast<uint32_t>(rows) * setup.map.channels * 2;
  setup.shared = random_bytes((setup.expected_bytes + 127) / 128 * 128 + 128, 5);
  const TensorRun run = run_tensor(setup);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  if (!expected) {
    CHECK(run.failure.find("a halo that reaches beyond the map's box") != std::string::npos);
    return false;
  }
  REQUIRE_MESSAGE(run.failure.empty(), run.failure);
  CHECK(static_cast<int64_t>(expected->size()) == rows);
  CHECK(run.shared == loaded(setup, *expected));
  return true;
}

// 9 x 7 images of 128 channels, 64 of them; coordinates from N on in the manual: (7, 2, 3, 0).
TEST_CASE("im2col::w: the manual's first example") {
  TensorSetup setup = row_setup({128, 9, 7, 64}, 64, 128);
  setup.coordinates = {0, 3, 2, 7};
  // 6 pixels of image 7, 9 of each of the 13 images behind, 5 of image 21: 3 + 5 and 3 + 6 are its halo.
  const auto pixels = pixels_of(setup, 128, 128, 2, 0);
  REQUIRE(pixels);
  CHECK(pixels->size() == 130);
  CHECK(pixels->at(127).w == 4);
  CHECK(pixels->at(127).image == 21);
  CHECK(pixels->at(129).w == 6);
  for (const bool late : {false, true}) {
    setup.late = late;
    CHECK(check_row(setup, false, 2, 0));
  }
}

TEST_CASE("im2col::w: examples with several buffers") {
  TensorSetup setup = row_setup({128, 9, 67, 64}, 64, 128);
  setup.map.lower_corner[0] = -1;
  setup.map.element_strides[1] = 2;
  setup.coordinates = {0, -1, 2, 7};
  CHECK(check_row(setup, false, 0, 1));
  (void)check_row(setup, false, 1, 0);
  setup = row_setup({128, 7, 7, 64}, 64, 128);
  setup.map.lower_corner[0] = setup.map.upper_corner[0] = -1;
  setup.map.element_strides[1] = 3;
  setup.coordinates = {0, -1, 2, 7};
  for (int64_t offset = 0; offset < 3; ++offset)
    CHECK(check_row(setup, false, 0, offset));
}

TEST_CASE("im2col::w and ::128: images of 1 to 3 dimensions") {
  unsigned compared = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint32_t limit) { return static_cast<int64_t>(random() % limit); };
    std::vector<uint64_t> dims = {24, static_cast<uint64_t>(4 + below(40))};
    for (int64_t i = below(3); i > 0; --i)
      dims.push_back(static_cast<uint64_t>(2 + below(3)));
    dims.push_back(static_cast<uint64_t>(2 + below(9)));
    TensorSetup setup = row_setup(dims, 16, static_cast<uint32_t>(1 + below(60)));
    setup.map.lower_corner[0] = static_cast<int32_t>(below(4)) - 2;
    setup.map.upper_corner[0] = static_cast<int32_t>(below(3)) - 1;
    setup.map.element_strides[1] = static_cast<uint32_t>(1 + below(3));
    const auto places =
        static_cast<uint32_t>(static_cast<int64_t>(dims[1]) + setup.map.upper_corner[0] - setup.map.lower_corner[0]);
    setup.coordinates = {below(2) * 3, setup.map.lower_corner[0] + below(places) - below(2) * 2};
    for (size_t i = 2; i + 1 < dims.size(); ++i)
      setup.coordinates.push_back(below(4) - 1); // H and D may lie outside
    setup.coordinates.push_back(below(3));
    setup.late = seed % 2 != 0;
    compared += check_row(setup, seed % 3 == 0, below(4), below(3));
  }
  CHECK(compared > 150);
}

TEST_CASE("im2col::w: what may not be") {
  TensorSetup setup = row_setup({32, 9, 3, 4}, 16, 8);
  setup.coordinates = {0, 0, 0, 0};
  setup.shared = random_bytes(4096, 5);
  setup.copy = load_text(setup, "im2col::w");
  const auto failure = [&](std::vector<int64_t> offsets, int64_t w) {
    setup.offsets = std::move(offsets);
    setup.coordinates[1] = w;
    return run_tensor(setup).failure;
  };
  CHECK(failure({512, 0}, 0).find("a halo of 512 pixels; at most 511") != std::string::npos);
  CHECK(failure({0, 32}, 0).find("an offset of 32 pixels; at most 31") != std::string::npos);
  CHECK(failure({0, 0}, 9).find("coordinate 1 is 9, beyond the end") != std::string::npos);
  setup.map.access = ir::TensorAccess::im2col_w128;
  CHECK(failure({0, 0}, 0).find("the map is one of im2col::w::128") != std::string::npos);
}

// --- overrides ---

constexpr const char* family_target = ".version 9.4\n.target sm_107f\n";

// A copy that overrides does what the copy without it does by a map that says so.
TEST_CASE("a copy that overrides its map is one by another map") {
  for (const bool stores : {false, true}) {
    CAPTURE(stores);
    TensorSetup setup;
    setup.target = family_target;
    setup.map.element = ir::TensorElement::u16;
    setup.map.rank = 3;
    setup.map.dims = {40, 6, 5};
    setup.map.strides = {0, 80, 480};
    setup.map.box = {16, 3, 2};
    setup.map.element_strides = {1, 1, 1};
    setup.coordinates = {0, 0, 0};
    setup.tensor = random_bytes(4096, 1);
    setup.shared = random_bytes(512, 2);
    if (!stores) setup.expected_bytes = 16 * 3 * 2 * 2;
    const auto copy = [&](const std::string& words, const std::string& inside) {
      const std::string map = "[%map, " + inside + "{%c0, %c1, %c2}]";
      return stores ? "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group" + words + " " + map + ", [%tile];\n"
                    : "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes" + words +
                          " [%tile], " + map + ", [%bar];\n";
    };
    // The address alone.
    TensorSetup other = setup;
    other.map.address = 512;
    other.copy = copy("", "");
    setup.before = "add.u64 %d0, %tensor, 512;\n";
    setup.copy = copy(".override::global_address", "%d0, ");
    TensorRun expected = run_tensor(other), found = run_tensor(setup);
    REQUIRE_MESSAGE(found.error.empty(), found.error);
    REQUIRE_MESSAGE(found.failure.empty(), found.failure);
    CHECK(found.shared == expected.shared);
    CHECK(found.tensor == expected.tensor);
    CHECK(found.tensor != (stores ? setup.tensor : std::vector<std::byte>()));
    // Sizes and strides, too: the box reaches beyond the smaller tensor. Strides are in 16 bytes; bits 32 and on of
    // each stand in 4 bits of one number.
    other.map.dims = {12, 2, 9};
    other.map.strides = {0, 48, 1024};
    other.copy = copy("", "");
    setup.before += "mov.b32 %r0, 3;\nmov.b32 %r1, 64;\nmov.b16 %h0, 0;\nmov.b16 %h1, 12;\nmov.b16 %h2, 2;\n"
                    ".reg .b16 %h3;\nmov.b16 %h3, 9;\n";
    setup.copy =
        copy(".override::global_address.override::global_dim_stride", "%d0, {%h1, %h2, %h3}, {%r0, %r1}, %h0, ");
    expected = run_tensor(other), found = run_tensor(setup);
    REQUIRE_MESSAGE(found.error.empty(), found.error);
    REQUIRE_MESSAGE(found.failure.empty(), found.failure);
    CHECK(found.shared == expected.shared);
    CHECK(found.tensor == expected.tensor);
    setup.before += "mov.b32 %c1, 1;\n";
    CHECK(run_tensor(setup).failure.find("coordinate 1 is 1; a copy that overrides the sizes") != std::string::npos);
  }
}

// Bits 32 and on of a stride: 2^36 bytes are far outside of the tensor, and the message names the address.
TEST_CASE("high bits of an overriding stride") {
  TensorSetup setup;
  setup.target = family_target;
  setup.map.element = ir::TensorElement::u8;
  setup.map.rank = 2;
  setup.map.dims = {16, 2};
  setup.map.strides = {0, 16};
  setup.map.box = {16, 2};
  setup.map.element_strides = {1, 1};
  setup.coordinates = {0, 0};
  setup.tensor = random_bytes(64, 1);
  setup.shared = random_bytes(256, 2);
  setup.before = "mov.b32 %r0, 1;\nmov.b16 %h0, 1;\nmov.b16 %h1, 16;\nmov.b16 %h2, 2;\n";
  setup.copy = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.override::global_address."
               "override::global_dim_stride [%tile], [%map, %tensor, {%h1, %h2}, {%r0}, %h0, {%c0, %c1}], [%bar];\n";
  const TensorRun run = run_tensor(setup);
  CHECK_MESSAGE(run.failure.find("global tensor copy of 16 bytes at 0x") == 0, run.failure);
}

// --- 96 bytes ---

// The manual's table: pairs of 16 bytes change places in every second line of 128.
TEST_CASE("the swizzle of 96 bytes") {
  TensorSetup setup;
  setup.map.element = ir::TensorElement::u8;
  setup.map.rank = 2;
  setup.map.dims = {96, 16};
  setup.map.strides = {0, 96};
  setup.map.box = {96, 16};
  setup.map.element_strides = {1, 1};
  setup.map.swizzle = ir::SwizzleSpan::bytes96;
  setup.coordinates = {0, 0};
  setup.tensor = random_bytes(96 * 16, 1);
  setup.shared = random_bytes(96 * 16, 2);
  setup.expected_bytes = 96 * 16;
  setup.copy = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1}], "
               "[%bar];\n";
  const TensorRun run = run_tensor(setup);
  REQUIRE_MESSAGE(run.failure.empty(), run.failure);
  constexpr unsigned table[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
  for (size_t i = 0; i < setup.tensor.size(); ++i) {
    const size_t line = i / 128, chunk = i / 16 % 8;
    REQUIRE(run.shared[line * 128 + table[line % 2][chunk] * 16 + i % 16] == setup.tensor[i]);
  }
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_row_test
