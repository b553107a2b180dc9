// Pieces of code, regions, branches, guards and calls. Registers: rbx has the frame, rbp the fuel, r12 the context, r13
// the warp, r14 the function's micro-operations, r15 LaneTables.
#include "emulator/generated/direct_emitter.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>

namespace ptxrewrite::emulator::generated {

using namespace x86;

namespace {
constexpr Register kept[] = {rbx, rbp, r12, r13, r14, r15};

constexpr Place in_context(size_t offset) {
  return {r12, static_cast<int32_t>(offset)};
}
} // namespace

bool has_direct_code() {
#if defined(__x86_64__)
  static const bool known =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
  return known;
#else
  return false;
#endif
}

DirectEmitter::DirectEmitter(Plan& plan, bool full_warp) : plan_(plan), function_(plan.code), full_(full_warp) {}

std::vector<uint8_t> DirectEmitter::emit() {
  ++leaders_[plan_.entry];
  for (const auto& [first, piece] : plan_.pieces)
    for (uint32_t follower : piece.followers)
      ++leaders_[follower];
  begin();
  for (auto piece = plan_.pieces.begin(); piece != plan_.pieces.end(); ++piece) {
    const auto next = std::next(piece);
    last_piece_ = piece == plan_.pieces.begin() ? nullptr : &std::prev(piece)->second;
    emit_piece(piece->second, next == plan_.pieces.end() ? std::nullopt : std::optional(next->first));
  }
  for (const auto& [branch, label] : for_some_) {
    code_.place(label);
    emit_for_some(branch, *plan_.skipped_by(branch));
  }
  emit_cold();
  end();
  code_.resolve_jumps();
  return code_.bytes();
}

void DirectEmitter::begin() {
  leave_ = code_.new_label();
  for (Register saved : kept)
    code_.push(saved);
  code_.arithmetic(Arithmetic::sub, rsp, stack_bytes, true);
  code_.move(r12, rdi);
  code_.load(rbx, in_context(offsetof(CodeContext, registers)));
  code_.load(rbp, in_context(offsetof(CodeContext, fuel)));
  code_.load(r13, in_context(offsetof(CodeContext, warp)));
  code_.load(r14, in_context(offsetof(CodeContext, ops)));
  code_.load(r15, in_context(offsetof(CodeContext, tables)));
  if (!full_) {
    code_.load(rax, in_context(offsetof(CodeContext, active)), false);
    code_.store(stack_active, rax, false);
    code_.count_ones(rcx, rax);
    code_.store(stack_count, rcx);
  }
  if (plan_.pieces.begin()->first != plan_.entry) code_.jump(label_of(plan_.entry));
}

void DirectEmitter::end() {
  for (const auto& [index, label] : exits_) {
    code_.place(label);
    code_.address(rax, place_of_op(index));
    code_.jump(leave_);
  }
  code_.place(leave_);
  code_.clear_upper_halves();
  code_.store(in_context(offsetof(CodeContext, fuel)), rbp);
  code_.arithmetic(Arithmetic::add, rsp, stack_bytes, true);
  for (size_t i = std::size(kept); i-- > 0;)
    code_.pop(kept[i]);
  code_.ret();
}

void DirectEmitter::emit_cold() {
  for (const Cold& cold : cold_) {
    code_.place(cold.from);
    uppers_used_ = true;
    call_handler(cold.index, cold.lanes, cold.guess);
    if (cold.guess) {
      code_.move(rax, uint64_t(1));
      code_.store(stack_surprise, rax, false);
    }
    code_.jump(cold.back);
  }
}

Place DirectEmitter::place_of_op(uint32_t index) const {
  return {r14, static_cast<int32_t>(index * sizeof(MicroOp))};
}
Place DirectEmitter::lanes_place(Lanes lanes) const {
  return lanes == Lanes::guarded ? stack_guarded : stack_active;
}

DirectEmitter::Label DirectEmitter::label_of(uint32_t first) {
  const auto [known, is_new] = labels_.try_emplace(first, 0);
  if (is_new) known->second = code_.new_label();
  return known->second;
}
DirectEmitter::Label DirectEmitter::exit_at(uint32_t index) {
  const auto [known, is_new] = exits_.try_emplace(index, 0);
  if (is_new) known->second = code_.new_label();
  return known->second;
}

void DirectEmitter::jump_to(uint32_t first) {
  code_.jump(plan_.pieces.contains(first) ? label_of(first) : exit_at(first));
}

void DirectEmitter::emit_piece(const Piece& piece, std::optional<uint32_t> next_piece) {
  code_.place(label_of(piece.first));
  uppers_used_ = true;
  // Facts about addresses stay valid only if the piece emitted before this one is its only predecessor.
  if (leaders_[piece.first] != 1 || !last_piece_ || std::ranges::count(last_piece_->followers, piece.first) == 0) {
    places_.clear();
    forgets_surprise_ = false;
  }
  uint32_t at = piece.first;
  if (function_.is_region(at)) emit_region(at++, piece.begins_loop);
  for (; at < piece.past; ++at)
    if (full_ && at + 1 < piece.past && emit_pair(at))
      ++at;
    else
      emit_op(at);
  switch (piece.end) {
  case Piece::falls:
    if (piece.followers[0] != next_piece) jump_to(piece.followers[0]);
    break;
  case Piece::branches:
    emit_branch(piece.past, next_piece);
    break;
  case Piece::stops:
    code_.jump(exit_at(piece.past));
    break;
  }
}

// See Emitter::emit_region().
void DirectEmitter::emit_region(uint32_t index, bool begins_loop) {
  const MicroOp& op = function_.op(index);
  if (begins_loop) {
    code_.arithmetic(Arithmetic::cmp, rbp, static_cast<int32_t>(plan_.fuel), true);
    code_.jump_if(Condition::less, exit_at(index));
  }
  if (!full_ && function_.is_meeting(index)) {
    code_.address(rax, place_of_op(index));
    code_.arithmetic(Arithmetic::cmp, rax, in_context(offsetof(CodeContext, meeting)), true);
    code_.jump_if(Condition::equal, exit_at(index));
  }
  code_.arithmetic(Arithmetic::sub, rbp, static_cast<int32_t>(op.auxiliary), true);
  code_.load(rax, in_context(offsetof(CodeContext, regions)));
  const Place counter{rax, static_cast<int32_t>(op.extra * sizeof(RegionCounter))};
  if (full_) return code_.add_to(counter + offsetof(RegionCounter, full_executions), 1);
  code_.load(rcx, stack_count);
  code_.add_to(counter + offsetof(RegionCounter, executions), 1);
  code_.add_to(counter + offsetof(RegionCounter, lanes), rcx);
}

void DirectEmitter::load_guard(const MicroOp& op) {
  Place place = destination_place(op.guard);
  if (op.guard.base() != LaneBase::registers) {
    code_.load(rax,
               Place{r13, static_cast<int32_t>(offsetof(Warp, base) + op.guard.base_index() * sizeof(std::byte*))});
    place.base = rax;
  }
  code_.load(rax, place, false);
  if (op.guard_negated) code_.invert(rax);
  if (!full_) code_.arithmetic(Arithmetic::and_, rax, stack_active, false);
}

// rdx is its base.
Place DirectEmitter::guard_counter(const MicroOp& op, size_t field) {
  code_.load(rdx, in_context(offsetof(CodeContext, guards)));
  return {rdx, static_cast<int32_t>(op.instruction * sizeof(GuardCounter) + field)};
}

// rax: the lanes that skip the piece.
void DirectEmitter::emit_for_some(uint32_t branch, const Piece& piece) {
  const MicroOp& op = function_.op(branch);
  if (op.counts_guard) {
    code_.count_ones(rcx, rax);
    code_.add_to(guard_counter(op, offsetof(GuardCounter, lanes)), rcx);
  }
  code_.invert(rax);
  code_.store(stack_active, rax, false);
  code_.count_ones(rcx, rax);
  code_.store(stack_count, rcx);
  uppers_used_ = true;
  full_ = false;
  for_some_of_full_ = true;
  emit_region(piece.first, false);
  places_.clear();
  forgets_surprise_ = false;
  for (uint32_t at = piece.first + 1; at < piece.past; ++at) {
    const OpInfo info = function_.info(at);
    if (!emit_inline(at, info, Lanes::active)) call_handler(at, Lanes::active);
    note_results(at, info, Lanes::active);
  }
  full_ = true;
  for_some_of_full_ = false;
  jump_to(piece.followers[0]);
}

// Other lanes that part are left to the interpreter, which then counts the guard.
void DirectEmitter::emit_branch(uint32_t index, std::optional<uint32_t> next_piece) {
  const MicroOp& op = function_.op(index);
  const uint32_t target = function_.index_of(std::bit_cast<const MicroOp*>(op.immediate));
  if (!op.guard) {
    if (target != next_piece) jump_to(target);
    return;
  }
  const Label passed = code_.new_label();
  load_guard(op);
  code_.test(rax, rax);
  code_.jump_if(Condition::equal, passed);
  if (full_)
    code_.arithmetic(Arithmetic::cmp, rax, -1, false);
  else
    code_.arithmetic(Arithmetic::cmp, rax, stack_active, false);
  if (full_ && plan_.skipped_by(index))
    code_.jump_if(Condition::not_equal, for_some_[index] = code_.new_label());
  else
    code_.jump_if(Condition::not_equal, exit_at(index));
  if (op.counts_guard) {
    const Place counter = guard_counter(op, offsetof(GuardCounter, lanes));
    if (!full_) code_.load(rcx, stack_count);
    full_ ? code_.add_to(counter, static_cast<int32_t>(warp_size)) : code_.add_to(counter, rcx);
  }
  jump_to(target);
  code_.place(passed);
  if (op.counts_guard) code_.add_to(guard_counter(op, offsetof(GuardCounter, off)), 1);
  if (index + 1 != next_piece) jump_to(index + 1);
}

// Other lanes may have to arrive first: the interpreter gathers them.
void DirectEmitter::emit_elsewhere(uint32_t index) {
  code_.load(rax, in_context(offsetof(CodeContext, live)), false);
  code_.load(rcx, stack_active, false);
  code_.invert(rcx);
  code_.test(rax, rcx);
  code_.jump_if(Condition::not_equal, exit_at(index));
}

void DirectEmitter::emit_op(uint32_t index) {
  const OpInfo info = function_.info(index);
  const MicroOp& op = function_.op(index);
  if (info.kind == OpKind::collective && !full_) emit_elsewhere(index);
  const Lanes lanes = op.guard ? Lanes::guarded : full_ ? Lanes::all : Lanes::active;
  const bool uppers_used = uppers_used_;
  const Label skip = op.guard ? code_.new_label() : 0;
  if (op.guard) {
    load_guard(op);
    if (op.counts_guard) {
      code_.count_ones(rcx, rax);
      const Place counter = guard_counter(op, 0);
      code_.add_to(counter + offsetof(GuardCounter, lanes), rcx);
      code_.arithmetic(Arithmetic::cmp, rax, 1, false); // carry: the mask is 0
      code_.add_carry_to(counter + offsetof(GuardCounter, off));
    }
    code_.store(stack_guarded, rax, false);
    code_.test(rax, rax);
    code_.jump_if(Condition::equal, skip);
  }
  if (!emit_inline(index, info, lanes)) call_handler(index, lanes);
  note_results(index, info, lanes);
  if (!op.guard) return;
  code_.place(skip);
  uppers_used_ |= uppers_used;
}

// A handler that does not end as usual says where the interpreter goes on.
void DirectEmitter::call_handler(uint32_t index, Lanes lanes, std::optional<size_t> guess) {
  if (lanes == Lanes::all)
    code_.move(rax, uint64_t(full_mask));
  else
    code_.load(rax, lanes_place(lanes), false);
  if (guess) {
    code_.move(rdx, rax, false);
    code_.load(rcx, in_context(offsetof(CodeContext, guesses)));
    code_.address(rcx, Place{rcx, static_cast<int32_t>(*guess * sizeof(AddressGuess))});
  }
  code_.store(Place{r13, offsetof(Warp, mask)}, rax, false);
  code_.move(rdi, r13);
  code_.address(rsi, place_of_op(index));
  if (uppers_used_) code_.clear_upper_halves();
  uppers_used_ = false;
  code_.call(guess ? in_context(offsetof(CodeContext, call_access)) : Place{rsi, offsetof(MicroOp, handler)});
  code_.address(rcx, place_of_op(index + 1));
  code_.arithmetic(Arithmetic::cmp, rax, rcx, true);
  code_.jump_if(Condition::not_equal, leave_);
}

} // namespace ptxrewrite::emulator::generated
