#include "ir/machine/figures/matrix_work.h"

#include "ir/isa/matrix_shape.h"

namespace ptxrewrite::ir {
namespace {

// The types are those of D, A, B and C; wmma in half precision names only those of D and C.
ScalarType factor_type(const Form& form) {
  return form.types.size() >= 4 ? form.types[1] : ScalarType::f16;
}

double time_of(ScalarType type) {
  switch (type) {
  case ScalarType::f64:
    return 16;
  case ScalarType::tf32:
    return 2;
  case ScalarType::b1:
    return 1.0 / 16;
  default:
    return bit_width(type) / 16.0;
  }
}

} // namespace

bool is_async_product(const Form& form) {
  return (form.opcode == Opcode::wgmma && form.has(Modifier::mma_async)) ||
         (form.opcode == Opcode::tcgen05 && form.has(Modifier::mma));
}

double tensor_memory_product_time(const Form& form) {
  using enum Modifier;
  if (form.has(kind_tf32)) return time_of(ScalarType::tf32);
  if (form.has(kind_mxf4) || form.has(kind_mxf4nvf4)) return 4 / 16.0;
  return form.has(kind_f16) || form.has(kind_ti16) ? 1 : 8 / 16.0;
}

double matrix_products(const Form& form) {
  if (form.opcode == Opcode::wgmma && is_async_product(form)) {
    constexpr unsigned rows_of_warp = 16;
    const MatrixShape shape = matrix_shape(form);
    return double(rows_of_warp) * shape.n * shape.k * time_of(form.type(1)) / (form.has(Modifier::sp) ? 2 : 1);
  }
  const bool loads_or_stores = form.effects.reads_memory || form.effects.writes_memory;
  if ((form.kind != InstructionClass::matrix_mma && form.kind != InstructionClass::matrix_wmma) || loads_or_stores)
    return 0;
  const MatrixShape shape = matrix_shape(form);
  const ScalarType type = factor_type(form);
  double products = double(shape.m) * shape.n * shape.k * time_of(type);
  // One instruction computes four products (PTX ISA 9.7.14.5.1).
  if (shape.m == 8 && shape.k == 4 && type == ScalarType::f16) products *= 4;
  const bool sparse = form.has(Modifier::sp) || form.has(Modifier::sp_ordered_metadata);
  return sparse ? products / 2 : products;
}

} // namespace ptxrewrite::ir
