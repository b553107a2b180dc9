// Tensor copies against the implementation of tensor_statement.h: one full tile of every swizzle and element size,
// random maps with various ends, strides and coordinates, im2col, four rows, reductions.
#include "tests/unit/emulator/tensor_copies/tensor_run.h"
#include "tests/unit/emulator/tensor_copies/tensor_statement.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::emulator::tensor_copies_test {
namespace {

using ir::TensorElement;
using tensor_statement::Place;
using Walk = std::function<void(const std::function<void(const Place&)>&)>;

std::string load_text(const TensorSetup& setup, const std::string& mode = "tile") {
  const std::string dimensions = std::to_string(setup.map.rank) + "d";
  std::string text = "cp.async.bulk.tensor." + dimensions + ".shared::cluster.global." + mode +
                     ".mbarrier::complete_tx::bytes [%tile], [%map, {" + registers("c", setup.coordinates.size()) +
                     "}], [%bar]";
  if (!setup.offsets.empty()) text += ", {" + registers("h", setup.offsets.size()) + "}";
  return text + ";\n";
}

std::string store_text(const TensorSetup& setup, const std::string& mode = "tile",
                       const std::string& name = "cp.async.bulk.tensor", const std::string& operation = "") {
  return name + "." + std::to_string(setup.map.rank) + "d.global.shared::cta" + operation + "." + mode +
         ".bulk_group [%map, {" + registers("c", setup.coordinates.size()) + "}], [%tile];\n";
}

Walk tiled_walk(const TensorSetup& setup) {
  return [&setup](const auto& visit) { tensor_statement::tiled(setup.map, setup.coordinates, visit); };
}

uint32_t bytes_of(const Walk& walk, const ir::TensorMap& map) {
  uint32_t count = 0;
  walk([&](const Place&) { ++count; });
  return count * tensor_statement::element_bytes(map);
}

void set_swizzle(ir::TensorMap& map, int mode) {
  map.swizzle = ir::tensor_swizzle_of_cuda(mode)->span;
  map.atom = ir::tensor_swizzle_of_cuda(mode)->atom;
}

void check_equal(const std::vector<std::byte>& found, const std::vector<std::byte>& expected) {
  REQUIRE(found.size() == expected.size());
  const auto [a, b] = std::ranges::mismatch(found, expected);
  if (a == found.end()) return;
  CAPTURE(a - found.begin());
  CHECK(static_cast<unsigned>(*a) == static_cast<unsigned>(*b));
}

// Loads, and compares all of shared memory.
void check_load(TensorSetup setup, int swizzle, const Walk& walk) {
  setup.expected_bytes = bytes_of(walk, setup.map);
  const TensorRun run = run_tensor(setup);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  REQUIRE_MESSAGE(run.failure.empty(), run.failure);
  std::vector<std::byte> expected = setup.shared;
  // The test's addresses are those of the kernel: dynamic shared memory starts at a multiple of 1024.
  tensor_statement::load(setup.map, swizzle, setup.tile_offset, setup.tensor.data() + setup.map.address, expected,
                         walk);
  check_equal(run.shared, expected);
  check_equal(run.tensor, setup.tensor);
}

void check_store(TensorSetup setup, int swizzle, const Walk& walk) {
  setup.expected_bytes = 0;
  const TensorRun run = run_tensor(setup);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  REQUIRE_MESSAGE(run.failure.empty(), run.failure);
  std::vector<std::byte> expected = setup.tensor;
  tensor_statement::store(setup.map, swizzle, setup.tile_offset, expected.data() + setup.map.address, setup.shared,
                          walk);
  check_equal(run.tensor, expected);
  check_equal(run.shared, setup.shared);
}

// A dense two-dimensional tensor, with the box in its middle.
TensorSetup plain_tile(TensorElement element, uint32_t columns, uint32_t rows) {
  TensorSetup setup;
  setup.map.element = element;
  setup.map.rank = 2;
  setup.map.dims = {columns * 2, rows * 2};
  setup.map.strides = {0, uint64_t(columns) * 2 * ir::element_bits(element) / 8};
  setup.map.box = {columns, rows};
  setup.map.element_strides = {1, 1};
  setup.coordinates = {columns / 2, rows / 2};
  setup.tensor = random_bytes(setup.map.strides[1] * rows * 2, columns + rows);
  setup.shared = random_bytes(uint64_t(columns) * ir::element_bits(element) / 8 * rows + 1024, 3);
  return setup;
}

TEST_CASE("one tile of every swizzle and element size, loaded and stored") {
  constexpr uint32_t spans[] = {64, 32, 64, 128, 128, 128, 128};
  for (int swizzle = 0; swizzle < 7; ++swizzle)
    for (unsigned element = 0; element < 13; ++element) {
      CAPTURE(swizzle);
      CAPTURE(element);
      const auto type = static_cast<TensorElement>(element);
      TensorSetup setup = plain_tile(type, spans[swizzle] * 8 / ir::element_bits(type), 32);
      set_swizzle(setup.map, swizzle);
      // Types that are rounded by the copy: uses numbers that are exact. element_test below covers their bits.
      if (type == TensorElement::f32_ftz || type == TensorElement::tf32 || type == TensorElement::tf32_ftz) {
        for (auto* bytes : {&setup.tensor, &setup.shared})
          for (size_t i = 0; i + 3 < bytes->size(); i += 4) {
            const uint32_t bits = (static_cast<uint32_t>((*bytes)[i]) << 13) + 0x3f800000;
            std::memcpy(bytes->data() + i, &bits, 4);
          }
      }
      setup.copy = load_text(setup);
      for (const bool late : {false, true}) {
        setup.late = late;
        check_load(setup, swizzle, tiled_walk(setup));
      }
      if (swizzle == 5) continue; // only for loads
      setup.copy = store_text(setup);
      for (const bool late : {false, true}) {
        setup.late = late;
        check_store(setup, swizzle, tiled_walk(setup));
      }
    }
}

// cuda.h, CUtensorMapDataType: 8 byte gaps between chunks of 8 bytes (16U4_ALIGN16B), 4 between chunks of 12.
TEST_CASE("padded elements of 4 and 6 bits: a chunk of 16 of them in 16 bytes") {
  struct Padded {
    TensorElement element;
    size_t chunk; // bytes in global memory
  };
  constexpr size_t elements = 128, rows = 8, row_bytes = 128, chunks = 8;
  for (const Padded& type : {Padded{TensorElement::b4x16_p64, 8}, Padded{TensorElement::b6x16_p32, 12}})
    for (const int swizzle : {0, 3})
      for (const int64_t column : {int64_t{0}, int64_t{128}, int64_t{256}}) { // the last one is outside of the tensor
        CAPTURE(type.chunk);
        CAPTURE(swizzle);
        CAPTURE(column);
        TensorSetup setup;
        setup.map.element = type.element;
        setup.map.rank = 2;
        setup.map.dims = {2 * elements, rows};
        setup.map.strides = {0, 2 * chunks * type.chunk + 32};
        setup.map.box = {elements, rows};
        setup.map.element_strides = {1, 1};
        set_swizzle(setup.map, swizzle);
        setup.coordinates = {column, 0};
        setup.tensor = random_bytes(setup.map.strides[1] * rows, 5);
        setup.shared = random_bytes(row_bytes * rows + 64, 6);
        setup.expected_bytes = static_cast<uint32_t>(chunks * type.chunk * rows); // without the gaps
        setup.copy = load_text(setup);
        const TensorRun run = run_tensor(setup);
        REQUIRE_MESSAGE(run.error.empty(), run.error);
        REQUIRE_MESSAGE(run.failure.empty(), run.failure);
        std::vector<std::byte> expected = setup.shared;
        const bool inside = column < static_cast<int64_t>(2 * elements);
        for (size_t row = 0; row < rows; ++row)
          for (size_t chunk = 0; chunk < chunks; ++chunk)
            for (size_t i = 0; i < (inside ? type.chunk : 16); ++i) {
              const auto dense = static_cast<uint32_t>(row * row_bytes + chunk * 16 + i);
              const size_t from =
                  row * setup.map.strides[1] + (static_cast<size_t>(column) / 16 + chunk) * type.chunk + i;
              expected[tensor_statement::shared_address(swizzle, dense)] = inside ? setup.tensor[from] : std::byte{0};
            }
        check_equal(run.shared, expected);
      }
}

// PTX ISA 5.5.1.1, .b6p2x16, which is the name of this type in stores: an element is the low 6 bits of a byte.
TEST_CASE("stored elements of 6 bits leave 2 bits of each byte behind") {
  constexpr size_t elements = 128, rows = 8, row_bytes = 128;
  for (const int swizzle : {0, 3, 4, 6})
    for (const int64_t column : {int64_t{0}, int64_t{128}, int64_t{256}}) // the last one is outside of the tensor
      for (const bool late : {false, true}) {
        CAPTURE(swizzle);
        CAPTURE(column);
        CAPTURE(late);
        TensorSetup setup;
        setup.map.element = TensorElement::b6x16_p32;
        setup.map.rank = 2;
        setup.map.dims = {2 * elements, rows - 1}; // the last row of the box is outside
        setup.map.strides = {0, 2 * elements * 6 / 8 + 32};
        setup.map.box = {elements, rows};
        setup.map.element_strides = {1, 1};
        set_swizzle(setup.map, swizzle);
        setup.coordinates = {column, 0};
        setup.tensor = random_bytes(setup.map.strides[1] * rows, 7);
        setup.shared = random_bytes(row_bytes * rows + 64, 8);
        setup.late = late;
        setup.copy = store_text(setup);
        const TensorRun run = run_tensor(setup);
        REQUIRE_MESSAGE(run.error.empty(), run.error);
        REQUIRE_MESSAGE(run.failure.empty(), run.failure);
        std::vector<std::byte> expected = setup.tensor;
        for (size_t row = 0; row + 1 < rows; ++row)
          for (size_t i = 0; i < elements && column + i < 2 * elements; ++i)
            for (size_t bit = 0; bit < 6; ++bit) {
              const auto dense = static_cast<uint32_t>(row * row_bytes + i);
              const std::byte from = setup.shared[tensor_statement::shared_address(swizzle, dense)];
              const size_t to = (static_cast<size_t>(column) + i) * 6 + bit;
              std::byte& byte = expected[row * setup.map.strides[1] + to / 8];
              const std::byte one{static_cast<uint8_t>(1u << to % 8)};
              byte = (from >> bit & std::byte{1}) != std::byte{0} ? byte | one : byte & ~one;
            }
        check_equal(run.tensor, expected);
        check_equal(run.shared, setup.shared);
      }
}

TEST_CASE("a box that does not begin where the swizzle's pattern does") {
  for (int swizzle = 1; swizzle < 7; ++swizzle)
    for (const uint32_t offset : {128u, 384u, 896u}) {
      constexpr uint32_t spans[] = {0, 32, 64, 128, 128, 128, 128};
      TensorSetup setup = plain_tile(TensorElement::u8, spans[swizzle], 16);
      set_swizzle(setup.map, swizzle);
      setup.tile_offset = offset;
      setup.copy = load_text(setup);
      check_load(setup, swizzle, tiled_walk(setup));
    }
}

// --- random maps ---

struct RandomMap {
  TensorSetup setup;
  int swizzle = 0;
};

RandomMap random_map(unsigned seed, bool stores) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  RandomMap made;
  ir::TensorMap& map = made.setup.map;
  constexpr TensorElement types[] = {TensorElement::u8,  TensorElement::u16, TensorElement::s32, TensorElement::u64,
                                     TensorElement::f16, TensorElement::f32, TensorElement::f64, TensorElement::bf16};
  map.element = types[below(std::size(types))];
  map.rank = 1 + below(5);
  if (ir::is_float(map.element) && below(2)) map.fill = ir::TensorFill::nan;
  const uint32_t bytes = ir::element_bits(map.element) / 8, unit = 16 / bytes;
  made.swizzle = static_cast<int>(below(stores ? 5 : 7));
  set_swizzle(map, made.swizzle);
  const uint32_t span = ir::span_bytes(map.swizzle);
  map.box[0] = span != 0 ? span / bytes : unit * (1 + below(std::min(8u, 256 / unit)));
  map.dims[0] = 1 + below(2 * map.box[0]);
  uint64_t stride = (map.dims[0] * bytes + 15) / 16 * 16 + 16 * below(3);
  for (unsigned i = 1; i < map.rank; ++i) {
    map.box[i] = 1 + below(map.rank > 3 ? 4 : 9);
    map.element_strides[i] = 1 + below(3);
    map.dims[i] = 1 + below(12);
    map.strides[i] = stride;
    stride = stride * map.dims[i] + 16 * below(3);
  }
  map.element_strides[0] = 1 + below(8); // ignored
  map.address = 16 * below(4);
  for (unsigned i = 0; i < map.rank; ++i) {
    const auto size = static_cast<int64_t>(map.dims[i]);
    made.setup.coordinates.push_back(static_cast<int64_t>(below(static_cast<uint32_t>(2 * size + 4))) -
                                     (stores ? 0 : size / 2 + 2));
  }
  uint32_t box = map.box[0] * bytes;
  for (unsigned i = 1; i < map.rank; ++i)
    box *= (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  made.setup.tensor = random_bytes(map.address + stride + 64, seed);
  made.setup.shared = random_bytes((box + 127) / 128 * 128 + 256, seed + 1);
  return made;
}

TEST_CASE("random maps: ends of the tensor, strides, traversal strides, negative coordinates") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    RandomMap made = random_map(seed, false);
    made.setup.late = seed % 2 != 0;
    made.setup.copy = load_text(made.setup);
    check_load(made.setup, made.swizzle, tiled_walk(made.setup));
    RandomMap stored = random_map(seed, true);
    stored.setup.late = seed % 2 == 0;
    stored.setup.copy = store_text(stored.setup);
    check_store(stored.setup, stored.swizzle, tiled_walk(stored.setup));
  }
}

TEST_CASE("im2col: images of 1 to 3 dimensions") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    TensorSetup setup;
    ir::TensorMap& map = setup.map;
    map.access = ir::TensorAccess::im2col;
    map.element = TensorElement::f16;
    map.rank = 3 + below(3);
    const int swizzle = static_cast<int>(below(4));
    set_swizzle(map, swizzle);
    const uint32_t span = ir::span_bytes(map.swizzle);
    map.channels = span != 0 ? span / 2 : 8 * (1 + below(4));
    map.pixels = 1 + below(60);
    map.dims[0] = map.channels + below(9);
    uint64_t stride = (map.dims[0] * 2 + 15) / 16 * 16;
    map.element_strides[0] = 1;
    setup.coordinates = {below(2) ? 0 : 3};
    const bool stores = seed % 4 == 0;
    for (unsigned i = 1; i < map.rank; ++i) {
      const bool image = i + 1 == map.rank;
      map.dims[i] = image ? 1 + below(3) : 4 + below(5);
      map.strides[i] = stride;
      stride *= map.dims[i];
      map.element_strides[i] = 1 + below(image ? 1 : 3);
      if (image) break;
      map.lower_corner[i - 1] = stores ? static_cast<int>(below(2)) : static_cast<int>(below(4)) - 2;
      map.upper_corner[i - 1] = -static_cast<int>(below(2));
      const auto places = static_cast<int>(map.dims[i]) + map.upper_corner[i - 1] - map.lower_corner[i - 1];
      setup.coordinates.push_back(map.lower_corner[i - 1] + static_cast<int>(below(static_cast<uint32_t>(places))));
    }
    setup.coordinates.push_back(below(static_cast<uint32_t>(map.dims[map.rank - 1])));
    std::vector<int64_t> offsets(map.rank - 2);
    if (!stores)
      for (int64_t& offset : offsets)
        offset = below(3);
    setup.tensor = random_bytes(stride, seed);
    setup.shared = random_bytes((map.pixels * map.channels * 2 + 127) / 128 * 128 + 128, seed + 7);
    const Walk walk = [&](const auto& visit) { tensor_statement::column(map, setup.coordinates, offsets, visit); };
    setup.late = seed % 2 != 0;
    if (stores) {
      setup.copy = store_text(setup, "im2col_no_offs");
      check_store(setup, swizzle, walk);
    } else {
      setup.offsets = offsets;
      setup.copy = load_text(setup, "im2col");
      check_load(setup, swizzle, walk);
    }
  }
}

TEST_CASE("four rows, gathered and scattered") {
  for (const bool late : {false, true}) {
    TensorSetup setup = plain_tile(TensorElement::bf16, 64, 8);
    setup.map.box[1] = 1;
    set_swizzle(setup.map, 3);
    setup.coordinates = {32, 15, 2, 3, 0};
    setup.late = late;
    const Walk walk = [&](const auto& visit) {
      for (unsigned row = 0; row < 4; ++row)
        tensor_statement::tiled(setup.map, {setup.coordinates[0], setup.coordinates[row + 1]}, [&](Place place) {
          place.dense += row * 128;
          visit(place);
        });
    };
    setup.copy = load_text(setup, "tile::gather4");
    check_load(setup, 3, walk);
    setup.copy = store_text(setup, "tile::scatter4");
    check_store(setup, 3, walk);
    setup.coordinates = {100, -1, 16, 1 << 30, 5}; // columns and rows beyond the ends
    setup.copy = load_text(setup, "tile::gather4");
    check_load(setup, 3, walk);
  }
}

// --- values that are changed by the copy ---

template <class T> std::vector<std::byte> bytes_of_values(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T> std::vector<T> values_of(const std::vector<std::byte>& bytes, size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  return values;
}

TEST_CASE("tf32 is rounded to nearest even, .ftz flushes") {
  const std::vector<uint32_t> words = {0x3f800fff, 0x3f801000, 0x3f803000, 0x3f801001, 0x00000001, 0x807fffff,
                                       0x7f800000, 0x7fc00001, 0xbf9fffff, 0x00000000, 0x80000000, 0x7f7fffff,
                                       0x00801000, 0x3f800000, 0x42f6e979, 0xc2f6e979};
  const std::vector<uint32_t> rounded = {0x3f800000, 0x3f800000, 0x3f804000, 0x3f802000, 0x00000000, 0x80800000,
                                         0x7f800000, 0x7fc00001, 0xbfa00000, 0x00000000, 0x80000000, 0x7f800000,
                                         0x00800000, 0x3f800000, 0x42f6e000, 0xc2f6e000};
  for (const TensorElement element :
       {TensorElement::f32, TensorElement::f32_ftz, TensorElement::tf32, TensorElement::tf32_ftz}) {
    TensorSetup setup;
    setup.map.element = element;
    setup.map.dims = {16};
    setup.map.box = {16};
    setup.map.element_strides = {1};
    setup.coordinates = {0};
    setup.tensor = bytes_of_values(words);
    setup.shared = random_bytes(64, 1);
    setup.expected_bytes = 64;
    setup.copy = load_text(setup);
    const TensorRun run = run_tensor(setup);
    REQUIRE_MESSAGE(run.failure.empty(), run.failure);
    const std::vector<uint32_t> found = values_of<uint32_t>(run.shared, 16);
    for (size_t i = 0; i < 16; ++i) {
      CAPTURE(i);
      const bool flushes = element == TensorElement::f32_ftz || element == TensorElement::tf32_ftz;
      const bool rounds = element == TensorElement::tf32 || element == TensorElement::tf32_ftz;
      uint32_t expected = rounds ? rounded[i] : words[i];
      if (flushes && (words[i] & 0x7f800000) == 0) expected = words[i] & 0x80000000;
      CHECK(found[i] == expected);
    }
  }
}

template <class T> struct ReduceRow {
  TensorElement element;
  const char* operation;
  std::vector<T> old, operand, result;
};

template <class T> void check_reductions(const std::vector<ReduceRow<T>>& rows) {
  for (const ReduceRow<T>& row : rows)
    for (const bool late : {false, true}) {
      CAPTURE(row.operation);
      TensorSetup setup;
      const size_t count = 64 / sizeof(T);
      setup.map.element = row.element;
      setup.map.dims = {count};
      setup.map.box = {static_cast<uint32_t>(count)};
      setup.map.element_strides = {1};
      setup.coordinates = {0};
      std::vector<T> old(count), operand(count), result(count);
      for (size_t i = 0; i < count; ++i) {
        old[i] = row.old[i % row.old.size()];
        operand[i] = row.operand[i % row.old.size()];
        result[i] = row.result[i % row.old.size()];
      }
      setup.tensor = bytes_of_values(old);
      setup.shared = bytes_of_values(operand);
      setup.late = late;
      setup.copy = store_text(setup, "tile", "cp.reduce.async.bulk.tensor", std::string(".") + row.operation);
      const TensorRun run = run_tensor(setup);
      REQUIRE_MESSAGE(run.error.empty(), run.error);
      REQUIRE_MESSAGE(run.failure.empty(), run.failure);
      CHECK(values_of<T>(run.tensor, count) == result);
    }
}

TEST_CASE("reductions of all types") {
  check_reductions<uint32_t>({
      {TensorElement::u32, "add", {1, 0xffffffff}, {2, 3}, {3, 2}},
      {TensorElement::s32, "add", {1, 0x7fffffff}, {0xffffffff, 1}, {0, 0x80000000}},
      {TensorElement::u32, "min", {1, 0x80000000}, {0xffffffff, 1}, {1, 1}},
      {TensorElement::s32, "min", {1, 0x80000000}, {0xffffffff, 1}, {0xffffffff, 0x80000000}},
      {TensorElement::u32, "max", {1, 0x80000000}, {0xffffffff, 1}, {0xffffffff, 0x80000000}},
      {TensorElement::s32, "max", {1, 0x80000000}, {0xffffffff, 1}, {1, 1}},
      {TensorElement::u32, "inc", {1, 7, 9}, {7, 7, 7}, {2, 0, 0}},
      {TensorElement::u32, "dec", {1, 0, 9}, {7, 7, 7}, {0, 7, 7}},
      {TensorElement::u32, "and", {0xff00ff00}, {0x0ff00ff0}, {0x0f000f00}},
      {TensorElement::s32, "or", {0xff00ff00}, {0x0ff00ff0}, {0xfff0fff0}},
      {TensorElement::u32, "xor", {0xff00ff00}, {0x0ff00ff0}, {0xf0f0f0f0}},
      // 1 + 2 = 3; a subnormal operand counts as zero.
      {TensorElement::f32, "add", {0x3f800000, 0x00000001}, {0x40000000, 0x00000001}, {0x40400000, 0}},
  });
  check_reductions<uint64_t>({
      {TensorElement::u64, "add", {1, ~uint64_t(0)}, {2, 3}, {3, 2}},
      {TensorElement::u64, "min", {1, uint64_t(1) << 63}, {~uint64_t(0), 1}, {1, 1}},
      {TensorElement::s64, "min", {1, uint64_t(1) << 63}, {~uint64_t(0), 1}, {~uint64_t(0), uint64_t(1) << 63}},
      {TensorElement::s64, "max", {1, uint64_t(1) << 63}, {~uint64_t(0), 1}, {1, 1}},
      {TensorElement::u64, "and", {0xff00ff00ff00ff00}, {0x0ff00ff00ff00ff0}, {0x0f000f000f000f00}},
      {TensorElement::s64, "xor", {0xff00ff00ff00ff00}, {0x0ff00ff00ff00ff0}, {0xf0f0f0f0f0f0f0f0}},
  });
  check_reductions<uint16_t>({
      {TensorElement::f16, "add", {0x3c00, 0x0001}, {0x4000, 0x0001}, {0x4200, 0x0002}}, // subnormal sums are kept
      {TensorElement::f16, "min", {0x3c00, 0xbc00}, {0x4000, 0x3c00}, {0x3c00, 0xbc00}},
      {TensorElement::bf16, "add", {0x3f80}, {0x4000}, {0x4040}},
      {TensorElement::bf16, "max", {0x3f80, 0xbf80}, {0x4000, 0x3f80}, {0x4000, 0x3f80}},
  });
}

TEST_CASE("reductions that a type does not have") {
  for (const auto& [element, operation] : {std::pair(TensorElement::s64, "add"),
                                           {TensorElement::f32, "min"},
                                           {TensorElement::f64, "add"},
                                           {TensorElement::u8, "add"},
                                           {TensorElement::s32, "inc"},
                                           {TensorElement::f16, "and"}}) {
    TensorSetup setup = plain_tile(element, 16, 2);
    setup.copy = store_text(setup, "tile", "cp.reduce.async.bulk.tensor", std::string(".") + operation);
    const TensorRun run = run_tensor(setup);
    CHECK(run.failure.find("there is no ." + std::string(operation) + " of elements of type") != std::string::npos);
  }
}

// --- without maps ---

TEST_CASE("bulk reductions in global and in shared memory") {
  struct Row {
    const char* operation;
    uint64_t old, operand, result;
  };
  // Whole words: types of 4 bytes have two of them, of 2 bytes four.
  const Row rows[] = {
      {"add.u32", 0x00000001ffffffff, 0x0000000200000003, 0x0000000300000002},
      {"add.s32", 0x000000017fffffff, 0xffffffff00000001, 0x0000000080000000},
      {"min.s32", 0x0000000180000000, 0xffffffff00000001, 0xffffffff80000000},
      {"max.u32", 0x0000000180000000, 0xffffffff00000001, 0xffffffff80000000},
      {"inc.u32", 0x0000000100000007, 0x0000000700000007, 0x0000000200000000},
      {"dec.u32", 0x0000000000000009, 0x0000000700000007, 0x0000000700000007},
      {"and.b32", 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0x0f000f000f000f00},
      {"or.b64", 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0xfff0fff0fff0fff0},
      {"add.u64", 0x00000000ffffffff, 0x0000000000000001, 0x0000000100000000},
      {"min.s64", 0x8000000000000000, 0x0000000000000001, 0x8000000000000000},
      {"max.f16", 0x3c00bc003c00bc00, 0x40003c0040003c00, 0x40003c0040003c00},
      {"add.noftz.f16", 0x3c0000013c000001, 0x4000000140000001, 0x4200000242000002},
      {"add.noftz.bf16", 0x3f803f803f803f80, 0x4000400040004000, 0x4040404040404040},
      {"add.f32", 0x3f80000000000001, 0x4000000000000001, 0x4040000000000000}, // subnormal numbers count as zero
      {"add.f64", 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
  };
  for (const Row& row : rows)
    for (const bool late : {false, true}) {
      CAPTURE(row.operation);
      TensorSetup setup;
      setup.map.dims = {16};
      setup.map.box = {16};
      setup.map.element_strides = {1};
      setup.tensor = bytes_of_values(std::vector<uint64_t>(8, row.old));
      setup.shared = bytes_of_values(std::vector<uint64_t>(8, row.operand));
      setup.late = late;
      setup.copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group." + std::string(row.operation) +
                   " [%tensor], [%tile+16], 32;\n";
      const TensorRun run = run_tensor(setup);
      REQUIRE_MESSAGE(run.error.empty(), run.error);
      REQUIRE_MESSAGE(run.failure.empty(), run.failure);
      const std::vector<uint64_t> found = values_of<uint64_t>(run.tensor, 8);
      for (size_t i = 0; i < 8; ++i)
        CHECK(found[i] == (i < 4 ? row.result : row.old));
    }
  TensorSetup setup;
  setup.map.dims = {16};
  setup.map.box = {16};
  setup.map.element_strides = {1};
  setup.tensor = random_bytes(64, 1);
  setup.shared = bytes_of_values(std::vector<uint32_t>{1, 2, 3, 4, 10, 20, 30, 40});
  setup.expected_bytes = 16;
  for (const bool late : {false, true}) {
    setup.late = late;
    setup.copy = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%tile], "
                 "[%tile+16], 16, [%bar];\n";
    const TensorRun run = run_tensor(setup);
    REQUIRE_MESSAGE(run.failure.empty(), run.failure);
    CHECK(values_of<uint32_t>(run.shared, 8) == std::vector<uint32_t>{11, 22, 33, 44, 10, 20, 30, 40});
  }
  setup.copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%tensor+8], [%tile], 16;\n";
  CHECK(run_tensor(setup).failure.find("not a multiple of 16") != std::string::npos);
  setup.copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%tensor+64], [%tile], 16;\n";
  CHECK(run_tensor(setup).failure.find("global bulk reduction of 16 bytes") != std::string::npos);
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_copies_test
