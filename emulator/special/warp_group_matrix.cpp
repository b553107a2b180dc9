// wgmma: matrix products that the four warps of a warp group issue together and that take place later (PTX ISA 9.7.15).
// Warp i of the group has rows 16 i to 16 i + 15 of A and D. The arithmetic is that of mma (matrix.cpp).
#include "emulator/core/address.h"
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/special/matrix_product.h"
#include "emulator/special/shared_matrix.h"
#include "emulator/special/sparse_metadata.h"
#include "emulator/special/warp_group.h"
#include "emulator/tiles/aligned_sums.h"
#include "emulator/tiles/matrix_tile.h"
#include "emulator/tiles/wide_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;

constexpr unsigned warp_rows = 16;   // of A and D
constexpr unsigned row_bytes = 32;   // bytes of A along k, and of B: every type's k gives this size
constexpr unsigned most_k = 64;      // 8-bit elements with a sparse A
constexpr unsigned most_stored = 32; // stored 8-bit elements in a row of A
constexpr unsigned bit_words = 8;    // words of a row of one-bit elements
constexpr unsigned a_registers = 4;  // for a warp's rows

enum class Sums : uint8_t { f32, f16, integer, bits };

// The statically known part of an instruction. Registers are listed D, then A if it is in registers.
struct Product {
  unsigned n = 0, k = 0;
  bool sparse = false;   // A is sparse: its metadata is the last register
  unsigned selector = 0; // selects lanes with metadata
  ScalarType a_type = ScalarType::none, b_type = ScalarType::none;
  Sums sums = Sums::f32;
  bool saturates = false;
  bool a_in_registers = false;
  bool a_rows_major = false, b_columns_major = false; // MN-major
  bool negates_a = false, negates_b = false;
  WideMethod wide; // for 16 rows of A and eight columns of B, if there is one
  std::optional<AlignedSums> hopper_sums;
  unsigned registers_of_d() const { return sums == Sums::f16 ? n / 4 : n / 2; }
  unsigned registers_of_a() const { return a_in_registers ? a_registers : 0; }
  unsigned stored() const { return sparse ? k / 2 : k; } // elements in a row of A
  unsigned column_bytes() const { return sparse ? 2 * row_bytes : row_bytes; }
};

// One warp's part of a product during its execution.
struct WarpPart {
  Block& block;
  const Warp& warp;
  const Product& product;
  const ProductPart& issued;

  const uint32_t* lanes(unsigned index) const {
    const LaneRef ref = issued.list[index];
    const std::byte* base = ref.base() == LaneBase::registers ? issued.registers : warp.base[ref.base_index()];
    return reinterpret_cast<const uint32_t*>(base + ref.offset());
  }
  uint32_t* target_lanes(unsigned index) const {
    return reinterpret_cast<uint32_t*>(issued.registers + issued.list[index].offset());
  }
  void write(unsigned index, const uint32_t* values) const {
    uint32_t* target = target_lanes(index);
    for (unsigned lane = 0; lane < warp_size; ++lane)
      target[lane] = (issued.lanes >> lane) & 1 ? values[lane] : target[lane];
    if (!block.checker) return;
    FencedRegisters& fenced = static_cast<ProductQueues&>(*block.warp_groups).fenced(warp);
    if (fenced.place == issued.registers)
      std::memcpy(fenced.bytes.data() + issued.list[index].offset(), target, warp_size * sizeof *target);
  }
};

// --- operands ---

// Returns the bytes of a chunk in shared memory, which was checked when the product was issued.
const std::byte* chunk(const Block& block, const SharedMatrix& matrix, bool mn_major, unsigned row, unsigned number) {
  return block.shared + chunk_address(matrix, mn_major, row, number);
}

// Transposes 16-bit elements of `rows` rows and k columns, which are stored as lines along the rows.
void transpose_halves(const uint16_t* lines, unsigned rows, unsigned k, std::byte* packed) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned i = 0; i < k; ++i)
      std::memcpy(packed + (row * k + i) * sizeof(uint16_t), lines + i * rows + row, sizeof(uint16_t));
}

// Reads the warp's rows of A, row_bytes each.
void read_rows(const WarpPart& part, std::byte* packed) {
  const Product& product = part.product;
  if (product.a_in_registers) {
    for (unsigned number = 0; number < a_registers; ++number) {
      const uint32_t* lanes = part.lanes(product.registers_of_d() + number);
      for (unsigned row = 0; row < 8; ++row)
        std::memcpy(packed + (row + number % 2 * 8) * row_bytes + number / 2 * chunk_bytes, lanes + 4 * row,
                    chunk_bytes);
    }
    return;
  }
  const SharedMatrix matrix = shared_matrix(part.issued.descriptors[0]);
  const unsigned first_row = part.warp.index % warps_of_group * warp_rows;
  if (!product.a_rows_major) {
    for (unsigned row = 0; row < warp_rows; ++row)
      for (unsigned i = 0; i < row_bytes / chunk_bytes; ++i)
        std::memcpy(packed + row * row_bytes + i * chunk_bytes, chunk(part.block, matrix, false, first_row + row, i),
                    chunk_bytes);
    return;
  }
  const unsigned stored = product.stored(); // 16
  uint16_t lines[16 * warp_rows];
  for (unsigned i = 0; i < stored; ++i)
    for (unsigned half = 0; half < 2; ++half)
      std::memcpy(lines + i * warp_rows + half * 8, chunk(part.block, matrix, true, i, first_row / 8 + half),
                  chunk_bytes);
  transpose_halves(lines, warp_rows, stored, packed);
}

// Reads eight columns of B, column_bytes() each, or with b_columns_major k rows of 16 bytes.
void read_columns(const Block& block, const Product& product, const SharedMatrix& matrix, unsigned tile,
                  std::byte* packed) {
  if (product.b_columns_major) {
    for (unsigned i = 0; i < product.k; ++i)
      std::memcpy(packed + i * chunk_bytes, chunk(block, matrix, true, i, tile), chunk_bytes);
    return;
  }
  for (unsigned column = 0; column < tile_columns; ++column)
    for (unsigned i = 0; i < product.column_bytes() / chunk_bytes; ++i)
      std::memcpy(packed + column * product.column_bytes() + i * chunk_bytes,
                  chunk(block, matrix, false, tile * tile_columns + column, i), chunk_bytes);
}

void negate(float* numbers, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    numbers[i] = -numbers[i];
}

void decode_rows(const Product& product, const std::byte* packed, float* a) {
  decode_elements(product.a_type, packed, warp_rows * product.stored(), a);
  if (product.negates_a) negate(a, warp_rows * product.stored());
}

void decode_columns(const Product& product, const std::byte* packed, float* b) {
  const unsigned count = product.k * tile_columns;
  if (product.b_columns_major) {
    decode_elements(product.b_type, packed, count, b);
  } else {
    float columns[most_k * tile_columns];
    decode_elements(product.b_type, packed, count, columns);
    transpose_columns(columns, product.k, b);
  }
  if (product.negates_b) negate(b, count);
}

// --- sums: registers of tile t are those of eight columns, two (f16) or four ---

// One warp's rows of A as numbers, and their columns in a sparse matrix.
struct Rows {
  float numbers[warp_rows * most_stored];
  uint8_t columns[warp_rows * most_stored];
};

const AlignedSums* aligned_sums(const Block& block, const Product& product) {
  return selected_sums(*block.launch->request, product.hopper_sums);
}

void multiply(const WarpPart& part, const Rows& a, const float* b, float* sums) {
  const Product& product = part.product;
  if (const AlignedSums* law = aligned_sums(part.block, product))
    multiply_tile(*law, a.numbers, b, warp_rows, product.k, sums);
  else if (product.sparse)
    multiply_sparse_tile(a.numbers, a.columns, b, warp_rows, product.stored(), sums);
  else
    multiply_tile(a.numbers, b, warp_rows, product.k, sums);
}

void add_floats(const WarpPart& part, unsigned tile, const Rows& a, const float* b) {
  float sums[warp_rows * tile_columns] = {};
  const unsigned half = warp_rows * tile_columns / 2;
  const unsigned first = tile * 4;
  if (part.issued.adds) {
    load_sums(part.lanes(first), part.lanes(first + 1), sums);
    load_sums(part.lanes(first + 2), part.lanes(first + 3), sums + half);
  }
  multiply(part, a, b, sums);
  uint32_t out[4][warp_size];
  store_sums(sums, out[0], out[1]);
  store_sums(sums + half, out[2], out[3]);
  for (unsigned i = 0; i < 4; ++i)
    part.write(first + i, out[i]);
}

void add_halves(const WarpPart& part, unsigned tile, const Rows& a, const float* b) {
  float sums[warp_rows * tile_columns] = {};
  for (unsigned i = 0; i < 2 && part.issued.adds; ++i)
    load_half_sums(part.lanes(tile * 2 + i), sums + i * 64);
  multiply(part, a, b, sums);
  for (unsigned i = 0; i < 2; ++i) {
    uint32_t out[warp_size];
    store_half_sums(sums + i * 64, out);
    part.write(tile * 2 + i, out);
  }
}

// Adds integer `sums` to the registers, or replaces the registers by them.
void add_integers(const WarpPart& part, unsigned tile, const float* sums) {
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned first = tile * 4 + half * 2;
    uint32_t out[2][warp_size] = {};
    for (unsigned i = 0; i < 2 && part.issued.adds; ++i)
      std::memcpy(out[i], part.lanes(first + i), sizeof out[i]);
    add_whole_sums(sums + half * 64, part.product.saturates, out[0], out[1]);
    for (unsigned i = 0; i < 2; ++i)
      part.write(first + i, out[i]);
  }
}

void multiply_integers(const WarpPart& part, unsigned tile, const Rows& a, const float* b) {
  float sums[warp_rows * tile_columns] = {};
  multiply(part, a, b, sums);
  add_integers(part, tile, sums);
}

void multiply_bits(const WarpPart& part, unsigned tile, const uint32_t* rows, const uint32_t* columns) {
  float sums[warp_rows * tile_columns];
  count_bits(rows, columns, warp_rows, bit_words, false, sums);
  add_integers(part, tile, sums);
}

// --- by the methods of wide_product.h, which take operands as mma has them in registers ---

constexpr unsigned most_b_registers = 4, sums_of_tile = 4;
using RegisterLanes = uint32_t[warp_size];

// The bits of a word that are the signs of its elements.
uint32_t sign_bits(ScalarType type) {
  switch (ir::bit_width(type)) {
  case 8:
    return 0x80808080;
  case 16:
    return 0x80008000;
  default:
    return 0x80000000;
  }
}

void flip(RegisterLanes* registers, unsigned count, uint32_t bits) {
  for (unsigned i = 0; i < count; ++i)
    for (uint32_t& word : registers[i])
      word ^= bits;
}

// One warp's rows of A.
void read_a_registers(const WarpPart& part, RegisterLanes* a) {
  const Product& product = part.product;
  alignas(4) std::byte rows[warp_rows * row_bytes];
  read_rows(part, rows);
  for (unsigned number = 0; number < a_registers; ++number)
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(a[number] + 4 * row, rows + (row + number % 2 * 8) * row_bytes + number / 2 * chunk_bytes,
                  chunk_bytes);
  if (product.negates_a) flip(a, a_registers, sign_bits(product.a_type));
}

// The tiles of eight columns of B.
class TilesOfB {
public:
  TilesOfB(const Block& block, const Product& product, const SharedMatrix& matrix)
      : block_(block), product_(product), matrix_(matrix), registers_(product.column_bytes() / chunk_bytes),
        lie_alike_(!product.b_columns_major &&
                   (matrix.swizzle_bytes == 0 || matrix.stride % (tile_columns * matrix.swizzle_bytes) == 0)) {
    for (unsigned i = 0; lie_alike_ && i < registers_ * tile_columns; ++i)
      of_first_tile_[i] = address(0, i / tile_columns, i % tile_columns);
  }

  void read(unsigned tile, RegisterLanes* b) const {
    for (unsigned i = 0; i < registers_; ++i) {
      for (unsigned line = 0; line < tile_columns; ++line) {
        const uint32_t from =
            lie_alike_ ? of_first_tile_[i * tile_columns + line] + tile * matrix_.stride : address(tile, i, line);
        std::memcpy(b[i] + 4 * line, block_.shared + from, chunk_bytes);
      }
      if (product_.b_columns_major) transpose_half_matrix(b[i]);
    }
    if (product_.negates_b) flip(b, registers_, sign_bits(product_.b_type));
  }

private:
  // Of line `line` of register `i`.
  uint32_t address(unsigned tile, unsigned i, unsigned line) const {
    return product_.b_columns_major ? chunk_address(matrix_, true, i * tile_columns + line, tile)
                                    : chunk_address(matrix_, false, tile * tile_columns + line, i);
  }

  const Block& block_;
  const Product& product_;
  const SharedMatrix& matrix_;
  unsigned registers_;
  bool lie_alike_; // a tile's chunks are those of the first one, moved: a stride does not change the swizzle
  uint32_t of_first_tile_[most_b_registers * tile_columns];
};

// The registers of one tile of C and D. Results are written in place, or else to `out` first.
struct TileOfSums {
  TileOfSums(const WarpPart& of_warp, unsigned tile)
      : part(of_warp), registers(part.product.sums == Sums::f16 ? sums_of_tile / 2 : sums_of_tile),
        first(tile * registers), writes_in_place(part.issued.lanes == full_mask && !part.block.checker) {
    static constexpr RegisterLanes zeros = {};
    for (unsigned i = 0; i < registers; ++i) {
      c[i] = part.issued.adds ? part.lanes(first + i) : zeros;
      d[i] = writes_in_place ? part.target_lanes(first + i) : out[i];
    }
  }
  void finish() const {
    for (unsigned i = 0; i < registers && !writes_in_place; ++i)
      part.write(first + i, out[i]);
  }

  const WarpPart& part;
  unsigned registers, first;
  bool writes_in_place;
  RegisterLanes out[sums_of_tile];
  const uint32_t* c[sums_of_tile];
  uint32_t* d[sums_of_tile];
};

// The starts of registers.
template <size_t count> std::array<const uint32_t*, count> starts_of(const RegisterLanes (&registers)[count]) {
  std::array<const uint32_t*, count> starts;
  for (size_t i = 0; i < count; ++i)
    starts[i] = registers[i];
  return starts;
}

// The metadata of a sparse A.
const uint32_t* metadata_of(const WarpPart& part) {
  const Product& product = part.product;
  return product.sparse ? part.lanes(product.registers_of_d() + product.registers_of_a()) : nullptr;
}

void multiply_wide_tile(const WarpPart& part, unsigned tile, const RegisterLanes (&a)[a_registers],
                        const RegisterLanes (&b)[most_b_registers]) {
  const Product& product = part.product;
  const TileOfSums sums(part, tile);
  product.wide.run(product.wide,
                   {sums.d, starts_of(a).data(), starts_of(b).data(), sums.c, metadata_of(part), product.selector});
  sums.finish();
}

// A is decoded once for all tiles of eight columns, and each of these once for all warps.
void carry_out_wide_group(Block& block, unsigned first_warp, const GroupProduct& issued) {
  const Product& product = *static_cast<const Product*>(issued[0].description);
  const WideGroup& group = *product.wide.group;
  const auto part = [&](unsigned warp) {
    return WarpPart{block, block.warps[first_warp + warp], product, issued[warp]};
  };
  alignas(64) float a[warps_of_group][warp_rows * most_k];
  for (unsigned warp = 0; warp < warps_of_group; ++warp) {
    RegisterLanes registers[a_registers];
    read_a_registers(part(warp), registers);
    group.decode_a(product.wide,
                   {nullptr, starts_of(registers).data(), nullptr, nullptr, metadata_of(part(warp)), product.selector},
                   a[warp]);
  }
  const SharedMatrix b_matrix = shared_matrix(issued[0].descriptors[1]);
  const TilesOfB tiles(block, product, b_matrix);
  for (unsigned tile = 0; tile < product.n / tile_columns; ++tile) {
    RegisterLanes registers[most_b_registers];
    alignas(64) float b[most_k * tile_columns];
    tiles.read(tile, registers);
    group.decode_b(product.wide, starts_of(registers).data(), b);
    for (unsigned warp = 0; warp < warps_of_group; ++warp) {
      const WarpPart of_warp = part(warp);
      const TileOfSums sums(of_warp, tile);
      group.multiply(a[warp], b, sums.c, sums.d);
      sums.finish();
    }
  }
}

void carry_out_wide_product(Block& block, unsigned first_warp, const GroupProduct& issued) {
  const Product& product = *static_cast<const Product*>(issued[0].description);
  if (product.wide.group) return carry_out_wide_group(block, first_warp, issued);
  const auto part = [&](unsigned warp) {
    return WarpPart{block, block.warps[first_warp + warp], product, issued[warp]};
  };
  RegisterLanes a[warps_of_group][a_registers];
  for (unsigned warp = 0; warp < warps_of_group; ++warp)
    read_a_registers(part(warp), a[warp]);
  const SharedMatrix b_matrix = shared_matrix(issued[0].descriptors[1]);
  const TilesOfB tiles(block, product, b_matrix);
  for (unsigned tile = 0; tile < product.n / tile_columns; ++tile) {
    RegisterLanes b[most_b_registers];
    tiles.read(tile, b);
    for (unsigned warp = 0; warp < warps_of_group; ++warp)
      multiply_wide_tile(part(warp), tile, a[warp], b);
  }
}

// --- the product ---

void carry_out_product(Block& block, unsigned first_warp, const GroupProduct& issued) {
  const Product& product = *static_cast<const Product*>(issued[0].description);
  if (product.wide && !aligned_sums(block, product)) return carry_out_wide_product(block, first_warp, issued);
  const auto part = [&](unsigned warp) {
    return WarpPart{block, block.warps[first_warp + warp], product, issued[warp]};
  };
  alignas(4) std::byte rows[warps_of_group][warp_rows * row_bytes];
  Rows a[warps_of_group];
  for (unsigned warp = 0; warp < warps_of_group; ++warp) {
    read_rows(part(warp), rows[warp]);
    if (product.sums != Sums::bits) decode_rows(product, rows[warp], a[warp].numbers);
    if (product.sparse)
      sparse_columns(ir::bit_width(product.a_type), product.k,
                     part(warp).lanes(product.registers_of_d() + product.registers_of_a()), product.selector,
                     a[warp].columns);
  }
  const SharedMatrix b_matrix = shared_matrix(issued[0].descriptors[1]);
  for (unsigned tile = 0; tile < product.n / tile_columns; ++tile) {
    alignas(4) std::byte columns[tile_columns * 2 * row_bytes];
    float b[most_k * tile_columns];
    read_columns(block, product, b_matrix, tile, columns);
    if (product.sums != Sums::bits) decode_columns(product, columns, b);
    for (unsigned warp = 0; warp < warps_of_group; ++warp) {
      switch (product.sums) {
      case Sums::f32:
        add_floats(part(warp), tile, a[warp], b);
        break;
      case Sums::f16:
        add_halves(part(warp), tile, a[warp], b);
        break;
      case Sums::integer:
        multiply_integers(part(warp), tile, a[warp], b);
        break;
      case Sums::bits:
        multiply_bits(part(warp), tile, reinterpret_cast<const uint32_t*>(rows[warp]),
                      reinterpret_cast<const uint32_t*>(columns));
        break;
      }
    }
  }
}

// --- issue ---

ProductQueues& warp_groups(Block& block) {
  if (!block.warp_groups) block.warp_groups = std::make_unique<ProductQueues>(block, &carry_out_product);
  return static_cast<ProductQueues&>(*block.warp_groups);
}

// MicroOp::source: descriptor of A or invalid, descriptor of B, predicate.
constexpr unsigned source_a = 0, source_b = 1, source_adds = 2;

// Are `lines` lines of `chunks` chunks each inside shared memory? If not, the block has failed.
bool is_in_shared(Warp& warp, const MicroOp& op, char name, const SharedMatrix& matrix, bool mn_major,
                  std::pair<unsigned, unsigned> lines, std::pair<unsigned, unsigned> chunks) {
  Block& block = *warp.block;
  if (!block.watch_memory && end_of_chunks(matrix, mn_major, lines.second, chunks.second) <= block.shared_bytes)
    return true;
  const uint32_t number = warp_groups(block).next_number(warp);
  uint64_t addresses[warp_size];
  unsigned count = 0;
  const auto watch = [&] {
    const uint32_t mask = warp.mask;
    warp.mask = count == warp_size ? full_mask : (1u << count) - 1;
    std::fill(addresses + count, addresses + warp_size, addresses[0]);
    const bool good = watch_product_reads(warp, op, addresses, chunk_bytes, number);
    warp.mask = mask;
    count = 0;
    return good;
  };
  for (unsigned line = lines.first; line < lines.second; ++line)
    for (unsigned i = chunks.first; i < chunks.second; ++i) {
      const uint64_t address = chunk_address(matrix, mn_major, line, i);
      if (!contains(0, block.shared_bytes, address, chunk_bytes)) {
        block.fail(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)),
                   fmt::format("the descriptor of matrix {} describes 16 bytes at shared {:#x}, of {} bytes of shared "
                               "memory",
                               name, address, block.shared_bytes),
                   FaultKind::illegal_address);
        return false;
      }
      addresses[count++] = address;
      if (block.watch_memory && count == warp_size && !watch()) return false;
      count %= warp_size;
    }
  return !block.watch_memory || count == 0 || watch();
}

bool operands_are_in_shared(Warp& warp, const MicroOp& op, const Product& product, const ProductPart& part) {
  const unsigned chunks = row_bytes / chunk_bytes;
  if (!product.a_in_registers) {
    const unsigned first = warp.index % warps_of_group * warp_rows;
    const SharedMatrix a = shared_matrix(part.descriptors[0]);
    const bool good = product.a_rows_major
                          ? is_in_shared(warp, op, 'A', a, true, {0, product.stored()}, {first / 8, first / 8 + 2})
                          : is_in_shared(warp, op, 'A', a, false, {first, first + warp_rows}, {0, chunks});
    if (!good) return false;
  }
  const SharedMatrix b = shared_matrix(part.descriptors[1]);
  return product.b_columns_major
             ? is_in_shared(warp, op, 'B', b, true, {0, product.k}, {0, product.n / tile_columns})
             : is_in_shared(warp, op, 'B', b, false, {0, product.n}, {0, product.column_bytes() / chunk_bytes});
}

// Do all lanes that execute the instruction together come from one place? If not, the block has failed.
bool is_one_instruction(const Collective& all) {
  Warp& warp = all.warp();
  for (const GatheredLanes& other : warp.gathered)
    if (other.op != &all.op() || other.activation != warp.activation) {
      warp.block->fail(warp, all.op(), static_cast<unsigned>(std::countr_zero(other.mask)),
                       "lanes of one warp execute different instructions of the warp group");
      return false;
    }
  return true;
}

// Reads the descriptor, which must be the same in all lanes. Returns false if the block has failed.
bool read_descriptor(const Collective& all, unsigned source, uint64_t& descriptor) {
  const uint64_t* values = all.warp().lanes<uint64_t>(all.op().source[source]);
  descriptor = values[std::countr_zero(all.lanes())];
  for (uint32_t lanes = all.lanes(); lanes; lanes &= lanes - 1)
    if (const auto lane = static_cast<unsigned>(std::countr_zero(lanes)); values[lane] != descriptor) {
      all.warp().block->fail(all.warp(), all.op(), lane, "a matrix descriptor that differs between lanes of the warp");
      return false;
    }
  return true;
}

// --check: is there a wgmma.fence between the product and other accesses to its registers?
void check_registers(Warp& warp, const MicroOp& op, const Product& product, const ProductPart& part) {
  MemoryChecker* checker = warp.block->checker.get();
  if (!checker) return;
  const FencedRegisters& fenced = warp_groups(*warp.block).fenced(warp);
  if (!fenced.place)
    return checker->missing_fence(warp, op, "no wgmma.fence has been executed before this matrix product");
  const unsigned count = product.registers_of_d() + product.registers_of_a();
  for (unsigned i = 0; i < count; ++i) {
    const LaneRef ref = part.list[i];
    if (ref.base() != LaneBase::registers || fenced.place != part.registers) continue;
    if (std::memcmp(fenced.bytes.data() + ref.offset(), part.registers + ref.offset(), warp_size * 4) == 0) continue;
    return checker->missing_fence(warp, op,
                                  fmt::format("register {} of {} has been written since the last wgmma.fence",
                                              i < product.registers_of_d() ? i : i - product.registers_of_d(),
                                              i < product.registers_of_d() ? 'D' : 'A'));
  }
}

const MicroOp* issue_product(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    Warp& warp = all.warp();
    const MicroOp& op = all.op();
    const Product& product = all.description<Product>();
    if (!is_one_instruction(all)) return;
    ProductPart part;
    part.op = &op;
    part.description = &product;
    part.list = warp.activation->function->lists.data() + op.extra;
    part.registers = warp.activation->registers;
    part.lanes = all.lanes();
    part.adds = (warp.predicate(op.source[source_adds]) & all.lanes()) != 0;
    if (op.source[source_a] && !read_descriptor(all, source_a, part.descriptors[0])) return;
    if (!read_descriptor(all, source_b, part.descriptors[1])) return;
    if (!operands_are_in_shared(warp, op, product, part)) return;
    check_registers(warp, op, product, part);
    warp.block->take_fuel(product.n * product.k / 256);
    if (const char* wrong = warp_groups(*warp.block).issue(warp, part))
      warp.block->fail(warp, op, static_cast<unsigned>(std::countr_zero(all.lanes())), wrong);
  });
}

const MicroOp* close_product_group(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {},
                          [](const Collective& all) { warp_groups(*all.warp().block).close_group(all.warp()); });
}

// op.immediate: number of groups that may stay open. Lanes in different splits wait one after another.
const MicroOp* wait_for_products(Warp& warp, const MicroOp& op) {
  const std::optional<uint32_t> done = warp_groups(*warp.block).wait(warp, static_cast<uint64_t>(op.immediate));
  if (!done) return warp.park(&op, SplitState::at_warp_group, 0);
  if (warp.block->checker) warp.block->checker->products_done(warp, *done);
  return &op + 1;
}

// Registers are always up to date; --check records their contents here.
const MicroOp* order_registers(Warp& warp, const MicroOp& op) {
  if (warp.block->checker) {
    const Activation& activation = *warp.activation;
    warp_groups(*warp.block).fenced(warp) = {
        activation.registers, {activation.registers, activation.registers + activation.function->frame_bytes}};
  }
  return &op + 1;
}

// --- decoding ---

Sums sums_of(const ir::Form& form) {
  const ScalarType d = form.types[0];
  if (form.types[1] == ScalarType::b1) return Sums::bits;
  if (d == ScalarType::s32) return Sums::integer;
  return d == ScalarType::f16 ? Sums::f16 : Sums::f32;
}

// Registers of D are read and written after the instruction has finished: they must have 32 bits.
std::optional<LaneRef> sum_register(Decoder& decoder, const ir::Operand& operand) {
  const LaneRef read = decoder.source(operand, lanes_of_bits(32));
  const LaneRef written = decoder.destination(operand, lanes_of_bits(32));
  if (read == written) return written;
  decoder.unsupported("a warp group's matrix product in registers that have not 32 bits");
  return std::nullopt;
}

WideMethod method_of(const Product& product) {
  if (product.sums == Sums::bits) return {};
  WideForm form;
  form.m = warp_rows;
  form.n = tile_columns;
  form.k = product.k;
  form.a_type = product.a_type;
  form.b_type = product.b_type;
  form.has_half_sums = product.sums == Sums::f16;
  form.saturates = product.saturates;
  form.sparse = product.sparse;
  return wide_method(form);
}

void decode_product(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const ir::MatrixShape shape = ir::matrix_shape(form);
  Product product;
  product.n = shape.n;
  product.k = shape.k;
  product.a_type = form.types[1];
  product.b_type = form.types[2];
  product.sums = sums_of(form);
  product.saturates = form.has(ir::Modifier::satfinite);
  const std::span<const ir::Operand> operands = decoder.operands();
  const auto operand = [&](unsigned index) { return operands[decoder.top_level(index)]; };
  product.a_in_registers = operand(1).is(ir::OperandKind::vector);
  product.sparse = form.has(ir::Modifier::sp);
  if (product.sparse) product.selector = static_cast<unsigned>(operand(4).immediate) & 3;
  // After metadata, selector and predicate: scales of A and B, then layouts of those that are in shared memory.
  const unsigned predicate = product.sparse ? 5 : 3;
  const unsigned behind = decoder.top_level_count() - predicate - 1;
  product.negates_a = behind > 0 && operand(predicate + 1).immediate < 0;
  product.negates_b = behind > 1 && operand(predicate + 2).immediate < 0;
  product.a_rows_major = behind > 3 && operand(predicate + 3).immediate != 0;
  product.b_columns_major = behind > 2 && operand(predicate + behind).immediate != 0;
  product.wide = method_of(product);
  product.hopper_sums = hopper_sums({.a = product.a_type,
                                     .b = product.b_type,
                                     .has_half_sums = product.sums == Sums::f16,
                                     .sparse = product.sparse,
                                     .is_group = true});

  std::vector<LaneRef> list;
  for (const ir::Operand& sum : matrix_registers(decoder, 0)) {
    const std::optional<LaneRef> lanes = sum_register(decoder, sum);
    if (!lanes) return;
    list.push_back(*lanes);
  }
  if (list.size() != product.registers_of_d()) return decoder.unsupported("a matrix product with too few registers");
  if (product.a_in_registers)
    for (const ir::Operand& part : matrix_registers(decoder, 1))
      list.push_back(decoder.source(part, lanes_of_bits(32)));
  if (product.sparse) list.push_back(decoder.source(operand(3), lanes_of_bits(32)));
  LaneRef a;
  if (!product.a_in_registers) a = decoder.source(operand(1), lanes_of_bits(64));
  const LaneRef b = decoder.source(operand(2), lanes_of_bits(64));
  const LaneRef adds = decoder.source(operand(predicate), lanes_of_bits(1));
  const uint32_t registers = decoder.add_list(list);
  const uint32_t description = add_description(decoder, product);
  MicroOp& op = decoder.emit(&issue_product);
  op.source[source_a] = a;
  op.source[source_b] = b;
  op.source[source_adds] = adds;
  op.extra = registers;
  op.auxiliary = description;
}

void decode_warp_group(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  if (form.has(ir::Modifier::mma_async)) return decode_product(decoder);
  if (form.has(ir::Modifier::fence)) {
    decoder.emit(&order_registers);
  } else if (form.has(ir::Modifier::commit_group)) {
    decoder.emit(&close_product_group);
  } else {
    const int64_t open_groups = decoder.operands()[decoder.top_level(0)].immediate;
    decoder.emit(&wait_for_products).immediate = std::max<int64_t>(open_groups, 0);
  }
}

} // namespace

void add_warp_group_operations(OperationTable& table) {
  table.special("wgmma*", &decode_warp_group);
}

} // namespace ptxrewrite::emulator
