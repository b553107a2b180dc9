// Locations of lane values while a piece of code is emitted: held, in stack slots between pieces, in the frame.
#include "emulator/generated/emitter.h"

#include <cstring>

namespace ptxrewrite::emulator::generated {

Value Emitter::frame_place(uint32_t offset) {
  return ir_.offset(registers_, offset);
}

LaneValue Emitter::load_frame(uint32_t offset, unsigned bits) {
  LaneValue value;
  value.bits = bits;
  if (bits == 1)
    value.vector = ir_.conditions_of(ir_.load(ir_.scalar(32), frame_place(offset), 4, Memory::frame));
  else
    value.vector = ir_.load(ir_.vector(bits), frame_place(offset), LaneRef::alignment, Memory::frame);
  return value;
}

// `lanes`: nullptr: all.
void Emitter::store_frame(uint32_t offset, const LaneValue& value, Value lanes) {
  Value vector = canonical_vector_of(value);
  if (value.bits == 1) {
    Value mask = ir_.mask_of(vector);
    if (lanes) {
      const Value chosen = ir_.mask_of(lanes), old = ir_.load(ir_.scalar(32), frame_place(offset), 4, Memory::frame);
      mask = ir_.bit_or(ir_.bit_and(mask, chosen), ir_.bit_and(old, ir_.bit_not(chosen)));
    }
    return ir_.store(mask, frame_place(offset), 4, Memory::frame);
  }
  if (lanes)
    vector = ir_.select(lanes, vector,
                        ir_.load(ir_.vector(value.bits), frame_place(offset), LaneRef::alignment, Memory::frame));
  ir_.store(vector, frame_place(offset), LaneRef::alignment, Memory::frame);
}

LaneValue Emitter::read(LaneRef lanes, unsigned bits) {
  LaneValue value;
  value.bits = bits;
  ir_.use_scalars();
  switch (lanes.base()) {
  case LaneBase::constants: {
    uint64_t number = 0;
    std::memcpy(&number, const_cast<KernelImage&>(code_.image).constants.data() + lanes.offset(),
                bits == 1 ? 4 : bits / 8);
    value.number = ir_.scalar_constant(bits, bits == 1 ? number != 0 : number);
    return value;
  }
  case LaneBase::block_special:
    value.number = ir_.load(ir_.scalar(bits),
                            ir_.offset(field(offsetof(CodeContext, block_specials), ir_.pointer()), lanes.offset()), 4,
                            Memory::facts);
    return value;
  case LaneBase::thread_special: {
    const Value place = ir_.offset(field(offsetof(CodeContext, thread_specials), ir_.pointer()), lanes.offset());
    if (plan_.shape_of_base(lanes) == Shape::uniform)
      value.number = ir_.load(ir_.scalar(bits), place, 4, Memory::facts);
    else
      value.vector = ir_.load(ir_.vector(bits), place, 4, Memory::facts);
    return value;
  }
  case LaneBase::registers:
    break;
  }
  return read_register(lanes.offset(), bits);
}

LaneValue Emitter::read_register(uint32_t offset, unsigned bits) {
  const Slot& slot = plan_.slots.at(offset);
  if (slot.in_frame) return load_frame(offset, bits);
  if (const auto known = held_.find(offset); known != held_.end()) return known->second;
  LaneValue value;
  value.bits = slot.bits;
  if (const auto storage = storage_.find(offset); storage != storage_.end()) {
    if (storage->second.number) value.number = ir_.load(ir_.scalar(bits), storage->second.number, 8);
    if (storage->second.vector) value.vector = ir_.load(ir_.vector(bits), storage->second.vector, 64);
    value.open_nan = !quick_ && slot.nans == Nans::open;
  } else if (quick_ && slot.between) {
    value = load_frame(offset, bits);
  } else {
    value.number = ir_.scalar_constant(bits, 0); // it has never been written
  }
  return held_[offset] = value;
}

Value Emitter::vector_of(const LaneValue& value) {
  if (!value.vector) return ir_.splat(value.number);
  return value.number ? ir_.add(ir_.splat(value.number), value.vector) : value.vector;
}

LaneValue Emitter::canonical(LaneValue value) {
  if (!value.open_nan) return value;
  if (value.is_uniform()) {
    ir_.use_scalars();
    value.number = canonical_f32(ir_, value.number);
  } else {
    ir_.use_vectors();
    value.vector = canonical_f32(ir_, vector_of(value));
    value.number = nullptr;
  }
  value.open_nan = false;
  return value;
}

Value Emitter::canonical_vector_of(const LaneValue& value) {
  return vector_of(canonical(value));
}

void Emitter::write(LaneRef lanes, LaneValue value, const Execution& execution) {
  if (!lanes) return;
  const uint32_t offset = lanes.offset();
  if (plan_.slots.at(offset).in_frame) return store_frame(offset, value, execution.lanes);
  if (execution.guarded) value = selected(execution.guard, value, read_register(offset, value.bits));
  held_[offset] = value;
  changed_.insert(offset);
}

// Of an open and another value the open one becomes canonical: the other's bits count.
LaneValue Emitter::selected(const LaneValue& guard, LaneValue value, LaneValue old) {
  const bool open = value.open_nan && old.open_nan;
  if (!open) {
    value = canonical(value);
    old = canonical(old);
  }
  if (guard.is_uniform() && value.is_uniform() && old.is_uniform()) {
    value.number = ir_.select(guard.number, value.number, old.number);
  } else {
    value.vector = ir_.select(vector_of(guard), vector_of(value), vector_of(old));
    value.number = nullptr;
  }
  value.open_nan = open;
  return value;
}

// Others that are live are left to the exits.
void Emitter::keep_in_frame() {
  std::erase_if(changed_, [&](uint32_t offset) {
    const Slot& slot = plan_.slots.at(offset);
    if (slot.in_frame || (!slot.between && code_.is_register(offset))) return false;
    held_.at(offset) = canonical(held_.at(offset));
    store_frame(offset, held_.at(offset), active_lanes_);
    return true;
  });
}

// At the end of a piece: stores values that other pieces read to their stack slots.
void Emitter::keep_between() {
  const std::set<uint32_t> changed = changed_;
  if (quick_) keep_in_frame();
  for (uint32_t offset : changed) {
    const auto storage = storage_.find(offset);
    if (storage == storage_.end()) continue;
    const Slot& slot = plan_.slots.at(offset);
    const LaneValue value = slot.nans == Nans::open ? held_.at(offset) : canonical(held_.at(offset));
    switch (slot.shape) {
    case Shape::uniform:
      if (!value.is_uniform()) {
        holds_ = false; // the plan's assumption is too strong
        return;
      }
      ir_.store(value.number, storage->second.number, 8);
      break;
    case Shape::sum:
      ir_.store(value.number ? value.number : ir_.scalar_constant(slot.bits, 0), storage->second.number, 8);
      ir_.store(value.vector ? value.vector : ir_.llvm.ConstNull(ir_.vector(slot.bits)), storage->second.vector, 64);
      break;
    case Shape::vector:
      ir_.store(vector_of(value), storage->second.vector, 64);
      break;
    }
  }
}

Execution Emitter::execution_of(const MicroOp& op) {
  if (some_) return *some_;
  Execution execution;
  execution.lanes = active_lanes_;
  execution.mask = active_;
  if (!op.guard) return execution;
  execution.guarded = true;
  execution.guard = read(op.guard, 1);
  ir_.use_scalars();
  if (execution.guard.is_uniform()) {
    if (op.guard_negated) execution.guard.number = ir_.bit_not(execution.guard.number);
    execution.mask = ir_.select(execution.guard.number, active_, ir_.scalar_constant(32, 0));
  } else if (op.guard_negated) {
    execution.guard.vector = ir_.bit_not(execution.guard.vector);
  }
  execution.lanes = vector_of(execution.guard);
  if (!full_) execution.lanes = ir_.bit_and(execution.lanes, active_lanes_);
  if (!execution.guard.is_uniform()) execution.mask = ir_.mask_of(execution.lanes);
  return execution;
}

// The lowest executing lane; at least one lane must execute.
Value Emitter::first_lane(const Execution& execution) {
  return ir_.intrinsic("llvm.cttz", {ir_.scalar(32)}, {execution.mask, ir_.scalar_constant(1, 1)});
}

} // namespace ptxrewrite::emulator::generated
