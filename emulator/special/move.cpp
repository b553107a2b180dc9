// mov in all its variants (registers, immediates, special registers, addresses, packing and unpacking), and the
// conversion of addresses between spaces.
#include "emulator/core/address.h"
#include "emulator/core/decode.h"
#include "emulator/core/resize.h"
#include "emulator/special/known_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// {a, b} -> d: element 0 has the least significant bits. Inserts one element at a time into a register of Whole.
template <class Whole, class Part> const MicroOp* insert_part(Warp& warp, const MicroOp& op) {
  const Part* parts = warp.lanes<Part>(op.source[0]);
  auto* whole = reinterpret_cast<Part*>(warp.lanes<Whole>(op.destination[0]));
  constexpr unsigned ratio = sizeof(Whole) / sizeof(Part);
  const uint32_t mask = warp.mask;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    Part& target = whole[lane * ratio + op.extra];
    target = (mask >> lane) & 1 ? parts[lane] : target;
  }
  return &op + 1;
}

template <class Whole, class Part> const MicroOp* extract_part(Warp& warp, const MicroOp& op) {
  const auto* whole = reinterpret_cast<const Part*>(warp.lanes<Whole>(op.source[0]));
  constexpr unsigned ratio = sizeof(Whole) / sizeof(Part);
  detail::write_lanes<Part>(warp, op.destination[0], warp.mask,
                            [&](unsigned lane) { return whole[lane * ratio + op.extra]; });
  return &op + 1;
}

// {whole bits, part bits} -> handler; returns nullptr if the ISA has no such pair.
template <template <class, class> class Select> Handler by_widths(unsigned whole, unsigned part) {
  switch (whole * 1000 + part) {
  case 16008:
    return Select<uint16_t, uint8_t>::handler;
  case 32008:
    return Select<uint32_t, uint8_t>::handler;
  case 32016:
    return Select<uint32_t, uint16_t>::handler;
  case 64016:
    return Select<uint64_t, uint16_t>::handler;
  case 64032:
    return Select<uint64_t, uint32_t>::handler;
  case 128032:
    return Select<Bits128, uint32_t>::handler;
  case 128064:
    return Select<Bits128, uint64_t>::handler;
  default:
    return nullptr;
  }
}
template <class Whole, class Part> struct Insert { static constexpr Handler handler = &insert_part<Whole, Part>; };
template <class Whole, class Part> struct Extract { static constexpr Handler handler = &extract_part<Whole, Part>; };

std::vector<size_t> inside(std::span<const ir::Operand> operands, size_t group) {
  std::vector<size_t> positions;
  for (size_t i = group + 1; i < ir::next_sibling(operands, group); i = ir::next_sibling(operands, i))
    positions.push_back(i);
  return positions;
}

// Returns the elements of a vector, or of a whole %tid, as separate operands.
std::vector<ir::Operand> components(Decoder& decoder, size_t position) {
  std::vector<ir::Operand> parts;
  const ir::Operand& operand = decoder.operands()[position];
  if (operand.is(ir::OperandKind::vector)) {
    for (size_t i : inside(decoder.operands(), position))
      parts.push_back(decoder.operands()[i]);
    return parts;
  }
  unsigned width = 1;
  if (operand.is(ir::OperandKind::special_register) && operand.selector == ir::no_selector)
    width = ir::info(static_cast<ir::SpecialRegister>(operand.id)).vector_width;
  for (unsigned i = 0; i < width; ++i) {
    parts.push_back(operand);
    if (width > 1) parts.back().selector = ir::component_selector(i);
  }
  return parts;
}

// Moves all elements at once. If a register is written twice, the last element wins.
void emit_copies(Decoder& decoder, std::span<const ir::Operand> targets, std::span<const ir::Operand> sources,
                 unsigned bits) {
  const LaneType type = lanes_of_bits(bits);
  std::vector<LaneRef> from, to;
  for (const ir::Operand& source : sources)
    from.push_back(decoder.source(source, type));
  for (const ir::Operand& target : targets)
    to.push_back(decoder.destination(target, type));
  auto copy = [&](MicroOp& op, LaneRef source, LaneRef target) {
    op.source[0] = source;
    op.destination[0] = target;
  };
  for (size_t i = 1; i < from.size(); ++i) {
    const bool overwritten = std::find(to.begin(), to.begin() + static_cast<ptrdiff_t>(i), from[i]) !=
                             to.begin() + static_cast<ptrdiff_t>(i);
    if (!overwritten) continue;
    const LaneRef kept = decoder.temporary(bits);
    copy(decoder.emit_further(copy_handler(bits), false), from[i], kept);
    from[i] = kept;
  }
  for (size_t i = 0; i < from.size(); ++i)
    copy(i == 0 ? decoder.emit(copy_handler(bits)) : decoder.emit_further(copy_handler(bits), true), from[i], to[i]);
}

// Collects the parts in a temporary because the destination may be one of them.
void emit_pack(Decoder& decoder, std::span<const ir::Operand> parts, unsigned bits) {
  const unsigned part_bits = bits / static_cast<unsigned>(parts.size());
  Handler handler = by_widths<Insert>(bits, part_bits);
  if (!handler) return decoder.unsupported("a packing that the ISA does not have");
  std::vector<LaneRef> sources;
  for (const ir::Operand& part : parts)
    sources.push_back(decoder.source(part, lanes_of_bits(part_bits)));
  const LaneRef gathered = decoder.temporary(bits);
  for (uint32_t i = 0; i < parts.size(); ++i) {
    MicroOp& op = decoder.emit_further(handler, true);
    op.source[0] = sources[i];
    op.destination[0] = gathered;
    op.extra = i;
  }
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(bits));
  MicroOp& op = decoder.emit(copy_handler(bits));
  op.source[0] = gathered;
  op.destination[0] = target;
}

void emit_unpack(Decoder& decoder, std::span<const ir::Operand> parts, unsigned bits) {
  const unsigned part_bits = bits / static_cast<unsigned>(parts.size());
  Handler handler = by_widths<Extract>(bits, part_bits);
  if (!handler) return decoder.unsupported("an unpacking that the ISA does not have");
  const LaneRef source = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(bits));
  // The parts cannot overwrite the source: their registers are narrower.
  bool first = true;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is(ir::OperandKind::sink)) continue;
    const LaneRef target = decoder.destination(parts[i], lanes_of_bits(part_bits));
    MicroOp& op = first ? decoder.emit(handler) : decoder.emit_further(handler, true);
    op.source[0] = source;
    op.destination[0] = target;
    op.extra = i;
    first = false;
  }
}

void decode_mov(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const unsigned bits = lane_bits(decoder.form().type());
  const size_t from = decoder.top_level(1);
  const std::vector<ir::Operand> targets = components(decoder, 0);
  const std::vector<ir::Operand> sources = components(decoder, from);
  if (targets.size() == sources.size()) {
    emit_copies(decoder, targets, sources, bits);
  } else if (operands[from].is(ir::OperandKind::vector)) {
    emit_pack(decoder, sources, bits);
  } else if (operands[0].is(ir::OperandKind::vector)) { // also mov.v4.b32 {a, b, c, d}, e: each target gets a byte of e
    emit_unpack(decoder, targets, bits);
  } else {
    decoder.unsupported("a move between vectors of different sizes");
  }
}

const MicroOp* shift_address(Warp& warp, const MicroOp& op) {
  const uint64_t* from = warp.lanes<uint64_t>(op.source[0]);
  const auto distance = static_cast<uint64_t>(op.immediate);
  detail::write_lanes<uint64_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return from[lane] + distance; });
  return &op + 1;
}

const MicroOp* is_in_space(Warp& warp, const MicroOp& op) {
  const uint64_t* from = warp.lanes<uint64_t>(op.source[0]);
  const auto wanted = static_cast<Space>(op.extra);
  const Block& block = *warp.block;
  detail::write_lanes<bool>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    const auto [space, address] = split_generic(from[lane]);
    if (space == Space::shared && block.cluster) {
      const uint64_t rank = address >> shared_rank_shift;
      return wanted == Space::cluster ? rank < block.cluster->blocks.size()
                                      : wanted == Space::shared && rank == block.cluster_rank;
    }
    if (space == Space::shared && wanted == Space::cluster) return true;
    // The window of kernel parameters is inside global memory (PTX ISA, isspacep).
    return space == wanted || (wanted == Space::global && space == Space::parameter);
  });
  return &op + 1;
}

void decode_cvta(Decoder& decoder, ir::InstructionId) {
  Space space = decode_space(decoder.form().space);
  // Parameters of a device function whose address is taken are in local memory.
  if (space == Space::parameter && !decoder.function().is_entry &&
      decoder.form().space != ir::StateSpace::param_entry && !decoder.form().has(ir::Modifier::to))
    space = Space::local;
  const uint64_t window = window_of(space);
  const bool narrow = ir::bit_width(decoder.form().type()) == 32;
  if (narrow && window) return decoder.unsupported("generic addresses of 32 bits are not emulated");
  const LaneRef source = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(64));
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(64));
  MicroOp& op = decoder.emit(&shift_address);
  op.source[0] = source;
  op.destination[0] = target;
  op.immediate = static_cast<int64_t>(decoder.form().has(ir::Modifier::to) ? uint64_t(0) - window : window);
}

void decode_isspacep(Decoder& decoder, ir::InstructionId) {
  const LaneRef source = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(64));
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(1));
  MicroOp& op = decoder.emit(&is_in_space);
  op.source[0] = source;
  op.destination[0] = target;
  op.extra = static_cast<uint32_t>(decode_space(decoder.form().space));
}

} // namespace

std::optional<PartHandler> part_handler(Handler handler) {
  for (const auto& [whole, part] : {std::pair(16u, 8u), {32u, 8u}, {32u, 16u}, {64u, 16u}, {64u, 32u}})
    for (const bool inserts : {false, true})
      if (handler == (inserts ? by_widths<Insert>(whole, part) : by_widths<Extract>(whole, part)))
        return PartHandler{inserts, whole, part};
  return std::nullopt;
}

void add_move_operations(OperationTable& table) {
  table.special("mov*", &decode_mov);
  table.special("cvta*", &decode_cvta);
  table.special("isspacep*", &decode_isspacep);
}

} // namespace ptxrewrite::emulator
