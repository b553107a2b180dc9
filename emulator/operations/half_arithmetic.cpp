// Rows of f16 and bf16 arithmetic and of their pairs: add sub mul fma abs neg.
#include "emulator/core/operation.h"
#include "emulator/operations/families.h"
#include "emulator/operations/float_modes.h"
#include "emulator/semantics/half.h"
#include "emulator/semantics/half_vector.h"
#include "emulator/semantics/wide_half.h"

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_HALF_VECTORS)
// The handlers of f16 functions without modifiers work on eight or sixteen halves at once: lanes of f16 and of f16x2
// are arrays of 32 and of 64 of them.
namespace {

#if defined(PTXREWRITE_WIDE_HALVES)
// Specialisations, since comparing function pointers is no constant expression under -fsanitize=undefined.
template <auto function> constexpr auto half_operation = nullptr;
template <> constexpr auto half_operation<semantics::add_halves> = semantics::HalfOperation::add;
template <> constexpr auto half_operation<semantics::sub_halves> = semantics::HalfOperation::sub;
template <> constexpr auto half_operation<semantics::mul_halves> = semantics::HalfOperation::mul;
template <> constexpr auto half_operation<semantics::fma_halves> = semantics::HalfOperation::fma;
#endif

template <auto function, unsigned count, size_t... source>
const MicroOp* on_halves(Warp& warp, const MicroOp& op, std::index_sequence<source...>) {
  const int16_t* const operands[] = {warp.lanes<int16_t>(op.source[source])..., nullptr};
  alignas(LaneRef::alignment) std::array<int16_t, count> results;
#if defined(PTXREWRITE_WIDE_HALVES)
  if (semantics::host_has_wide_halves()) {
    const bool writes_all = warp.mask == full_mask && op.destination[0];
    int16_t* const target = writes_all ? warp.lanes<int16_t>(op.destination[0]) : results.data();
    semantics::wide_halves<half_operation<function>>(operands[0], operands[1], operands[2], count, target);
    if (writes_all) return &op + 1;
  } else
#endif
    for (unsigned i = 0; i < count; i += semantics::halves_at_once) {
      const auto load = [&](const int16_t* operand) {
        semantics::Halves halves;
        std::memcpy(&halves, operand + i, sizeof halves);
        return halves;
      };
      const semantics::Halves result = function(load(operands[source])...);
      std::memcpy(results.data() + i, &result, sizeof result);
    }
  using Lane = std::conditional_t<count == warp_size, uint16_t, uint32_t>;
  std::array<Lane, warp_size> lanes;
  std::memcpy(lanes.data(), results.data(), sizeof lanes);
  detail::write_lanes<Lane>(warp, op.destination[0], warp.mask, [&](unsigned lane) { return lanes[lane]; });
  return &op + 1;
}

template <auto function, unsigned count, unsigned sources>
const MicroOp* halves_handler(Warp& warp, const MicroOp& op) {
  return on_halves<function, count>(warp, op, std::make_index_sequence<sources>());
}

} // namespace

#define HALVES(scalar, vector, sources, each)                                                                          \
  template <>                                                                                                          \
  inline constexpr Handler lane_handler<&semantics::scalar<semantics::Float16>> =                                      \
      &halves_handler<&semantics::vector, warp_size, sources>;                                                         \
  template <>                                                                                                          \
  inline constexpr Handler lane_handler<each<&semantics::scalar<semantics::Float16>, semantics::Float16>> =            \
      &halves_handler<&semantics::vector, 2 * warp_size, sources>;

HALVES(add_half, add_halves, 2, each_of_two)
HALVES(sub_half, sub_halves, 2, each_of_two)
HALVES(mul_half, mul_halves, 2, each_of_two)
HALVES(fma_half, fma_halves, 3, each_of_three)
#undef HALVES
#endif

namespace {

using namespace semantics;

constexpr HalfMode plain = {};
constexpr HalfMode ftz = {.flush = true};
constexpr HalfMode sat = {.saturate = true};
constexpr HalfMode ftz_sat = {.flush = true, .saturate = true};
constexpr HalfMode relu = {.relu = true};
constexpr HalfMode ftz_relu = {.flush = true, .relu = true};
constexpr HalfMode oob = {.out_of_bounds = true};
constexpr HalfMode oob_sat = {.saturate = true, .out_of_bounds = true};
constexpr HalfMode oob_relu = {.relu = true, .out_of_bounds = true};

#define OF_TWO(function, mode, word, rest)                                                                             \
  table.row<&function<Float16, mode>>(word rest ".f16");                                                               \
  table.row<each_of_two<&function<Float16, mode>, Float16>>(word rest ".f16x2");
#define FMA(mode, rest)                                                                                                \
  table.row<&fma_half<Float16, mode>>("fma.rn" rest ".f16");                                                           \
  table.row<each_of_three<&fma_half<Float16, mode>, Float16>>("fma.rn" rest ".f16x2");

void add_f16(OperationTable& table){
    OF_TWO(add_half, plain, "add[.rn]", "") OF_TWO(add_half, ftz, "add[.rn]", ".ftz")
        OF_TWO(add_half, sat, "add[.rn]", ".sat") OF_TWO(add_half, ftz_sat, "add[.rn]", ".ftz.sat")
            OF_TWO(sub_half, plain, "sub[.rn]", "") OF_TWO(sub_half, ftz, "sub[.rn]", ".ftz")
                OF_TWO(sub_half, sat, "sub[.rn]", ".sat") OF_TWO(sub_half, ftz_sat, "sub[.rn]", ".ftz.sat")
                    OF_TWO(mul_half, plain, "mul[.rn]", "") OF_TWO(mul_half, ftz, "mul[.rn]", ".ftz")
                        OF_TWO(mul_half, sat, "mul[.rn]", ".sat") OF_TWO(mul_half, ftz_sat, "mul[.rn]", ".ftz.sat")
                            FMA(plain, "") FMA(ftz, ".ftz") FMA(sat, ".sat") FMA(ftz_sat, ".ftz.sat") FMA(relu, ".relu")
                                FMA(ftz_relu, ".ftz.relu") FMA(oob, ".oob") FMA(oob_sat, ".oob.sat")
                                    FMA(oob_relu, ".oob.relu")}

// bf16 fma with roundings, .relu and .oob taken from the flags.
BFloat16 fma_by_flags(BFloat16 a, BFloat16 b, BFloat16 c, Flags flags) {
  const BFloat16 sum =
      by_rounding(flags, [&]<Rounding mode>() { return fma_half<BFloat16, HalfMode{.rounding = mode}>(a, b, c); });
  const BFloat16 clamped = flags.has(flag_relu) ? clamped_below(sum) : sum;
  // Of the factors; the addend does not count (measured on an H100).
  const bool outside = is_out_of_bounds_nan(a.bits) | is_out_of_bounds_nan(b.bits);
  return (flags.has(flag_oob) & outside) ? BFloat16{} : clamped;
}

void add_bf16(OperationTable& table) {
  table.row<&add_half<BFloat16>>("add[.rn].bf16");
  table.row<&sub_half<BFloat16>>("sub[.rn].bf16");
  table.row<&mul_half<BFloat16>>("mul[.rn].bf16");
  table.row<&fma_half<BFloat16>>("fma.rn.bf16");
  table.row<each_of_two<&add_half<BFloat16>, BFloat16>>("add[.rn].bf16x2");
  table.row<each_of_two<&sub_half<BFloat16>, BFloat16>>("sub[.rn].bf16x2");
  table.row<each_of_two<&mul_half<BFloat16>, BFloat16>>("mul[.rn].bf16x2");
  table.row<each_of_three<&fma_half<BFloat16>, BFloat16>>("fma.rn.bf16x2");
  table.row<&fma_by_flags>("fma{.rn|.rz|.rm|.rp}[.relu][.oob].bf16");
  table.row<[](BFloat16x2 a, BFloat16x2 b, BFloat16x2 c, Flags flags) {
    return BFloat16x2{fma_by_flags(a.low, b.low, c.low, flags), fma_by_flags(a.high, b.high, c.high, flags)};
  }>("fma{.rn|.rz|.rm|.rp}[.relu][.oob].bf16x2");
}

void add_signs(OperationTable& table) {
  table.row<&abs_half<false, Float16>>("abs.f16");
  table.row<&abs_half<true, Float16>>("abs.ftz.f16");
  table.row<&abs_half<false, BFloat16>>("abs.bf16");
  table.row<&neg_half<false, Float16>>("neg.f16");
  table.row<&neg_half<true, Float16>>("neg.ftz.f16");
  table.row<&neg_half<false, BFloat16>>("neg.bf16");
  table.row<each_of_one<&abs_element<false, Float16>, Float16>>("abs.f16x2");
  table.row<each_of_one<&abs_element<true, Float16>, Float16>>("abs.ftz.f16x2");
  table.row<each_of_one<&abs_element<false, BFloat16>, BFloat16>>("abs.bf16x2");
  table.row<each_of_one<&neg_element<false, Float16>, Float16>>("neg.f16x2");
  table.row<each_of_one<&neg_element<true, Float16>, Float16>>("neg.ftz.f16x2");
  table.row<each_of_one<&neg_element<false, BFloat16>, BFloat16>>("neg.bf16x2");
}

} // namespace

void add_half_arithmetic(OperationTable& table) {
  add_f16(table);
  add_bf16(table);
  add_signs(table);
  add_mixed_packed(table);
  add_narrow_float_products(table);
}

} // namespace ptxrewrite::emulator
