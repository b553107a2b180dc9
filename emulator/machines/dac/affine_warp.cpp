// Control, queues and predicates of the affine warp; its arithmetic is in affine_alu.cpp.
#include "emulator/machines/dac/affine_warp.h"

#include "emulator/core/block.h"
#include "emulator/core/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ptxrewrite::emulator {
namespace {

bool needs_room(const AffineInstruction& instruction) {
  return instruction.action == AffineAction::enqueue || instruction.action == AffineAction::barrier;
}

} // namespace

AffineWarp::AffineWarp(const AffineProgram& program, const AffineBatch& batch, Block& first_block,
                       std::span<const std::byte> block_specials, TupleQueue& queue,
                       std::vector<BoundedQueue<GivenPredicate>>& given, AffineCounters& counters)
    : program_(&program), batch_(&batch), queue_(&queue), given_(&given), counters_(&counters), stack_(batch),
      values_(program.source().values.size()), predicates_(program.source().values.size()), enqueued_(program.sites()) {
  counters.executions.resize(program.source().instructions.size());
  counters.lanes.resize(program.source().instructions.size());
  const LaunchRequest& request = *first_block.launch->request;
  for (uint32_t extent :
       {request.block.x, request.block.y, request.block.z, request.grid.x, request.grid.y, request.grid.z})
    lanes_of_tuple_ += extent > 1;
  const uint32_t bytes = (std::max<uint32_t>(program.function().frame_bytes, 64) + 63) / 64 * 64;
  frame_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (!frame_) throw std::bad_alloc(); // caught by the launch
  std::memset(frame_, 0, bytes);
  scratch_.block = &first_block;
  scratch_.members = scratch_.live = scratch_.active = full_mask;
  scratch_.root = {frame_, &program.function(), nullptr, 0, 0};
  scratch_.activation = &scratch_.root;
  scratch_.base[static_cast<unsigned>(LaneBase::registers)] = frame_;
  scratch_.base[static_cast<unsigned>(LaneBase::constants)] = first_block.image->constants.data();
  scratch_.base[static_cast<unsigned>(LaneBase::thread_special)] =
      first_block.warps.front().base[static_cast<unsigned>(LaneBase::thread_special)];
  scratch_.base[static_cast<unsigned>(LaneBase::block_special)] = const_cast<std::byte*>(block_specials.data());
}

AffineWarp::~AffineWarp() {
  std::free(frame_);
}

ir::InstructionId AffineWarp::place() const {
  if (stack_.empty() || stack_.next() >= program_->instructions().size()) return {};
  return program_->instructions()[stack_.next()].id;
}

AffineWarp::Turn AffineWarp::wrong(std::string reason) {
  reason_ = std::move(reason);
  return trouble_ = Turn::wrong;
}

AffineWarp::Turn AffineWarp::give_up(std::string reason) {
  reason_ = std::move(reason);
  return trouble_ = Turn::gave_up;
}

AffineWarp::Turn AffineWarp::step() {
  if (stack_.empty()) return Turn::ended;
  if (stack_.next() >= program_->instructions().size()) {
    const ThreadSet all = stack_.active();
    stack_.exit(all, stack_.next());
    return Turn::worked;
  }
  const AffineInstruction& instruction = program_->instructions()[stack_.next()];
  ThreadSet threads = stack_.active();
  if (instruction.taken_guard || instruction.guard) {
    ThreadSet bits;
    Turn otherwise = Turn::stalled;
    // Taking an entry cannot be undone: the instruction must not stall afterwards.
    if (instruction.taken_guard && queue_->full() && needs_room(instruction)) return stall_on_full();
    if (!instruction.taken_guard)
      bits = predicate(instruction.guard);
    else if (!take(*instruction.taken_guard, threads, bits, otherwise))
      return otherwise;
    instruction.guard_negated ? threads.remove(bits) : threads &= bits;
  }
  const Turn turn = execute(instruction, threads);
  if (turn != Turn::worked) return turn;
  ++counters_->affine;
  ++counters_->executions[instruction.id.index()];
  counters_->deepest_stack = std::max<uint64_t>(counters_->deepest_stack, stack_.depth());
  return Turn::worked;
}

AffineWarp::Turn AffineWarp::execute(const AffineInstruction& instruction, const ThreadSet& threads) {
  const uint32_t behind = stack_.next() + 1;
  switch (instruction.action) {
  case AffineAction::branch:
    return branch(instruction, threads);
  case AffineAction::exit:
    stack_.exit(threads, behind);
    return Turn::worked;
  case AffineAction::barrier:
    if (Turn turn = push({.kind = TupleKind::barrier, .threads = threads}); turn != Turn::worked) return turn;
    break;
  case AffineAction::enqueue:
    if (Turn turn = enqueue(instruction, threads); turn != Turn::worked) return turn;
    break;
  case AffineAction::take: {
    ThreadSet bits;
    Turn otherwise = Turn::stalled;
    if (!take(instruction.site, threads, bits, otherwise)) return otherwise;
    write_predicate(instruction.results.front(), threads, bits);
    break;
  }
  case AffineAction::condition:
    ++counters_->conditions;
    break;
  case AffineAction::nothing:
    break;
  default:
    if (!threads.empty() && !calculate(instruction, threads)) return trouble_;
  }
  stack_.go_to(behind);
  return Turn::worked;
}

AffineWarp::Turn AffineWarp::branch(const AffineInstruction& instruction, const ThreadSet& taken) {
  const uint64_t warps = stack_.warp_updates(), lanes = stack_.lane_updates();
  const bool fits = stack_.branch(taken, instruction.target, stack_.next() + 1, instruction.meet);
  counters_->stack_warp_updates += stack_.warp_updates() - warps;
  counters_->stack_lane_updates += stack_.lane_updates() - lanes;
  if (!fits)
    return give_up(
        fmt::format("branches part threads deeper than the affine SIMT stack's {} entries", affine_stack_depth));
  return Turn::worked;
}

AffineWarp::Turn AffineWarp::stall_on_full() {
  ++counters_->tuple_queue_full;
  return Turn::stalled;
}

AffineWarp::Turn AffineWarp::push(QueuedTuple tuple) {
  if (tuple.threads.empty()) return Turn::worked;
  if (queue_->full()) return stall_on_full();
  ++counters_->tuples;
  queue_->push(std::move(tuple));
  return Turn::worked;
}

AffineWarp::Turn AffineWarp::enqueue(const AffineInstruction& instruction, const ThreadSet& threads) {
  QueuedTuple tuple;
  tuple.kind = instruction.tuple;
  tuple.site = instruction.site;
  tuple.threads = threads;
  tuple.bytes = instruction.bytes;
  tuple.number = enqueued_[instruction.site];
  if (threads.empty()) return Turn::worked;
  if (instruction.tuple == TupleKind::predicate) {
    tuple.bits = predicate(instruction.sources.front().value) & threads;
    if (instruction.sources.front().negated) tuple.bits = without(threads, tuple.bits);
  } else {
    const MicroOp& op = program_->function().code[instruction.own_op];
    if (instruction.sources.empty()) {
      run_operations(instruction.first_op, instruction.own_op, 1);
      const uint64_t base = op.source[0] ? *scratch_.lanes<uint64_t>(op.source[0]) : 0;
      tuple.address.push_back({threads, AffineTuple::scalar(base + static_cast<uint64_t>(op.immediate), 64)});
    } else {
      auto parts = value(instruction.sources.front().value).read(threads);
      if (!parts) return give_up("an address has more than four tuples, by more than two divergent conditions");
      for (AffineValue::Part& part : *parts)
        part.tuple = *add(part.tuple, AffineTuple::scalar(static_cast<uint64_t>(op.immediate), part.tuple.bits));
      tuple.address = std::move(*parts);
    }
    count_lanes(instruction, tuple.address.size());
  }
  const Turn turn = push(std::move(tuple));
  if (turn == Turn::worked) ++enqueued_[instruction.site];
  return turn;
}

// All warps must have executed their dac.give, except warps without an active thread.
bool AffineWarp::take(uint32_t site, const ThreadSet& threads, ThreadSet& bits, Turn& otherwise) {
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp)
    if (threads[warp] && (*given_)[warp].empty()) {
      ++counters_->waits_for_given;
      otherwise = Turn::stalled;
      return false;
    }
  bits = ThreadSet(batch_->warps());
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp) {
    if (!threads[warp]) continue;
    const GivenPredicate given = (*given_)[warp].pop();
    if (given.site != site || given.lanes != threads[warp]) {
      otherwise = wrong(fmt::format("the streams do not fit together: it takes predicate {} for lanes {:#010x} of warp "
                                    "{}, which gives {} for lanes {:#010x}",
                                    site, threads[warp], warp % batch_->warps_per_block(), given.site, given.lanes));
      return false;
    }
    bits[warp] = given.bits;
  }
  return true;
}

AffineValue& AffineWarp::value(ir::ValueId id) {
  std::optional<AffineValue>& place = values_[id.index()];
  if (!place) place.emplace(batch_->warps(), lane_bits(program_->source().values[id].type));
  return *place;
}

ThreadSet& AffineWarp::predicate(ir::ValueId id) {
  std::optional<ThreadSet>& place = predicates_[id.index()];
  if (!place) place.emplace(batch_->warps());
  return *place;
}

void AffineWarp::write(ir::ValueId id, const ThreadSet& threads, const AffineTuple& tuple) {
  AffineValue& target = value(id);
  target.write(threads, tuple.bits == target.bits() ? tuple : convert(tuple, target.bits(), false));
  counters_->most_tuples = std::max<uint64_t>(counters_->most_tuples, target.parts().size());
}

void AffineWarp::write_predicate(ir::ValueId id, const ThreadSet& threads, const ThreadSet& bits) {
  ThreadSet& target = predicate(id);
  target.remove(threads);
  target |= bits & threads;
}

void AffineWarp::count_lanes(const AffineInstruction& instruction, size_t tuples) {
  counters_->lanes[instruction.id.index()] += tuples * lanes_of_tuple_;
}

} // namespace ptxrewrite::emulator
