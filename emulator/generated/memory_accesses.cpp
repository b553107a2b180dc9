// Loads and stores. Code is made for one way in which the lanes' addresses may lie (Plan::guesses), and tests whether
// they do. If not, outside of the range that the interpreter found for this micro-operation last, or misaligned, the
// handler does the access, and finds the fault.
#include "emulator/generated/emitter.h"

#include "emulator/access/lane_moves.h"
#include "emulator/core/address.h"

namespace ptxrewrite::emulator::generated {
namespace {

constexpr unsigned half_warp = warp_size / 2;

std::vector<unsigned> half_starts() {
  std::vector<unsigned> lanes(warp_size, 0);
  for (unsigned lane = half_warp; lane < warp_size; ++lane)
    lanes[lane] = half_warp;
  return lanes;
}
std::vector<unsigned> counting(unsigned count, unsigned first = 0, unsigned step = 1) {
  std::vector<unsigned> lanes;
  for (unsigned i = 0; i < count; ++i)
    lanes.push_back(first + i * step);
  return lanes;
}

} // namespace

LanePlaces Emitter::places_of(const Access& access) const {
  return access.guess ? plan_.guesses[*access.guess].places : LanePlaces::any;
}

bool Emitter::find_range(const MicroOp& op, const MemoryHandler& memory, Range& range) {
  ir_.use_scalars();
  const auto number = [&](uint64_t value) { return ir_.scalar_constant(64, value); };
  const bool is_fixed = memory.kind == MemoryHandler::fixed_load;
  switch (static_cast<Space>(op.flags & 0xff)) {
  case Space::global:
  case Space::generic: {
    if (is_fixed) return false;
    range.place = ir_.offset(field(offsetof(CodeContext, ranges), ir_.pointer()), op.auxiliary * sizeof(AccessSite));
    if (!quick_) load_range(range);
    return true;
  }
  case Space::shared:
    range.begin = number(0);
    range.size = field(offsetof(CodeContext, shared_bytes), ir_.scalar(64));
    range.host = field(offsetof(CodeContext, shared), ir_.scalar(64));
    return true;
  case Space::constant:
    if (memory.kind == MemoryHandler::store) return false;
    range.begin = number(0);
    range.size = number(code_.image.constant_bank.size());
    range.host = field(offsetof(CodeContext, constant_bank), ir_.scalar(64));
    return true;
  case Space::parameter:
    if (!is_fixed) return false;
    range.begin = number(0);
    range.size = number(code_.image.parameter_bytes);
    range.host = field(offsetof(CodeContext, parameters), ir_.scalar(64));
    return true;
  case Space::local:
  case Space::cluster:
    return false;
  }
  return false;
}

void Emitter::load_range(Range& range) {
  if (range.begin || !range.place) return;
  const auto part = [&](size_t offset) {
    return ir_.load(ir_.scalar(64), ir_.offset(range.place, offset), 8, Memory::facts);
  };
  range.begin = part(offsetof(MemoryRange, begin));
  range.size = part(offsetof(MemoryRange, size));
  range.host = part(offsetof(MemoryRange, host));
}

LaneValue Emitter::address_of(const MicroOp& op, const MemoryHandler& memory) {
  const unsigned bits = memory.narrow_base ? 32 : 64;
  const auto offset = static_cast<uint64_t>(op.immediate);
  LaneValue address;
  address.bits = bits;
  if (memory.kind != MemoryHandler::fixed_load) address = canonical(read(op.source[0], bits));
  ir_.use_scalars();
  const Value constant = ir_.scalar_constant(bits, offset);
  if (!address.number)
    address.number = constant;
  else if (offset)
    address.number = ir_.add(address.number, constant);
  return address;
}

// Narrow addresses wrap at 32 bits.
Value Emitter::wide(const Access& access, Value address) {
  return access.address.bits == 64 ? address : ir_.zext(address, 64);
}

Value Emitter::is_inside(const Access& access, Value address, uint64_t bytes) {
  const Value wanted = ir_.scalar_constant(64, bytes);
  const Value fits = ir_.icmp(LLVMIntUGE, access.range.size, wanted);
  const Value beyond = ir_.sub(access.range.size, wanted);
  return ir_.bit_and(fits, ir_.icmp(LLVMIntULE, ir_.sub(address, access.range.begin), beyond));
}

Value Emitter::is_aligned(const Access& access, Value address) {
  return ir_.icmp(LLVMIntEQ, ir_.bit_and(address, ir_.scalar_constant(64, access.size - 1)),
                  ir_.scalar_constant(64, 0));
}

Value Emitter::host_of(const Access& access, Value address) {
  return ir_.pointer_at(ir_.add(ir_.sub(access.range.host, access.range.begin), address));
}

void Emitter::arrive(Access& access, std::vector<Value> loaded) {
  access.from.push_back(ir_.here());
  access.loaded.push_back(std::move(loaded));
  ir_.jump(access.done);
}

// Skips a guarded access if no lane executes it.
void Emitter::skip_without_lanes(Access& access) {
  std::vector<Value> old;
  for (const LaneValue& value : access.old)
    old.push_back(canonical_vector_of(value));
  ir_.use_scalars();
  const Label executes = ir_.label("execute"), skips = ir_.label("skip");
  ir_.branch(ir_.icmp(LLVMIntNE, access.execution->mask, ir_.scalar_constant(32, 0)), executes, skips);
  ir_.place_at(skips);
  arrive(access, old);
  ir_.place_at(executes);
}

void Emitter::emit_slow(Access& access, const OpUses& uses) {
  ir_.place_at(access.slow);
  call_handler(access.index, uses, *access.execution, access.guess);
  std::vector<Value> loaded;
  for (const LaneUse& destination : uses.destinations) {
    if (access.loads_numbers) {
      ir_.use_scalars();
      const Value lane =
          ir_.mul(ir_.zext(first_lane(*access.execution), 64), ir_.scalar_constant(64, access.memory.bytes));
      loaded.push_back(ir_.load(ir_.scalar(access.bits()), ir_.offset(frame_place(destination.lanes.offset()), lane),
                                access.memory.bytes, Memory::frame));
    } else {
      loaded.push_back(load_frame(destination.lanes.offset(), access.bits()).vector);
    }
  }
  arrive(access, loaded);
}

// The host's addresses of `bytes` at each place, if all are inside and aligned and `good` (null: true) is; else the
// code goes on at access.slow.
std::vector<Value> Emitter::checked_hosts(Access& access, const std::vector<Value>& places, uint64_t bytes,
                                          Value good) {
  const auto also = [&](Value condition) { good = good ? ir_.bit_and(good, condition) : condition; };
  std::vector<Value> hosts;
  if (quick_) {
    for (Value place : places) {
      const Value host = host_if_inside(access, place, bytes);
      also(ir_.icmp(LLVMIntNE, host, ir_.scalar_constant(64, 0)));
      hosts.push_back(ir_.pointer_at(host));
    }
  } else {
    also(is_aligned(access, places.size() == 1 ? places[0] : ir_.bit_or(places[0], places[1])));
    for (Value place : places)
      also(is_inside(access, place, bytes));
  }
  const Label as_expected = ir_.label("access");
  ir_.branch_expected(good, as_expected, access.slow);
  ir_.place_at(as_expected);
  for (size_t i = 0; !quick_ && i < places.size(); ++i)
    hosts.push_back(host_of(access, places[i]));
  return hosts;
}

// A parameter or constant at a fixed place.
bool Emitter::is_always_inside(const Access& access, const OpInfo& info) const {
  if (info.kind != OpKind::fixed_load || access.execution->guarded) return false;
  const Space space = static_cast<Space>(access.op->flags & 0xff);
  const uint64_t end = space == Space::constant    ? code_.image.constant_bank.size()
                       : space == Space::parameter ? code_.image.parameter_bytes
                                                   : 0;
  const auto offset = static_cast<uint64_t>(access.op->immediate);
  return offset % access.size == 0 && offset <= end && access.size <= end - offset;
}

void Emitter::emit_known_load(const Access& access, const OpUses& uses) {
  ir_.use_scalars();
  const Value place = ir_.pointer_at(access.range.host);
  for (size_t i = 0; i < uses.destinations.size(); ++i) {
    const uint32_t offset = uses.destinations[i].lanes.offset();
    LaneValue value;
    value.bits = access.bits();
    value.number = ir_.load(ir_.scalar(value.bits),
                            ir_.offset(place, static_cast<uint64_t>(access.op->immediate) + i * access.memory.bytes),
                            access.memory.bytes, Memory::device);
    held_[offset] = value;
    changed_.insert(offset);
  }
}

void Emitter::emit_number_load(Access& access) {
  ir_.use_scalars();
  const Value address = wide(access, access.address.number);
  const Value host = checked_hosts(access, {address}, access.size, nullptr)[0];
  std::vector<Value> loaded;
  for (unsigned i = 0; i < access.op->count; ++i) {
    Value value = ir_.load(ir_.scalar(access.bits()), ir_.offset(host, i * access.memory.bytes), access.memory.bytes,
                           Memory::device);
    if (access.execution->guarded)
      value = ir_.select(vector_of(access.execution->guard), ir_.splat(value), canonical_vector_of(access.old[i]));
    else if (!access.loads_numbers)
      value = ir_.splat(value);
    loaded.push_back(value);
  }
  arrive(access, loaded);
}

// The last lane's value wins.
void Emitter::emit_number_store(Access& access) {
  ir_.use_scalars();
  const bool all = full_ && !access.execution->guarded;
  bool numbers = true;
  for (const LaneValue& value : access.stored)
    numbers &= value.is_uniform();
  if (!all && !numbers) return ir_.jump(access.slow);
  const Value address = wide(access, access.address.number);
  const Value host = checked_hosts(access, {address}, access.size, nullptr)[0];
  for (unsigned i = 0; i < access.op->count; ++i) {
    const LaneValue& value = access.stored[i];
    ir_.store(value.is_uniform() ? value.number : ir_.extract(vector_of(value), warp_size - 1),
              ir_.offset(host, i * access.memory.bytes), access.memory.bytes, Memory::device);
  }
  arrive(access, {});
}

// Whether the vector of the addresses lies as expected does not change in a loop that moves the number on: LLVM moves
// the question out of it.
void Emitter::emit_full_warp(Access& access, bool is_store) {
  const LanePlaces places_expected = places_of(access);
  if (places_expected == LanePlaces::any) return emit_chosen_lanes(access, is_store);
  const bool halves = places_expected == LanePlaces::halves_same || places_expected == LanePlaces::halves_line;
  const bool line = places_expected == LanePlaces::line || places_expected == LanePlaces::halves_line;
  const unsigned bits = access.address.bits, period = halves ? half_warp : warp_size;
  const Value vector = access.address.vector;
  const Value firsts = ir_.shuffle(vector, vector, halves ? half_starts() : std::vector<unsigned>(warp_size, 0));
  const Value expected = line ? ir_.ramp(bits, access.size, period) : ir_.llvm.ConstNull(ir_.vector(bits));
  Value good = ir_.holds_for_all(ir_.icmp(LLVMIntEQ, ir_.sub(vector, firsts), expected));
  ir_.use_scalars();
  std::vector<Value> places;
  for (unsigned lane = 0; lane < warp_size; lane += period)
    places.push_back(wide(access, ir_.add(access.address.number, ir_.extract(vector, lane))));
  const std::vector<Value> hosts = checked_hosts(access, places, line ? period * access.size : access.size, good);
  if (is_store)
    line ? store_lines(access, hosts) : store_places(access, hosts);
  else
    line ? load_lines(access, hosts) : load_places(access, hosts);
}

void Emitter::load_lines(Access& access, const std::vector<Value>& hosts) {
  const unsigned count = access.op->count, parts = static_cast<unsigned>(hosts.size());
  const Type part = ir_.llvm.VectorType(ir_.scalar(access.bits()), warp_size / parts * count);
  const auto space = static_cast<Space>(access.op->flags & 0xff);
  if (!quick_ && parts == 1 && count == 1 && (space == Space::global || space == Space::generic))
    for (unsigned at = 0; at < warp_size * access.memory.bytes; at += cache_line)
      ir_.prefetch(ir_.offset(hosts[0], prefetch_distance + at));
  std::vector<Value> loaded;
  for (Value host : hosts)
    loaded.push_back(ir_.load(part, host, access.memory.bytes, Memory::device));
  if (parts == 1 && count == 1) return arrive(access, loaded);
  std::vector<Value> elements;
  for (unsigned i = 0; i < count; ++i)
    elements.push_back(ir_.shuffle(loaded.front(), loaded.back(), counting(warp_size, i, count)));
  arrive(access, elements);
}

void Emitter::store_lines(Access& access, const std::vector<Value>& hosts) {
  const unsigned count = access.op->count, each = warp_size / static_cast<unsigned>(hosts.size());
  // Concatenates the elements, then interleaves them so that those of a lane are adjacent.
  std::vector<Value> parts;
  for (const LaneValue& value : access.stored)
    parts.push_back(vector_of(value));
  while (parts.size() > 1) {
    std::vector<Value> joined;
    const unsigned width = warp_size * count / static_cast<unsigned>(parts.size());
    for (size_t i = 0; i < parts.size(); i += 2)
      joined.push_back(ir_.shuffle(parts[i], parts[i + 1], counting(2 * width)));
    parts = joined;
  }
  for (unsigned part = 0; part < hosts.size(); ++part) {
    std::vector<unsigned> lanes;
    for (unsigned lane = part * each; lane < (part + 1) * each; ++lane)
      for (unsigned i = 0; i < count; ++i)
        lanes.push_back(i * warp_size + lane);
    const bool as_it_is = count == 1 && hosts.size() == 1;
    ir_.store(as_it_is ? parts[0] : ir_.shuffle(parts[0], parts[0], lanes), hosts[part], access.memory.bytes,
              Memory::device);
  }
  arrive(access, {});
}

void Emitter::load_places(Access& access, const std::vector<Value>& hosts) {
  std::vector<Value> loaded;
  for (unsigned i = 0; i < access.op->count; ++i) {
    std::vector<Value> vectors;
    for (Value host : hosts)
      vectors.push_back(ir_.splat(ir_.load(ir_.scalar(access.bits()), ir_.offset(host, i * access.memory.bytes),
                                           access.memory.bytes, Memory::device)));
    std::vector<unsigned> lanes(half_warp, 0);
    lanes.resize(warp_size, warp_size);
    loaded.push_back(hosts.size() == 1 ? vectors[0] : ir_.shuffle(vectors[0], vectors[1], lanes));
  }
  arrive(access, loaded);
}

// The last lane's value wins.
void Emitter::store_places(Access& access, const std::vector<Value>& hosts) {
  const unsigned each = warp_size / static_cast<unsigned>(hosts.size());
  for (unsigned i = 0; i < access.op->count; ++i) {
    const Value vector = vector_of(access.stored[i]);
    for (unsigned part = 0; part < hosts.size(); ++part)
      ir_.store(ir_.extract(vector, (part + 1) * each - 1), ir_.offset(hosts[part], i * access.memory.bytes),
                access.memory.bytes, Memory::device);
  }
  arrive(access, {});
}

// Some lanes of a warp whose addresses (in all lanes) are `size` bytes apart.
void Emitter::emit_masked_line(Access& access, bool is_store) {
  load_range(access.range);
  const unsigned bits = access.address.bits;
  const Value vector = access.address.vector, mask = access.execution->mask, lanes = access.execution->lanes;
  const Value firsts = ir_.shuffle(vector, vector, std::vector<unsigned>(warp_size, 0));
  Value good = ir_.holds_for_all(ir_.icmp(LLVMIntEQ, ir_.sub(vector, firsts), ir_.ramp(bits, access.size)));
  ir_.use_scalars();
  const Value start = wide(access, ir_.add(access.address.number, ir_.extract(vector, 0)));
  const Value before = ir_.intrinsic("llvm.ctlz", {ir_.scalar(32)}, {mask, ir_.scalar_constant(1, 1)});
  const Value last = ir_.sub(ir_.scalar_constant(32, warp_size - 1), before);
  const auto place = [&](Value lane) {
    return ir_.add(start, ir_.mul(ir_.zext(lane, 64), ir_.scalar_constant(64, access.size)));
  };
  good = ir_.bit_and(good, is_aligned(access, start));
  good = ir_.bit_and(good, is_inside(access, place(first_lane(*access.execution)), access.size));
  good = ir_.bit_and(good, is_inside(access, place(last), access.size));
  const Label as_expected = ir_.label("access");
  ir_.branch_expected(good, as_expected, access.slow);
  ir_.place_at(as_expected);
  const Value host = host_of(access, start), alignment = ir_.scalar_constant(32, access.memory.bytes);
  const Type type = ir_.vector(access.bits());
  if (is_store) {
    ir_.touches(ir_.intrinsic("llvm.masked.store", {type, ir_.pointer()},
                              {vector_of(access.stored[0]), host, alignment, lanes}),
                Memory::device);
    return arrive(access, {});
  }
  const Value old = access.execution->guarded ? canonical_vector_of(access.old[0]) : ir_.llvm.ConstNull(type);
  arrive(access, {ir_.touches(ir_.intrinsic("llvm.masked.load", {type, ir_.pointer()}, {host, alignment, lanes, old}),
                              Memory::device)});
}

// Any lanes with any addresses, by gather and scatter.
void Emitter::emit_chosen_lanes(Access& access, bool is_store) {
  if (access.op->count > 1 || access.memory.bytes < 4) return ir_.jump(access.slow);
  if (access.execution->lanes && places_of(access) == LanePlaces::line) return emit_masked_line(access, is_store);
  load_range(access.range);
  ir_.use_vectors();
  const Value lanes = access.execution->lanes;
  Value addresses = wide(access, vector_of(access.address));
  if (lanes) {
    // Lanes that do not execute get the address of an executing lane.
    const Value least = ir_.intrinsic("llvm.vector.reduce.umin", {ir_.vector(64)},
                                      {ir_.select(lanes, addresses, ir_.constant(64, ~uint64_t(0)))});
    addresses = ir_.select(lanes, addresses, ir_.splat(least));
  }
  const Value size = ir_.scalar_constant(64, access.size);
  const Value beyond = ir_.splat(ir_.sub(access.range.size, size));
  const Value offsets = ir_.sub(addresses, ir_.splat(access.range.begin));
  const Value all_inside = ir_.holds_for_all(ir_.icmp(LLVMIntULE, offsets, beyond));
  const Value all_bits = ir_.intrinsic("llvm.vector.reduce.or", {ir_.vector(64)}, {addresses});
  ir_.use_scalars();
  const Value fits = ir_.icmp(LLVMIntUGE, access.range.size, size);
  const Label goes_on = ir_.label("lanes_inside");
  ir_.branch_expected(ir_.bit_and(ir_.bit_and(all_inside, fits), is_aligned(access, all_bits)), goes_on, access.slow);
  ir_.place_at(goes_on);
  ir_.use_vectors();
  const Type pointers = ir_.llvm.VectorType(ir_.pointer(), warp_size);
  const Value hosts = ir_.llvm.BuildIntToPtr(
      ir_.builder, ir_.add(addresses, ir_.splat(ir_.sub(access.range.host, access.range.begin))), pointers, "");
  const Value mask = lanes ? lanes : ir_.constant(1, 1);
  const Value alignment = ir_.scalar_constant(32, access.memory.bytes);
  const Type type = ir_.vector(access.bits());
  if (is_store) {
    ir_.touches(
        ir_.intrinsic("llvm.masked.scatter", {type, pointers}, {vector_of(access.stored[0]), hosts, alignment, mask}),
        Memory::device);
    return arrive(access, {});
  }
  const Value old = access.execution->guarded ? canonical_vector_of(access.old[0]) : ir_.llvm.ConstNull(type);
  arrive(access, {ir_.touches(ir_.intrinsic("llvm.masked.gather", {type, pointers}, {hosts, alignment, mask, old}),
                              Memory::device)});
}

void Emitter::emit_load(uint32_t index, const OpInfo& info, const Execution& execution) {
  const MicroOp& op = code_.op(index);
  const OpUses uses = code_.uses(index, info);
  Access access{index, &op, info.memory, &execution};
  access.size = uint64_t(info.memory.bytes) * op.count;
  access.guess = plan_.guess_of(index);
  const bool found = find_range(op, info.memory, access.range);
  const bool uniform_address =
      info.kind == OpKind::fixed_load || read(op.source[0], info.memory.narrow_base ? 32 : 64).is_uniform();
  access.loads_numbers =
      uniform_address && !execution.guarded && (info.kind == OpKind::fixed_load || !loads_own_memory(op));
  for (const LaneUse& destination : uses.destinations)
    if (plan_.slots.at(destination.lanes.offset()).in_frame) return emit_call(index, info, execution);
  if (found && is_always_inside(access, info)) return emit_known_load(access, uses);
  if (found) access.address = address_of(op, info.memory);
  if (quick_ && found && has_access_step(access)) return access_by_step(access, uses, false);
  access.slow = ir_.label("slow");
  access.done = ir_.label("loaded");
  if (execution.guarded) {
    for (const LaneUse& destination : uses.destinations)
      access.old.push_back(read_register(destination.lanes.offset(), destination.bits));
    skip_without_lanes(access);
  }
  if (!found) {
    ir_.jump(access.slow);
  } else {
    if (access.address.is_uniform())
      emit_number_load(access);
    else if (full_ && !execution.guarded)
      emit_full_warp(access, false);
    else
      emit_chosen_lanes(access, false);
  }
  emit_slow(access, uses);
  ir_.place_at(access.done);
  for (size_t i = 0; i < uses.destinations.size(); ++i) {
    LaneValue value;
    value.bits = access.bits();
    const Type type = access.loads_numbers ? ir_.scalar(value.bits) : ir_.vector(value.bits);
    const Value phi = ir_.llvm.BuildPhi(ir_.builder, type, "");
    for (size_t way = 0; way < access.from.size(); ++way)
      ir_.llvm.AddIncoming(phi, &access.loaded[way][i], &access.from[way], 1);
    (access.loads_numbers ? value.number : value.vector) = phi;
    held_[uses.destinations[i].lanes.offset()] = value;
    changed_.insert(uses.destinations[i].lanes.offset());
  }
}

void Emitter::emit_store(uint32_t index, const OpInfo& info, const Execution& execution) {
  const MicroOp& op = code_.op(index);
  const OpUses uses = code_.uses(index, info);
  Access access{index, &op, info.memory, &execution};
  access.size = uint64_t(info.memory.bytes) * op.count;
  access.guess = plan_.guess_of(index);
  if (!find_range(op, info.memory, access.range)) return emit_call(index, info, execution);
  access.address = address_of(op, info.memory);
  for (unsigned i = 0; i < op.count; ++i)
    access.stored.push_back(canonical(read(code_.element(op, i, op.source[1]), access.bits())));
  if (quick_ && has_access_step(access)) return access_by_step(access, uses, true);
  access.slow = ir_.label("slow");
  access.done = ir_.label("stored");
  if (execution.guarded) skip_without_lanes(access);
  if (access.address.is_uniform())
    emit_number_store(access);
  else if (full_ && !execution.guarded)
    emit_full_warp(access, true);
  else
    emit_chosen_lanes(access, true);
  emit_slow(access, uses);
  ir_.place_at(access.done);
}

} // namespace ptxrewrite::emulator::generated
