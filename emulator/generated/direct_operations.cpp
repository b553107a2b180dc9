// Operations that are written out: chunk by chunk of the lanes, from the frame to the frame.
#include "emulator/generated/direct_emitter.h"

#include "emulator/core/address.h"
#include "emulator/core/decode.h"
#include "emulator/core/resize.h"

#include <algorithm>
#include <cstddef>

namespace ptxrewrite::emulator::generated {

using namespace x86;

namespace {
constexpr unsigned vector_bytes = 32, vector_bits = 256;
constexpr Register bases[4] = {r8, r9, r10, r11};
constexpr Vector sources[4] = {y0, y1, y2, y3};
constexpr Vector predicate_copies[4] = {y10, y11, y12, y13}; // of the sources
constexpr Vector lane_copies = y15, lane_parts = y14;

constexpr unsigned chunks_of(unsigned bits) {
  return warp_size * bits / vector_bits;
}
} // namespace

Place DirectEmitter::destination_place(LaneRef lanes) const {
  return {rbx, static_cast<int32_t>(lanes.offset())};
}
Place DirectEmitter::source_place(const MicroOp& op, unsigned i) const {
  const LaneRef lanes = op.source[i];
  return {lanes.base() == LaneBase::registers ? rbx : bases[i], static_cast<int32_t>(lanes.offset())};
}
void DirectEmitter::load_bases(const MicroOp& op, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (op.source[i].base() != LaneBase::registers)
      code_.load(bases[i], Place{r13, static_cast<int32_t>(offsetof(Warp, base) +
                                                           op.source[i].base_index() * sizeof(std::byte*))});
}

bool DirectEmitter::overlaps(const MicroOp& op, const LaneWidths& widths) const {
  const uint32_t begin = op.destination[0].offset(), end = begin + lane_array_size(widths.destination_bits[0]);
  for (unsigned i = 0; i < widths.source_count; ++i) {
    if (op.source[i].base() != LaneBase::registers) continue;
    const uint32_t at = op.source[i].offset(), past = at + lane_array_size(widths.source_bits[i]);
    const bool same = at == begin && widths.source_bits[i] == widths.destination_bits[0];
    if (!same && at < end && begin < past) return true;
  }
  return false;
}

// --- masks of lanes ---

// Parts of 16 bits: spread_mask() loads the half of the mask that belongs to the chunk.
void DirectEmitter::begin_mask(Vector copies, Place from, unsigned bits) {
  if (bits != 16) code_.unary(vpbroadcastd, copies, from);
}
void DirectEmitter::spread_mask(Vector target, Vector copies, Place from, unsigned bits, unsigned chunk) {
  const size_t table = bits == 16   ? offsetof(LaneTables, bits16)
                       : bits == 32 ? offsetof(LaneTables, bits32) + chunk * vector_bytes
                                    : offsetof(LaneTables, bits64) + chunk * vector_bytes;
  const Place lane_bits{tables, static_cast<int32_t>(table)};
  if (bits == 16) code_.unary(vpbroadcastw, copies, from + size_t(2) * chunk);
  code_.vector(vpand, target, copies, lane_bits);
  code_.vector(bits == 16 ? vpcmpeqw : vpcmpeqd, target, target, lane_bits);
}

void DirectEmitter::begin_lanes(Lanes lanes, unsigned bits) {
  if (lanes != Lanes::all) begin_mask(lane_copies, lanes_place(lanes), bits);
}
void DirectEmitter::store_chunk(Place destination, unsigned bits, unsigned chunk, Lanes lanes) {
  const Place place = destination + size_t(chunk) * vector_bytes;
  if (lanes != Lanes::all) {
    spread_mask(lane_parts, lane_copies, lanes_place(lanes), bits, chunk);
    code_.load(y4, place);
    code_.blend(vpblendvb, y0, y4, y0, lane_parts);
  }
  code_.store(place, y0);
}

void DirectEmitter::collect_signs(unsigned bits, unsigned chunk) {
  const Register target = chunk == 0 ? rdx : rax;
  if (bits == 16) {
    code_.vector(vpacksswb, y0, y0, y0);
    code_.unary(vpermq, y0, y0, uint8_t(0x08));
    code_.signs(vpmovmskb, target, y0, Width::half);
  } else {
    code_.signs(bits == 32 ? vmovmskps : vmovmskpd, target, y0);
  }
  if (chunk == 0) return;
  code_.shift_left(rax, static_cast<uint8_t>(chunk * vector_bits / bits));
  code_.arithmetic(Arithmetic::or_, rdx, rax, false);
}
void DirectEmitter::store_predicate(Place destination, Lanes lanes) {
  if (lanes != Lanes::all) {
    code_.load(rcx, destination, false);
    code_.arithmetic(Arithmetic::xor_, rdx, rcx, false);
    code_.arithmetic(Arithmetic::and_, rdx, lanes_place(lanes), false);
    code_.arithmetic(Arithmetic::xor_, rdx, rcx, false);
  }
  code_.store(destination, rdx, false);
}

// --- operations ---

bool DirectEmitter::emit_inline(uint32_t index, const OpInfo& info, Lanes lanes) {
  const MicroOp& op = function_.op(index);
  switch (info.kind) {
  case OpKind::row: {
    const LaneWidths& widths = info.recipe->widths;
    if (widths.destination_count != 1 || !op.destination[0]) return false;
    if (widths.destination_bits[0] == 1 && widths.source_bits[0] == 1) return emit_predicates(op, widths, lanes);
    static constexpr DirectRow lop3{&build_lop3, nullptr, 32};
    const bool is_lop3 = (info.recipe->traits & takes_extra) != 0;
    const DirectRow* row = is_lop3 ? &lop3 : DirectTable::get().find(op.handler);
    return row && emit_row(index, *row, widths, lanes);
  }
  case OpKind::lane_sum:
  case OpKind::shift:
    emit_sum(op, info.kind == OpKind::lane_sum, lanes);
    return true;
  case OpKind::insertion:
  case OpKind::extraction:
    return emit_part(op, info.part, lanes);
  case OpKind::fixed_load:
    return emit_fixed_load(op, info.memory, lanes);
  case OpKind::load:
  case OpKind::store:
    return emit_access(index, info, lanes);
  case OpKind::call:
  case OpKind::collective:
  case OpKind::branch:
  case OpKind::stop:
    break;
  }
  return false;
}

// The sources of a chunk, in the low parts of their registers where they are narrower than the chunk's parts.
void DirectEmitter::load_chunk(const MicroOp& op, const DirectRow& row, const LaneWidths& widths, unsigned chunk) {
  for (unsigned i = 0; i < widths.source_count; ++i) {
    const unsigned bits = widths.source_bits[i];
    const Place place = source_place(op, i);
    if (bits == 1) {
      spread_mask(sources[i], predicate_copies[i], place, row.bits, chunk);
      continue;
    }
    const Place part = place + size_t(chunk) * vector_bytes * bits / row.bits;
    if (bits * 4 == row.bits)
      code_.load_quarter(sources[i], part);
    else
      code_.load(sources[i], part, bits == row.bits ? Width::whole : Width::half);
  }
}

bool DirectEmitter::emit_row(uint32_t index, const DirectRow& row, const LaneWidths& widths, Lanes lanes) {
  const MicroOp& op = function_.op(index);
  const unsigned bits = widths.destination_bits[0];
  const bool narrows = bits != 1 && bits != row.bits;
  if (overlaps(op, widths) || (lanes != Lanes::all && (narrows || row.is_checked))) return false;
  uppers_used_ = true;
  load_bases(op, widths.source_count);
  if (row.is_checked) {
    emit_checked_row(index, row, widths);
    return true;
  }
  RowCode code{code_, op.extra};
  if (row.prepare) row.prepare(code);
  for (unsigned i = 0; i < widths.source_count; ++i)
    if (widths.source_bits[i] == 1) begin_mask(predicate_copies[i], source_place(op, i), row.bits);
  if (bits != 1) begin_lanes(lanes, bits);
  const Place destination = destination_place(op.destination[0]);
  for (unsigned chunk = 0; chunk < chunks_of(row.bits); ++chunk) {
    load_chunk(op, row, widths, chunk);
    row.build(code);
    const Place part = destination + size_t(chunk) * vector_bytes * bits / row.bits;
    if (bits == 1)
      collect_signs(row.bits, chunk);
    else if (!narrows)
      store_chunk(destination, bits, chunk, lanes);
    else if (bits * 4 == row.bits)
      code_.store_quarter(part, y0);
    else
      code_.store(part, y0, Width::half);
  }
  if (bits == 1) store_predicate(destination, lanes);
  return true;
}

// Stores nothing before it is known that no result is NaN: the destination may be a source of the handler.
void DirectEmitter::emit_checked_row(uint32_t index, const DirectRow& row, const LaneWidths& widths) {
  const MicroOp& op = function_.op(index);
  const Cold cold{code_.new_label(), code_.new_label(), index, full_ ? Lanes::all : Lanes::active, std::nullopt};
  constexpr unsigned first_result = y8;
  RowCode code{code_};
  for (unsigned chunk = 0; chunk < chunks_of(64); ++chunk) {
    load_chunk(op, row, widths, chunk);
    row.build(code);
    code_.vector(vcmppd, y4, y0, y0, uint8_t(3));
    code_.vector(vpor, y3, chunk == 0 ? y4 : y3, y4);
    code_.vector(vpor, static_cast<Vector>(first_result + chunk), y0, y0);
  }
  code_.unary(vptest, y3, y3);
  code_.jump_if(Condition::not_equal, cold.from);
  for (unsigned chunk = 0; chunk < chunks_of(64); ++chunk)
    code_.store(destination_place(op.destination[0]) + size_t(chunk) * vector_bytes,
                static_cast<Vector>(first_result + chunk));
  code_.place(cold.back);
  cold_.push_back(cold);
}

bool DirectEmitter::emit_predicates(const MicroOp& op, const LaneWidths& widths, Lanes lanes) {
  load_bases(op, widths.source_count);
  code_.load(rdx, source_place(op, 0), false);
  const auto opcode =
      function_.function.source->form_of(ir::InstructionId(op.instruction - function_.function.first_instruction))
          .opcode;
  if (op.handler == invert_predicate_handler() || (widths.source_count == 1 && opcode == ir::Opcode::not_)) {
    code_.invert(rdx);
  } else if (widths.source_count == 2) {
    if (opcode != ir::Opcode::and_ && opcode != ir::Opcode::or_ && opcode != ir::Opcode::xor_) return false;
    code_.arithmetic(opcode == ir::Opcode::and_  ? Arithmetic::and_
                     : opcode == ir::Opcode::or_ ? Arithmetic::or_
                                                 : Arithmetic::xor_,
                     rdx, source_place(op, 1), false);
  } else if (op.handler != copy_handler(1)) {
    return false;
  }
  store_predicate(destination_place(op.destination[0]), lanes);
  return true;
}

// source[0] + source[1] + immediate, of 64 bits; or without source[1].
void DirectEmitter::emit_sum(const MicroOp& op, bool has_second, Lanes lanes) {
  uppers_used_ = true;
  load_bases(op, has_second ? 2 : 1);
  if (op.immediate) {
    code_.move(rax, static_cast<uint64_t>(op.immediate));
    code_.from_general(y8, rax);
    code_.unary(vpbroadcastq, y8, y8);
  }
  begin_lanes(lanes, 64);
  for (unsigned chunk = 0; chunk < chunks_of(64); ++chunk) {
    code_.load(y0, source_place(op, 0) + size_t(chunk) * vector_bytes);
    if (has_second) code_.vector(vpaddq, y0, y0, source_place(op, 1) + size_t(chunk) * vector_bytes);
    if (op.immediate) code_.vector(vpaddq, y0, y0, y8);
    store_chunk(destination_place(op.destination[0]), 64, chunk, lanes);
  }
}

// Halves of 64 bits.
bool DirectEmitter::emit_part(const MicroOp& op, const PartHandler& part, Lanes lanes) {
  const auto from = static_cast<uint8_t>(part.inserts ? 32 : 64), to = static_cast<uint8_t>(part.inserts ? 64 : 32);
  if (part.whole != 64 || part.part != 32 || !op.destination[0] || overlaps(op, {1, 1, {from}, {to}})) return false;
  uppers_used_ = true;
  load_bases(op, 1);
  begin_lanes(lanes, to);
  const Place source = source_place(op, 0), destination = destination_place(op.destination[0]);
  for (unsigned chunk = 0; chunk < chunks_of(to); ++chunk) {
    if (part.inserts) {
      code_.load(y0, source + size_t(chunk) * vector_bytes / 2, Width::half);
      code_.unary(vpmovzxdq, y0, y0);
      if (op.extra) code_.vector_shift(shift_q, shift_left, y0, y0, 32);
      code_.load(y1, destination + size_t(chunk) * vector_bytes);
      code_.vector(vpblendd, y0, y1, y0, uint8_t(op.extra ? 0xaa : 0x55));
    } else {
      code_.load(y0, source + size_t(chunk) * vector_bytes * 2);
      code_.load(y1, source + size_t(chunk) * vector_bytes * 2 + vector_bytes);
      code_.vector(vshufps, y0, y0, y1, uint8_t(op.extra ? 0xdd : 0x88));
      code_.unary(vpermq, y0, y0, uint8_t(0xd8));
    }
    store_chunk(destination, to, chunk, lanes);
  }
  return true;
}

// A parameter or constant at a fixed place, inside its space.
bool DirectEmitter::emit_fixed_load(const MicroOp& op, const MemoryHandler& memory, Lanes lanes) {
  const auto space = static_cast<Space>(op.flags & 0xff);
  const uint64_t end = space == Space::constant    ? function_.image.constant_bank.size()
                       : space == Space::parameter ? function_.image.parameter_bytes
                                                   : 0;
  const auto offset = static_cast<uint64_t>(op.immediate);
  const uint64_t size = uint64_t(memory.bytes) * op.count;
  if (offset % size != 0 || offset > end || size > end - offset || end > INT32_MAX || memory.bytes == 1) return false;
  uppers_used_ = true;
  code_.load(rax, Place{r12, static_cast<int32_t>(space == Space::constant ? offsetof(CodeContext, constant_bank)
                                                                           : offsetof(CodeContext, parameters))});
  const unsigned bits = memory.bytes * 8;
  begin_lanes(lanes, bits);
  for (unsigned i = 0; i < op.count; ++i) {
    const VectorOp copy = bits == 16 ? vpbroadcastw : bits == 32 ? vpbroadcastd : vpbroadcastq;
    const Vector value = lanes == Lanes::all ? y0 : y5;
    code_.unary(copy, value, Place{rax, static_cast<int32_t>(offset)} + size_t(i) * memory.bytes);
    for (unsigned chunk = 0; chunk < chunks_of(bits); ++chunk) {
      if (value != y0) code_.vector(vpor, y0, value, value);
      store_chunk(destination_place(function_.element(op, i, op.destination[0])), bits, chunk, lanes);
    }
  }
  return true;
}

// --- lop3 ---

namespace {
// y4 = the function of y0 and y1 whose table is the low four bits: bit 2a + b. False: it is zero everywhere.
bool build_lop2(Assembler& code, Vector target, unsigned table) {
  // Every table with the bit for 0, 0 is the inverse of one without.
  const bool inverts = (table & 1) != 0;
  switch ((inverts ? ~table : table) & 15) {
  case 0:
    if (!inverts) return false;
    code.vector(vpcmpeqd, target, target, target);
    return true;
  case 2: // b alone
    code.vector(vpandn, target, y0, y1);
    break;
  case 4: // a alone
    code.vector(vpandn, target, y1, y0);
    break;
  case 6:
    code.vector(vpxor, target, y0, y1);
    break;
  case 8:
    code.vector(vpand, target, y0, y1);
    break;
  case 10:
    code.vector(vpor, target, y1, y1);
    break;
  case 12:
    code.vector(vpor, target, y0, y0);
    break;
  default: // 14
    code.vector(vpor, target, y0, y1);
    break;
  }
  if (!inverts) return true;
  code.vector(vpcmpeqd, y7, y7, y7);
  code.vector(vpxor, target, target, y7);
  return true;
}
} // namespace

// Two functions of a and b, chosen by c.
void build_lop3(RowCode& x) {
  unsigned if_set = 0, if_clear = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if_set |= (x.flags >> (2 * i + 1) & 1) << i;
    if_clear |= (x.flags >> (2 * i) & 1) << i;
  }
  const bool has_set = build_lop2(x.code, y4, if_set), has_clear = build_lop2(x.code, y5, if_clear);
  if (has_set) x.code.vector(vpand, y4, y2, y4);
  if (has_clear) x.code.vector(vpandn, y5, y2, y5);
  if (has_set && has_clear)
    x.code.vector(vpor, y0, y4, y5);
  else if (has_set || has_clear)
    x.code.vector(vpor, y0, has_set ? y4 : y5, has_set ? y4 : y5);
  else
    x.code.vector(vpxor, y0, y0, y0);
}

} // namespace ptxrewrite::emulator::generated
