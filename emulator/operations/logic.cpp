// Rows of bitwise logic: and or xor not cnot of registers and of predicates, lop3.
#include "emulator/semantics/logic.h"
#include "emulator/core/decode.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

void add_bitwise(OperationTable& table) {
  table.row<&bitwise_and<uint16_t>>("and.b16");
  table.row<&bitwise_and<uint32_t>>("and.b32");
  table.row<&bitwise_and<uint64_t>>("and.b64");
  table.row<&bitwise_or<uint16_t>>("or.b16");
  table.row<&bitwise_or<uint32_t>>("or.b32");
  table.row<&bitwise_or<uint64_t>>("or.b64");
  table.row<&bitwise_xor<uint16_t>>("xor.b16");
  table.row<&bitwise_xor<uint32_t>>("xor.b32");
  table.row<&bitwise_xor<uint64_t>>("xor.b64");
  table.row<&bitwise_not<uint16_t>>("not.b16");
  table.row<&bitwise_not<uint32_t>>("not.b32");
  table.row<&bitwise_not<uint64_t>>("not.b64");
  table.row<&cnot<uint16_t>>("cnot.b16");
  table.row<&cnot<uint32_t>>("cnot.b32");
  table.row<&cnot<uint64_t>>("cnot.b64");
}

// Predicates are masks: one word operation computes all lanes.
void write_predicate(Warp& warp, LaneRef destination, uint32_t value) {
  uint32_t& target = warp.predicate(destination);
  target = (target & ~warp.mask) | (value & warp.mask);
}
template <auto function> const MicroOp* combine_predicates(Warp& warp, const MicroOp& op) {
  write_predicate(warp, op.destination[0], function(warp.predicate(op.source[0]), warp.predicate(op.source[1])));
  return &op + 1;
}

// The second source of `not` is its first one.
void decode_predicates(Decoder& decoder, Handler handler) {
  constexpr LaneType predicate{LaneKind::predicate, 1};
  const LaneRef a = decoder.source(decoder.operands()[decoder.top_level(1)], predicate);
  const bool two = decoder.top_level_count() > 2;
  const LaneRef b = two ? decoder.source(decoder.operands()[decoder.top_level(2)], predicate) : a;
  const LaneRef target = decoder.destination(decoder.operands()[0], predicate);
  MicroOp& op = decoder.emit(handler);
  op.source[0] = a;
  op.source[1] = b;
  op.destination[0] = target;
}
template <auto function> void decode_predicate_logic(Decoder& decoder, ir::InstructionId) {
  decode_predicates(decoder, &combine_predicates<function>);
}

// The table is in `extra`. In forms with .and and .or the fourth source is the predicate q.
const MicroOp* run_lop3(Warp& warp, const MicroOp& op) {
  const auto* a = warp.lanes<uint32_t>(op.source[0]);
  const auto* b = warp.lanes<uint32_t>(op.source[1]);
  const auto* c = warp.lanes<uint32_t>(op.source[2]);
  const uint32_t table = op.extra;
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return lop3(a[lane], b[lane], c[lane], table); });
  return &op + 1;
}

const MicroOp* run_lop3_with_predicate(Warp& warp, const MicroOp& op) {
  alignas(64) uint32_t results[warp_size];
  alignas(64) uint8_t nonzero[warp_size];
  const auto* a = warp.lanes<uint32_t>(op.source[0]);
  const auto* b = warp.lanes<uint32_t>(op.source[1]);
  const auto* c = warp.lanes<uint32_t>(op.source[2]);
  const uint32_t q = warp.predicate(op.source[3]);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    results[lane] = lop3(a[lane], b[lane], c[lane], op.extra);
    nonzero[lane] = results[lane] != 0;
  }
  const uint32_t set = detail::pack_mask(nonzero);
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) { return results[lane]; });
  write_predicate(warp, op.destination[1], op.flags & flag_and ? set & q : set | q);
  return &op + 1;
}

void decode_lop3(Decoder& decoder, ir::InstructionId) {
  constexpr LaneType word{LaneKind::unsigned_integer, 32};
  constexpr LaneType predicate{LaneKind::predicate, 1};
  auto operand = [&](unsigned index) -> const ir::Operand& { return decoder.operands()[decoder.top_level(index)]; };
  const bool with_predicate = operand(0).is(ir::OperandKind::pair);
  LaneRef sources[4];
  for (unsigned i = 0; i < 3; ++i)
    sources[i] = decoder.source(operand(i + 1), word);
  if (with_predicate) sources[3] = decoder.source(operand(5), predicate);
  const LaneRef result = decoder.destination(decoder.operands()[with_predicate ? 1 : 0], word);
  const LaneRef set = with_predicate ? decoder.destination(decoder.operands()[2], predicate) : LaneRef();
  const auto table = static_cast<uint32_t>(operand(4).immediate) & 0xff;
  MicroOp& op = decoder.emit(with_predicate ? &run_lop3_with_predicate : &run_lop3);
  std::copy(std::begin(sources), std::end(sources), op.source);
  op.destination[0] = result;
  op.destination[1] = set;
  op.extra = table;
  op.flags = modifier_flags(decoder.form());
}

} // namespace

void add_logic_operations(OperationTable& table) {
  add_bitwise(table);
  table.special("and.pred", &decode_predicate_logic<[](uint32_t a, uint32_t b) { return a & b; }>);
  table.special("or.pred", &decode_predicate_logic<[](uint32_t a, uint32_t b) { return a | b; }>);
  table.special("xor.pred", &decode_predicate_logic<[](uint32_t a, uint32_t b) { return a ^ b; }>);
  table.special("not.pred", &decode_predicate_logic<[](uint32_t a, uint32_t) { return ~a; }>);
  table.special("lop3[.and|.or].b32", &decode_lop3);
}

} // namespace ptxrewrite::emulator
