#include "emulator/tensor_memory/product.h"

#include "emulator/semantics/accumulate.h"
#include "emulator/semantics/rounding.h"
#include "emulator/semantics/small_floats.h"
#include "emulator/tensor_memory/shared_operand.h"
#include "emulator/tensor_memory/sparse_places.h"
#include "emulator/tensor_memory/tensor_memory.h"
#include "emulator/tiles/matrix_tile.h"
#include "emulator/tiles/wide_lanes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace ptxrewrite::emulator {

using ir::ScalarType;

RowPlaces row_places(const ProductForm& form, const InstructionDescriptor& descriptor) {
  RowPlaces places;
  places.rows = descriptor.m / form.group;
  if (places.rows == 128) return places;
  if ((form.group == 1 && !form.weights_stay) || (form.group == 2 && form.sparse))
    places.is_spread = true;
  else
    places.folds = 128 / places.rows;
  return places;
}

namespace {

constexpr unsigned most_rows = 128;
constexpr unsigned most_elements = 64; // along k, of A or B
constexpr unsigned most_columns = 256;
constexpr unsigned most_line_bytes = 32; // along k, of a dense matrix; twice that beside a sparse one
constexpr unsigned lanes_together = tile_columns;
using Floats = float __attribute__((vector_size(4 * lanes_together)));
using Words = int32_t __attribute__((vector_size(4 * lanes_together)));

// Numbers that start at a cache line, so that no vector of sixteen is in two of them.
template <class Number> class AlignedNumbers {
public:
  explicit AlignedNumbers(size_t count) : lines_((count + in_line - 1) / in_line) {}
  Number* data() { return lines_.data()->numbers; }

private:
  static constexpr size_t line_bytes = 64, in_line = line_bytes / sizeof(Number);
  struct alignas(line_bytes) Line {
    Number numbers[in_line];
  };
  std::vector<Line> lines_;
};

// Reused from one product to the next.
struct Scratch {
  AlignedNumbers<float> a{4 * most_rows * most_elements}; // one per fold
  AlignedNumbers<float> b{most_columns * 2 * most_elements};
  AlignedNumbers<float> turned{most_rows * most_elements};        // A of one fold, rows_together_ a vector
  AlignedNumbers<float> scaled{most_columns * most_elements};     // B of one fold with its scales
  AlignedNumbers<uint8_t> kept{4 * most_rows * most_elements};    // columns of a sparse A's elements
  AlignedNumbers<int32_t> turned_kept{most_rows * most_elements}; // likewise, as `turned`
};
Scratch& scratch() {
  thread_local Scratch kept;
  return kept;
}

// The numbers of kind::ti16; bits 11 to 14 are zeros.
void decode_whole_numbers(const std::byte* packed, unsigned count, float* numbers) {
  for (unsigned i = 0; i < count; ++i) {
    uint16_t code;
    std::memcpy(&code, packed + 2 * i, sizeof code);
    const auto magnitude = static_cast<float>(code & 0x7ff);
    numbers[i] = code & 0x8000 ? -magnitude : magnitude;
  }
}

bool lies_in_chunks(const ProductForm& form) {
  return form.kind == ProductKind::f8f6f4 || form.kind == ProductKind::mxf8f6f4;
}

// numbers[line * k + i]: rows of A or columns of B from shared memory.
struct SharedLines {
  const ProductForm& form;
  ScalarType type;
  bool mn_major = false, negates = false;
  unsigned lines = 0, k = 0;

  // The chunks of lines along k. Groups of eight lines lie alike, unless their distance changes the swizzle.
  void gather_lines(const Block& block, const SharedMatrix& matrix, unsigned chunks, std::byte* packed) const {
    constexpr unsigned group = 8;
    const bool alike = matrix.swizzle_bytes == 0 || matrix.stride % (group * matrix.swizzle_bytes) == 0;
    for (unsigned first = 0; first < (alike ? group : lines); ++first)
      for (unsigned i = 0; i < chunks; ++i) {
        const std::byte* from = block.shared + chunk_address(matrix, false, first, i);
        for (unsigned line = first; line < (alike ? lines : first + 1); line += group, from += matrix.stride)
          std::memcpy(packed + (line * chunks + i) * chunk_bytes, from, chunk_bytes);
      }
  }

  void read(const Block& block, uint64_t descriptor, float* numbers) const {
    SharedOperand operand;
    (void)read_shared_operand(descriptor, mn_major, operand); // legal: checked at issue
    const unsigned elements = chunk_elements(type, lies_in_chunks(form));
    float chunk[32];
    const auto decode = [&](uint32_t row, uint32_t number) {
      const std::byte* bytes = block.shared + chunk_address(operand, mn_major, row, number);
      if (form.kind == ProductKind::ti16)
        decode_whole_numbers(bytes, elements, chunk);
      else
        decode_chunk(type, lies_in_chunks(form), bytes, chunk);
    };
    if (!mn_major && form.kind != ProductKind::ti16 && elements == chunk_elements(type, false)) {
      // Most lines are long enough to be decoded together.
      alignas(4) std::byte packed[most_columns * 2 * most_line_bytes];
      gather_lines(block, operand.matrix, k / elements, packed);
      decode_elements(type, packed, lines * k, numbers);
    } else if (!mn_major) {
      for (unsigned line = 0; line < lines; ++line)
        for (unsigned i = 0; i < k; i += elements) {
          decode(line, i / elements);
          std::copy_n(chunk, elements, numbers + line * k + i);
        }
    } else {
      for (unsigned i = 0; i < k; ++i)
        for (unsigned line = 0; line < lines; line += elements) {
          decode(i, line / elements);
          for (unsigned j = 0; j < std::min(elements, lines - line); ++j)
            numbers[(line + j) * k + i] = chunk[j];
        }
    }
    if (negates)
      for (unsigned i = 0; i < lines * k; ++i)
        numbers[i] = -numbers[i];
  }
};

// One block's part of a product.
class BlockPart {
public:
  BlockPart(const ProductIssue& issue, TensorMemory& memory, unsigned number)
      : issue_(issue), form_(*issue.form), shape_(issue.descriptor), memory_(memory), number_(number),
        places_(row_places(form_, shape_)), has_disabled_(std::ranges::any_of(issue.disabled, std::identity())) {
    for (unsigned indices = 0; form_.sparse && indices < columns_of_indices_.size(); ++indices)
      for (unsigned i = 0; i < elements_of_index(form_.kind) / 2; ++i)
        columns_of_indices_[indices][i] = static_cast<uint8_t>(column_of(form_.kind, indices, i));
  }

  void read_a() {
    const unsigned stored = stored_elements();
    float* a = scratch().a.data();
    if (!form_.a_in_memory) {
      const SharedLines rows{form_, shape_.a_type, shape_.a_rows_major, shape_.negates_a, places_.rows, stored};
      rows.read(memory_.block(), issue_.a, a);
      return;
    }
    for (unsigned fold = 0; fold < places_.folds; ++fold)
      for (unsigned row = 0; row < places_.rows; ++row)
        read_memory_row(row, fold, a + (fold * places_.rows + row) * stored, stored);
  }

  // Can multiply_lanes() be used, which is faster than multiply()?
  bool multiplies_lanes() { return form_.kind != ProductKind::ti16 && (form_.scale_count == 0 || scales_are_exact()); }

  // Adds the whole product; b[column * k + i]. A column of D lies in adjacent lanes of tensor memory, so that eight
  // rows of A are a vector of multiply_tile, and eight columns of B are its rows.
  void multiply_lanes(const float* b) {
    const unsigned columns = shape_.n / places_.folds, k = shape_.k;
    wide_ = lanes_method(form_.sparse, stored_elements());
    if (wide_) rows_together_ = 2 * lanes_together;
    for (unsigned fold = 0; fold < places_.folds; ++fold) {
      if (fold == 0 || form_.a_in_memory || form_.scale_count || form_.sparse) turn_rows(fold);
      const float* b_of_fold = b + fold * columns * k;
      if (form_.scale_count) b_of_fold = scaled_columns(fold, b_of_fold);
      for (unsigned column = 0; column < columns; column += tile_columns) {
        const float* b_columns = b_of_fold + column * k;
        if (shape_.sums == SumType::f32 && !has_disabled_ && issue_.d_shift == 0) {
          multiply_in_place(fold, column, b_columns);
          continue;
        }
        float sums[most_rows * tile_columns];
        load_lanes(fold, column, sums);
        for (unsigned row = 0; row < places_.rows; row += rows_together_)
          multiply_rows(row, b_columns, sums + row * tile_columns, rows_together_);
        store_lanes(fold, column, sums);
      }
    }
  }

  // Reads the columns of a sparse A's elements, for multiply().
  void read_kept() {
    for (unsigned fold = 0; form_.sparse && fold < places_.folds; ++fold)
      for (unsigned row = 0; row < places_.rows; ++row) {
        uint8_t* columns = scratch().kept.data() + (fold * places_.rows + row) * stored_elements();
        read_metadata(row, fold, [&](unsigned i, unsigned column) { columns[i] = static_cast<uint8_t>(column); });
      }
  }

  // Adds the product for columns first to first + 7 where multiply_lanes() does not; b has them as rows of eight.
  void multiply(unsigned first, const float* b) {
    const unsigned in_fold = shape_.n / places_.folds, fold = first / in_fold, column = first % in_fold;
    const float* a = scratch().a.data() + (form_.a_in_memory ? fold * places_.rows * stored_elements() : 0);
    if (form_.kind == ProductKind::ti16)
      return add_whole_products(fold, tensor_address(issue_.d).column + column, a, b);
    float lanes[most_rows * tile_columns], sums[most_rows * tile_columns];
    load_lanes(fold, column, lanes);
    turn_tiles(lanes, sums);
    multiply_scaled(first, fold, a, b, sums);
    turn_tiles(sums, lanes);
    store_lanes(fold, column, lanes);
  }

private:
  unsigned stored_elements() const { return form_.sparse ? shape_.k / 2 : shape_.k; } // in a row of A
  const uint8_t* kept(unsigned fold) const { return scratch().kept.data() + fold * places_.rows * stored_elements(); }

  // Calls store(i, column) for each element i that is stored in the row.
  template <class Store> void read_metadata(unsigned row, unsigned fold, Store&& store) {
    const TensorAddress at = tensor_address(issue_.metadata);
    const unsigned elements = elements_of_index(form_.kind), stored = elements / 2;
    for (unsigned number = 0; number * elements < shape_.k; ++number) {
      const IndexPlace place = index_place(form_.kind, shape_.selector, row, number);
      const uint32_t word = memory_.cell(at.lane + fold * places_.rows + place.lane, at.column + place.column);
      const ColumnsOfIndices& columns = columns_of_indices_[word >> place.shift & 0xf];
      for (unsigned i = 0; i < stored; ++i)
        store(number * stored + i, number * elements + columns[i]);
    }
  }

  uint32_t lane(unsigned row, unsigned fold) const { return tensor_address(issue_.d).lane + places_.lane(row, fold); }

  void read_memory_row(unsigned row, unsigned fold, float* numbers, unsigned count) {
    const TensorAddress place = tensor_address(issue_.a_place);
    uint32_t words[a_columns];
    for (unsigned i = 0; i < a_columns; ++i)
      words[i] = memory_.cell(place.lane + places_.lane(row, fold), place.column + i);
    const auto* bytes = reinterpret_cast<const std::byte*>(words);
    if (form_.kind == ProductKind::ti16)
      decode_whole_numbers(bytes, count, numbers);
    else if (lies_in_chunks(form_))
      decode_containers(shape_.a_type, bytes, count, numbers);
    else
      decode_elements(shape_.a_type, bytes, count, numbers);
    for (unsigned i = 0; shape_.negates_a && i < count; ++i)
      numbers[i] = -numbers[i];
  }

  // In vectors of rows: the place of element `i`, as stored, of a row of A.
  size_t place_of_turned(unsigned row, unsigned i) const {
    return (row / rows_together_ * stored_elements() + i) * rows_together_ + row % rows_together_;
  }

  // Makes vectors of rows of A, with their scales.
  void turn_rows(unsigned fold) {
    const unsigned k = stored_elements();
    const float* a = scratch().a.data() + (form_.a_in_memory ? fold * places_.rows * k : 0);
    for (unsigned row = 0; row < places_.rows; row += lanes_together) {
      float eight[most_elements * lanes_together];
      transpose_columns(a + row * k, k, eight);
      for (unsigned part = 0; part < form_.scale_count; ++part) {
        float scales[lanes_together];
        for (unsigned i = 0; i < lanes_together; ++i)
          scales[i] = scale(issue_.a_scales, row + i, lane(row, fold) / lanes_of_quarter, shape_.a_scale_byte + part);
        const unsigned in_part = k / form_.scale_count * lanes_together;
        for (unsigned i = part * in_part; i < (part + 1) * in_part; ++i)
          eight[i] *= scales[i % lanes_together];
      }
      float* turned = scratch().turned.data();
      for (unsigned i = 0; i < k; ++i)
        std::memcpy(turned + place_of_turned(row, i), eight + i * lanes_together, sizeof(Floats));
      if (form_.sparse) turn_kept(fold, row);
    }
  }

  // The columns of eight rows' elements. Their metadata lie in adjacent lanes.
  void turn_kept(unsigned fold, unsigned row) {
    const TensorAddress at = tensor_address(issue_.metadata);
    const unsigned elements = elements_of_index(form_.kind), stored = elements / 2;
    int32_t* turned = scratch().turned_kept.data();
    for (unsigned number = 0; number * elements < shape_.k; ++number) {
      const IndexPlace place = index_place(form_.kind, shape_.selector, row, number);
      Words indices;
      std::memcpy(&indices, &memory_.cell(at.lane + fold * places_.rows + place.lane, at.column + place.column),
                  sizeof indices);
      indices = indices >> static_cast<int>(place.shift) & 0xf;
      for (unsigned i = 0; i < stored; ++i) {
        const Words columns = column_of(form_.kind, indices, i) + static_cast<int>(number * elements);
        std::memcpy(turned + place_of_turned(row, number * stored + i), &columns, sizeof columns);
      }
    }
  }

  // Columns of B with their scales, which are the same in all quarters of the fold's lanes.
  const float* scaled_columns(unsigned fold, const float* b) {
    const unsigned columns = shape_.n / places_.folds, k = shape_.k, in_part = k / form_.scale_count;
    float* scaled = scratch().scaled.data();
    for (unsigned column = 0; column < columns; ++column)
      for (unsigned part = 0; part < form_.scale_count; ++part) {
        const float factor =
            scale(issue_.b_scales, column, lane(0, fold) / lanes_of_quarter, shape_.b_scale_byte + part);
        for (unsigned i = part * in_part; i < (part + 1) * in_part; ++i)
          scaled[column * k + i] = b[column * k + i] * factor;
      }
    return scaled;
  }

  // Are elements times their scales exact in f32, so that a product of two of them is that of elements and scales? An
  // element is below 2^16, and its lowest bit at least 2^-16. All quarters of lanes must have the same scales of B.
  bool scales_are_exact() {
    const unsigned columns = shape_.n / places_.folds;
    for (unsigned fold = 0; fold < places_.folds; ++fold) {
      const uint32_t first = lane(0, fold) / lanes_of_quarter, last = lane(places_.rows - 1, fold) / lanes_of_quarter;
      for (unsigned row = 0; row < places_.rows; ++row)
        if (!is_exact_scale(scale_word(issue_.a_scales, row, lane(row, fold) / lanes_of_quarter))) return false;
      for (unsigned column = 0; column < columns; ++column) {
        const uint32_t word = scale_word(issue_.b_scales, column, first);
        if (!is_exact_scale(word)) return false;
        for (uint32_t quarter = first + 1; quarter <= last; ++quarter)
          if (scale_word(issue_.b_scales, column, quarter) != word) return false;
      }
    }
    return true;
  }

  // For all four scales of a word.
  bool is_exact_scale(uint32_t word) const {
    constexpr uint32_t largest = 127 + 127 - 16, not_a_number = 0xff; // of ue8m0: 2^111
    if (shape_.scale_type != ScalarType::ue8m0) return true;
    for (unsigned i = 0; i < 4; ++i)
      if (const uint32_t code = word >> 8 * i & 0xff; code > largest && code != not_a_number) return false;
    return true;
  }

  // Adds the products of rows_together_ rows from `row` on with eight columns; d[column * distance + row].
  void multiply_rows(unsigned row, const float* b_columns, float* d, size_t distance) const {
    const unsigned stored = stored_elements();
    const float* rows = scratch().turned.data() + row * stored;
    const int32_t* kept_columns = scratch().turned_kept.data() + row * stored;
    if (wide_)
      wide_({rows, b_columns, kept_columns}, d, distance);
    else if (form_.sparse)
      multiply_sparse_lanes(rows, kept_columns, b_columns, shape_.k, stored, d, distance);
    else
      multiply_tile(b_columns, rows, tile_columns, stored, d, distance);
  }

  // f32 sums of eight columns from `column` on.
  void multiply_in_place(unsigned fold, unsigned column, const float* b_columns) {
    uint32_t* cells = memory_.column(tensor_address(issue_.d).column + column);
    for (unsigned row = 0; row < places_.rows; row += rows_together_) {
      auto* d = reinterpret_cast<float*>(cells + lane(row, fold));
      for (unsigned i = 0; !issue_.adds && i < tile_columns; ++i)
        std::fill_n(d + i * tensor_lanes, rows_together_, 0.0f);
      multiply_rows(row, b_columns, d, tensor_lanes);
      for (unsigned i = 0; !wide_ && i < tile_columns; ++i)
        store_floats(d + i * tensor_lanes, cells + lane(row, fold) + i * tensor_lanes);
    }
  }

  // Exchanges rows and columns of each eight rows' sums.
  void turn_tiles(const float* from, float* to) const {
    for (unsigned row = 0; row < places_.rows; row += lanes_together)
      transpose_columns(from + row * tile_columns, lanes_together, to + row * tile_columns);
  }

  // The sums of a row of column i and the next seven rows, if rows_together_ lanes of each column lie together.
  unsigned place_of_eight(unsigned row, unsigned i) const {
    return row / rows_together_ * rows_together_ * tile_columns + i * rows_together_ + row % rows_together_;
  }

  // Sums of eight columns from `column` on: for each rows_together_ rows, as many lanes of each column.
  void load_lanes(unsigned fold, unsigned column, float* sums) {
    if (!issue_.adds || shape_.sums == SumType::s32) return (void)std::fill_n(sums, places_.rows * tile_columns, 0.0f);
    for (unsigned i = 0; i < tile_columns; ++i) {
      const uint32_t* cells = memory_.column(tensor_address(issue_.d).column + column + i);
      for (unsigned row = 0; row < places_.rows; row += lanes_together)
        load_eight(cells + lane(row, fold), sums + place_of_eight(row, i));
    }
  }

  void load_eight(const uint32_t* cells, float* sums) const {
    if (shape_.sums == SumType::f32)
      std::memcpy(sums, cells, lanes_together * sizeof *sums);
    else
      for (unsigned i = 0; i < lanes_together; ++i)
        sums[i] = semantics::to_float(semantics::Float16{static_cast<uint16_t>(cells[i])});
    for (unsigned i = 0; issue_.d_shift && i < lanes_together; ++i)
      sums[i] = std::ldexp(sums[i], -static_cast<int>(issue_.d_shift));
  }

  void store_lanes(unsigned fold, unsigned column, const float* sums) {
    for (unsigned i = 0; i < tile_columns; ++i) {
      uint32_t* cells = memory_.column(tensor_address(issue_.d).column + column + i);
      for (unsigned row = 0; row < places_.rows; row += lanes_together)
        store_eight(lane(row, fold), sums + place_of_eight(row, i), cells);
    }
  }

  void store_eight(uint32_t first, const float* sums, uint32_t* column) const {
    const uint32_t disabled = has_disabled_ ? issue_.disabled[number_ * 4 + first / 32] >> first % 32 & 0xff : 0;
    uint32_t* cells = column + first;
    if (disabled || shape_.sums == SumType::f16)
      for (unsigned i = 0; i < lanes_together; ++i)
        cells[i] = disabled >> i & 1 ? cells[i] : stored(sums[i], cells[i]);
    else if (shape_.sums == SumType::f32)
      store_floats(sums, cells);
    else
      store_integers(sums, cells);
  }

  static void store_floats(const float* sums, uint32_t* cells) {
    Floats eight;
    std::memcpy(&eight, sums, sizeof eight);
    const Words bits = eight == eight ? (Words)eight : Words{} + semantics::FloatTraits<float>::canonical_nan;
    std::memcpy(cells, &bits, sizeof bits);
  }

  // As stored(), without branches on the sums.
  void store_integers(const float* sums, uint32_t* cells) const {
    Floats eight;
    std::memcpy(&eight, sums, sizeof eight);
    Words before{};
    if (issue_.adds) std::memcpy(&before, cells, sizeof before);
    using Bits = uint32_t __attribute__((vector_size(sizeof(Words)))); // whose sums wrap
    const Words sum = __builtin_convertvector(eight, Words), wrapped = (Words)((Bits)sum + (Bits)before);
    // The sign of a sum that overflows differs from those of both terms.
    const Words overflows = ((wrapped ^ before) & (wrapped ^ sum)) < 0, limit = INT32_MAX ^ (before >> 31);
    const Words clamped = shape_.saturates ? (overflows ? limit : wrapped) : wrapped;
    std::memcpy(cells, &clamped, sizeof clamped);
  }

  bool is_disabled(uint32_t lane) const { return issue_.disabled[number_ * 4 + lane / 32] >> lane % 32 & 1; }

  uint32_t stored(float sum, uint32_t before) const {
    if (shape_.sums == SumType::f32) return std::bit_cast<uint32_t>(semantics::canonical(sum));
    if (shape_.sums == SumType::f16) return semantics::to_half<semantics::Float16>(sum).bits;
    const int64_t exact =
        static_cast<int64_t>(static_cast<int32_t>(sum)) + (issue_.adds ? static_cast<int32_t>(before) : 0);
    return static_cast<uint32_t>(shape_.saturates ? std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX) : exact);
  }

  // Sums of products of 22 bits do not fit in f32.
  void add_whole_products(unsigned fold, unsigned column, const float* a, const float* b) {
    const unsigned stored = stored_elements();
    for (unsigned i = 0; i < tile_columns; ++i) {
      uint32_t* cells = memory_.column(column + i);
      for (unsigned row = 0; row < places_.rows; ++row) {
        const uint32_t at = lane(row, fold);
        if (is_disabled(at)) continue;
        const uint8_t* columns = form_.sparse ? kept(fold) + row * stored : nullptr;
        int32_t sum = 0; // below 2^27
        for (unsigned k = 0; k < stored; ++k)
          sum += static_cast<int32_t>(a[row * stored + k]) *
                 static_cast<int32_t>(b[(columns ? columns[k] : k) * tile_columns + i]);
        cells[at] = (issue_.adds ? cells[at] : 0) + static_cast<uint32_t>(sum);
      }
    }
  }

  uint32_t scale_word(uint32_t place, unsigned line, unsigned quarter) {
    return memory_.cell(quarter * lanes_of_quarter + line % 32, tensor_address(place).column + line / 32);
  }

  // Returns the scale of row or column `line`, for the rows in this quarter of the lanes.
  float scale(uint32_t place, unsigned line, unsigned quarter, unsigned byte) {
    const uint32_t code = scale_word(place, line, quarter) >> byte * 8 & 0xff;
    return shape_.scale_type == ScalarType::ue8m0 ? semantics::decode_ue8m0(code)
                                                  : semantics::decode<semantics::e4m3_format>(code & 0x7f);
  }

  void multiply_scaled(unsigned first, unsigned fold, const float* a, const float* b, float* sums) {
    const unsigned count = form_.scale_count, stored = stored_elements(), in_block = stored / count;
    for (unsigned row = 0; row < places_.rows; ++row) {
      const unsigned quarter = lane(row, fold) / lanes_of_quarter;
      const uint8_t* columns = form_.sparse ? kept(fold) + row * stored : nullptr;
      for (unsigned part = 0; part < count; ++part) {
        const double a_scale = scale(issue_.a_scales, row, quarter, shape_.a_scale_byte + part);
        for (unsigned i = 0; i < tile_columns; ++i) {
          // If the columns are in two parts, each half of the lanes has the scales of its own part.
          const unsigned line = (first + i) % (shape_.n / places_.folds);
          const double both =
              a_scale * static_cast<double>(scale(issue_.b_scales, line, quarter, shape_.b_scale_byte + part));
          float& sum = sums[row * tile_columns + i];
          for (unsigned k = part * in_block; k < (part + 1) * in_block; ++k) {
            // In f64 all but the sum is exact, and rounding it to odd makes the rounding to f32 correct.
            const float right = b[(columns ? columns[k] : k) * tile_columns + i];
            const double product = static_cast<double>(a[row * stored + k]) * static_cast<double>(right) * both;
            sum = static_cast<float>(semantics::add_odd(product, static_cast<double>(sum)));
          }
        }
      }
    }
  }

  const ProductIssue& issue_;
  const ProductForm& form_;
  const InstructionDescriptor& shape_;
  TensorMemory& memory_;
  unsigned number_; // 1: the second block of the pair
  RowPlaces places_;
  bool has_disabled_;
  // Of the stored elements, relative to the first column of the indices.
  using ColumnsOfIndices = std::array<uint8_t, 4>;
  std::array<ColumnsOfIndices, 16> columns_of_indices_ = {};
  unsigned rows_together_ = lanes_together; // whose sums are staged or multiplied as vectors
  LanesMethod wide_ = nullptr;              // for sixteen rows together
};

} // namespace

void carry_out(const ProductIssue& issue) {
  const InstructionDescriptor& shape = issue.descriptor;
  const ProductForm& form = *issue.form;
  const unsigned blocks = issue.odd ? 2 : 1, columns = shape.n / blocks;
  TensorMemory* memories[] = {issue.even, issue.odd};
  float* b = scratch().b.data();
  const SharedLines lines{form, shape.b_type, shape.b_columns_major, shape.negates_b, columns, shape.k};
  for (unsigned i = 0; i < blocks; ++i)
    lines.read(memories[i]->block(), issue.b, b + i * columns * shape.k);
  for (unsigned i = 0; i < blocks; ++i) {
    BlockPart part(issue, *memories[i], i);
    part.read_a();
    if (part.multiplies_lanes()) {
      part.multiply_lanes(b);
      continue;
    }
    part.read_kept();
    for (unsigned first = 0; first < shape.n; first += tile_columns) {
      float tile[2 * most_elements * tile_columns];
      transpose_columns(b + first * shape.k, shape.k, tile);
      part.multiply(first, tile);
    }
  }
}

uint32_t CopyForm::lane(unsigned row, unsigned copy) const {
  switch (lanes) {
  case Lanes::same:
    return row;
  case Lanes::one_of_quarter:
    return row * lanes_of_quarter;
  case Lanes::halves_apart: // warps 0 and 2, 1 and 3
    return row + copy * 64;
  case Lanes::pairs_apart: // warps 0 and 1, 2 and 3
    return row % 32 + row / 32 * 64 + copy * 32;
  case Lanes::quarters_apart:
    return row + copy * lanes_of_quarter;
  }
  return row;
}

void carry_out(const CopyIssue& issue) {
  const CopyForm& form = *issue.form;
  SharedOperand operand;
  (void)read_shared_operand(issue.source, false, operand); // legal: checked at issue
  const TensorAddress target = tensor_address(issue.target);
  for (TensorMemory* memory : {issue.even, issue.odd}) {
    if (!memory) continue;
    for (unsigned row = 0; row < form.rows; ++row)
      for (unsigned number = 0; number < form.chunks; ++number) {
        const std::byte* from = memory->block().shared + chunk_address(operand, false, row, number);
        std::byte unpacked[chunk_bytes];
        if (form.unpacked_bits) unpack_chunk(form.unpacked_bits, from, unpacked);
        uint32_t words[chunk_bytes / 4];
        std::memcpy(words, form.unpacked_bits ? unpacked : from, sizeof words);
        for (unsigned copy = 0; copy < form.copies; ++copy)
          for (unsigned i = 0; i < std::size(words); ++i)
            memory->cell(target.lane + form.lane(row, copy),
                         target.column + number * static_cast<uint32_t>(std::size(words)) + i) = words[i];
      }
  }
}

void carry_out(const ShiftIssue& issue) {
  for (TensorMemory* memory : {issue.even, issue.odd})
    for (unsigned i = 0; memory && i < shifted_columns; ++i) {
      uint32_t* column = memory->column(issue.column + i);
      for (unsigned quarter = 0; quarter < tensor_lanes; quarter += lanes_of_quarter)
        std::copy(column + quarter + 1, column + quarter + lanes_of_quarter, column + quarter);
    }
}

} // namespace ptxrewrite::emulator
