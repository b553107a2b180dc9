// Matrix pipelines by seed, their operands, maps, and D.
#include "tests/fuzz/pipelines/matrix/matrix_pipeline.h"
#include "tests/fuzz/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace ptxrewrite::fuzz::pipelines {

const std::array<MatrixElement, 7>& matrix_elements() {
  static constexpr std::array<MatrixElement, 7> elements = {{
      {"f16", 2, {0x0000, 0x3c00, 0xbc00, 0x4200}, {0, 1, -1, 3}, "f16", 0},
      {"bf16", 2, {0x0000, 0x3f80, 0xbf80, 0x4040}, {0, 1, -1, 3}, "f16", 1},
      {"tf32", 4, {0x00000000, 0x3f800fff, 0xbf800000, 0x40401234}, {0, 1, -1, 3}, "tf32", 2}, // 13 bits are ignored
      {"e4m3", 1, {0x00, 0x38, 0xb8, 0x44}, {0, 1, -1, 3}, "f8f6f4", 0},
      {"e5m2", 1, {0x00, 0x3c, 0xbc, 0x42}, {0, 1, -1, 3}, "f8f6f4", 1},
      {"u8", 1, {0x00, 0x01, 0xfe, 0x83}, {0, 1, 254, 131}, "i8", 0},
      {"s8", 1, {0x00, 0x01, 0xfe, 0x83}, {0, 1, -2, -125}, "i8", 1},
  }};
  return elements;
}

std::string_view name_of(MatrixFault fault) {
  switch (fault) {
  case MatrixFault::none:
    return "none";
  case MatrixFault::early_consumer:
    return "early consumer";
  case MatrixFault::early_producer:
    return "early producer";
  case MatrixFault::short_count:
    return "short count";
  case MatrixFault::long_count:
    return "long count";
  case MatrixFault::missing_proxy_fence:
    return "missing proxy fence";
  case MatrixFault::missing_fence:
    return "missing fence";
  case MatrixFault::missing_tensor_fence:
    return "missing tensor fence";
  case MatrixFault::early_release:
    return "early release";
  case MatrixFault::early_sums:
    return "early sums";
  case MatrixFault::leak:
    return "leak";
  case MatrixFault::outside:
    return "outside";
  }
  return "";
}

namespace {

// Spans and majors that hardware takes: mma.sync's fragments are read by words along k, and only operands of 16 bits
// may lie with their rows or columns contiguous.
void choose_layout(TileLayout& tile, const MatrixPipeline& made, Random& random) {
  const bool words_along_k =
      made.multiplier == Multiplier::warp || (made.multiplier == Multiplier::warp_group_registers && &tile == &made.a);
  tile.k_major = made.type().bytes != 2 || words_along_k || random.one_in(2);
  for (;;) {
    tile.swizzle_bits = static_cast<uint32_t>(random.below(4));
    if (tile.k_major ? tile.line() <= tile.k_bytes : tile.rows % tile.line_elements() == 0) return;
  }
}

void choose_fill(MatrixPipeline& made, Random& random) {
  if (made.cluster_blocks == 2) {
    const bool halves = made.b.k_major && made.b.lines_wide() == 1 && made.n() % 16 == 0;
    if (!random.one_in(4)) made.b_fill = halves && random.one_in(2) ? TileFill::halves : TileFill::turns;
  }
  if (random.one_in(5)) made.a_fill = TileFill::stores;
}

} // namespace

MatrixPipeline generate_matrix(uint64_t seed) {
  Random random(seed * 104729 + 71);
  MatrixPipeline made;
  made.seed = seed;
  made.multiplier = static_cast<Multiplier>(random.below(4));
  made.element = random.below(10) % matrix_elements().size(); // f16, bf16 and tf32 twice as often
  const MatrixElement& type = made.type();
  const bool is_whole = type.name == "u8" || type.name == "s8", is_small = type.bytes == 1 && !is_whole;
  made.sums = is_whole ? Sums::s32 : Sums::f32;
  if ((type.name == "f16" || (is_small && made.multiplier != Multiplier::warp)) && random.one_in(3))
    made.sums = Sums::f16;
  made.stages = static_cast<uint32_t>(random.between(2, 4));
  made.tiles = static_cast<uint32_t>(random.between(1, 6));
  made.works = static_cast<uint32_t>(random.between(1, 2));
  made.clusters = static_cast<uint32_t>(random.between(1, 2));
  made.cluster_blocks = random.one_in(3) ? 2 : 1;
  made.a.element_bytes = made.b.element_bytes = type.bytes;
  made.a.k_bytes = made.b.k_bytes = 32u << random.below(3);
  switch (made.multiplier) {
  case Multiplier::warp_group:
  case Multiplier::warp_group_registers:
    made.groups = static_cast<uint32_t>(random.between(1, 2));
    made.a.rows = 64;
    made.b.rows = 8 * static_cast<uint32_t>(random.between(1, 6));
    if (type.name == "s8" || type.name == "u8") made.b.rows = std::min(made.b.rows & ~15u, 32u) + 16; // n 16, 32, 48
    break;
  case Multiplier::warp:
    made.groups = static_cast<uint32_t>(random.between(1, 3));
    made.a.rows = 16 * made.groups;
    made.b.rows = 8 * static_cast<uint32_t>(random.between(1, 3));
    break;
  case Multiplier::tensor_memory:
    made.a.rows = 128;
    made.b.rows = 16 * static_cast<uint32_t>(random.between(1, 4));
    made.accumulators = static_cast<uint32_t>(random.between(1, 2));
    break;
  }
  choose_layout(made.a, made, random);
  choose_layout(made.b, made, random);
  choose_fill(made, random);
  made.result = static_cast<ResultPath>(random.below(3));
  made.registers_move = made.is_warp_group() && random.one_in(2);
  made.counts_by_division = random.one_in(3);
  made.tests = random.one_in(3);
  made.elects = random.one_in(3);
  made.expects_apart = random.one_in(4);
  made.keeps_one_open = made.multiplier == Multiplier::warp_group && random.one_in(2);
  made.signs = made.is_warp_group() && type.bytes == 2 && random.one_in(3);
  return made;
}

namespace {

struct Matrix {
  std::vector<uint32_t> words;
  std::vector<int32_t> values; // by row (of A) or column (of B), then k
};

// `rows` in all, `depth` elements along k.
Matrix random_matrix(const MatrixPipeline& pipeline, const TileLayout& tile, uint32_t rows, uint32_t depth,
                     Random& random) {
  const MatrixElement& type = pipeline.type();
  Matrix made;
  made.words.resize(size_t(rows) * depth * type.bytes / 4);
  made.values.resize(size_t(rows) * depth);
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t k = 0; k < depth; ++k) {
      const size_t which = random.below(pipeline.sums == Sums::f16 ? 3 : 4);
      made.values[size_t(row) * depth + k] = type.values[which];
      const size_t at = tile.k_major ? size_t(row) * depth + k : size_t(k) * rows + row;
      std::memcpy(reinterpret_cast<std::byte*>(made.words.data()) + at * type.bytes, &type.codes[which], type.bytes);
    }
  return made;
}

ir::TensorElement map_element(const MatrixElement& type) {
  if (type.name == "f16") return ir::TensorElement::f16;
  if (type.name == "bf16") return ir::TensorElement::bf16;
  return type.bytes == 4 ? ir::TensorElement::u32 : ir::TensorElement::u8; // copies as tf32 round
}

// Dimensions: within a line, lines that follow each other in a stage, the next lines.
Parameter map_of_tile(const MatrixPipeline& pipeline, const TileLayout& tile, size_t buffer, uint32_t rows,
                      uint32_t depth, uint32_t lines) {
  Parameter made{.kind = Parameter::Kind::map, .buffer = buffer};
  made.map.element = map_element(pipeline.type());
  made.map.swizzle = std::array{ir::SwizzleSpan::none, ir::SwizzleSpan::bytes32, ir::SwizzleSpan::bytes64,
                                ir::SwizzleSpan::bytes128}[tile.swizzle_bits];
  made.map.rank = 3;
  const uint32_t along = tile.k_major ? depth : rows, across = tile.k_major ? rows : depth;
  made.map.dims = {tile.line_elements(), across, along / tile.line_elements()};
  made.map.strides = {0, uint64_t(along) * tile.element_bytes, tile.line()};
  made.map.box = {tile.line_elements(), lines, tile.lines_wide()};
  made.map.element_strides = {1, 1, 1};
  return made;
}

Parameter map_of_result(const MatrixPipeline& pipeline, size_t buffer) {
  Parameter made{.kind = Parameter::Kind::map, .buffer = buffer};
  made.map.element = pipeline.sums == Sums::f16   ? ir::TensorElement::f16
                     : pipeline.sums == Sums::f32 ? ir::TensorElement::f32
                                                  : ir::TensorElement::s32;
  const uint32_t rows = pipeline.block_rows();
  made.map.rank = 2;
  made.map.dims = {pipeline.n(), uint64_t(pipeline.results()) * rows};
  made.map.strides = {0, pipeline.row_bytes()};
  made.map.box = {pipeline.n(), pipeline.is_warp_group() ? 64 : rows};
  made.map.element_strides = {1, 1};
  return made;
}

uint16_t half_of(int32_t value) { // below 2048, exact
  if (value == 0) return 0;
  const auto magnitude = static_cast<uint32_t>(std::abs(value));
  const auto exponent = static_cast<uint32_t>(std::bit_width(magnitude)) - 1;
  return static_cast<uint16_t>((value < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 |
                               ((magnitude << (10 - exponent)) & 0x3ffu));
}

void store_sum(std::vector<uint32_t>& words, Sums sums, size_t at, int64_t value) {
  switch (sums) {
  case Sums::f32:
    words[at] = value == 0 ? 0 : std::bit_cast<uint32_t>(static_cast<float>(value));
    return;
  case Sums::f16:
    words[at / 2] |= uint32_t(half_of(static_cast<int32_t>(value))) << (at % 2 * 16);
    return;
  case Sums::s32:
    words[at] = static_cast<uint32_t>(value);
    return;
  }
}

} // namespace

Case case_of(const MatrixPipeline& pipeline) {
  Case made;
  made.text = print(pipeline);
  made.blocks = pipeline.blocks();
  made.threads = pipeline.threads();
  if (pipeline.ring_is_dynamic()) made.shared_bytes = pipeline.ring_bytes();
  Random random(pipeline.seed ^ 0xa5eed);
  const uint32_t depth = pipeline.tiles * pipeline.a.k(), rows = pipeline.results() * pipeline.block_rows();
  const uint32_t of_b = pipeline.shares_b() ? pipeline.cluster_blocks : 1; // blocks that have columns of B in common
  const uint32_t columns = pipeline.results() / of_b * pipeline.n();
  const Matrix a = random_matrix(pipeline, pipeline.a, rows, depth, random);
  const Matrix b = random_matrix(pipeline, pipeline.b, columns, depth, random);
  const size_t sums = size_t(rows) * pipeline.n();
  std::vector<uint32_t> before(sums * pipeline.sum_bytes() / 4);
  made.expected = before;
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < pipeline.n(); ++column) {
      const size_t at = row * pipeline.n() + column, of = row / pipeline.block_rows() / of_b * pipeline.n() + column;
      int64_t sum = 0;
      for (size_t k = 0; k < depth; ++k)
        sum += int64_t(a.values[row * depth + k]) * b.values[of * depth + k];
      if (pipeline.signs) sum = -sum;
      if (pipeline.result == ResultPath::tensor_reduction) {
        const auto there = static_cast<int64_t>(random.below(9));
        store_sum(before, pipeline.sums, at, there);
        sum += there;
      }
      store_sum(made.expected, pipeline.sums, at, sum);
    }
  made.buffers = {a.words, b.words, before};
  const uint32_t lines_of_b = pipeline.b.lines_deep() / (pipeline.b_fill == TileFill::halves ? 2 : 1);
  made.parameters = {map_of_tile(pipeline, pipeline.a, 0, rows, depth, pipeline.a.lines_deep()),
                     map_of_tile(pipeline, pipeline.b, 1, columns, depth, lines_of_b),
                     map_of_result(pipeline, 2),
                     {.kind = Parameter::Kind::address, .buffer = 0},
                     {.kind = Parameter::Kind::address, .buffer = 2},
                     {.number = pipeline.tiles},
                     {.number = pipeline.works}};
  return made;
}

} // namespace ptxrewrite::fuzz::pipelines
