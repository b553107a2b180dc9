// Loads and stores of full warps whose addresses lie as Plan::guesses says, in the range that the interpreter found for
// this micro-operation last; and those of some lanes of a full warp, in a line in shared memory. All others are left to
// the handler, which finds the fault.
#include "emulator/generated/direct_emitter.h"

#include "emulator/access/lane_moves.h"
#include "emulator/core/address.h"
#include "emulator/core/decode.h"

#include <bit>
#include <cstddef>

namespace ptxrewrite::emulator::generated {

using namespace x86;

namespace {
constexpr unsigned vector_bytes = 32, half_warp = warp_size / 2;

bool is_line(LanePlaces places) {
  return places == LanePlaces::line || places == LanePlaces::halves_line;
}
bool has_halves(LanePlaces places) {
  return places == LanePlaces::halves_line || places == LanePlaces::halves_same;
}
constexpr Place in_context(size_t offset) {
  return {r12, static_cast<int32_t>(offset)};
}
} // namespace

bool DirectEmitter::emit_access(uint32_t index, const OpInfo& info, Lanes lanes) {
  const MicroOp& op = function_.op(index);
  const std::optional<size_t> guess = plan_.guess_of(index);
  const bool is_store = info.kind == OpKind::store;
  const auto space = static_cast<Space>(op.flags & 0xff);
  if (!guess || op.count != 1 || op.immediate != static_cast<int32_t>(op.immediate)) return false;
  if (op.source[0].base() != LaneBase::registers) return false;
  if (space != Space::global && space != Space::generic && space != Space::shared) return false;
  Access access{index, info.memory, *guess, plan_.guesses[*guess].places, code_.new_label(), lanes};
  if (access.places == LanePlaces::any || (is_store && !is_line(access.places))) return false;
  if (lanes != Lanes::all &&
      (!for_some_of_full_ || space != Space::shared || access.places != LanePlaces::line || info.memory.bytes < 4))
    return false;
  uppers_used_ = true;
  const unsigned address_bytes = info.memory.narrow_base ? 4 : 8;
  const Place addresses = destination_place(op.source[0]);
  const auto known = places_.find(op.source[0].offset());
  const KnownPlaces wanted{access.places, is_line(access.places) ? info.memory.bytes : 0, address_bytes};
  if (known != places_.end() && known->second == wanted) {
    code_.load(rax, stack_surprise, false);
    code_.test(rax, rax);
    code_.jump_if(Condition::not_equal, access.slow);
  } else {
    if (!forgets_surprise_) {
      code_.arithmetic(Arithmetic::xor_, rax, rax, false);
      code_.store(stack_surprise, rax, false);
    }
    forgets_surprise_ = true;
    test_places(access, addresses);
    places_[op.source[0].offset()] = wanted;
  }
  const Register hosts[2] = {rcx, has_halves(access.places) ? rsi : rcx};
  const unsigned period = has_halves(access.places) ? half_warp : warp_size;
  for (unsigned part = 0; part < warp_size / period; ++part)
    find_host(access, addresses + size_t(part) * half_warp * address_bytes, hosts[part],
              uint64_t(info.memory.bytes) * (is_line(access.places) ? period : 1));
  if (!is_store && space != Space::shared && access.places == LanePlaces::line)
    for (unsigned at = 0; at < warp_size * info.memory.bytes; at += cache_line)
      code_.prefetch(Place{hosts[0], prefetch_distance} + at);
  if (lanes == Lanes::all)
    transfer(access, hosts);
  else
    transfer_some(access, hosts[0]);
  const Label back = code_.new_label();
  code_.place(back);
  cold_.push_back({access.slow, back, index, lanes, guess});
  return true;
}

// Goes on if all lanes' addresses have the expected distance from the first one's, or from that of their half.
void DirectEmitter::test_places(const Access& access, Place addresses) {
  const bool narrow = access.memory.narrow_base;
  const unsigned address_bytes = narrow ? 4 : 8, chunks = warp_size * address_bytes / vector_bytes;
  const auto ramp = static_cast<unsigned>(std::countr_zero(access.memory.bytes));
  const size_t table = narrow ? offsetof(LaneTables, ramp32) + ramp * sizeof(LaneTables::ramp32[0])
                              : offsetof(LaneTables, ramp64) + ramp * sizeof(LaneTables::ramp64[0]);
  for (unsigned chunk = 0; chunk < chunks; ++chunk) {
    const unsigned in_part = has_halves(access.places) ? chunk % (chunks / 2) : chunk;
    const Place part = addresses + size_t(chunk) * vector_bytes;
    if (in_part == 0) code_.unary(narrow ? vpbroadcastd : vpbroadcastq, y0, part);
    const Vector expected = is_line(access.places) ? y1 : y0;
    if (is_line(access.places))
      code_.vector(narrow ? vpaddd : vpaddq, y1, y0,
                   Place{tables, static_cast<int32_t>(table)} + size_t(in_part) * vector_bytes);
    code_.vector(vpxor, chunk == 0 ? y2 : y3, expected, part);
    if (chunk != 0) code_.vector(vpor, y2, y2, y3);
  }
  code_.unary(vptest, y2, y2);
  code_.jump_if(Condition::not_equal, access.slow);
}

// host = the host's address of `bytes` at the address that the lane at `address` has.
void DirectEmitter::find_host(const Access& access, Place address, Register host, uint64_t bytes) {
  const MicroOp& op = function_.op(access.index);
  const bool narrow = access.memory.narrow_base;
  code_.load(host, address, !narrow);
  if (op.immediate) code_.arithmetic(Arithmetic::add, host, static_cast<int32_t>(op.immediate), !narrow);
  if (access.memory.bytes > 1) {
    code_.test(host, static_cast<int32_t>(access.memory.bytes - 1));
    code_.jump_if(Condition::not_equal, access.slow);
  }
  Place size = in_context(offsetof(CodeContext, shared_bytes)), start = in_context(offsetof(CodeContext, shared));
  if (static_cast<Space>(op.flags & 0xff) != Space::shared) {
    code_.load(rdx, in_context(offsetof(CodeContext, ranges)));
    const Place range{rdx, static_cast<int32_t>(op.auxiliary * sizeof(AccessSite))};
    code_.arithmetic(Arithmetic::sub, host, range + offsetof(MemoryRange, begin), true);
    size = range + offsetof(MemoryRange, size);
    start = range + offsetof(MemoryRange, host);
  }
  code_.load(rax, size);
  code_.arithmetic(Arithmetic::sub, rax, static_cast<int32_t>(bytes), true);
  code_.jump_if(Condition::below, access.slow);
  code_.arithmetic(Arithmetic::cmp, host, rax, true);
  code_.jump_if(Condition::above, access.slow);
  code_.arithmetic(Arithmetic::add, host, start, true);
}

// The lanes to load or to store, which may be a constant's.
Place DirectEmitter::lanes_of(const Access& access) {
  const MicroOp& op = function_.op(access.index);
  if (access.memory.kind != MemoryHandler::store) return destination_place(op.destination[0]);
  load_bases(op, 2);
  return source_place(op, 1);
}

void DirectEmitter::transfer(const Access& access, const Register (&hosts)[2]) {
  const bool is_store = access.memory.kind == MemoryHandler::store;
  const Place lanes = lanes_of(access);
  const unsigned bytes = access.memory.bytes, chunks = warp_size * bytes / vector_bytes;
  const bool halves = has_halves(access.places);
  const VectorOp copy = bytes == 1   ? vpbroadcastb
                        : bytes == 2 ? vpbroadcastw
                        : bytes == 4 ? vpbroadcastd
                                     : vpbroadcastq;
  // Lanes of one byte: the halves of the warp are halves of a vector.
  const bool small = halves && bytes == 1;
  const Width width = small ? Width::half : Width::whole;
  const unsigned count = small ? 2 : chunks, each = small ? vector_bytes / 2 : vector_bytes;
  for (unsigned chunk = 0; chunk < count; ++chunk) {
    const bool second = halves && chunk >= count / 2;
    const unsigned in_part = second ? chunk - count / 2 : chunk;
    const Place here = lanes + size_t(chunk) * each, there = Place{hosts[second], 0} + size_t(in_part) * each;
    if (is_line(access.places))
      code_.load(y0, is_store ? here : there, width);
    else if (in_part == 0)
      code_.unary(copy, y0, Place{hosts[second], 0});
    code_.store(is_store ? there : here, y0, width);
  }
}

// A line in shared memory: it belongs to this block alone, and the bytes of other lanes are written as they were.
void DirectEmitter::transfer_some(const Access& access, Register host) {
  const bool is_store = access.memory.kind == MemoryHandler::store;
  const Place lanes = lanes_of(access);
  const Place there{host, 0}, from = is_store ? lanes : there, to = is_store ? there : lanes;
  const unsigned bits = access.memory.bytes * 8;
  begin_lanes(access.lanes, bits);
  for (unsigned chunk = 0; chunk < warp_size * access.memory.bytes / vector_bytes; ++chunk) {
    code_.load(y0, from + size_t(chunk) * vector_bytes);
    store_chunk(to, bits, chunk, access.lanes);
  }
}

void DirectEmitter::note_results(uint32_t index, const OpInfo& info, Lanes lanes) {
  const MicroOp& op = function_.op(index);
  // What a register plus a number lies like, the register does.
  const bool is_sum = info.kind == OpKind::lane_sum || info.kind == OpKind::shift ||
                      (info.kind == OpKind::row && (info.recipe->traits & generated::is_sum) != 0);
  std::optional<KnownPlaces> of_sum;
  if (is_sum && lanes == Lanes::all)
    for (unsigned i = 0; i < 2; ++i) {
      const LaneRef from = op.source[i], other = op.source[1 - i];
      const bool moved = !other || other.base() == LaneBase::constants || other.base() == LaneBase::block_special;
      const auto known = from && from.base() == LaneBase::registers ? places_.find(from.offset()) : places_.end();
      if (moved && known != places_.end()) of_sum = known->second;
    }
  if (!places_.empty())
    for (const LaneUse& written : function_.uses(index, info).destinations)
      if (written.lanes) places_.erase(written.lanes.offset());
  if (of_sum) places_[op.destination[0].offset()] = *of_sum;
}

} // namespace ptxrewrite::emulator::generated
