// Operations on lanes: by the row of their handler, or by a call of the handler itself.
#include "emulator/generated/emitter.h"

namespace ptxrewrite::emulator::generated {

void Emitter::emit_row(uint32_t index, const OpInfo& info, const Execution& execution) {
  const MicroOp& op = code_.op(index);
  const Recipe& recipe = *info.recipe;
  LaneValue sources[4];
  bool all_uniform = true;
  for (unsigned i = 0; i < recipe.widths.source_count; ++i) {
    sources[i] = read(op.source[i], recipe.widths.source_bits[i]);
    if (!(recipe.traits & (takes_open_nans | is_copy))) sources[i] = canonical(sources[i]);
    all_uniform &= sources[i].is_uniform();
  }
  if (recipe.traits & is_copy) return write(op.destination[0], sources[0], execution);
  const bool scales = recipe.traits & is_scaling && sources[1].is_uniform();
  if (recipe.traits & (is_sum | is_difference) || scales)
    return write(op.destination[0], linear(recipe, sources[0], sources[1]), execution);
  Value values[4] = {};
  for (unsigned i = 0; i < recipe.widths.source_count; ++i)
    values[i] = all_uniform ? sources[i].number : vector_of(sources[i]);
  if (all_uniform)
    ir_.use_scalars();
  else
    ir_.use_vectors();
  const Operands operands = {values[0], values[1], values[2], values[3],
                             recipe.traits & takes_extra ? op.extra : op.flags};
  const Results results = quick_ && !all_uniform ? build_row(op, recipe, operands) : recipe.build(ir_, operands);
  const Value each[2] = {results.first, results.second};
  for (unsigned i = 0; i < recipe.widths.destination_count; ++i) {
    if (!each[i]) {
      holds_ = false;
      return;
    }
    LaneValue value;
    value.bits = recipe.widths.destination_bits[i];
    (all_uniform ? value.number : value.vector) = each[i];
    value.open_nan = (recipe.traits & leaves_open_nans) != 0;
    write(op.destination[i], value, execution);
  }
}

// The number common to all lanes and the vector are computed separately: addresses that advance by the same distance
// keep their vector.
LaneValue Emitter::linear(const Recipe& recipe, const LaneValue& a, const LaneValue& b) {
  LaneValue result;
  result.bits = recipe.widths.destination_bits[0];
  if (recipe.traits & is_scaling) {
    ir_.use_scalars();
    if (a.number) result.number = recipe.build(ir_, {a.number, b.number}).first;
    ir_.use_vectors();
    if (a.vector) result.vector = recipe.build(ir_, {a.vector, ir_.splat(b.number)}).first;
    return result;
  }
  const bool subtracts = (recipe.traits & is_difference) != 0;
  const auto combined = [&](Value x, Value y) -> Value {
    if (!y) return x;
    if (!x) return subtracts ? ir_.sub(ir_.llvm.ConstNull(ir_.llvm.TypeOf(y)), y) : y;
    return subtracts ? ir_.sub(x, y) : ir_.add(x, y);
  };
  result.number = combined(a.number, b.number);
  result.vector = combined(a.vector, b.vector);
  return result;
}

void Emitter::emit_part(const MicroOp& op, const OpInfo& info, const Execution& execution) {
  const unsigned whole = info.part.whole, part = info.part.part;
  const LaneValue source = canonical(read(op.source[0], info.part.inserts ? part : whole));
  LaneValue result;
  if (!info.part.inserts) {
    if (source.is_uniform())
      ir_.use_scalars();
    else
      ir_.use_vectors();
    const Value from = source.is_uniform() ? source.number : vector_of(source);
    (source.is_uniform() ? result.number : result.vector) =
        ir_.trunc(ir_.lshr(from, ir_.constant(whole, part * op.extra)), part);
    result.bits = part;
    return write(op.destination[0], result, execution);
  }
  const LaneValue old = read(op.destination[0], whole);
  const bool uniform = source.is_uniform() && old.is_uniform();
  if (uniform)
    ir_.use_scalars();
  else
    ir_.use_vectors();
  const uint64_t ones = (uint64_t(1) << part) - 1;
  const uint64_t place = ones << (part * op.extra);
  const Value kept = ir_.bit_and(uniform ? old.number : vector_of(old), ir_.constant(whole, ~place));
  const Value moved =
      ir_.shl(ir_.zext(uniform ? source.number : vector_of(source), whole), ir_.constant(whole, part * op.extra));
  (uniform ? result.number : result.vector) = ir_.bit_or(kept, moved);
  result.bits = whole;
  write(op.destination[0], result, execution);
}

// The handler reads and writes the frame. Behind it the registers that it writes are held as vectors.
void Emitter::call_handler(uint32_t index, const OpUses& uses, const Execution& execution,
                           std::optional<size_t> guess) {
  const auto to_frame = [&](uint32_t offset) {
    const Slot& slot = plan_.slots.at(offset);
    if (quick_ && !changed_.contains(offset)) return;
    if (!slot.in_frame && slot.written) store_frame(offset, read_register(offset, slot.bits), active_lanes_);
  };
  std::set<uint32_t> needed;
  for (const LaneUse& source : uses.sources)
    if (source.lanes && source.lanes.base() == LaneBase::registers) needed.insert(source.lanes.offset());
  // Addresses computed by earlier micro-operations of the instruction.
  for (uint32_t offset : changed_)
    if (!code_.is_register(offset)) needed.insert(offset);
  if (execution.guarded)
    for (const LaneUse& destination : uses.destinations)
      if (destination.lanes) needed.insert(destination.lanes.offset());
  for (uint32_t offset : needed)
    to_frame(offset);
  ir_.use_scalars();
  if (quick_) return call_handler_by_step(index, execution, guess);
  Type parameters[] = {ir_.pointer(), ir_.pointer(), ir_.scalar(32), ir_.pointer()};
  const unsigned count = guess ? 4 : 3;
  const Type type = ir_.llvm.FunctionType(ir_.pointer(), parameters, count, 0);
  Value arguments[] = {field(offsetof(CodeContext, warp), ir_.pointer()), place_of_op(index), execution.mask, nullptr};
  if (guess)
    arguments[3] = ir_.offset(field(offsetof(CodeContext, guesses), ir_.pointer()), *guess * sizeof(AddressGuess));
  const Value callee = field(guess ? offsetof(CodeContext, call_access) : offsetof(CodeContext, call), ir_.pointer());
  const Value next = ir_.llvm.BuildCall2(ir_.builder, type, callee, arguments, count, "");
  const Label goes_on = ir_.label("called"), fails = ir_.label("failed");
  ir_.branch_expected(ir_.icmp(LLVMIntEQ, next, place_of_op(index + 1)), goes_on, fails);
  ir_.place_at(fails);
  ir_.store(ir_.load(ir_.scalar(64), fuel_, 8), ir_.offset(context_, offsetof(CodeContext, fuel)), 8, Memory::facts);
  ir_.llvm.BuildRet(ir_.builder, next);
  ir_.place_at(goes_on);
}

void Emitter::emit_call(uint32_t index, const OpInfo& info, const Execution& execution) {
  const OpUses uses = code_.uses(index, info);
  std::vector<std::pair<uint32_t, unsigned>> results;
  for (const LaneUse& destination : uses.destinations)
    if (destination.lanes && !plan_.slots.at(destination.lanes.offset()).in_frame)
      results.emplace_back(destination.lanes.offset(), destination.bits);
  for (const LaneUse& source : uses.sources)
    if (source.lanes && source.lanes.base() == LaneBase::registers)
      (void)read_register(source.lanes.offset(), source.bits); // so that they are known on all paths from here
  std::vector<Value> old;
  const Label before_call = ir_.label("execute"), behind = ir_.label("executed");
  Label before = nullptr;
  if (execution.guarded) {
    for (const auto& [offset, bits] : results)
      old.push_back(canonical_vector_of(read_register(offset, bits)));
    before = ir_.here();
    ir_.branch(ir_.icmp(LLVMIntNE, execution.mask, ir_.scalar_constant(32, 0)), before_call, behind);
  } else {
    ir_.jump(before_call);
  }
  ir_.place_at(before_call);
  call_handler(index, uses, execution);
  std::vector<Value> loaded;
  for (const auto& [offset, bits] : results)
    loaded.push_back(load_frame(offset, bits).vector);
  const Label after_call = ir_.here();
  ir_.jump(behind);
  ir_.place_at(behind);
  for (size_t i = 0; i < results.size(); ++i) {
    LaneValue value;
    value.bits = results[i].second;
    value.vector = loaded[i];
    if (execution.guarded) {
      value.vector = ir_.llvm.BuildPhi(ir_.builder, ir_.vector(value.bits), "");
      Value incoming[] = {old[i], loaded[i]};
      Label from[] = {before, after_call};
      ir_.llvm.AddIncoming(value.vector, incoming, from, 2);
    }
    held_[results[i].first] = value;
    changed_.insert(results[i].first);
  }
}

} // namespace ptxrewrite::emulator::generated
