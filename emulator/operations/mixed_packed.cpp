// Rows of packed arithmetic whose operands have different types (PTX ISA 9.4, 9.7.5 and 9.7.6): f32x2 with f16x2 and
// bf16x2, bf16x2 of two f32x2, f16x2 times bf16x2; and add, sub, mul, fma of four floats of 8, 6 and 4 bits.
#include "emulator/core/decode.h"
#include "emulator/core/operation.h"
#include "emulator/operations/families.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/narrow_numbers.h"

#include <bit>

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

template <class Function> constexpr Float32x2 directed_pair(Flags flags, Function function) {
  return by_rounding(flags, [&]<Rounding mode>() { return function.template operator()<FloatMode<mode>>(); });
}

template <class Half> Float32x2 add_to_floats(Pair<Half> a, Float32x2 c, Flags flags) {
  return directed_pair(flags, [&]<class Mode>() {
    return Float32x2{add_mixed<Mode>(a.low, c.low), add_mixed<Mode>(a.high, c.high)};
  });
}
template <class Half> Float32x2 subtract_floats(Pair<Half> a, Float32x2 c, Flags flags) {
  return directed_pair(flags, [&]<class Mode>() {
    return Float32x2{sub_mixed<Mode>(a.low, c.low), sub_mixed<Mode>(a.high, c.high)};
  });
}
template <class Half> Float32x2 fma_of_floats(Pair<Half> a, Float32x2 b, Float32x2 c, Flags flags) {
  return directed_pair(flags, [&]<class Mode>() {
    return Float32x2{fma_f32<Mode>(to_float(a.low), b.low, c.low), fma_f32<Mode>(to_float(a.high), b.high, c.high)};
  });
}

// Rounds an exact value, or one rounded to odd.
template <class Half, NarrowRounding Mode> Half half_of(double value) {
  return to_half<Half, Mode>(narrow_odd(value));
}
constexpr auto truncated = &half_of<BFloat16, NarrowRounding::toward_zero>;

BFloat16x2 add_truncated(Float32x2 a, Float32x2 c) {
  return {truncated(add_odd<double>(a.low, c.low)), truncated(add_odd<double>(a.high, c.high))};
}
BFloat16x2 sub_truncated(Float32x2 a, Float32x2 c) {
  return {truncated(add_odd<double>(a.low, -c.low)), truncated(add_odd<double>(a.high, -c.high))};
}
BFloat16x2 mul_truncated(Float32x2 a, Float32x2 b) {
  return {truncated(static_cast<double>(a.low) * b.low), truncated(static_cast<double>(a.high) * b.high)};
}
template <class Half, class Other> Pair<Half> mul_halves(Pair<Half> a, Pair<Other> b) {
  constexpr auto nearest = &half_of<Half, NarrowRounding::nearest_even>;
  return {nearest(static_cast<double>(to_float(a.low)) * to_float(b.low)),
          nearest(static_cast<double>(to_float(a.high)) * to_float(b.high))};
}

// --- four numbers ---

enum class Arithmetic : uint8_t { add, sub, mul, fma };

struct Quadruple {
  NarrowKind a = NarrowKind::e4m3, b = NarrowKind::e4m3;
  NarrowResult result;
};
static_assert(sizeof(Quadruple) == sizeof(int64_t));

// MicroOp::flags: elements of 4 bits that lie in a byte each (.e2m1p4x4).
constexpr uint32_t flag_a_in_bytes = 1, flag_b_in_bytes = 2;

uint32_t element(NarrowKind kind, uint32_t packed, unsigned index, bool in_bytes) {
  const unsigned width = width_of(kind);
  // NOLINTNEXTLINE(clang-analyzer-core.BitwiseShift): these kinds have 4 to 8 bits
  return packed >> (index * (in_bytes ? 8 : width)) & ((1u << width) - 1);
}

template <Arithmetic operation>
uint32_t compute_four(const Quadruple& what, uint32_t flags, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t packed = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const double x = value_of(what.a, element(what.a, a, i, (flags & flag_a_in_bytes) != 0));
    const double y = value_of(what.b, element(what.b, b, i, (flags & flag_b_in_bytes) != 0));
    const double z = value_of(what.result.kind, element(what.result.kind, c, i, false));
    double value = 0;
    switch (operation) {
    case Arithmetic::add:
      value = add_odd(x, z);
      break;
    case Arithmetic::sub:
      value = add_odd(x, -z);
      break;
    case Arithmetic::mul:
      value = x * y; // exact
      break;
    case Arithmetic::fma:
      value = add_odd(x * y, z);
      break;
    }
    packed |= code_of(value, what.result) << (8 * i);
  }
  return packed;
}

// op.source: a, b, c; those that the operation lacks are arbitrary. op.immediate: the Quadruple.
template <Arithmetic operation> const MicroOp* run_four(Warp& warp, const MicroOp& op) {
  const auto what = std::bit_cast<Quadruple>(op.immediate);
  const uint32_t* a = warp.lanes<uint32_t>(op.source[0]);
  const uint32_t* b = warp.lanes<uint32_t>(op.source[1]);
  const uint32_t* c = warp.lanes<uint32_t>(op.source[2]);
  emulator::detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    return compute_four<operation>(what, op.flags, a[lane], b[lane], c[lane]);
  });
  return &op + 1;
}

NarrowKind kind_of(ir::ScalarType type) {
  switch (type) {
  case ir::ScalarType::e5m2x4:
    return NarrowKind::e5m2;
  case ir::ScalarType::e4m3x4:
    return NarrowKind::e4m3;
  case ir::ScalarType::e3m2x4:
    return NarrowKind::e3m2;
  case ir::ScalarType::e2m3x4:
    return NarrowKind::e2m3;
  case ir::ScalarType::e2m1x4:
  case ir::ScalarType::e2m1p4x4:
    return NarrowKind::e2m1;
  default:
    return NarrowKind::ue8m0; // the last one that the patterns below have
  }
}

template <Arithmetic operation> void decode_four(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  Quadruple what;
  what.result.kind = kind_of(form.type(0));
  what.result.finite = form.has(ir::Modifier::satfinite);
  what.result.overflow_is_nan = !what.result.finite;
  what.a = kind_of(form.type(1));
  const ir::ScalarType b = form.types.size() > 2 ? form.type(2) : form.type(1);
  what.b = kind_of(b);
  LaneRef sources[3];
  for (unsigned i = 0; i < 3 && decoder.top_level(i + 1) < decoder.operands().size(); ++i)
    sources[i] = decoder.source(decoder.operands()[decoder.top_level(i + 1)], lane_type_of<uint32_t>());
  constexpr bool has_product = operation == Arithmetic::mul || operation == Arithmetic::fma;
  constexpr bool has_sum = operation != Arithmetic::mul;
  const LaneRef destination = decoder.destination(decoder.operands()[0], lane_type_of<uint32_t>());
  MicroOp& op = decoder.emit(&run_four<operation>);
  op.destination[0] = destination;
  op.source[0] = sources[0];
  op.source[1] = has_product ? sources[1] : sources[0];
  op.source[2] = has_sum ? sources[has_product ? 2 : 1] : sources[0];
  op.immediate = std::bit_cast<int64_t>(what);
  op.flags = (form.type(1) == ir::ScalarType::e2m1p4x4 ? flag_a_in_bytes : 0) |
             (b == ir::ScalarType::e2m1p4x4 ? flag_b_in_bytes : 0);
}

} // namespace

void add_mixed_packed(OperationTable& table) {
  table.row<&add_to_floats<Float16>>("add[.rn|.rz|.rm|.rp].f32x2.f16x2.f32x2");
  table.row<&add_to_floats<BFloat16>>("add[.rn|.rz|.rm|.rp].f32x2.bf16x2.f32x2");
  table.row<&subtract_floats<Float16>>("sub[.rn|.rz|.rm|.rp].f32x2.f16x2.f32x2");
  table.row<&subtract_floats<BFloat16>>("sub[.rn|.rz|.rm|.rp].f32x2.bf16x2.f32x2");
  table.row<&fma_of_floats<Float16>>("fma{.rn|.rz|.rm|.rp}.f32x2.f16x2.f32x2.f32x2");
  table.row<&fma_of_floats<BFloat16>>("fma{.rn|.rz|.rm|.rp}.f32x2.bf16x2.f32x2.f32x2");
  table.row<&add_truncated>("add.rz.bf16x2.f32x2.f32x2");
  table.row<&sub_truncated>("sub.rz.bf16x2.f32x2.f32x2");
  table.row<&mul_truncated>("mul.rz.bf16x2.f32x2.f32x2");
  table.row<&mul_halves<Float16, BFloat16>>("mul.f16x2.f16x2.bf16x2");
  table.row<&mul_halves<BFloat16, Float16>>("mul.bf16x2.bf16x2.f16x2");
}

#define SMALL_X4 "{e5m2x4|e4m3x4|e3m2x4|e2m3x4|e2m1x4|e2m1p4x4|ue8m0x4}"
void add_narrow_float_products(OperationTable& table) {
  table.special("add[.rn][.satfinite].{e5m2x4|e4m3x4}." SMALL_X4, &decode_four<Arithmetic::add>);
  table.special("sub[.rn][.satfinite].{e5m2x4|e4m3x4}." SMALL_X4, &decode_four<Arithmetic::sub>);
  table.special("mul[.rn][.satfinite].{e5m2x4|e4m3x4}." SMALL_X4 "." SMALL_X4, &decode_four<Arithmetic::mul>);
  table.special("fma[.rn][.satfinite].{e5m2x4|e4m3x4}." SMALL_X4 "." SMALL_X4, &decode_four<Arithmetic::fma>);
}

} // namespace ptxrewrite::emulator
