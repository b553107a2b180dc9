#include "emulator/special/matrix_layout.h"

namespace ptxrewrite::emulator {
namespace {

unsigned element_bits(ir::ScalarType type) {
  // 32 one-bit elements are multiplied in one step.
  return type == ir::ScalarType::b1 ? 32 : ir::bit_width(type);
}

struct Place {
  unsigned matrix = 0, row = 0, column = 0;
};

// The f16 products of m8n8k4: quad q of the lower half and quad q of the upper half of the warp hold matrix q.
Place quad_pair_place(MatrixRole role, unsigned lane, unsigned element, bool column_major, bool is_f32) {
  const unsigned matrix = lane % 16 / 4, in_quad = lane % 4, upper = lane < 16 ? 0 : 4;
  switch (role) {
  case MatrixRole::a:
    return column_major ? Place{matrix, element % 4 + upper, in_quad} : Place{matrix, in_quad + upper, element};
  case MatrixRole::b:
    return column_major ? Place{matrix, element, in_quad + upper} : Place{matrix, in_quad, element + upper};
  case MatrixRole::accumulator:
    break;
  }
  if (!is_f32) return {matrix, in_quad + upper, element};
  return {matrix, (lane & 1) + (element & 2) + upper, (element & 4) + (lane & 2) + (element & 1)};
}

// All other shapes: eight groups of four lanes.
Place group_place(MatrixRole role, unsigned lane, unsigned reg, unsigned element, const Fragment& fragment) {
  const unsigned group = lane / 4, in_group = lane % 4, count = fragment.per_register();
  switch (role) {
  case MatrixRole::a: {
    const unsigned row_blocks = fragment.rows / 8;
    return {0, group + 8 * (reg % row_blocks), reg / row_blocks * 4 * count + in_group * count + element};
  }
  case MatrixRole::b:
    return {0, reg * 4 * count + in_group * count + element, group};
  case MatrixRole::accumulator:
    break;
  }
  const unsigned index = reg * count + element;
  return {0, group + 8 * (index / 2), in_group * 2 + index % 2};
}

Fragment empty_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers) {
  Fragment fragment;
  fragment.registers = registers;
  fragment.register_bits = type == ir::ScalarType::f64 ? 64 : 32;
  fragment.element_bits = element_bits(type);
  if (type == ir::ScalarType::b1) shape.k = static_cast<uint16_t>(shape.k / 32);
  fragment.rows = role == MatrixRole::b ? shape.k : shape.m;
  fragment.columns = role == MatrixRole::a ? shape.k : shape.n;
  return fragment;
}

} // namespace

Fragment mma_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers, bool column_major) {
  Fragment fragment = empty_fragment(shape, role, type, registers);
  const bool quad_pairs = shape.k == 4 && shape.m == 8 && type != ir::ScalarType::f64;
  if (quad_pairs) fragment.matrices = 4;
  for (unsigned reg = 0; reg < registers; ++reg)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      for (unsigned element = 0; element < fragment.per_register(); ++element) {
        const Place place = quad_pairs ? quad_pair_place(role, lane, reg * fragment.per_register() + element,
                                                         column_major, type == ir::ScalarType::f32)
                                       : group_place(role, lane, reg, element, fragment);
        fragment.places.push_back(
            static_cast<uint16_t>((place.matrix * fragment.rows + place.row) * fragment.columns + place.column));
      }
  return fragment;
}

Fragment wmma_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers) {
  Fragment fragment = empty_fragment(shape, role, type, registers);
  const unsigned each = fragment.size() / warp_size;
  for (unsigned reg = 0; reg < registers; ++reg)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      for (unsigned element = 0; element < fragment.per_register(); ++element)
        fragment.places.push_back(
            static_cast<uint16_t>(lane * each + (reg * fragment.per_register() + element) % each));
  return fragment;
}

} // namespace ptxrewrite::emulator
