// mma.sync with the rows of A and the columns of B each in a group of four lanes: dense, sparse and block-scaled (PTX
// ISA 9.7.14.5, 9.7.14.6 and 9.7.14.3). The order of summation is that of matrix.cpp; of a sparse A that of its stored
// elements. A block-scaled product is the exact product of two elements and their scales.
#include "emulator/semantics/rounding.h"
#include "emulator/semantics/small_floats.h"
#include "emulator/special/matrix_product.h"
#include "emulator/special/matrix_tile.h"
#include "emulator/special/sparse_metadata.h"

namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;

constexpr unsigned most_rows = 16;
constexpr unsigned most_line_bytes = 64; // along k
constexpr unsigned most_stored = 64;     // numbers in a row of A
constexpr unsigned most_k = 128;         // numbers in a column of B; one-bit elements are counted in words

// Rows of A, or columns of B, from the registers from `first` on; `blocks`: of eight lines.
void read_lines(const Collective& all, unsigned first, unsigned registers, unsigned blocks, std::byte* packed) {
  const unsigned line_bytes = registers / blocks * 16;
  for (unsigned reg = 0; reg < registers; ++reg) {
    uint32_t storage[warp_size];
    const uint32_t* lanes = all.listed(first + reg, storage);
    std::byte* to = packed + reg % blocks * 8 * line_bytes + reg / blocks * 16;
    for (unsigned line = 0; line < 8; ++line)
      std::memcpy(to + line * line_bytes, lanes + line * 4, 16);
  }
}

void write_register(const Collective& all, unsigned reg, const uint32_t* values) {
  all.write_listed<uint32_t>(reg, [&](unsigned lane) { return values[lane]; });
}

// C as sums of eight rows for each block.
void read_sums(const Collective& all, unsigned first, const Fragment& c, float* sums) {
  uint32_t storage[2][warp_size];
  for (unsigned block = 0; block < c.rows / 8; ++block) {
    if (c.element_bits == 16)
      load_half_sums(all.listed(first + block, storage[0]), sums + block * 64);
    else
      load_sums(all.listed(first + 2 * block, storage[0]), all.listed(first + 2 * block + 1, storage[1]),
                sums + block * 64);
  }
}

void write_sums(const Collective& all, const Fragment& d, const float* sums) {
  uint32_t out[2][warp_size];
  for (unsigned block = 0; block < d.rows / 8; ++block) {
    if (d.element_bits == 16) {
      store_half_sums(sums + block * 64, out[0]);
      write_register(all, block, out[0]);
      continue;
    }
    store_sums(sums + block * 64, out[0], out[1]);
    for (unsigned i = 0; i < 2; ++i)
      write_register(all, 2 * block + i, out[i]);
  }
}

// A of shape.m rows with their stored elements, B as a tile of k rows.
struct Factors {
  float a[most_rows * most_stored], b[tile_columns * most_k];
  uint8_t columns[most_rows * most_stored]; // of a sparse A

  void multiply(const MatrixProduct& product, float* sums) const {
    if (product.sparse)
      multiply_sparse_tile(a, columns, b, product.shape.m, product.stored(), sums);
    else
      multiply_tile(a, b, product.shape.m, product.shape.k, sums);
  }
};

void decode_numbers(const MatrixProduct& product, ScalarType type, const std::byte* packed, unsigned count,
                    float* numbers) {
  if (product.in_containers)
    decode_containers(type, packed, count, numbers);
  else
    decode_elements(type, packed, count, numbers);
}

void read_factors(const Collective& all, Factors& factors) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  alignas(4) std::byte packed[most_rows * most_line_bytes];
  const unsigned k = product.shape.k;
  read_lines(all, product.d.registers, product.a.registers, product.shape.m / 8, packed);
  decode_numbers(product, product.a_type, packed, product.shape.m * product.stored(), factors.a);
  read_lines(all, product.first_of_b(), product.b.registers, 1, packed);
  float columns[tile_columns * most_k];
  decode_numbers(product, product.b_type, packed, tile_columns * k, columns);
  transpose_columns(columns, k, factors.b);
  if (!product.sparse) return;
  uint32_t storage[warp_size];
  sparse_columns(product.in_containers ? 8 : ir::bit_width(product.a_type), k, all.listed(product.metadata(), storage),
                 product.selector, factors.columns);
}

const MicroOp* multiply_float_groups(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = all.description<MatrixProduct>();
    Factors factors;
    read_factors(all, factors);
    float sums[most_rows * tile_columns];
    read_sums(all, product.first_of_c(), product.c, sums);
    factors.multiply(product, sums);
    write_sums(all, product.d, sums);
  });
}

// --- block scaling ---

constexpr unsigned most_scales = 4;

float decode_scale(ScalarType type, uint32_t code) {
  return type == ScalarType::ue8m0 ? semantics::decode_ue8m0(code & 0xff)
                                   : semantics::decode<semantics::e4m3_format>(code & 0x7f);
}

// scales[line * scale_count + i]: of rows of A (`by_pairs`: two lanes of four have rows eight apart, and the thread
// selector is which two) or of columns of B (each lane of four may have its column's).
void read_scales(const Collective& all, unsigned first, unsigned lines, bool by_pairs, float* scales) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  uint32_t storage[warp_size];
  uint16_t byte_storage[warp_size], thread_storage[warp_size];
  const uint32_t* data = all.listed(first, storage);
  const unsigned byte = all.listed(first + 1, byte_storage)[0];
  const unsigned thread = all.listed(first + 2, thread_storage)[0];
  for (unsigned line = 0; line < lines; ++line) {
    const unsigned lane = line % 8 * 4 + (by_pairs ? thread % 2 * 2 + line / 8 : thread % 4);
    for (unsigned i = 0; i < product.scale_count; ++i)
      scales[line * product.scale_count + i] = decode_scale(product.scale_type, data[lane] >> ((byte + i) % 4 * 8));
  }
}

// a * b * scale + sum, rounded once: in f64 everything but the sum is exact, and rounding to odd leaves that to the
// rounding to f32.
float add_scaled(float a, float b, float a_scale, float b_scale, float sum) {
  const double product = static_cast<double>(a) * b * (static_cast<double>(a_scale) * b_scale);
  return static_cast<float>(semantics::add_odd(product, static_cast<double>(sum)));
}

const MicroOp* multiply_scaled_groups(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = all.description<MatrixProduct>();
    Factors factors;
    read_factors(all, factors);
    float sums[most_rows * tile_columns];
    read_sums(all, product.first_of_c(), product.c, sums);
    float a_scales[most_rows * most_scales], b_scales[tile_columns * most_scales];
    read_scales(all, product.first_of_scales(), most_rows, true, a_scales);
    read_scales(all, product.first_of_scales() + 3, tile_columns, false, b_scales);
    const unsigned stored = product.stored(), count = product.scale_count, in_block = product.shape.k / count;
    for (unsigned row = 0; row < most_rows; ++row)
      for (unsigned i = 0; i < stored; ++i) {
        const unsigned k = product.sparse ? factors.columns[row * stored + i] : i;
        for (unsigned column = 0; column < tile_columns; ++column) {
          float& sum = sums[row * tile_columns + column];
          sum = add_scaled(factors.a[row * stored + i], factors.b[k * tile_columns + column],
                           a_scales[row * count + k / in_block], b_scales[column * count + k / in_block], sum);
        }
      }
    write_sums(all, product.d, sums);
  });
}

// --- whole numbers ---

// Adds whole numbers to C.
void finish_whole_sums(const Collective& all, const float* sums) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  for (unsigned block = 0; block < product.shape.m / 8; ++block) {
    uint32_t out[2][warp_size];
    for (unsigned i = 0; i < 2; ++i) {
      uint32_t storage[warp_size];
      std::memcpy(out[i], all.listed(product.first_of_c() + 2 * block + i, storage), sizeof out[i]);
    }
    add_whole_sums(sums + block * 64, product.saturates, out[0], out[1]);
    for (unsigned i = 0; i < 2; ++i)
      write_register(all, 2 * block + i, out[i]);
  }
}

const MicroOp* multiply_integer_groups(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    Factors factors;
    read_factors(all, factors);
    float sums[most_rows * tile_columns] = {};
    factors.multiply(all.description<MatrixProduct>(), sums);
    finish_whole_sums(all, sums);
  });
}

const MicroOp* multiply_bit_groups(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = all.description<MatrixProduct>();
    uint32_t rows[most_rows * most_line_bytes / 4], columns[tile_columns * most_line_bytes / 4];
    read_lines(all, product.d.registers, product.a.registers, product.shape.m / 8, reinterpret_cast<std::byte*>(rows));
    read_lines(all, product.d.registers + product.a.registers, product.b.registers, 1,
               reinterpret_cast<std::byte*>(columns));
    float counts[most_rows * tile_columns];
    count_bits(rows, columns, product.shape.m, product.shape.k, !product.and_popc, counts);
    finish_whole_sums(all, counts);
  });
}

} // namespace

Handler group_product_handler(const MatrixProduct& product) {
  if (product.scale_count) return &multiply_scaled_groups;
  if (product.a_type == ScalarType::b1) return &multiply_bit_groups;
  return ir::type_kind(product.a_type) == ir::TypeKind::floating ? &multiply_float_groups : &multiply_integer_groups;
}

} // namespace ptxrewrite::emulator
