// Maps: their 128 bytes, and the rules of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col (CUDA 13.0 driver API).
#include "emulator/tensor_copies/tensor_map_object.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <random>

namespace ptxrewrite::emulator::tensor_map_test {
namespace {

using ir::TensorMap;

TEST_CASE("the bytes of a map hold all of it") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    TensorMap map;
    map.access = static_cast<ir::TensorAccess>(random() % 4);
    map.element = static_cast<ir::TensorElement>(random() % 16);
    map.interleave = static_cast<ir::TensorInterleave>(random() % 3);
    map.swizzle = static_cast<ir::SwizzleSpan>(random() % 5);
    map.atom = static_cast<ir::SwizzleAtom>(random() % 4);
    map.fill = static_cast<ir::TensorFill>(random() % 2);
    map.l2_promotion = static_cast<uint8_t>(random() % 4);
    map.rank = 1 + static_cast<uint32_t>(random() % 5);
    map.address = random();
    for (unsigned i = 0; i < 5; ++i) {
      map.dims[i] = random();
      map.strides[i] = i == 0 ? 0 : random();
      map.box[i] = static_cast<uint32_t>(random() & 0xffff);
      map.element_strides[i] = static_cast<uint32_t>(random() & 0xff);
    }
    for (unsigned i = 0; i < 3; ++i) {
      map.lower_corner[i] = static_cast<int16_t>(random());
      map.upper_corner[i] = static_cast<int16_t>(random());
    }
    map.channels = static_cast<uint32_t>(random() & 0xffff);
    map.pixels = static_cast<uint32_t>(random() & 0xffff);
    TensorMap read;
    REQUIRE(read_tensor_map(encode_tensor_map(map), read).empty());
    CHECK(read == map);
  }
}

// CUTLASS (cute/arch/copy_sm90_desc.hpp) and Triton (nvidia/driver.c) do so for drivers up to 13.1, in maps of tensors
// below 128 KiB.
TEST_CASE("a program may clear bit 21 of the second word") {
  TensorMap map;
  map.rank = 5;
  map.address = ~uint64_t(0) - 15;
  map.dims.fill(~uint64_t(0));
  for (unsigned i = 1; i < 5; ++i)
    map.strides[i] = ~uint64_t(0) - 15;
  map.box.fill(65535);
  map.element_strides.fill(255);
  map.channels = map.pixels = 65535;
  TensorMapObject bytes = encode_tensor_map(map);
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + 8, 8);
  word &= ~(uint64_t(1) << 21);
  std::memcpy(bytes.data() + 8, &word, 8);
  TensorMap read;
  REQUIRE(read_tensor_map(bytes, read).empty());
  CHECK(read == map);
}

TEST_CASE("numbers that do not fit become ones that no legal map has") {
  TensorMap map;
  map.rank = 0;
  map.box[0] = 1 << 20;
  map.element_strides[0] = 1 << 10;
  map.pixels = 1 << 20;
  TensorMap read;
  REQUIRE(read_tensor_map(encode_tensor_map(map), read).empty());
  CHECK(read.rank == 8);
  CHECK(read.box[0] == 65535);
  CHECK(read.element_strides[0] == 255);
  CHECK(read.pixels == 65535);
}

TensorMap legal_tiled() {
  TensorMap map;
  map.element = ir::TensorElement::f16;
  map.rank = 3;
  map.address = 0x1000;
  map.dims = {100, 50, 7};
  map.strides = {0, 208, 208 * 50};
  map.box = {64, 256, 1};
  map.element_strides = {1, 1, 8};
  map.swizzle = ir::SwizzleSpan::bytes128;
  return map;
}

TensorMap legal_im2col() {
  TensorMap map = legal_tiled();
  map.access = ir::TensorAccess::im2col;
  map.rank = 4;
  map.dims = {64, 9, 14, 64};
  map.strides = {0, 128, 128 * 9, 128 * 9 * 14};
  map.element_strides = {1, 1, 1, 1};
  map.box = {};
  map.channels = 64;
  map.pixels = 1024;
  map.lower_corner = {-1, -128};
  map.upper_corner = {-1, 127};
  return map;
}

struct Rule {
  std::function<void(TensorMap&)> change;
  const char* fault; // "": none
};

void check_rules(const TensorMap& legal, const std::vector<Rule>& rules) {
  REQUIRE(ir::find_fault(legal) == "");
  for (const Rule& rule : rules) {
    CAPTURE(rule.fault);
    TensorMap map = legal;
    rule.change(map);
    const std::string found = ir::find_fault(map);
    CAPTURE(found);
    CHECK(*rule.fault ? found.find(rule.fault) != std::string::npos : found.empty());
  }
}

TEST_CASE("what the driver API requires of tiled maps") {
  using enum ir::TensorElement;
  check_rules(
      legal_tiled(),
      {
          {[](TensorMap& m) { m.rank = 0; }, "the rank is 0; 1 to 5"},
          {[](TensorMap& m) { m.rank = 6; }, "the rank is 6"},
          {[](TensorMap& m) { m.rank = 2, m.interleave = ir::TensorInterleave::bytes16; }, "the rank is 2; 3 to 5"},
          {[](TensorMap& m) { m.address += 8; }, "the tensor's address is no multiple of 16"},
          {[](TensorMap& m) { m.address += 16; }, ""},
          {[](TensorMap& m) { m.dims[1] = 0; }, "dims[1] is 0"},
          {[](TensorMap& m) { m.dims[0] = uint64_t(1) << 32; }, ""},
          {[](TensorMap& m) { m.dims[0] = (uint64_t(1) << 32) + 1; }, "dims[0] is 4294967297; 1 to 4294967296"},
          {[](TensorMap& m) { m.strides[1] = 200; }, "strides[0] is 200, which is no multiple of 16"},
          {[](TensorMap& m) { m.strides[2] = uint64_t(1) << 40; }, "strides[1] is 1099511627776"},
          {[](TensorMap& m) { m.strides[2] = (uint64_t(1) << 40) - 16; }, ""},
          {[](TensorMap& m) { m.box[1] = 257; }, "box[1] is 257; 1 to 256"},
          {[](TensorMap& m) { m.box[2] = 0; }, "box[2] is 0"},
          {[](TensorMap& m) { m.box[0] = 63; }, "no multiple of 16"},
          {[](TensorMap& m) { m.box[0] = 72; }, "box[0] is 144 bytes, more than a swizzle of 128"},
          {[](TensorMap& m) { m.swizzle = ir::SwizzleSpan::bytes64; },
           "box[0] is 128 bytes, more than a swizzle of 64"},
          {[](TensorMap& m) { m.swizzle = ir::SwizzleSpan::none, m.box[0] = 256; }, ""},
          {[](TensorMap& m) { m.element_strides[1] = 9; }, "element_strides[1] is 9; 1 to 8"},
          {[](TensorMap& m) { m.element_strides[2] = 0; }, "element_strides[2] is 0"},
          {[](TensorMap& m) { m.element_strides[0] = 77; }, ""}, // ignored without interleave
          {[](TensorMap& m) { m.fill = ir::TensorFill::nan; }, ""},
          {[](TensorMap& m) { m.fill = ir::TensorFill::nan, m.element = u16; }, "have no NaN"},
          {[](TensorMap& m) { m.interleave = ir::TensorInterleave::bytes32; },
           "strides[0] is 208, which is no multiple of 32"},
          {[](TensorMap& m) { m.swizzle = ir::SwizzleSpan::bytes32, m.atom = ir::SwizzleAtom::bytes32; },
           "only a swizzle of 128 bytes"},
          {[](TensorMap& m) { m.element = b4x16, m.dims[0] = 101; }, "dims[0] is 101"},
          {[](TensorMap& m) { m.element = b4x16, m.box[0] = 256; }, ""},
          {[](TensorMap& m) { m.element = b6x16_p32; }, "strides[0] is 208, which is no multiple of 32"},
      });
  TensorMap aligned = legal_tiled();
  aligned.strides = {0, 256, 256 * 50};
  check_rules(
      aligned,
      {
          {[](TensorMap& m) { m.interleave = ir::TensorInterleave::bytes32; }, "has a swizzle of 32 bytes"},
          {[](TensorMap& m) { m.interleave = ir::TensorInterleave::bytes32, m.swizzle = ir::SwizzleSpan::bytes32; },
           ""},
          {[](TensorMap& m) { m.element = b6x16_p32; }, "dims[0] is 100, which is no multiple of 128"},
          {[](TensorMap& m) { m.element = b6x16_p32, m.dims[0] = 128; }, "it has to be 128"},
          {[](TensorMap& m) { m.element = b6x16_p32, m.dims[0] = 128, m.box[0] = 128; }, ""},
          {[](TensorMap& m) {
             m.element = b6x16_p32, m.dims[0] = 128, m.box[0] = 128, m.swizzle = ir::SwizzleSpan::bytes64;
           },
           "packed types have no swizzle, or one of 128"},
      });
}

TEST_CASE("what the driver API requires of im2col maps") {
  check_rules(legal_im2col(),
              {
                  {[](TensorMap& m) { m.rank = 2; }, "the rank is 2; 3 to 5"},
                  {[](TensorMap& m) { m.channels = 0; }, "channels_per_pixel is 0"},
                  {[](TensorMap& m) { m.channels = 257; }, "channels_per_pixel is 257; 1 to 256"},
                  {[](TensorMap& m) { m.channels = 72; }, "more than a swizzle of 128"},
                  {[](TensorMap& m) { m.pixels = 1025; }, "pixels_per_column is 1025; 1 to 1024"},
                  {[](TensorMap& m) { m.lower_corner[1] = -129; }, "lower_corner[1] is -129; -128 to 127"},
                  {[](TensorMap& m) { m.upper_corner[0] = 128; }, "upper_corner[0] is 128"},
                  {[](TensorMap& m) { m.upper_corner[0] = -10; }, "there is nothing between"},
              });
}

TEST_CASE("CUDA's enumerations") {
  using enum ir::TensorElement;
  // cuda.h of CUDA 13.0, CUtensorMapDataType.
  const ir::TensorElement order[] = {u8,  u16,  u32,     s32,  u64,      s64,   f16,       f32,
                                     f64, bf16, f32_ftz, tf32, tf32_ftz, b4x16, b4x16_p64, b6x16_p32};
  for (int i = 0; i < 16; ++i)
    CHECK(ir::tensor_element_of_cuda(i) == order[i]);
  for (const int64_t none : {-1, 16, 255})
    CHECK_FALSE(ir::tensor_element_of_cuda(none));
  CHECK_FALSE(ir::tensor_swizzle_of_cuda(7));
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_map_test
