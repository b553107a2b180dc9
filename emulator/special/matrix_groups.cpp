// mma.sync with the rows of A and the columns of B each in a group of four lanes: dense, sparse and block-scaled (PTX
// ISA 9.7.14.5, 9.7.14.6 and 9.7.14.3). The order of summation is that of matrix.cpp; for sparse A, that of the stored
// elements. A block-scaled product is the exact product of two elements and their scales.
#include "emulator/semantics/rounding.h"
#include "emulator/semantics/small_floats.h"
#include "emulator/special/matrix_product.h"
#include "emulator/special/sparse_metadata.h"
#include "emulator/tiles/half_product.h"
#include "emulator/tiles/matrix_tile.h"

#include <algorithm>
#include <array>
#include <bit>

// The static analyzer does not know that the sizes of a matrix product were checked when it was decoded.
// NOLINTBEGIN(clang-analyzer-core.*)
namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;

constexpr unsigned most_rows = 16;
constexpr unsigned most_line_bytes = 64; // along k
constexpr unsigned most_stored = 64;     // elements in a row of A
constexpr unsigned most_k = 128;         // elements in a column of B; one-bit elements are counted in words

// Reads rows of A, or columns of B, from the registers starting at `first`; `blocks`: groups of eight lines.
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

// Reads C as sums of eight rows per block, with columns in the order of even_columns_first.
void read_sums(const Collective& all, unsigned first, const Fragment& c, float* sums) {
  uint32_t storage[2][warp_size];
  for (unsigned block = 0; block < c.rows / 8; ++block) {
    if (c.element_bits == 16)
      load_split_half_sums(all.listed(first + block, storage[0]), sums + block * 64);
    else
      load_split_sums(all.listed(first + 2 * block, storage[0]), all.listed(first + 2 * block + 1, storage[1]),
                      sums + block * 64);
  }
}

void write_sums(const Collective& all, const Fragment& d, const float* sums) {
  uint32_t out[2][warp_size];
  for (unsigned block = 0; block < d.rows / 8; ++block) {
    if (d.element_bits == 16) {
      store_split_half_sums(sums + block * 64, out[0]);
      write_register(all, block, out[0]);
      continue;
    }
    store_split_sums(sums + block * 64, out[0], out[1]);
    for (unsigned i = 0; i < 2; ++i)
      write_register(all, 2 * block + i, out[i]);
  }
}

constexpr uint8_t in_order[] = {0, 1, 2, 3, 4, 5, 6, 7};

// Calls body(lines of a register, index of its first element) for a matrix of `blocks` times eight lines along k, each
// of `length` elements: the registers of one position along k are consecutive.
template <class Body>
[[gnu::always_inline]] inline void for_each_register(const Collective& all, unsigned first, const Fragment& matrix,
                                                     unsigned blocks, unsigned length, const uint8_t* places,
                                                     Body&& body) {
  constexpr unsigned line_bits = 128; // of a register
  const unsigned of_line = line_bits >> std::countr_zero(matrix.element_bits);
  for (unsigned reg = 0, along_k = 0; reg < matrix.registers; along_k += of_line)
    for (unsigned block = 0; block < blocks; ++block, ++reg) {
      uint32_t storage[warp_size];
      body(Lines{all.listed(first + reg, storage), places, length}, block * 8 * length + along_k);
    }
}

// A as shape.m rows of stored elements, B as a tile of k rows.
struct Factors {
  float a[most_rows * most_stored], b[tile_columns * most_k];
  uint8_t columns[most_rows * most_stored]; // for a sparse A

  void multiply(const MatrixProduct& product, float* sums) const {
    if (product.sparse)
      multiply_sparse_tile(a, columns, b, product.shape.m, product.stored(), sums);
    else
      multiply_tile(a, b, product.shape.m, product.shape.k, sums);
  }
  void multiply(const AlignedSums& law, const MatrixProduct& product, float* sums) const {
    if (product.sparse)
      multiply_sparse_tile(law, a, columns, b, product.shape.m, product.stored(), sums);
    else
      multiply_tile(law, a, b, product.shape.m, product.shape.k, sums);
  }
};

void read_factors(const Collective& all, Factors& factors) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  const unsigned k = product.shape.k;
  for_each_register(all, product.d.registers, product.a, product.shape.m / 8, product.stored(), in_order,
                    [&](const Lines& lines, unsigned element) {
                      decode_lines(product.a_type, product.in_containers, lines, factors.a + element);
                    });
  float columns[tile_columns * most_k];
  for_each_register(all, product.first_of_b(), product.b, 1, k, even_columns_first,
                    [&](const Lines& lines, unsigned element) {
                      decode_lines(product.b_type, product.in_containers, lines, columns + element);
                    });
  transpose_columns(columns, k, factors.b);
  if (!product.sparse) return;
  uint32_t storage[warp_size];
  sparse_columns(product.in_containers ? 8 : ir::bit_width(product.a_type), k, all.listed(product.metadata(), storage),
                 product.selector, factors.columns);
}

void multiply_floats(const Collective& all) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  Factors factors;
  read_factors(all, factors);
  float sums[most_rows * tile_columns];
  read_sums(all, product.first_of_c(), product.c, sums);
  if (const AlignedSums* law = aligned_sums(all))
    factors.multiply(*law, product, sums);
  else
    factors.multiply(product, sums);
  write_sums(all, product.d, sums);
}

const MicroOp* multiply_float_groups(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, multiply_floats);
}

// --- f16 and bf16, sixteen rows ---

bool is_half_product(const MatrixProduct& product) {
  const bool halves = product.a_type == ScalarType::f16 || product.a_type == ScalarType::bf16;
  return halves && product.a_type == product.b_type && !product.sparse && !product.in_containers &&
         product.shape.m == 16 && (product.shape.k == 8 || product.shape.k == 16) &&
         product.c.element_bits == product.d.element_bits;
}

// Lanes that come from several places, and results that are not wanted, take the general way.
const MicroOp* multiply_half_groups(Warp& running, const MicroOp& op) {
  if (multiply_whole_warp(running, op)) return &op + 1;
  return execute_together(running, op, {}, [](const Collective& all) {
    if (aligned_sums(all)) return multiply_floats(all);
    const MatrixProduct& product = all.description<MatrixProduct>();
    Warp& warp = all.warp();
    HalfProduct halves;
    halves.is_bf16 = product.a_type == ScalarType::bf16;
    halves.has_half_sums = product.d.element_bits == 16;
    halves.parts = product.shape.k / 8;
    const LaneRef* list = warp.activation->function->lists.data() + all.op().extra;
    bool is_whole = warp.mask == full_mask && warp.gathered.empty();
    for (unsigned i = 0; i < product.d.registers; ++i) {
      is_whole = is_whole && list[i];
      halves.d[i] = warp.lanes<uint32_t>(list[i]);
      halves.c[i] = warp.lanes<uint32_t>(list[product.first_of_c() + i]);
    }
    for (unsigned i = 0; i < product.a.registers; ++i)
      halves.a[i] = warp.lanes<uint32_t>(list[product.d.registers + i]);
    for (unsigned i = 0; i < product.b.registers; ++i)
      halves.b[i] = warp.lanes<uint32_t>(list[product.first_of_b() + i]);
    if (!is_whole || !multiply_halves(halves)) multiply_floats(all);
  });
}

// --- block scaling ---

constexpr unsigned most_scales = 4;

// Numbers for each code of a scale; bit 7 of ue4m3 does not count.
const float* scale_table(ScalarType type) {
  using Table = std::array<float, 256>;
  const auto make = [](auto&& decode) {
    Table table;
    for (unsigned code = 0; code < table.size(); ++code)
      table[code] = decode(code);
    return table;
  };
  static const Table ue8m0 = make([](unsigned code) { return semantics::decode_ue8m0(code); });
  static const Table ue4m3 = make([](unsigned code) { return semantics::decode<semantics::e4m3_format>(code & 0x7f); });
  return (type == ScalarType::ue8m0 ? ue8m0 : ue4m3).data();
}

// scales[line * scale_count + i]: scales of rows of A (`by_pairs`: two lanes of four hold rows eight apart, and the
// thread selector chooses the pair) or of columns of B (each lane of four may hold its column's).
void read_scales(const Collective& all, unsigned first, unsigned lines, bool by_pairs, float* scales) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  uint32_t storage[warp_size];
  uint16_t byte_storage[warp_size], thread_storage[warp_size];
  const uint32_t* data = all.listed(first, storage);
  const unsigned byte = all.listed(first + 1, byte_storage)[0];
  const unsigned thread = all.listed(first + 2, thread_storage)[0];
  const float* numbers = scale_table(product.scale_type);
  for (unsigned i = 0; i < product.scale_count; ++i) {
    const unsigned shift = (byte + i) % 4 * 8;
    for (unsigned line = 0; line < lines; ++line) {
      const unsigned lane = line % 8 * 4 + (by_pairs ? thread % 2 * 2 + line / 8 : thread % 4);
      scales[line * product.scale_count + i] = numbers[data[lane] >> shift & 0xff];
    }
  }
}

// a * b * scale + sum, rounded once: in f64 all but the sum is exact, and rounding the sum to odd makes the final
// rounding to f32 correct.
float add_scaled(float a, float b, float a_scale, float b_scale, float sum) {
  const double product = static_cast<double>(a) * b * (static_cast<double>(a_scale) * b_scale);
  return static_cast<float>(semantics::add_odd(product, static_cast<double>(sum)));
}

// The scales of a block-scaled product: scale_count for each row of A and each column of B.
struct Scales {
  float a[most_rows * most_scales], b[tile_columns * most_scales];

  explicit Scales(const Collective& all) {
    const MatrixProduct& product = all.description<MatrixProduct>();
    read_scales(all, product.first_of_scales(), most_rows, true, a);
    read_scales(all, product.first_of_scales() + 3, tile_columns, false, b);
  }

  // Is the product of each possible element and each scale a normal number of f32?
  bool are_moderate(unsigned count) const {
    return are_moderate(a, most_rows * count) && are_moderate(b, tile_columns * count);
  }

private:
  // `count`: whole vectors.
  static bool are_moderate(const float* scales, unsigned count) {
    using Vector = float __attribute__((vector_size(32)));
    constexpr unsigned together = sizeof(Vector) / sizeof(float);
    auto extreme = Vector{} != Vector{};
    for (unsigned i = 0; i < count; i += together) {
      Vector some;
      std::memcpy(&some, scales + i, sizeof some);
      extreme |= (some != 0.0f) & ~((some >= 0x1p-100f) & (some <= 0x1p100f)); // NaN is extreme
    }
    uint64_t any[sizeof extreme / sizeof(uint64_t)];
    std::memcpy(any, &extreme, sizeof any);
    return (any[0] | any[1] | any[2] | any[3]) == 0;
  }
};

struct ScaledFactors {
  Factors factors;
  const Scales& scales;

  ScaledFactors(const Collective& all, const Scales& given)
      : scales(given), product_(all.description<MatrixProduct>()) {
    read_factors(all, factors);
  }

  unsigned in_block() const { return product_.shape.k / product_.scale_count; } // elements along k with one scale
  unsigned k_of(unsigned row, unsigned i) const {
    return product_.sparse ? factors.columns[row * product_.stored() + i] : i;
  }
  float a_scale(unsigned row, unsigned k) const { return scales.a[row * product_.scale_count + k / in_block()]; }
  float b_scale(unsigned place, unsigned k) const {
    const unsigned column = place % 4 * 2 + place / 4; // even_columns_first
    return scales.b[column * product_.scale_count + k / in_block()];
  }

  // Multiplies the factors by their scales, which is exact: no element has more than four bits, no scale either. Blocks
  // have as many stored elements as one another, in a sparse A too.
  void apply() {
    const unsigned count = product_.scale_count, of_a = product_.stored() / count, of_b = in_block();
    for (unsigned i = 0; i < most_rows * count; ++i)
      for (float* element = factors.a + i * of_a; element < factors.a + (i + 1) * of_a; ++element)
        *element *= scales.a[i];
    for (unsigned block = 0; block < count; ++block) {
      float of_columns[tile_columns];
      for (unsigned place = 0; place < tile_columns; ++place)
        of_columns[place] = b_scale(place, block * of_b);
      for (unsigned k = block * of_b; k < (block + 1) * of_b; ++k)
        for (unsigned place = 0; place < tile_columns; ++place)
          factors.b[k * tile_columns + place] *= of_columns[place];
    }
  }

private:
  const MatrixProduct& product_;
};

// Each product of two factors and their scales is exact, whatever the scales are.
void multiply_extreme(const MatrixProduct& product, const ScaledFactors& scaled, float* sums) {
  const Factors& factors = scaled.factors;
  const unsigned stored = product.stored();
  for (unsigned row = 0; row < most_rows; ++row)
    for (unsigned i = 0; i < stored; ++i) {
      const unsigned k = scaled.k_of(row, i);
      for (unsigned place = 0; place < tile_columns; ++place) {
        float& sum = sums[row * tile_columns + place];
        sum = add_scaled(factors.a[row * stored + i], factors.b[k * tile_columns + place], scaled.a_scale(row, k),
                         scaled.b_scale(place, k), sum);
      }
    }
}

const MicroOp* multiply_scaled_groups(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = all.description<MatrixProduct>();
    const Scales scales(all);
    const bool are_moderate = scales.are_moderate(product.scale_count);
    ScaledFactors scaled(all, scales);
    float sums[most_rows * tile_columns];
    read_sums(all, product.first_of_c(), product.c, sums);
    if (are_moderate) {
      scaled.apply();
      scaled.factors.multiply(product, sums);
    } else {
      multiply_extreme(product, scaled, sums);
    }
    write_sums(all, product.d, sums);
  });
}

// --- whole numbers ---

// Calls body(block of eight rows, its two registers), which replaces the values of C there by D.
template <class Body> void change_whole_sums(const Collective& all, Body&& body) {
  const MatrixProduct& product = all.description<MatrixProduct>();
  uint32_t sums[most_rows / 8][2][warp_size];
  for (unsigned block = 0; block < product.shape.m / 8; ++block) {
    for (unsigned i = 0; i < 2; ++i) {
      uint32_t storage[warp_size];
      std::memcpy(sums[block][i], all.listed(product.first_of_c() + 2 * block + i, storage), sizeof storage);
    }
    body(block, sums[block]);
  }
  for (unsigned reg = 0; reg < product.shape.m / 4; ++reg)
    write_register(all, reg, sums[reg / 2][reg % 2]);
}

void add_whole_products(const Collective& all, const int32_t* products) {
  change_whole_sums(all, [&](unsigned block, uint32_t(&sums)[2][warp_size]) {
    add_split_sums(products + block * 64, all.description<MatrixProduct>().saturates, sums[0], sums[1]);
  });
}

const MicroOp* multiply_integer_groups(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    const MatrixProduct& product = all.description<MatrixProduct>();
    const unsigned k = product.shape.k;
    int16_t a[most_rows * most_k], columns[tile_columns * most_k], b[tile_columns * most_k];
    for_each_register(
        all, product.d.registers, product.a, product.shape.m / 8, k, in_order,
        [&](const Lines& lines, unsigned element) { decode_integer_lines(product.a_type, lines, a + element); });
    for_each_register(
        all, product.first_of_b(), product.b, 1, k, even_columns_first,
        [&](const Lines& lines, unsigned element) { decode_integer_lines(product.b_type, lines, columns + element); });
    transpose_pairs(columns, k, b);
    int32_t products[most_rows * tile_columns] = {};
    multiply_integer_tile(a, b, product.shape.m, k, products);
    add_whole_products(all, products);
  });
}

// The sums are exact in f32 (matrix_tile.h).
const MicroOp* multiply_sparse_integer_groups(Warp& warp, const MicroOp& op) {
  if (multiply_whole_warp(warp, op)) return &op + 1;
  return execute_together(warp, op, {}, [](const Collective& all) {
    Factors factors;
    read_factors(all, factors);
    float sums[most_rows * tile_columns] = {};
    factors.multiply(all.description<MatrixProduct>(), sums);
    int32_t products[most_rows * tile_columns];
    std::copy(std::begin(sums), std::end(sums), products);
    add_whole_products(all, products);
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
    change_whole_sums(all, [&](unsigned block, uint32_t(&sums)[2][warp_size]) {
      add_whole_sums(counts + block * 64, product.saturates, sums[0], sums[1]);
    });
  });
}

} // namespace

// --- whole warps (emulator/tiles/wide_product.h) ---

ListedLanes::ListedLanes(std::span<const LaneRef> list) {
  if (list.size() > most || !std::ranges::all_of(list, &LaneRef::valid)) return;
  std::ranges::copy(list, list_.begin());
  std::fill(list_.begin() + static_cast<ptrdiff_t>(list.size()), list_.end(), LaneRef(LaneBase::registers, 0));
  std::ranges::transform(list_, offsets_.begin(), &LaneRef::offset);
  are_registers_ = std::ranges::all_of(list_, [](LaneRef lanes) { return lanes.base() == LaneBase::registers; });
  count_ = list.size() <= 8 ? 8 : list.size() <= 20 ? 20 : most;
}

const AlignedSums* selected_sums(const LaunchRequest& request, const std::optional<AlignedSums>& hopper) {
  return request.matrix_sums == MatrixSums::hopper && hopper ? &*hopper : nullptr;
}

const AlignedSums* aligned_sums(const Collective& all) {
  return selected_sums(*all.warp().block->launch->request, all.description<MatrixProduct>().hopper_sums);
}

WideMethod method_of(const MatrixProduct& product, bool opaque_layout) {
  WideForm form;
  form.m = product.shape.m;
  form.n = product.shape.n;
  form.k = product.shape.k;
  form.a_type = product.a_type;
  form.b_type = product.b_type;
  form.in_containers = product.in_containers;
  form.has_half_sums = product.d.element_bits == 16;
  form.saturates = product.saturates;
  form.sparse = product.sparse;
  form.is_packed = opaque_layout;
  form.rounding = product.rounding;
  form.scale_count = product.scale_count;
  form.scale_type = product.scale_type;
  form.in_quads = product.a.matrices != 1;
  form.a_in_columns = product.a_in_columns;
  form.b_in_rows = product.b_in_rows;
  if (product.metadata() >= ListedLanes::most) return {};
  if (product.c.element_bits != product.d.element_bits) return {};
  return wide_method(form);
}

// `by_pairs`: read_scales().
WideScales listed_scales(const Warp& warp, const LaneRef* list, bool by_pairs) {
  const unsigned byte = *warp.lanes<uint16_t>(list[1]), thread = *warp.lanes<uint16_t>(list[2]);
  return {warp.lanes<uint32_t>(list[0]), by_pairs ? thread % 2 * 2 : thread % 4, byte % 4};
}

bool multiply_whole_warp(Warp& warp, const MicroOp& op) {
  if (warp.mask != full_mask) return false;
  const auto& product = *static_cast<const MatrixProduct*>(warp.activation->function->descriptions[op.auxiliary].get());
  if (!product.wide || !product.lanes) return false;
  if (product.hopper_sums && selected_sums(*warp.block->launch->request, product.hopper_sums)) return false;
  uint32_t* lanes[ListedLanes::most];
  product.lanes.find(warp, lanes);
  uint32_t** const a = lanes + product.d.registers;
  uint32_t** const b = a + product.a.registers;
  uint32_t** const c = b + product.b.registers;
  const uint32_t* metadata = product.sparse ? c[product.c.registers] : nullptr;
  WideOperands operands{lanes, a, b, c, metadata, product.selector};
  if (product.scale_count) {
    const LaneRef* list = warp.activation->function->lists.data() + op.extra + product.first_of_scales();
    operands.a_scales = listed_scales(warp, list, true);
    operands.b_scales = listed_scales(warp, list + 3, false);
  }
  return product.wide.run(product.wide, operands);
}

Handler group_product_handler(const MatrixProduct& product) {
  if (product.scale_count) return &multiply_scaled_groups;
  if (product.a_type == ScalarType::b1) return &multiply_bit_groups;
  if (is_half_product(product)) return &multiply_half_groups;
  if (ir::type_kind(product.a_type) == ir::TypeKind::floating) return &multiply_float_groups;
  return product.sparse ? &multiply_sparse_integer_groups : &multiply_integer_groups;
}

} // namespace ptxrewrite::emulator
// NOLINTEND(clang-analyzer-core.*)
