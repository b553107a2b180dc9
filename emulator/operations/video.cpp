// The video instructions. The decoder packs the selected bytes and halves into the micro-operation's immediate; there
// is one handler per operation.
#include "emulator/semantics/video.h"
#include "emulator/core/decode.h"

#include <bit>

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;
using enum IntegerComparison;

// The parameters of a scalar video instruction besides its operation: the micro-operation's immediate.
struct ScalarShape {
  VideoPart destination, a, b;
  enum : uint8_t {
    destination_signed = 1,
    a_signed = 2,
    b_signed = 4,
    saturated = 8,
    negated_product = 16,
    negated_c = 32,
    plus_one = 64,
  };
  uint8_t bits = 0;
  uint8_t number = 0; // SecondaryOperation, or vmad's shift

  bool has(uint8_t bit) const { return (bits & bit) != 0; }
  VideoSource a_source() const { return {a, has(a_signed)}; }
  VideoSource b_source() const { return {b, has(b_signed)}; }
  VideoResult result() const {
    return {has(destination_signed), has(saturated), static_cast<SecondaryOperation>(number), destination};
  }
};
static_assert(sizeof(ScalarShape) == 8);

// `compute` takes a, b, c of one lane.
template <class Compute> const MicroOp* for_lanes(Warp& warp, const MicroOp& op, Compute compute) {
  const auto* a = warp.lanes<uint32_t>(op.source[0]);
  const auto* b = warp.lanes<uint32_t>(op.source[1]);
  const auto* c = warp.lanes<uint32_t>(op.source[2]);
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return compute(a[lane], b[lane], c[lane]); });
  return &op + 1;
}

template <VideoOperation Operation> const MicroOp* run_video(Warp& warp, const MicroOp& op) {
  const auto shape = std::bit_cast<ScalarShape>(op.immediate);
  return for_lanes(warp, op, [shape](uint32_t a, uint32_t b, uint32_t c) {
    return video<Operation>(a, shape.a_source(), b, shape.b_source(), c, shape.result());
  });
}
template <VideoOperation Operation, Overflow Mode> const MicroOp* run_video_shift(Warp& warp, const MicroOp& op) {
  const auto shape = std::bit_cast<ScalarShape>(op.immediate);
  return for_lanes(warp, op, [shape](uint32_t a, uint32_t b, uint32_t c) {
    return video_shift<Operation, Mode>(a, shape.a_source(), b, shape.b_source(), c, shape.result());
  });
}
template <IntegerComparison Comparison> const MicroOp* run_vset(Warp& warp, const MicroOp& op) {
  const auto shape = std::bit_cast<ScalarShape>(op.immediate);
  return for_lanes(warp, op, [shape](uint32_t a, uint32_t b, uint32_t c) {
    return vset<Comparison>(a, shape.a_source(), b, shape.b_source(), c, shape.result());
  });
}
const MicroOp* run_vmad(Warp& warp, const MicroOp& op) {
  const auto shape = std::bit_cast<ScalarShape>(op.immediate);
  const VmadShape what{shape.has(ScalarShape::negated_product), shape.has(ScalarShape::negated_c),
                       shape.has(ScalarShape::plus_one), shape.has(ScalarShape::saturated), shape.number};
  return for_lanes(warp, op, [shape, what](uint32_t a, uint32_t b, uint32_t c) {
    return vmad(a, shape.a_source(), b, shape.b_source(), c, what);
  });
}

// .b0 ... .b3, .h0, .h1, or nothing.
VideoPart part_of(const ir::Operand& operand) {
  const unsigned index = operand.selector & 7u;
  switch (operand.selector >> 14) {
  case 2:
    return VideoPart::byte(index & 3);
  case 3:
    return VideoPart::half(index & 1);
  default:
    return {};
  }
}

// Emits the handler for d, a, b and c (0 if the instruction has no c). The form's types are those of the sources,
// preceded by the destination's type if there is one.
void decode_scalar(Decoder& decoder, Handler handler, ScalarShape shape) {
  constexpr LaneType word{LaneKind::unsigned_integer, 32};
  const std::span<const ir::Operand> operands = decoder.operands();
  auto operand = [&](unsigned index) -> const ir::Operand& { return operands[decoder.top_level(index)]; };
  const ir::Form& form = decoder.form();
  const unsigned first_source = form.types.size() > 2 ? 1 : 0;
  shape.destination = part_of(operands[0]);
  shape.a = part_of(operand(1));
  shape.b = part_of(operand(2));
  auto set = [&shape](uint8_t bit, bool value) { shape.bits |= value ? bit : 0; };
  set(ScalarShape::destination_signed, first_source == 1 && ir::is_signed(form.type(0)));
  set(ScalarShape::a_signed, ir::is_signed(form.type(first_source)));
  set(ScalarShape::b_signed, ir::is_signed(form.type(first_source + 1)));
  set(ScalarShape::saturated, form.has(ir::Modifier::sat));
  const LaneRef a = decoder.source(operand(1), word);
  const LaneRef b = decoder.source(operand(2), word);
  const LaneRef c = decoder.top_level_count() > 3 ? decoder.source(operand(3), word) : decoder.constant(0, 32);
  const LaneRef destination = decoder.destination(operands[0], word);
  MicroOp& op = decoder.emit(handler);
  op.source[0] = a;
  op.source[1] = b;
  op.source[2] = c;
  op.destination[0] = destination;
  op.immediate = std::bit_cast<int64_t>(shape);
}

template <Handler handler> void decode_with_secondary(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const SecondaryOperation secondary = form.has(ir::Modifier::add)   ? SecondaryOperation::add
                                       : form.has(ir::Modifier::min) ? SecondaryOperation::min
                                       : form.has(ir::Modifier::max) ? SecondaryOperation::max
                                                                     : SecondaryOperation::none;
  ScalarShape shape;
  shape.number = static_cast<uint8_t>(secondary);
  decode_scalar(decoder, handler, shape);
}

void decode_vmad(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  auto negated = [&](unsigned index) {
    return decoder.operands()[decoder.top_level(index)].has(ir::OperandFlag::negated);
  };
  ScalarShape shape;
  if (negated(1) != negated(2)) shape.bits |= ScalarShape::negated_product;
  if (negated(3)) shape.bits |= ScalarShape::negated_c;
  if (form.has(ir::Modifier::po)) shape.bits |= ScalarShape::plus_one;
  shape.number = form.has(ir::Modifier::shr7) ? 7 : form.has(ir::Modifier::shr15) ? 15 : 0;
  decode_scalar(decoder, &run_vmad, shape);
}

} // namespace

void add_video_operations(OperationTable& table) {
  using enum VideoOperation;
  table.special("vadd*", &decode_with_secondary<&run_video<VideoOperation::add>>);
  table.special("vsub*", &decode_with_secondary<&run_video<VideoOperation::sub>>);
  table.special("vabsdiff*", &decode_with_secondary<&run_video<absdiff>>);
  table.special("vmin*", &decode_with_secondary<&run_video<VideoOperation::min>>);
  table.special("vmax*", &decode_with_secondary<&run_video<VideoOperation::max>>);
  table.special("vshl.clamp*", &decode_with_secondary<&run_video_shift<VideoOperation::shl, Overflow::clamp>>);
  table.special("vshl.wrap*", &decode_with_secondary<&run_video_shift<VideoOperation::shl, Overflow::wrap>>);
  table.special("vshr.clamp*", &decode_with_secondary<&run_video_shift<VideoOperation::shr, Overflow::clamp>>);
  table.special("vshr.wrap*", &decode_with_secondary<&run_video_shift<VideoOperation::shr, Overflow::wrap>>);
  table.special("vset.eq*", &decode_with_secondary<&run_vset<eq>>);
  table.special("vset.ne*", &decode_with_secondary<&run_vset<ne>>);
  table.special("vset.lt*", &decode_with_secondary<&run_vset<lt>>);
  table.special("vset.le*", &decode_with_secondary<&run_vset<le>>);
  table.special("vset.gt*", &decode_with_secondary<&run_vset<gt>>);
  table.special("vset.ge*", &decode_with_secondary<&run_vset<ge>>);
  table.special("vmad*", &decode_vmad);
}

} // namespace ptxrewrite::emulator
