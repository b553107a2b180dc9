// Rows of the conversions added by PTX 9.1 to 9.4: bf16x2 to and from 8, 6 and 4-bit floats, .rz and .pzo, scales of
// one or two ue8m0, and the fixed-point numbers .s2f6x2. There are many combinations, so one function serves all, with
// the formats as data. The first of two sources is the upper number; of two scales the upper one belongs to the upper
// number.
#include "emulator/core/decode.h"
#include "emulator/core/operation.h"
#include "emulator/operations/families.h"
#include "emulator/semantics/narrow_numbers.h"

#include <bit>

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

enum class Scale : uint8_t { none, divides_both, divides_each, multiplies_each };

struct Conversion {
  NarrowKind from = NarrowKind::f32;
  Scale scale = Scale::none;
  NarrowResult to;
};
static_assert(sizeof(Conversion) == sizeof(int64_t));

double scaled(const Conversion& what, double value, uint32_t scale, bool upper) {
  switch (what.scale) {
  case Scale::none:
    return value;
  case Scale::divides_both:
    return without_subnormal(what.from, value) / scale_of(scale);
  case Scale::divides_each:
    return value / scale_of(upper ? scale >> 8 : scale);
  case Scale::multiplies_each:
    return value * scale_of(upper ? scale >> 8 : scale);
  }
  return value;
}

uint32_t convert(const Conversion& what, uint32_t code, uint32_t scale, bool upper) {
  return code_of(scaled(what, value_of(what.from, code), scale, upper), what.to);
}

// Packs two registers. op.source: a, b, scale.
const MicroOp* pack_two(Warp& warp, const MicroOp& op) {
  const auto what = std::bit_cast<Conversion>(op.immediate);
  const uint32_t* upper = warp.lanes<uint32_t>(op.source[0]);
  const uint32_t* lower = warp.lanes<uint32_t>(op.source[1]);
  const uint32_t* scale = warp.lanes<uint32_t>(op.source[2]);
  const unsigned width = width_of(what.to.kind);
  emulator::detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    return convert(what, upper[lane], scale[lane], true) << width | convert(what, lower[lane], scale[lane], false);
  });
  return &op + 1;
}

// Converts a pack to another format.
const MicroOp* convert_pack(Warp& warp, const MicroOp& op) {
  const auto what = std::bit_cast<Conversion>(op.immediate);
  const uint32_t* pack = warp.lanes<uint32_t>(op.source[0]);
  const uint32_t* scale = warp.lanes<uint32_t>(op.source[2]);
  const unsigned from = width_of(what.from), to = width_of(what.to.kind);
  const uint32_t mask = (uint32_t{1} << from) - 1;
  emulator::detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    return convert(what, pack[lane] >> from & mask, scale[lane], true) << to |
           convert(what, pack[lane] & mask, scale[lane], false);
  });
  return &op + 1;
}

// Converts a single number.
const MicroOp* convert_one(Warp& warp, const MicroOp& op) {
  const auto what = std::bit_cast<Conversion>(op.immediate);
  const uint32_t* source = warp.lanes<uint32_t>(op.source[0]);
  emulator::detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask,
                                          [&](unsigned lane) { return convert(what, source[lane], 0, false); });
  return &op + 1;
}

// The format of a type, or of each half of it. Only called with types of the patterns below.
NarrowKind kind_of(ir::ScalarType type) {
  switch (type) {
  case ir::ScalarType::e5m2x2:
    return NarrowKind::e5m2;
  case ir::ScalarType::e4m3x2:
    return NarrowKind::e4m3;
  case ir::ScalarType::e3m2x2:
    return NarrowKind::e3m2;
  case ir::ScalarType::e2m3x2:
    return NarrowKind::e2m3;
  case ir::ScalarType::e2m1x2:
    return NarrowKind::e2m1;
  case ir::ScalarType::s2f6x2:
    return NarrowKind::s2f6;
  case ir::ScalarType::f16:
  case ir::ScalarType::f16x2:
    return NarrowKind::f16;
  case ir::ScalarType::bf16:
  case ir::ScalarType::bf16x2:
    return NarrowKind::bf16;
  case ir::ScalarType::tf32:
    return NarrowKind::tf32;
  default:
    return NarrowKind::f32;
  }
}

void decode_conversion(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  Conversion what;
  what.from = kind_of(form.type(1));
  what.to.kind = kind_of(form.type(0));
  what.to.toward_zero = form.has(ir::Modifier::rz);
  what.to.finite = form.has(ir::Modifier::satfinite);
  what.to.relu = form.has(ir::Modifier::relu);
  what.to.positive_zero = form.has(ir::Modifier::pzo);
  const bool widens = width_of(what.to.kind) > width_of(what.from);
  if (form.has(ir::Modifier::scaled_n1_ue8m0)) what.scale = Scale::divides_both;
  if (form.has(ir::Modifier::scaled_n2_ue8m0)) what.scale = widens ? Scale::multiplies_each : Scale::divides_each;
  const bool one = width_of(what.to.kind) == bit_width(form.type(0)) && what.from == NarrowKind::f32;
  const bool two = !one && what.from == NarrowKind::f32;
  const auto source = [&](unsigned index) {
    return decoder.source(operands[decoder.top_level(index)], lane_type_of<uint32_t>());
  };
  const LaneRef first = source(1);
  const LaneRef second = two ? source(2) : first;
  const LaneRef scale = what.scale != Scale::none ? source(two ? 3 : 2) : first;
  const LaneRef destination = decoder.destination(operands[0], lane_type_of<uint32_t>());
  MicroOp& op = decoder.emit(one ? &convert_one : two ? &pack_two : &convert_pack);
  op.destination[0] = destination;
  op.source[0] = first;
  op.source[1] = second;
  op.source[2] = scale;
  op.immediate = std::bit_cast<int64_t>(what);
}

} // namespace

#define SMALL_X2 "{e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2}"
void add_narrow_conversions(OperationTable& table) {
  table.special("cvt.rn.satfinite[.relu]." SMALL_X2 ".bf16x2", &decode_conversion);
  table.special("cvt.rz.satfinite[.relu]." SMALL_X2 ".{f32|f16x2|bf16x2}", &decode_conversion);
  table.special("cvt{.rn|.rz}.satfinite[.relu].pzo." SMALL_X2 ".{f32|f16x2|bf16x2}", &decode_conversion);
  table.special("cvt{.rn|.rz}.satfinite[.relu][.pzo].scaled::n1::ue8m0." SMALL_X2 ".{f32|f16x2|bf16x2}",
                &decode_conversion);
  table.special("cvt.rn[.satfinite][.relu][.scaled::n2::ue8m0].bf16x2." SMALL_X2, &decode_conversion);
  table.special("cvt{.rn|.rz}.satfinite[.relu][.scaled::n2::ue8m0].s2f6x2.{f32|bf16x2}", &decode_conversion);
  table.special("cvt.rn[.satfinite][.relu][.scaled::n2::ue8m0].bf16x2.s2f6x2", &decode_conversion);
  table.special("cvt{.rn|.rz}[.satfinite][.relu].pzo.{f16|bf16|tf32|f16x2|bf16x2}.f32", &decode_conversion);
}

} // namespace ptxrewrite::emulator
