// The video instructions on halves and bytes. The decoder packs the selected elements into the micro-operation's
// immediate; there is one handler per operation.
#include "emulator/semantics/video_simd.h"
#include "emulator/core/decode.h"

#include <bit>

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;
using enum IntegerComparison;

// The parameters of the instruction besides its operation: the micro-operation's immediate.
struct SimdShape {
  uint16_t a_selector = 0;
  uint16_t b_selector = 0;
  uint8_t mask = 0;
  enum : uint8_t { destination_signed = 1, a_signed = 2, b_signed = 4, saturated = 8, accumulating = 16 };
  uint8_t bits = 0;
  uint16_t unused = 0;

  bool has(uint8_t bit) const { return (bits & bit) != 0; }
  SimdSource a_source() const { return {a_selector, has(a_signed)}; }
  SimdSource b_source() const { return {b_selector, has(b_signed)}; }
  SimdResult result() const { return {has(destination_signed), has(saturated), has(accumulating), mask}; }
};
static_assert(sizeof(SimdShape) == 8);

// `compute` takes a, b, c of one lane and the shape.
template <class Compute> const MicroOp* for_lanes(Warp& warp, const MicroOp& op, Compute compute) {
  const auto shape = std::bit_cast<SimdShape>(op.immediate);
  const auto* a = warp.lanes<uint32_t>(op.source[0]);
  const auto* b = warp.lanes<uint32_t>(op.source[1]);
  const auto* c = warp.lanes<uint32_t>(op.source[2]);
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return compute(a[lane], b[lane], c[lane], shape); });
  return &op + 1;
}

template <unsigned Elements, SimdOperation Operation> const MicroOp* run_simd(Warp& warp, const MicroOp& op) {
  return for_lanes(warp, op, [](uint32_t a, uint32_t b, uint32_t c, const SimdShape& shape) {
    return video_simd<Elements, Operation>(a, shape.a_source(), b, shape.b_source(), c, shape.result());
  });
}
template <unsigned Elements, IntegerComparison Comparison> const MicroOp* run_vset(Warp& warp, const MicroOp& op) {
  return for_lanes(warp, op, [](uint32_t a, uint32_t b, uint32_t c, const SimdShape& shape) {
    return vset_simd<Elements, Comparison>(a, shape.a_source(), b, shape.b_source(), c, shape.result());
  });
}

// .h10, .b3210: the half or byte of b:a that each element selects, 4 bits per element.
uint16_t elements_of(const ir::Operand& operand, unsigned elements, uint16_t otherwise) {
  if (operand.selector == ir::no_selector) return otherwise;
  unsigned result = 0;
  for (unsigned i = 0; i < elements; ++i)
    result |= ((operand.selector >> (3 * i)) & 7u) << (4 * i);
  return static_cast<uint16_t>(result);
}

// .h1, .b320: the mask of written elements; all by default.
uint8_t mask_of(const ir::Operand& operand) {
  if (operand.selector == ir::no_selector) return 0xf;
  const unsigned digits = ((operand.selector >> 12) & 3u) + 1;
  unsigned mask = 0;
  for (unsigned i = 0; i < digits; ++i)
    mask |= 1u << ((operand.selector >> (3 * i)) & 3u);
  return static_cast<uint8_t>(mask);
}

template <unsigned Elements, Handler handler> void decode_simd(Decoder& decoder, ir::InstructionId) {
  constexpr LaneType word{LaneKind::unsigned_integer, 32};
  auto operand = [&](unsigned index) -> const ir::Operand& { return decoder.operands()[decoder.top_level(index)]; };
  const ir::Form& form = decoder.form();
  const unsigned first_source = form.types.size() > 2 ? 1 : 0;
  SimdShape shape;
  shape.mask = mask_of(operand(0));
  shape.a_selector = elements_of(operand(1), Elements, simd_default_a<Elements>);
  shape.b_selector = elements_of(operand(2), Elements, simd_default_b<Elements>);
  auto set = [&shape](uint8_t bit, bool value) { shape.bits |= value ? bit : 0; };
  set(SimdShape::destination_signed, first_source == 1 && ir::is_signed(form.type(0)));
  set(SimdShape::a_signed, ir::is_signed(form.type(first_source)));
  set(SimdShape::b_signed, ir::is_signed(form.type(first_source + 1)));
  set(SimdShape::saturated, form.has(ir::Modifier::sat));
  set(SimdShape::accumulating, form.has(ir::Modifier::add));
  LaneRef sources[3];
  for (unsigned i = 0; i < 3; ++i)
    sources[i] = decoder.source(operand(i + 1), word);
  const LaneRef destination = decoder.destination(operand(0), word);
  MicroOp& op = decoder.emit(handler);
  std::copy(std::begin(sources), std::end(sources), op.source);
  op.destination[0] = destination;
  op.immediate = std::bit_cast<int64_t>(shape);
}

} // namespace

void add_simd_video_operations(OperationTable& table) {
  using enum SimdOperation;
  table.special("vadd2*", &decode_simd<2, &run_simd<2, SimdOperation::add>>);
  table.special("vsub2*", &decode_simd<2, &run_simd<2, SimdOperation::sub>>);
  table.special("vavrg2*", &decode_simd<2, &run_simd<2, avrg>>);
  table.special("vabsdiff2*", &decode_simd<2, &run_simd<2, absdiff>>);
  table.special("vmin2*", &decode_simd<2, &run_simd<2, SimdOperation::min>>);
  table.special("vmax2*", &decode_simd<2, &run_simd<2, SimdOperation::max>>);
  table.special("vadd4*", &decode_simd<4, &run_simd<4, SimdOperation::add>>);
  table.special("vsub4*", &decode_simd<4, &run_simd<4, SimdOperation::sub>>);
  table.special("vavrg4*", &decode_simd<4, &run_simd<4, avrg>>);
  table.special("vabsdiff4*", &decode_simd<4, &run_simd<4, absdiff>>);
  table.special("vmin4*", &decode_simd<4, &run_simd<4, SimdOperation::min>>);
  table.special("vmax4*", &decode_simd<4, &run_simd<4, SimdOperation::max>>);
  table.special("vset2.eq*", &decode_simd<2, &run_vset<2, eq>>);
  table.special("vset2.ne*", &decode_simd<2, &run_vset<2, ne>>);
  table.special("vset2.lt*", &decode_simd<2, &run_vset<2, lt>>);
  table.special("vset2.le*", &decode_simd<2, &run_vset<2, le>>);
  table.special("vset2.gt*", &decode_simd<2, &run_vset<2, gt>>);
  table.special("vset2.ge*", &decode_simd<2, &run_vset<2, ge>>);
  table.special("vset4.eq*", &decode_simd<4, &run_vset<4, eq>>);
  table.special("vset4.ne*", &decode_simd<4, &run_vset<4, ne>>);
  table.special("vset4.lt*", &decode_simd<4, &run_vset<4, lt>>);
  table.special("vset4.le*", &decode_simd<4, &run_vset<4, le>>);
  table.special("vset4.gt*", &decode_simd<4, &run_vset<4, gt>>);
  table.special("vset4.ge*", &decode_simd<4, &run_vset<4, ge>>);
}

} // namespace ptxrewrite::emulator
