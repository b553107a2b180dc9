// Rows of conversions between floats: f16, bf16, f32, f64, tf32, integral values, and packs of f16, bf16 and of the 8,
// 6 and 4-bit formats.
#include "emulator/core/decode.h"
#include "emulator/core/operation.h"
#include "emulator/operations/families.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/convert.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;
using enum NarrowRounding;

// --- one number ---

template <class Half> Half half_of_f32_by_flags(float a, Flags flags) {
  const float source = flushed_by(flags, a);
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return f32_to_half<Half, mode>(source); }));
}
template <class Half> Half half_of_f64_by_flags(double a, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return f64_to_half<Half, mode>(a); }));
}
template <class To, class From> To half_of_half_by_flags(From a, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() { return half_to_half<To, mode>(a); }));
}
template <class Half> float f32_of_half_by_flags(Half a, Flags flags) {
  return saturated_by(flags, flushed_by(flags, half_to_f32(a)));
}
template <class Half> double f64_of_half_by_flags(Half a, Flags flags) {
  return saturated_by(flags, half_to_f64(a));
}
float f32_of_f64_by_flags(double a, Flags flags) {
  return saturated_by(flags, by_rounding(flags, [&]<Rounding mode>() {
                        return flags.has(flag_ftz) ? f64_to_f32<FloatMode<mode, true>>(a)
                                                   : f64_to_f32<FloatMode<mode>>(a);
                      }));
}
double f64_of_f32_by_flags(float a, Flags flags) {
  return saturated_by(flags, f32_to_f64(flushed_by(flags, a)));
}
float f32_of_f32_by_flags(float a, Flags flags) {
  return saturated_by(flags, f32_to_f32(flushed_by(flags, a)));
}

void add_between_types(OperationTable& table) {
  table.row<&f64_to_f32<FloatMode<>>>("cvt.rn.f32.f64");
  table.row<&f32_of_f64_by_flags>("cvt{.rn|.rz|.rm|.rp}[.ftz][.sat].f32.f64");
  table.row<&f32_to_f64<false>>("cvt.f64.f32");
  table.row<&f64_of_f32_by_flags>("cvt[.ftz][.sat].f64.f32");
  table.row<&f32_of_f32_by_flags>("cvt[.ftz][.sat].f32.f32");
  table.row<[](double a, Flags flags) { return saturated_by(flags, quieted(a)); }>("cvt[.sat].f64.f64");
  table.row<&f32_to_half<Float16, Rounding::nearest_even, false>>("cvt.rn.f16.f32");
  table.row<&half_of_f32_by_flags<Float16>>("cvt{.rn|.rz|.rm|.rp}[.ftz][.sat].f16.f32");
  table.row<&f32_to_half<BFloat16, Rounding::nearest_even, false>>("cvt.rn.bf16.f32");
  table.row<&half_of_f32_by_flags<BFloat16>>("cvt{.rn|.rz|.rm|.rp}[.ftz].bf16.f32");
  table.row<&half_of_f64_by_flags<Float16>>("cvt{.rn|.rz|.rm|.rp}[.sat].f16.f64");
  table.row<&half_of_f64_by_flags<BFloat16>>("cvt{.rn|.rz|.rm|.rp}.bf16.f64");
  table.row<&half_to_f32<false, Float16>>("cvt.f32.f16");
  table.row<&f32_of_half_by_flags<Float16>>("cvt[.ftz][.sat].f32.f16");
  table.row<&half_to_f32<false, BFloat16>>("cvt[.rn|.rz|.rm|.rp].f32.bf16");
  table.row<&f32_of_half_by_flags<BFloat16>>("cvt[.rn|.rz|.rm|.rp][.ftz].f32.bf16");
  table.row<&f64_of_half_by_flags<Float16>>("cvt[.sat].f64.f16");
  table.row<&f64_of_half_by_flags<BFloat16>>("cvt[.rn|.rz|.rm|.rp].f64.bf16");
  table.row<&half_of_half_by_flags<Float16, Float16>>("cvt[.sat].f16.f16");
  table.row<&half_of_half_by_flags<BFloat16, BFloat16>>("cvt.bf16.bf16");
  table.row<&half_of_half_by_flags<BFloat16, Float16>>("cvt[.rn|.rz|.rm|.rp].bf16.f16");
  table.row<&half_of_half_by_flags<Float16, BFloat16>>("cvt[.rn|.rz|.rm|.rp].f16.bf16");
}

template <IntegerRounding Mode, class T> T integral_by_flags(T a, Flags flags) {
  if constexpr (std::is_same_v<T, float>) a = flushed_by(flags, a);
  return saturated_by(flags, cvt_integral<Mode>(a));
}
#define INTEGRAL(mode, word)                                                                                           \
  table.row<&integral_by_flags<IntegerRounding::mode, float>>("cvt" word "[.ftz][.sat].f32.f32");                      \
  table.row<&integral_by_flags<IntegerRounding::mode, double>>("cvt" word "[.sat].f64.f64");                           \
  table.row<&integral_by_flags<IntegerRounding::mode, Float16>>("cvt" word "[.sat].f16.f16");                          \
  table.row<&integral_by_flags<IntegerRounding::mode, BFloat16>>("cvt" word ".bf16.bf16");
void add_integral(OperationTable& table) {
  INTEGRAL(nearest_even, ".rni")
  INTEGRAL(toward_zero, ".rzi")
  INTEGRAL(down, ".rmi")
  INTEGRAL(up, ".rpi")
}

// --- .relu and .satfinite ---

constexpr NarrowOptions plain = {};
constexpr NarrowOptions relu = {.relu = true};
constexpr NarrowOptions satfinite = {.finite = true};
constexpr NarrowOptions both = {.finite = true, .relu = true};

template <class Half, NarrowRounding Mode, NarrowOptions Options> constexpr Half clamped_half(float a) {
  return to_half<Half, Mode, Options>(a);
}
#define CLAMPED(options, words)                                                                                        \
  table.row<&clamped_half<Float16, nearest_even, options>>("cvt.rn" words ".f16.f32");                                 \
  table.row<&clamped_half<Float16, toward_zero, options>>("cvt.rz" words ".f16.f32");                                  \
  table.row<&clamped_half<BFloat16, nearest_even, options>>("cvt.rn" words ".bf16.f32");                               \
  table.row<&clamped_half<BFloat16, toward_zero, options>>("cvt.rz" words ".bf16.f32");
#define PACKED_HALVES(options, words)                                                                                  \
  table.row<&pack_halves<Float16, nearest_even, options>>("cvt.rn" words ".f16x2.f32");                                \
  table.row<&pack_halves<Float16, toward_zero, options>>("cvt.rz" words ".f16x2.f32");                                 \
  table.row<&pack_halves<BFloat16, nearest_even, options>>("cvt.rn" words ".bf16x2.f32");                              \
  table.row<&pack_halves<BFloat16, toward_zero, options>>("cvt.rz" words ".bf16x2.f32");
#define TF32(options, words)                                                                                           \
  table.row<&f32_to_tf32<nearest_even, options>>("cvt.rn" words ".tf32.f32");                                          \
  table.row<&f32_to_tf32<toward_zero, options>>("cvt.rz" words ".tf32.f32");
void add_clamped(OperationTable& table) {
  CLAMPED(relu, ".relu")
  CLAMPED(satfinite, ".satfinite")
  CLAMPED(both, ".relu.satfinite")
  PACKED_HALVES(plain, "")
  PACKED_HALVES(relu, ".relu")
  PACKED_HALVES(satfinite, ".satfinite")
  PACKED_HALVES(both, ".relu.satfinite")
  TF32(plain, "")
  TF32(relu, ".relu")
  TF32(satfinite, ".satfinite")
  TF32(both, ".relu.satfinite")
  table.row<&f32_to_tf32<nearest_away, plain>>("cvt.rna.tf32.f32");
  table.row<&f32_to_tf32<nearest_away, satfinite>>("cvt.rna.satfinite.tf32.f32");
  table.row<&pack_halves_stochastic<Float16, false, false>>("cvt.rs.f16x2.f32");
  table.row<&pack_halves_stochastic<Float16, false, true>>("cvt.rs.relu.f16x2.f32");
  table.row<&pack_halves_stochastic<Float16, true, false>>("cvt.rs.satfinite.f16x2.f32");
  table.row<&pack_halves_stochastic<Float16, true, true>>("cvt.rs.satfinite.relu.f16x2.f32");
  table.row<&pack_halves_stochastic<BFloat16, false, false>>("cvt.rs.bf16x2.f32");
  table.row<&pack_halves_stochastic<BFloat16, false, true>>("cvt.rs.relu.bf16x2.f32");
  table.row<&pack_halves_stochastic<BFloat16, true, false>>("cvt.rs.satfinite.bf16x2.f32");
  table.row<&pack_halves_stochastic<BFloat16, true, true>>("cvt.rs.satfinite.relu.bf16x2.f32");
}

// --- 8, 6 and 4 bits ---

template <SmallFormat Format, bool Relu> constexpr PackOfTwo<Format> pack_f32(float a, float b) {
  return pack_small<Format, Relu>(a, b);
}
template <SmallFormat Format, bool Relu> constexpr PackOfTwo<Format> pack_f16x2(Float16x2 a) {
  return pack_small<Format, Relu>(a);
}
#define SMALL(format, type)                                                                                            \
  table.row<&pack_f32<format, false>>("cvt.rn.satfinite" type "x2.f32");                                               \
  table.row<&pack_f32<format, true>>("cvt.rn.satfinite.relu" type "x2.f32");                                           \
  table.row<&pack_f16x2<format, false>>("cvt.rn.satfinite" type "x2.f16x2");                                           \
  table.row<&pack_f16x2<format, true>>("cvt.rn.satfinite.relu" type "x2.f16x2");                                       \
  table.row<&unpack_small<format, false>>("cvt.rn.f16x2" type "x2");                                                   \
  table.row<&unpack_small<format, true>>("cvt.rn.relu.f16x2" type "x2");

// Four sources and random bits exceed the operands of a micro-operation: they are in a list.
template <SmallFormat Format, bool Relu> const MicroOp* pack_of_four(Warp& warp, const MicroOp& op) {
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  const float* values[] = {warp.lanes<float>(list[0]), warp.lanes<float>(list[1]), warp.lanes<float>(list[2]),
                           warp.lanes<float>(list[3])};
  const uint32_t* random = warp.lanes<uint32_t>(list[4]);
  emulator::detail::write_lanes<PackOfFour<Format>>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    return pack_small_stochastic<Format, Relu>(values[0][lane], values[1][lane], values[2][lane], values[3][lane],
                                               random[lane]);
  });
  return &op + 1;
}
template <SmallFormat Format> void decode_pack_of_four(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const LaneRef destination = decoder.destination(operands[0], lane_type_of<PackOfFour<Format>>());
  const size_t group = decoder.top_level(1);
  std::vector<LaneRef> list;
  for (size_t i = 1; i <= 4; ++i)
    list.push_back(decoder.source(operands[group + i], lane_type_of<float>()));
  list.push_back(decoder.source(operands[decoder.top_level(2)], lane_type_of<uint32_t>()));
  const uint32_t first = decoder.add_list(list);
  MicroOp& op =
      decoder.emit(decoder.form().has(ir::Modifier::relu) ? &pack_of_four<Format, true> : &pack_of_four<Format, false>);
  op.destination[0] = destination;
  op.extra = first;
}

template <bool Up, bool Finite> constexpr uint16_t pack_powers(float a, float b) {
  return pack_ue8m0<Up, Finite>(a, b);
}
template <bool Up, bool Finite> constexpr uint16_t pack_powers_of_pair(BFloat16x2 a) {
  return pack_ue8m0<Up, Finite>(a);
}

void add_small(OperationTable& table) {
  SMALL(e4m3_format, ".e4m3")
  SMALL(e5m2_format, ".e5m2")
  SMALL(e2m3_format, ".e2m3")
  SMALL(e3m2_format, ".e3m2")
  SMALL(e2m1_format, ".e2m1")
  table.special("cvt.rs.satfinite[.relu].e4m3x4.f32", &decode_pack_of_four<e4m3_format>);
  table.special("cvt.rs.satfinite[.relu].e5m2x4.f32", &decode_pack_of_four<e5m2_format>);
  table.special("cvt.rs.satfinite[.relu].e2m3x4.f32", &decode_pack_of_four<e2m3_format>);
  table.special("cvt.rs.satfinite[.relu].e3m2x4.f32", &decode_pack_of_four<e3m2_format>);
  table.special("cvt.rs.satfinite[.relu].e2m1x4.f32", &decode_pack_of_four<e2m1_format>);
  table.row<&pack_powers<false, false>>("cvt.rz.ue8m0x2.f32");
  table.row<&pack_powers<false, true>>("cvt.rz.satfinite.ue8m0x2.f32");
  table.row<&pack_powers<true, false>>("cvt.rp.ue8m0x2.f32");
  table.row<&pack_powers<true, true>>("cvt.rp.satfinite.ue8m0x2.f32");
  table.row<&pack_powers_of_pair<false, false>>("cvt.rz.ue8m0x2.bf16x2");
  table.row<&pack_powers_of_pair<false, true>>("cvt.rz.satfinite.ue8m0x2.bf16x2");
  table.row<&pack_powers_of_pair<true, false>>("cvt.rp.ue8m0x2.bf16x2");
  table.row<&pack_powers_of_pair<true, true>>("cvt.rp.satfinite.ue8m0x2.bf16x2");
  table.row<&unpack_ue8m0>("cvt.rn.bf16x2.ue8m0x2");
}

} // namespace

void add_float_conversions(OperationTable& table) {
  add_between_types(table);
  add_integral(table);
  add_clamped(table);
  add_small(table);
  add_narrow_conversions(table);
}

} // namespace ptxrewrite::emulator
