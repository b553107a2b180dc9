// The fields, and the values of each that a kind of product allows (PTX ISA, tables of 9.7.16.2.1 and 9.7.16.4.2).
#include "emulator/tensor_memory/instruction_descriptor.h"

#include "emulator/tensor_memory/sparse_places.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;

struct Bits {
  uint32_t word;
  uint32_t field(unsigned first, unsigned count) const { return word >> first & ((1u << count) - 1); }
  bool flag(unsigned at) const { return field(at, 1) != 0; }
};

ScalarType element_type(ProductKind kind, uint32_t code) {
  switch (kind) {
  case ProductKind::f16:
    return code == 0 ? ScalarType::f16 : code == 1 ? ScalarType::bf16 : ScalarType::none;
  case ProductKind::tf32:
    return code == 2 ? ScalarType::tf32 : ScalarType::none;
  case ProductKind::i8:
    return code == 0 ? ScalarType::u8 : code == 1 ? ScalarType::s8 : ScalarType::none;
  case ProductKind::ti16:
    return code == 3 ? ScalarType::b16 : ScalarType::none;
  case ProductKind::f8f6f4:
  case ProductKind::mxf8f6f4: {
    constexpr ScalarType types[] = {ScalarType::e4m3, ScalarType::e5m2, ScalarType::none, ScalarType::e2m3,
                                    ScalarType::e3m2, ScalarType::e2m1, ScalarType::none, ScalarType::none};
    return types[code & 7];
  }
  case ProductKind::mxf4:
  case ProductKind::mxf4nvf4:
    return code == 1 ? ScalarType::e2m1 : ScalarType::none;
  }
  return ScalarType::none;
}

unsigned depth(const ProductForm& form) {
  const unsigned dense = form.kind == ProductKind::f16 || form.kind == ProductKind::ti16        ? 16
                         : form.kind == ProductKind::tf32                                       ? 8
                         : form.kind == ProductKind::mxf4 || form.kind == ProductKind::mxf4nvf4 ? 64
                                                                                                : 32;
  return form.sparse ? 2 * dense : dense;
}

// The code of the accumulator's type: 0 f16, 1 f32, 2 s32.
bool read_sums(const ProductForm& form, uint32_t code, SumType& sums) {
  sums = code == 0 ? SumType::f16 : code == 1 ? SumType::f32 : SumType::s32;
  if (form.kind == ProductKind::i8 || form.kind == ProductKind::ti16) return code == 2;
  if (form.kind == ProductKind::tf32) return code == 1;
  return code <= 1;
}

std::string check_shape(const ProductForm& form, const InstructionDescriptor& made) {
  bool good = false;
  if (form.weights_stay)
    good = (made.m == 32 || made.m == 64 || made.m == 128) && (made.n == 64 || made.n == 128 || made.n == 256);
  else if (form.group == 2)
    good = (made.m == 128 || made.m == 256) && made.n >= 16 && made.n <= 256 && made.n % 16 == 0;
  else if (made.m == 64)
    good = form.scale_count == 0 && made.n >= 8 && made.n <= 256;
  else
    good = made.m == 128 && made.n >= 8 && made.n <= 256 && made.n % (form.scale_count ? 8 : 16) == 0;
  if (good) return {};
  return fmt::format("an instruction descriptor of a product of {} rows and {} columns, which .cta_group::{}{} has not",
                     made.m, made.n, form.group, form.weights_stay ? " with .ws" : "");
}

bool has_narrow_elements(ScalarType type) {
  return type == ScalarType::e2m3 || type == ScalarType::e3m2 || type == ScalarType::e2m1;
}

std::string check_majors(const InstructionDescriptor& made) {
  if ((made.a_rows_major && has_narrow_elements(made.a_type)) ||
      (made.b_columns_major && has_narrow_elements(made.b_type)))
    return "an instruction descriptor with a transposed matrix of elements of 4 or 6 bits";
  return {};
}

} // namespace

std::string read_descriptor(uint32_t word, const ProductForm& form, InstructionDescriptor& made) {
  const Bits bits{word};
  const bool scaled = form.scale_count != 0;
  made.a_type = element_type(form.kind, bits.field(7, 3));
  made.b_type = element_type(form.kind, bits.field(10, 3));
  if (made.a_type == ScalarType::none || made.b_type == ScalarType::none)
    return fmt::format("an instruction descriptor ({:#010x}) with types of A and B that the kind of product has not",
                       word);
  if (bits.flag(2) != form.sparse)
    return fmt::format("an instruction descriptor ({:#010x}) of a {} product in an instruction {} .sp", word,
                       bits.flag(2) ? "sparse" : "dense", form.sparse ? "with" : "without");
  made.negates_a = bits.flag(13);
  made.negates_b = bits.flag(14);
  made.a_rows_major = bits.flag(15);
  made.b_columns_major = bits.flag(16);
  made.n = bits.field(17, 6) * 8;
  made.k = depth(form);
  if (form.sparse && has_selector(form.kind)) made.selector = bits.field(0, 2);
  if (made.selector > 1)
    return fmt::format("a sparsity selector of {}, which is not emulated: public text shows 0 and 1", made.selector);
  if (form.sparse && !scaled && !has_selector(form.kind) && bits.field(0, 2) != 0)
    return fmt::format("a sparsity selector of {}, where elements of 8 bits have 0", bits.field(0, 2));
  if (scaled) {
    made.sums = SumType::f32;
    made.m = bits.field(27, 2) * 128;
    made.scale_type = bits.flag(23) ? ScalarType::ue8m0 : ScalarType::ue4m3;
    made.b_scale_byte = bits.field(4, 2);
    made.a_scale_byte = bits.field(29, 2);
    if (made.scale_type == ScalarType::ue4m3 && form.kind != ProductKind::mxf4nvf4)
      return "an instruction descriptor with scales of ue4m3, which only kind::mxf4nvf4 has";
    if (form.kind != ProductKind::mxf8f6f4 && bits.flag(31)) return "products of 96 elements along K are not emulated";
    if (form.kind != ProductKind::mxf8f6f4 && (made.a_rows_major || made.b_columns_major))
      return "an instruction descriptor with a transposed matrix of packed elements of 4 bits";
    if (made.a_scale_byte % form.scale_count || made.b_scale_byte % form.scale_count)
      return fmt::format("an instruction descriptor whose scales begin in bytes {} and {} of each column; there are {} "
                         "of a row",
                         made.a_scale_byte, made.b_scale_byte, form.scale_count);
  } else {
    made.m = bits.field(24, 5) * 16;
    made.saturates = bits.flag(3);
    if (!read_sums(form, bits.field(4, 2), made.sums))
      return fmt::format("an instruction descriptor ({:#010x}) with a type of D that the kind of product has not",
                         word);
    if (made.saturates && form.kind != ProductKind::i8)
      return "an instruction descriptor that saturates sums of floating point";
    if (form.kind == ProductKind::i8 && (made.negates_a || made.negates_b))
      return "an instruction descriptor that negates whole numbers";
    if (form.kind == ProductKind::ti16 && (made.a_rows_major || made.b_columns_major))
      return "transposed matrices of kind::ti16 are not emulated: two tables of PTX ISA 9.4 contradict each other";
  }
  if (bits.field(30, 2) && form.weights_stay) return "a matrix B that is shifted (.ws) is not emulated";
  if (std::string wrong = check_shape(form, made); !wrong.empty()) return wrong;
  return check_majors(made);
}

} // namespace ptxrewrite::emulator
