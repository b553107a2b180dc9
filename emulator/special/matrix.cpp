// mma.sync and wmma.mma: D = A * B + C of small matrices distributed over the lanes of a warp (PTX ISA 9.7.14).
//
// Choices where the manual leaves it open: each element of D is summed starting with C, along k from 0 on; products are
// exact, each partial sum is rounded to nearest even in f32 (f64 for f64, with the instruction's rounding), and f16
// accumulators are rounded once, at the end. Integer sums are exact and wrap or, with .satfinite, are clamped at the
// end. Float products with .satfinite follow satf of mma_sync in the CUDA programming guide; ptxas warns that hardware
// from sm_70 on may differ. LaunchRequest::matrix_sums selects another order.
#include "emulator/special/matrix_product.h"

#include "emulator/semantics/accumulate.h"
#include "emulator/tiles/matrix_tile.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

// The static analyzer does not know that the sizes of a matrix product were checked when it was decoded.
// NOLINTBEGIN(clang-analyzer-core.*)
namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;

constexpr unsigned largest_operand = 16 * 64; // elements of A or B: m16n8k64 of s4
constexpr unsigned largest_accumulator = 16 * 16;

const MatrixProduct& product_of(const Collective& all) {
  return all.description<MatrixProduct>();
}

struct Operands {
  uint64_t a[largest_operand], b[largest_operand], c[largest_accumulator];
};

template <class Register, class Accumulator> void read_operands(const Collective& all, Operands& operands) {
  const MatrixProduct& product = product_of(all);
  unsigned first = product.d.registers;
  unpack_fragment<Register>(all, first, product.a, operands.a);
  first += product.a.registers;
  unpack_fragment<Register>(all, first, product.b, operands.b);
  first += product.b.registers;
  unpack_fragment<Accumulator>(all, first, product.c, operands.c);
}

// Calls body(matrix, row, column) for each element of D.
template <class Body> void for_each_result(const MatrixProduct& product, Body&& body) {
  for (unsigned matrix = 0; matrix < product.d.matrices; ++matrix)
    for (unsigned row = 0; row < product.shape.m; ++row)
      for (unsigned column = 0; column < product.shape.n; ++column)
        body((matrix * product.shape.m + row) * product.shape.n + column,
             (matrix * product.shape.m + row) * product.shape.k, matrix * product.shape.k * product.shape.n + column);
}

float to_float(ScalarType type, uint64_t bits) {
  using namespace semantics;
  switch (type) {
  case ScalarType::f16:
    return semantics::to_float(Float16{static_cast<uint16_t>(bits)});
  case ScalarType::bf16:
    return semantics::to_float(BFloat16{static_cast<uint16_t>(bits)});
  case ScalarType::tf32:
    return tf32_operand(static_cast<uint32_t>(bits));
  case ScalarType::e4m3:
    return decode<e4m3_format>(static_cast<uint32_t>(bits));
  case ScalarType::e5m2:
    return decode<e5m2_format>(static_cast<uint32_t>(bits));
  default:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
}

// Computes one row of D: C's row plus the sum over k of a[k] times row k of B.
void multiply_row(const float* a, const float* b, unsigned k_count, unsigned n, float* sums) {
  for (unsigned k = 0; k < k_count; ++k)
    for (unsigned column = 0; column < n; ++column)
      sums[column] = __builtin_fmaf(a[k], b[k * n + column], sums[column]);
}

// .satfinite of float products: infinities become the largest number of the result's type, NaN becomes +0.
float to_finite(float value, unsigned bits) {
  const float largest = bits == 16 ? 65504.0f : std::numeric_limits<float>::max();
  if (std::isnan(value)) return 0.0f;
  return std::clamp(value, -largest, largest);
}

const MicroOp* multiply_floats(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = product_of(all);
    Operands operands;
    read_operands<uint32_t, uint32_t>(all, operands);
    float a[largest_operand], b[largest_operand], d[largest_accumulator];
    for (unsigned i = 0; i < product.a.size(); ++i)
      a[i] = to_float(product.a_type, operands.a[i]);
    for (unsigned i = 0; i < product.b.size(); ++i)
      b[i] = to_float(product.b_type, operands.b[i]);
    const ScalarType c_type = product.c.element_bits == 16 ? ScalarType::f16 : ScalarType::f32;
    for (unsigned i = 0; i < product.c.size(); ++i)
      d[i] = to_float(c_type, operands.c[i]);
    const MatrixShape& shape = product.shape;
    for (unsigned matrix = 0; matrix < product.d.matrices; ++matrix)
      for (unsigned row = matrix * shape.m; row < (matrix + 1) * shape.m; ++row)
        multiply_row(a + row * shape.k, b + matrix * shape.k * shape.n, shape.k, shape.n, d + row * shape.n);
    if (product.saturates)
      for (unsigned i = 0; i < product.d.size(); ++i)
        d[i] = to_finite(d[i], product.d.element_bits);
    for (unsigned i = 0; i < product.d.size(); ++i)
      operands.c[i] = product.d.element_bits == 16 ? semantics::to_half<semantics::Float16>(d[i]).bits
                                                   : std::bit_cast<uint32_t>(semantics::canonical(d[i]));
    pack_fragment<uint32_t>(all, 0, product.d, operands.c);
  });
}

// Computes one row of D as above. Not inlined, so that the compiler does not move it across a change of rounding.
[[gnu::noinline]] void multiply_double_row(const uint64_t* a, const uint64_t* b, unsigned k_count, unsigned n,
                                           uint64_t* sums) {
  double row[16];
  std::memcpy(row, sums, n * sizeof *row);
  for (unsigned k = 0; k < k_count; ++k)
    for (unsigned column = 0; column < n; ++column)
      row[column] = std::fma(std::bit_cast<double>(a[k]), std::bit_cast<double>(b[k * n + column]), row[column]);
  std::memcpy(sums, row, n * sizeof *row);
}

const MicroOp* multiply_doubles(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = product_of(all);
    Operands operands;
    read_operands<uint64_t, uint64_t>(all, operands);
    const MatrixShape& shape = product.shape;
    const int before = std::fegetround();
    if (product.rounding != FE_TONEAREST) std::fesetround(product.rounding);
    for (unsigned row = 0; row < shape.m; ++row)
      multiply_double_row(operands.a + row * shape.k, operands.b, shape.k, shape.n, operands.c + row * shape.n);
    if (product.rounding != FE_TONEAREST) std::fesetround(before);
    pack_fragment<uint64_t>(all, 0, product.d, operands.c);
  });
}

int64_t to_integer(ScalarType type, uint64_t bits) {
  const unsigned unused = 64 - ir::bit_width(type);
  return ir::is_signed(type) ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
}

uint64_t finish_sum(const MatrixProduct& product, int64_t sum) {
  if (product.saturates) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  return static_cast<uint32_t>(sum);
}

const MicroOp* multiply_integers(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = product_of(all);
    Operands operands;
    read_operands<uint32_t, uint32_t>(all, operands);
    int64_t a[largest_operand], b[largest_operand];
    for (unsigned i = 0; i < product.a.size(); ++i)
      a[i] = to_integer(product.a_type, operands.a[i]);
    for (unsigned i = 0; i < product.b.size(); ++i)
      b[i] = to_integer(product.b_type, operands.b[i]);
    for_each_result(product, [&](unsigned result, unsigned a_row, unsigned b_column) {
      int64_t sum = static_cast<int32_t>(operands.c[result]);
      for (unsigned k = 0; k < product.shape.k; ++k)
        sum += a[a_row + k] * b[b_column + k * product.shape.n];
      operands.c[result] = finish_sum(product, sum);
    });
    pack_fragment<uint32_t>(all, 0, product.d, operands.c);
  });
}

// One-bit elements, 32 per word: the product of two is their xor or and.
const MicroOp* multiply_bits(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = product_of(all);
    Operands operands;
    read_operands<uint32_t, uint32_t>(all, operands);
    for_each_result(product, [&](unsigned result, unsigned a_row, unsigned b_column) {
      int64_t sum = static_cast<int32_t>(operands.c[result]);
      for (unsigned k = 0; k < product.shape.k; ++k) {
        const uint64_t x = operands.a[a_row + k], y = operands.b[b_column + k * product.shape.n];
        sum += std::popcount(product.and_popc ? x & y : x ^ y);
      }
      operands.c[result] = finish_sum(product, sum);
    });
    pack_fragment<uint32_t>(all, 0, product.d, operands.c);
  });
}

// --- wmma, but for f64 and single bits ---
//
// Lane n holds the n-th part of a matrix, row by row: the words of its registers, lane by lane, are the packed matrix
// as in memory. Further registers hold the same words again.

constexpr unsigned most_words = 8; // per lane
using PackedMatrix = uint32_t[warp_size * most_words];

unsigned words_of_lane(const Fragment& fragment) {
  return fragment.size() * fragment.element_bits / (warp_size * fragment.register_bits);
}

template <unsigned words> void read_packed(const Collective& all, unsigned first, uint32_t* packed) {
  uint32_t storage[words][warp_size];
  const uint32_t* lanes[words];
  for (unsigned i = 0; i < words; ++i)
    lanes[i] = all.listed(first + i, storage[i]);
  for (unsigned lane = 0; lane < warp_size; ++lane)
    for (unsigned i = 0; i < words; ++i)
      packed[lane * words + i] = lanes[i][lane];
}

void read_packed(const Collective& all, unsigned first, const Fragment& fragment, PackedMatrix& packed) {
  switch (words_of_lane(fragment)) {
  case 1:
    return read_packed<1>(all, first, packed);
  case 2:
    return read_packed<2>(all, first, packed);
  case 4:
    return read_packed<4>(all, first, packed);
  default:
    return read_packed<8>(all, first, packed);
  }
}

void write_packed(const Collective& all, const Fragment& fragment, const PackedMatrix& packed) {
  const unsigned words = words_of_lane(fragment);
  for (unsigned reg = 0; reg < fragment.registers; ++reg)
    all.write_listed<uint32_t>(reg, [&](unsigned lane) { return packed[lane * words + reg % words]; });
}

void decode_packed(const Collective& all, unsigned first, const Fragment& fragment, ScalarType type, float* numbers) {
  PackedMatrix packed;
  read_packed(all, first, fragment, packed);
  decode_elements(type, reinterpret_cast<const std::byte*>(packed), fragment.size(), numbers);
}

// sums += A * B, all in row order, in tiles of eight columns.
void multiply_packed(const Collective& all, float* sums) {
  const MatrixProduct& product = product_of(all);
  const MatrixShape& shape = product.shape;
  float a[largest_accumulator * 2], b[largest_accumulator * 2];
  decode_packed(all, product.d.registers, product.a, product.a_type, a);
  decode_packed(all, product.first_of_b(), product.b, product.b_type, b);
  const auto copy_tile = [](const float* from, unsigned from_distance, float* to, unsigned to_distance, unsigned rows) {
    for (unsigned row = 0; row < rows; ++row)
      std::copy_n(from + row * from_distance, tile_columns, to + row * to_distance);
  };
  for (unsigned first = 0; first < shape.n; first += tile_columns) {
    float right[32 * tile_columns], tile[32 * tile_columns];
    copy_tile(b + first, shape.n, right, tile_columns, shape.k);
    copy_tile(sums + first, shape.n, tile, tile_columns, shape.m);
    if (const AlignedSums* law = aligned_sums(all))
      multiply_tile(*law, a, right, shape.m, shape.k, tile);
    else
      multiply_tile(a, right, shape.m, shape.k, tile);
    copy_tile(tile, tile_columns, sums + first, shape.n, shape.m);
  }
}

const MicroOp* multiply_packed_floats(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = product_of(all);
    float sums[largest_accumulator];
    const ScalarType c_type = product.c.element_bits == 16 ? ScalarType::f16 : ScalarType::f32;
    decode_packed(all, product.first_of_c(), product.c, c_type, sums);
    multiply_packed(all, sums);
    const unsigned bits = product.d.element_bits;
    if (product.saturates)
      for (float& sum : sums)
        sum = to_finite(sum, bits);
    PackedMatrix packed;
    if (bits == 16)
      for (unsigned rows = 0; rows < largest_accumulator / 64; ++rows)
        store_half_sums(sums + rows * 64, packed + rows * 32);
    else
      for (unsigned i = 0; i < largest_accumulator; ++i)
        packed[i] = std::bit_cast<uint32_t>(semantics::canonical(sums[i]));
    write_packed(all, product.d, packed);
  });
}

// The sums of the products are exact in f32 (matrix_tile.h).
const MicroOp* multiply_packed_integers(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = product_of(all);
    float sums[largest_accumulator] = {};
    multiply_packed(all, sums);
    PackedMatrix packed;
    read_packed(all, product.first_of_c(), product.c, packed);
    for (unsigned i = 0; i < product.d.size(); ++i)
      packed[i] = static_cast<uint32_t>(
          finish_sum(product, int64_t(static_cast<int32_t>(sums[i])) + static_cast<int32_t>(packed[i])));
    write_packed(all, product.d, packed);
  });
}

Handler packed_handler(Handler handler) {
  if (handler == &multiply_floats) return &multiply_packed_floats;
  return handler == &multiply_integers ? &multiply_packed_integers : handler;
}

// --- decoding ---

Handler product_handler(ScalarType type) {
  switch (type) {
  case ScalarType::f16:
  case ScalarType::bf16:
  case ScalarType::tf32:
  case ScalarType::e4m3:
  case ScalarType::e5m2:
  case ScalarType::e3m2:
  case ScalarType::e2m3:
  case ScalarType::e2m1:
    return &multiply_floats;
  case ScalarType::f64:
    return &multiply_doubles;
  case ScalarType::s8:
  case ScalarType::u8:
  case ScalarType::s4:
  case ScalarType::u4:
    return &multiply_integers;
  case ScalarType::b1:
    return &multiply_bits;
  default:
    return nullptr;
  }
}

struct ElementTypes {
  ScalarType d, a, b, c;
};

// wmma of f16 has only the types of D and C, integer products may have all four, block-scaled ones also that of scales.
ElementTypes element_types(const ir::Form& form) {
  if (form.types.size() >= 4) return {form.types[0], form.types[1], form.types[2], form.types[3]};
  if (form.types.size() == 2) return {form.types[0], ScalarType::f16, ScalarType::f16, form.types[1]};
  return {ScalarType::none, ScalarType::none, ScalarType::none, ScalarType::none};
}

int rounding_of(const ir::Form& form) {
  if (form.has(ir::Modifier::rz)) return FE_TOWARDZERO;
  if (form.has(ir::Modifier::rm)) return FE_DOWNWARD;
  return form.has(ir::Modifier::rp) ? FE_UPWARD : FE_TONEAREST;
}

// Returns whether A and B, in this order, are .col.
std::pair<bool, bool> column_major(const ir::Form& form) {
  std::vector<bool> words;
  for (ir::Modifier word : form.modifiers)
    if (word == ir::Modifier::row || word == ir::Modifier::col) words.push_back(word == ir::Modifier::col);
  words.resize(2);
  return {words[0], words[1]};
}

void read_modifiers(const ir::Form& form, MatrixProduct& product) {
  product.saturates = form.has(ir::Modifier::satfinite);
  product.and_popc = form.has(ir::Modifier::and_);
  product.rounding = rounding_of(form);
  product.sparse = form.has(ir::Modifier::sp) || form.has(ir::Modifier::sp_ordered_metadata);
  product.in_containers = form.has(ir::Modifier::kind_f8f6f4) || form.has(ir::Modifier::kind_mxf8f6f4);
  if (!form.has(ir::Modifier::block_scale)) return;
  product.scale_type = form.types.back();
  const bool by_default_one = form.has(ir::Modifier::kind_mxf8f6f4);
  product.scale_count = form.has(ir::Modifier::scale_vec_4X) ? 4 : by_default_one ? 1 : 2;
}

// Places D, A, B and C; returns false if the product is not emulated.
bool place_fragments(const ir::Form& form, const ElementTypes& types,
                     const std::array<std::vector<ir::Operand>, 4>& registers, MatrixProduct& product) {
  const bool opaque_layout = form.opcode == ir::Opcode::wmma;
  const auto [a_columns, b_columns] = column_major(form);
  product.a_in_columns = a_columns;
  product.b_in_rows = !b_columns;
  auto fragment = [&](MatrixRole role, ScalarType type, size_t count, bool columns) {
    const auto number = static_cast<unsigned>(count);
    MatrixShape shape = product.shape;
    if (role == MatrixRole::a) shape.k = static_cast<uint16_t>(product.stored());
    if (role != MatrixRole::accumulator && product.in_containers) type = ScalarType::u8;
    return opaque_layout ? wmma_fragment(shape, role, type, number) : mma_fragment(shape, role, type, number, columns);
  };
  product.d = fragment(MatrixRole::accumulator, types.d, registers[0].size(), false);
  product.a = fragment(MatrixRole::a, types.a, registers[1].size(), a_columns);
  product.b = fragment(MatrixRole::b, types.b, registers[2].size(), b_columns);
  product.c = fragment(MatrixRole::accumulator, types.c, registers[3].size(), false);
  return std::ranges::all_of(std::array{&product.d, &product.a, &product.b, &product.c}, [](const Fragment* part) {
    return part->registers * part->per_register() * warp_size >= part->size();
  });
}

// Lists the operands after C: metadata and selector, then scales. CUTLASS puts single registers in braces.
void list_metadata_and_scales(Decoder& decoder, MatrixProduct& product, std::vector<LaneRef>& list) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const auto list_word = [&](unsigned index) {
    const std::vector<ir::Operand> registers = matrix_registers(decoder, index);
    if (registers.empty()) return decoder.unsupported("a matrix product without its metadata or scales");
    list.push_back(decoder.source(registers.front(), lanes_of_bits(32)));
  };
  unsigned next = 4;
  if (product.sparse) {
    list_word(next);
    product.selector = static_cast<unsigned>(operands[decoder.top_level(next + 1)].immediate) & 3;
    next += 2;
  }
  for (unsigned side = 0; side < 2 && product.scale_count; ++side, next += 2) {
    list_word(next);
    for (const ir::Operand& place : matrix_registers(decoder, next + 1))
      list.push_back(decoder.source(place, lanes_of_bits(16)));
  }
}

void decode_product(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const ElementTypes types = element_types(form);
  MatrixProduct product;
  product.shape = ir::matrix_shape(form);
  product.a_type = types.a;
  product.b_type = types.b;
  read_modifiers(form, product);
  Handler handler = product_handler(types.a);
  if (!handler || product_handler(types.b) != handler || product.shape.m == 0)
    return decoder.unsupported("a matrix product of these types is not emulated");
  std::array<std::vector<ir::Operand>, 4> registers;
  for (unsigned i = 0; i < 4; ++i)
    registers[i] = matrix_registers(decoder, i);
  if (!place_fragments(form, types, registers, product))
    return decoder.unsupported("a matrix product with too few registers");
  if (types.a == ScalarType::b1) product.shape.k = static_cast<uint16_t>(product.shape.k / 32);
  if (form.opcode == ir::Opcode::mma && product.a.matrices == 1 && types.a != ScalarType::f64)
    handler = group_product_handler(product);
  const bool opaque_layout = form.opcode == ir::Opcode::wmma;
  if (opaque_layout) handler = packed_handler(handler);
  product.wide = method_of(product, opaque_layout);
  if (product.scale_count == 0 && !product.in_containers && product.a.matrices == 1)
    product.hopper_sums = hopper_sums(
        {.a = types.a, .b = types.b, .has_half_sums = product.d.element_bits == 16, .sparse = product.sparse});

  const LaneType word = lanes_of_bits(types.a == ScalarType::f64 ? 64 : 32);
  std::vector<LaneRef> sources;
  for (unsigned i = 1; i < 4; ++i)
    for (const ir::Operand& operand : registers[i])
      sources.push_back(decoder.source(operand, word));
  list_metadata_and_scales(decoder, product, sources);
  std::vector<LaneRef> all;
  for (const ir::Operand& operand : registers[0])
    all.push_back(decoder.destination(operand, word));
  all.insert(all.end(), sources.begin(), sources.end());
  const uint32_t list = decoder.add_list(all);
  if (all.size() >= product.first_of_scales())
    product.lanes = ListedLanes(std::span(all).first(product.first_of_scales()));
  const uint32_t description = add_description(decoder, std::move(product));
  MicroOp& op = decoder.emit(handler);
  op.extra = list;
  op.auxiliary = description;
}

} // namespace

std::vector<ir::Operand> matrix_registers(const Decoder& decoder, unsigned top_level_index) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const size_t position = decoder.top_level(top_level_index);
  if (position >= operands.size()) return {};
  if (!operands[position].is(ir::OperandKind::vector)) return {operands[position]};
  const auto inside = operands.subspan(position + 1, operands[position].group_size());
  return {inside.begin(), inside.end()};
}

void add_matrix_operations(OperationTable& table) {
  table.special("mma*", &decode_product);
  table.special("wmma.mma*", &decode_product);
}

} // namespace ptxrewrite::emulator
// NOLINTEND(clang-analyzer-core.*)
