#include "emulator/generated/emitter.h"

#include "emulator/core/decode.h"

#include <bit>

namespace ptxrewrite::emulator::generated {

Emitter::Emitter(Ir& ir, Plan& plan, bool full_warp, CodeTier tier)
    : ir_(ir), plan_(plan), code_(plan.code), full_(full_warp), quick_(tier == CodeTier::quick) {}

bool Emitter::emit(const std::string& name) {
  plan_.find_values();
  begin_function(name);
  for (const auto& [first, piece] : plan_.pieces)
    emit_piece(piece);
  load_entry_values();
  return holds_;
}

Value Emitter::field(size_t offset, Type type, unsigned alignment) {
  return ir_.load(type, ir_.offset(context_, offset), alignment, Memory::facts);
}

Value Emitter::place_of_op(uint32_t index) {
  return ir_.offset(ops_, uint64_t(index) * sizeof(MicroOp));
}

void Emitter::begin_function(const std::string& name) {
  const Llvm& llvm = ir_.llvm;
  Type parameter = ir_.pointer();
  ir_.function = llvm.AddFunction(ir_.module(), name.c_str(), llvm.FunctionType(ir_.pointer(), &parameter, 1, 0));
  context_ = llvm.GetParam(ir_.function, 0);
  stack_ = ir_.label("stack");
  entry_ = ir_.label("entry");
  ir_.place_at(entry_);
  ir_.use_scalars();
  registers_ = field(offsetof(CodeContext, registers), ir_.pointer());
  ops_ = field(offsetof(CodeContext, ops), ir_.pointer());
  regions_ = field(offsetof(CodeContext, regions), ir_.pointer());
  guards_ = field(offsetof(CodeContext, guards), ir_.pointer());
  if (full_) {
    active_ = ir_.scalar_constant(32, full_mask);
    active_count_ = ir_.scalar_constant(64, warp_size);
  } else {
    active_ = field(offsetof(CodeContext, active), ir_.scalar(32), 4);
    active_lanes_ = ir_.conditions_of(active_);
    active_count_ = ir_.zext(ir_.intrinsic("llvm.ctpop", {ir_.scalar(32)}, {active_}), 64);
  }
  ir_.place_at(stack_);
  fuel_ = llvm.BuildAlloca(ir_.builder, ir_.scalar(64), "fuel");
  for (auto& [offset, slot] : plan_.slots) {
    if (!slot.between || slot.in_frame || (quick_ && slot.shape == Shape::vector)) continue;
    Storage& storage = storage_[offset];
    if (slot.shape != Shape::vector) storage.number = llvm.BuildAlloca(ir_.builder, ir_.scalar(slot.bits), "");
    if (slot.shape != Shape::uniform) storage.vector = llvm.BuildAlloca(ir_.builder, ir_.vector(slot.bits), "");
  }
}

// Called after the pieces: the plan then knows which registers are in stack slots, and the entry is still open.
void Emitter::load_entry_values() {
  ir_.place_at(stack_);
  ir_.jump(entry_);
  ir_.place_at(entry_);
  ir_.use_scalars();
  ir_.store(field(offsetof(CodeContext, fuel), ir_.scalar(64)), fuel_, 8);
  const Label other_warp = ir_.label("other_warp");
  const std::vector<uint32_t>& live = code_.live_at(plan_.entry);
  const std::set<uint32_t> is_live(live.begin(), live.end());
  for (const auto& [offset, storage] : storage_) {
    const Slot& slot = plan_.slots.at(offset);
    if (is_live.contains(offset) || !code_.is_register(offset)) {
      load_entry_value(offset, slot, other_warp);
      continue;
    }
    // Written before it is read: any value will do.
    if (storage.number) ir_.store(ir_.scalar_constant(slot.bits, 0), storage.number, 8);
    if (storage.vector) ir_.store(ir_.llvm.ConstNull(ir_.vector(slot.bits)), storage.vector, 64);
  }
  ir_.jump(piece_label(plan_.entry));
  ir_.place_at(other_warp);
  ir_.llvm.BuildRet(ir_.builder, ir_.address(not_for_this_warp));
}

void Emitter::load_entry_value(uint32_t offset, const Slot& slot, Label other_warp) {
  const Storage& storage = storage_.at(offset);
  const LaneValue loaded = load_frame(offset, slot.bits);
  if (storage.vector) {
    ir_.store(loaded.vector, storage.vector, 64);
    if (storage.number) ir_.store(ir_.scalar_constant(slot.bits, 0), storage.number, 8);
    return;
  }
  // The plan assumes that all active lanes hold one number; tests whether that is true in this warp.
  ir_.use_scalars();
  Execution all;
  all.mask = active_;
  Value number, same;
  if (slot.bits == 1) {
    const Value mask = ir_.bit_and(ir_.mask_of(loaded.vector), active_);
    number = ir_.icmp(LLVMIntNE, mask, ir_.scalar_constant(32, 0));
    same = ir_.bit_or(ir_.bit_not(number), ir_.icmp(LLVMIntEQ, mask, active_));
  } else {
    const Value place =
        ir_.offset(frame_place(offset), ir_.mul(ir_.zext(first_lane(all), 64), ir_.scalar_constant(64, slot.bits / 8)));
    number = ir_.load(ir_.scalar(slot.bits), place, slot.bits / 8, Memory::frame);
    Value equal = ir_.icmp(LLVMIntEQ, loaded.vector, ir_.splat(number));
    if (!full_) equal = ir_.bit_or(equal, ir_.bit_not(active_lanes_));
    same = ir_.holds_for_all(equal);
  }
  ir_.store(number, storage.number, 8);
  const Label next = ir_.label("uniform");
  ir_.branch_expected(same, next, other_warp);
  ir_.place_at(next);
}

Label Emitter::piece_label(uint32_t first) {
  Label& label = labels_[first];
  if (!label) label = ir_.label("piece");
  return label;
}

void Emitter::emit_piece(const Piece& piece) {
  held_.clear();
  changed_.clear();
  ir_.place_at(piece_label(piece.first));
  uint32_t at = piece.first;
  if (code_.is_region(at)) emit_region(at++, piece.begins_loop);
  for (; at < piece.past; ++at)
    emit_op(at);
  switch (piece.end) {
  case Piece::falls:
    jump_to(piece.followers[0]);
    break;
  case Piece::branches:
    emit_branch(piece.past);
    break;
  case Piece::stops:
    leave_at(piece.past);
    break;
  }
}

void Emitter::jump_to(uint32_t first) {
  if (!plan_.pieces.contains(first)) return leave_at(first);
  keep_between();
  ir_.jump(piece_label(first));
}

void Emitter::count(Value place, Value by) {
  ir_.store(ir_.add(ir_.load(ir_.scalar(64), place, 8, Memory::counters), by), place, 8, Memory::counters);
}

// As the handler of the region does; where it would do more, the interpreter does it. At the entry of the function, and
// wherever a loop begins, there is fuel for all pieces: so none of them runs out of it. Lanes of a full warp are
// expected nowhere (see enter()).
void Emitter::emit_region(uint32_t index, bool begins_loop) {
  const MicroOp& op = code_.op(index);
  ir_.use_scalars();
  const Value fuel = ir_.load(ir_.scalar(64), fuel_, 8);
  Value goes_on = nullptr;
  if (begins_loop) goes_on = ir_.icmp(LLVMIntSGE, fuel, ir_.scalar_constant(64, plan_.fuel));
  if (!full_ && code_.is_meeting(index)) {
    const Value meeting = field(offsetof(CodeContext, meeting), ir_.pointer());
    const Value elsewhere = ir_.icmp(LLVMIntNE, meeting, place_of_op(index));
    goes_on = goes_on ? ir_.bit_and(goes_on, elsewhere) : elsewhere;
  }
  if (goes_on) {
    const Label executes = ir_.label("region"), leaves = ir_.label("left");
    ir_.branch_expected(goes_on, executes, leaves);
    ir_.place_at(leaves);
    leave_at(index);
    ir_.place_at(executes);
  }
  ir_.store(ir_.sub(fuel, ir_.scalar_constant(64, op.auxiliary)), fuel_, 8);
  const uint64_t counter = op.extra * sizeof(RegionCounter);
  if (full_)
    return count(ir_.offset(regions_, counter + offsetof(RegionCounter, full_executions)), ir_.scalar_constant(64, 1));
  count(ir_.offset(regions_, counter + offsetof(RegionCounter, executions)), ir_.scalar_constant(64, 1));
  count(ir_.offset(regions_, counter + offsetof(RegionCounter, lanes)), active_count_);
}

void Emitter::count_guard(const MicroOp& op, const Execution& execution) {
  if (!op.counts_guard) return;
  ir_.use_scalars();
  const Value lanes = ir_.zext(ir_.intrinsic("llvm.ctpop", {ir_.scalar(32)}, {execution.mask}), 64);
  const Value off = ir_.zext(ir_.icmp(LLVMIntEQ, execution.mask, ir_.scalar_constant(32, 0)), 64);
  const uint64_t counter = op.instruction * sizeof(GuardCounter);
  count(ir_.offset(guards_, counter + offsetof(GuardCounter, lanes)), lanes);
  count(ir_.offset(guards_, counter + offsetof(GuardCounter, off)), off);
}

void Emitter::emit_op(uint32_t index) {
  const OpInfo info = code_.info(index);
  const MicroOp& op = code_.op(index);
  if (info.kind == OpKind::collective && !full_) {
    // Other lanes may have to arrive first: the interpreter gathers them.
    ir_.use_scalars();
    const Value live = field(offsetof(CodeContext, live), ir_.scalar(32), 4);
    const Value elsewhere = ir_.bit_and(live, ir_.bit_not(active_));
    const Label all_here = ir_.label("all_here"), leaves = ir_.label("elsewhere");
    ir_.branch_expected(ir_.icmp(LLVMIntEQ, elsewhere, ir_.scalar_constant(32, 0)), all_here, leaves);
    ir_.place_at(leaves);
    leave_at(index);
    ir_.place_at(all_here);
  }
  const Execution execution = execution_of(op);
  count_guard(op, execution);
  switch (info.kind) {
  case OpKind::row:
    if (!info.recipe->build) return emit_call(index, info, execution);
    return emit_row(index, info, execution);
  case OpKind::lane_sum: {
    static const Recipe sum = {nullptr, is_sum, {2, 1, {64, 64}, {64}}};
    const LaneValue total = linear(sum, read(op.source[0], 64), read(op.source[1], 64));
    ir_.use_scalars();
    const LaneValue offset{ir_.scalar_constant(64, static_cast<uint64_t>(op.immediate)), nullptr, 64};
    return write(op.destination[0], op.immediate ? linear(sum, total, offset) : total, execution);
  }
  case OpKind::shift: {
    static const Recipe sum = {nullptr, is_sum, {2, 1, {64, 64}, {64}}};
    ir_.use_scalars();
    const LaneValue offset{ir_.scalar_constant(64, static_cast<uint64_t>(op.immediate)), nullptr, 64};
    const LaneValue from = read(op.source[0], 64);
    return write(op.destination[0], op.immediate ? linear(sum, from, offset) : from, execution);
  }
  case OpKind::insertion:
  case OpKind::extraction:
    return emit_part(op, info, execution);
  case OpKind::load:
  case OpKind::fixed_load:
    return emit_load(index, info, execution);
  case OpKind::store:
    return emit_store(index, info, execution);
  case OpKind::call:
  case OpKind::collective:
    return emit_call(index, info, execution);
  case OpKind::branch:
  case OpKind::stop:
    break;
  }
  holds_ = false;
}

// A result of some lanes is a vector.
bool Emitter::can_emit_for_some(const Piece& piece) {
  for (uint32_t at = piece.first + 1; at < piece.past; ++at)
    for (const LaneUse& written : code_.uses(at, code_.info(at)).destinations) {
      if (!written.lanes) continue;
      const Slot& slot = plan_.slots.at(written.lanes.offset());
      if (slot.between && slot.shape != Shape::vector) return false;
    }
  return true;
}

void Emitter::emit_for_some(const Piece& piece, const Execution& skipping) {
  const std::map<uint32_t, LaneValue> held = held_;
  const std::set<uint32_t> changed = changed_;
  Execution some;
  some.guarded = true;
  some.guard = skipping.guard;
  ir_.use_vectors();
  some.guard.vector = some.lanes = ir_.bit_not(skipping.lanes);
  ir_.use_scalars();
  some.mask = ir_.bit_not(skipping.mask);
  const MicroOp& region = code_.op(piece.first);
  ir_.store(ir_.sub(ir_.load(ir_.scalar(64), fuel_, 8), ir_.scalar_constant(64, region.auxiliary)), fuel_, 8);
  const uint64_t counter = region.extra * sizeof(RegionCounter);
  count(ir_.offset(regions_, counter + offsetof(RegionCounter, executions)), ir_.scalar_constant(64, 1));
  count(ir_.offset(regions_, counter + offsetof(RegionCounter, lanes)),
        ir_.zext(ir_.intrinsic("llvm.ctpop", {ir_.scalar(32)}, {some.mask}), 64));
  changed_.clear();
  some_ = &some;
  for (uint32_t at = piece.first + 1; at < piece.past; ++at)
    emit_op(at);
  some_ = nullptr;
  jump_to(piece.followers[0]);
  held_ = held;
  changed_ = changed;
}

// Other divergent lanes are left to the interpreter, which then counts the guard.
void Emitter::emit_branch(uint32_t index) {
  const MicroOp& op = code_.op(index);
  const uint32_t target = code_.index_of(std::bit_cast<const MicroOp*>(op.immediate));
  if (!op.guard) return jump_to(target);
  const Execution execution = execution_of(op);
  if (quick_) return branch_by_step(index, execution, target);
  const Label taken = ir_.label("taken"), passed = ir_.label("passed");
  keep_between();
  ir_.use_scalars();
  if (execution.guard.is_uniform()) {
    ir_.branch(execution.guard.number, taken, passed);
  } else {
    const Label some = ir_.label("some"), parts = ir_.label("parts");
    ir_.branch(ir_.icmp(LLVMIntEQ, execution.mask, active_), taken, some);
    ir_.place_at(some);
    ir_.branch_expected(ir_.icmp(LLVMIntEQ, execution.mask, ir_.scalar_constant(32, 0)), passed, parts);
    ir_.place_at(parts);
    const Piece* piece = full_ ? plan_.skipped_by(index) : nullptr;
    if (piece && can_emit_for_some(*piece)) {
      count_guard(op, execution);
      emit_for_some(*piece, execution);
    } else {
      leave_at(index);
    }
  }
  const uint64_t counter = op.instruction * sizeof(GuardCounter);
  ir_.place_at(taken);
  if (op.counts_guard) count(ir_.offset(guards_, counter + offsetof(GuardCounter, lanes)), active_count_);
  jump_to(target);
  ir_.place_at(passed);
  if (op.counts_guard) count(ir_.offset(guards_, counter + offsetof(GuardCounter, off)), ir_.scalar_constant(64, 1));
  jump_to(index + 1);
}

void Emitter::leave_at(uint32_t index) {
  // Registers that are loaded on this exit are not known on other paths.
  const std::map<uint32_t, LaneValue> held = held_;
  std::set<uint32_t> needed;
  for (uint32_t offset : code_.live_at(index))
    if (const auto slot = plan_.slots.find(offset);
        slot != plan_.slots.end() && slot->second.written && (!quick_ || changed_.contains(offset)))
      needed.insert(offset);
  for (uint32_t offset : changed_)
    if (!code_.is_register(offset)) needed.insert(offset);
  // Results of earlier micro-operations of the same instruction.
  const auto same_instruction = [&](uint32_t at) {
    return !code_.is_region(at) && code_.op(at).instruction == code_.op(index).instruction;
  };
  for (uint32_t at = index; at > 0 && same_instruction(at - 1); --at)
    for (const LaneUse& written : code_.uses(at - 1, code_.info(at - 1)).destinations)
      if (written.lanes && changed_.contains(written.lanes.offset())) needed.insert(written.lanes.offset());
  for (uint32_t offset : needed) {
    const Slot& slot = plan_.slots.at(offset);
    if (!slot.in_frame) store_frame(offset, read_register(offset, slot.bits), active_lanes_);
  }
  ir_.use_scalars();
  ir_.store(ir_.load(ir_.scalar(64), fuel_, 8), ir_.offset(context_, offsetof(CodeContext, fuel)), 8, Memory::facts);
  ir_.llvm.BuildRet(ir_.builder, place_of_op(index));
  held_ = held;
}

} // namespace ptxrewrite::emulator::generated
