#include "emulator/machines/dac/affine_machine.h"

#include "emulator/core/observer.h"
#include "emulator/machines/dac/affine_decode.h"
#include "ir/machine/figures/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace ptxrewrite::emulator {
namespace {

// Turns from a request to its data. Functional: long enough that warps do wait for data.
constexpr uint64_t memory_turns = 8;
// The affine warp has priority, and its own latency allows it one instruction per this many other
// warps.
constexpr uint32_t warps_for_an_affine_turn = 8;
// Turns in which only spinning warps executed, before the launch is reported as stuck.
constexpr uint64_t patient_turns = 1'000'000;

std::vector<uint64_t> lines_of(const WarpAddresses& access) {
  std::vector<uint64_t> lines;
  for (const TouchedLine& touched : access.lines) {
    const uint64_t line = touched.address / line_bytes * line_bytes;
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  return lines;
}

bool is_first_of_block(const AffineBatch& batch, const ThreadSet& threads, uint32_t warp) {
  for (uint32_t other = batch.block_of(warp) * batch.warps_per_block(); other < warp; ++other)
    if (threads[other]) return false;
  return true;
}

} // namespace

uint32_t default_resident_blocks(uint32_t threads, uint64_t shared_bytes) {
  const ir::Machine* machine = ir::find_machine("gtx480");
  if (!machine) return 1;
  return std::max(ir::occupancy(*machine, {threads, 0, static_cast<uint32_t>(shared_bytes)}).blocks, 1u);
}

AffineBlock::AffineBlock(AffineMachine& its_machine) : BlockMachine(dac_machine()), machine(&its_machine) {}

void AffineBlock::barrier_completed(uint32_t warps) {
  machine->barrier_passed(slot, warps);
}

void AffineBlock::barrier_arrived(const Warp& warp) {
  machine->barrier_passed(slot, 1u << warp.index);
}

AffineBlock* affine_block(const Block& block) {
  const bool is_ours = block.machine && &block.machine->model() == &dac_machine();
  return is_ours ? static_cast<AffineBlock*>(block.machine.get()) : nullptr;
}

AffineMachine::AffineMachine(BlockSource& source, const AffineProgram& program, const AffineSettings& settings,
                             AffineCheck* check)
    : source_(&source), launch_(&source.launch()), program_(&program), check_(check), settings_(settings) {}

void AffineMachine::start_batch(std::span<const uint64_t> linear) {
  std::vector<Dimensions> indices;
  while (blocks_.size() < linear.size()) {
    blocks_.push_back(source_->make_block(true));
    if (!blocks_.back()) {
      blocks_.clear();
      return;
    }
  }
  blocks_.resize(linear.size());
  for (uint32_t i = 0; i < linear.size(); ++i) {
    affine_block(*blocks_[i])->slot = i;
    source_->start(*blocks_[i], linear[i]);
    blocks_[i]->start_all_warps();
    if (blocks_[i]->failure) failure_ = blocks_[i]->failure;
    indices.push_back(blocks_[i]->index);
  }
  states_.assign(linear.size(), BlockState::running);
  batch_.emplace(launch_->request->block, indices);
  queue_.emplace(tuple_queue_entries, batch_->warps());
  const size_t entries = settings_.entries_per_warp ? settings_.entries_per_warp : entries_of_warp(batch_->warps());
  links_.assign(batch_->warps(), Link(entries));
  given_.assign(batch_->warps(), BoundedQueue<GivenPredicate>(entries));
  locks_.emplace();
  warp_ = std::make_unique<AffineWarp>(*program_, *batch_, *blocks_.front(), launch_->block_specials, *queue_, given_,
                                       counters_);
  idle_turns_ = 0;
  ++counters_.batches;
}

bool AffineMachine::run_batch(std::span<const uint64_t> linear) {
  start_batch(linear);
  if (blocks_.empty() || failure_) return false;
  while (!is_over()) {
    somebody_waits_for_memory_ = false;
    bool progress = false;
    for (uint32_t i = 0; i < 1 + batch_->warps() / warps_for_an_affine_turn; ++i)
      progress |= step_affine_warp();
    if (failure_ || !gave_up_.empty()) return false;
    for (uint32_t warp = 0; warp < batch_->warps(); ++warp)
      progress |= expand_for(warp);
    progress |= step_warps();
    if (failure_) return false;
    ++turn_;
    idle_turns_ = progress || somebody_waits_for_memory_ ? 0 : idle_turns_ + 1;
    const bool spins = std::ranges::any_of(blocks_, [](const auto& block) {
      return std::ranges::any_of(block->warps, [](const Warp& warp) { return warp.state == WarpState::yielded; });
    });
    if (idle_turns_ > (spins ? patient_turns : 0)) {
      report_deadlock();
      return false;
    }
  }
  return check_end();
}

bool AffineMachine::is_over() const {
  return std::ranges::all_of(states_, [](BlockState state) { return state == BlockState::finished; }) &&
         !warp_->place().valid();
}

bool AffineMachine::step_affine_warp() {
  if (failure_ || !gave_up_.empty()) return false;
  const ir::InstructionId place = warp_->place();
  switch (warp_->step()) {
  case AffineWarp::Turn::worked:
    blocks_.front()->take_fuel(1);
    if (blocks_.front()->fuel < 0) {
      report_affine(fmt::format("out of fuel: its stream and the first block have executed the {} instructions that "
                                "they may (--fuel allows more)",
                                launch_->request->fuel));
      failure_->kind = FailureKind::out_of_fuel;
      return false;
    }
    if (Observer* observer = blocks_.front()->observer; observer && place.valid())
      observer->stream_executed(*blocks_.front(), program_->function().first_instruction + place.index());
    return true;
  case AffineWarp::Turn::gave_up:
    gave_up_ = warp_->reason();
    return false;
  case AffineWarp::Turn::wrong:
    if (warp_->reason().empty())
      failure_ = blocks_.front()->failure;
    else
      report_affine(warp_->reason());
    return false;
  default:
    return false;
  }
}

// Each unit serves the warp once, if it can.
bool AffineMachine::expand_for(uint32_t warp) {
  bool progress = false;
  Link& link = links_[warp];
  if (const QueuedTuple* tuple = queue_->next(warp, false)) {
    if (tuple->kind == TupleKind::barrier) {
      const bool passed = link.barriers_passed > link.barriers_seen;
      counters_.barrier_holds += !passed;
      if (passed) {
        ++link.barriers_seen;
        queue_->pass(warp, false);
        progress = true;
      }
    } else if (link.addresses.full()) {
      ++counters_.warp_queue_full;
    } else if (expand_address(warp, *tuple)) {
      queue_->pass(warp, false);
      progress = true;
    }
  }
  if (const QueuedTuple* tuple = queue_->next(warp, true)) {
    if (link.predicates.full()) {
      ++counters_.warp_queue_full;
      return progress;
    }
    link.predicates.push({tuple->site, tuple->threads[warp], tuple->bits[warp]});
    queue_->pass(warp, true);
    progress = true;
  }
  return progress;
}

bool AffineMachine::expand_address(uint32_t warp, const QueuedTuple& tuple) {
  AddressRecord record;
  record.kind = tuple.kind;
  record.site = tuple.site;
  record.number = tuple.number;
  record.access = expand_addresses(tuple.address, tuple.bytes, *batch_, warp);
  if (tuple.kind == TupleKind::data && !request(record)) return false;
  counters_.block_starts += is_first_of_block(*batch_, tuple.threads, warp);
  counters_.lines += record.access.lines.size();
  counters_.adjustments += record.access.adjustments;
  counters_.adjusted_lines += record.access.adjusted_lines;
  links_[warp].addresses.push(std::move(record));
  return true;
}

// Requests the data at once and locks the lines that will hold them.
bool AffineMachine::request(AddressRecord& record) {
  record.locked = lines_of(record.access);
  const size_t wanted = record.locked.size();
  unsigned fresh = 0;
  if (locks_->lock(record.locked, fresh) == LineLocks::Outcome::full) {
    ++counters_.lock_stalls;
    return false;
  }
  counters_.requested_lines += wanted;
  counters_.locked_lines += fresh;
  counters_.unlockable_lines += wanted - record.locked.size();
  counters_.most_locked = std::max<uint64_t>(counters_.most_locked, locks_->locked_lines());
  const bool misses = fresh > 0 || record.locked.size() < wanted;
  record.ready = turn_ + (misses ? memory_turns : 1);
  return true;
}

bool AffineMachine::step_warps() {
  bool progress = false;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = *blocks_[i];
    if (states_[i] != BlockState::running) continue;
    for (Warp& warp : block.warps) {
      const bool spun = warp.state == WarpState::yielded;
      if (warp.state != WarpState::runnable && !spun) continue;
      const bool stepped = step(warp, links_[number_of(warp)]);
      block.settle(warp);
      progress |= stepped && !spun;
      if (block.failure) {
        failure_ = block.failure;
        return progress;
      }
    }
    if (block.live_warps > 0) continue;
    states_[i] = BlockState::finished;
    if (block.observer) block.observer->block_ended(block);
    progress = true;
    const std::string missing = check_ ? check_->check_block(block) : std::string();
    if (!missing.empty()) report_affine(missing);
  }
  return progress;
}

// Executes one instruction of the warp with its surrounding micro-operations. Returns false if it waits for its queues.
bool AffineMachine::step(Warp& warp, Link& link) {
  warp.state = WarpState::runnable;
  const MicroOp* op = warp.next_split();
  bool stepped = false;
  while (op) {
    if ((op->is_instruction && stepped) || must_wait(warp, *op, link)) {
      suspend(warp, op);
      return stepped;
    }
    stepped |= op->is_instruction;
    op = execute(warp, *op);
  }
  return true;
}

bool AffineMachine::must_wait(const Warp& warp, const MicroOp& op, Link& link) {
  const QueueAccess access = queue_access(op);
  if (access == QueueAccess::none || (warp.active & warp.guard_mask(op)) == 0) return false;
  if (access == QueueAccess::give) {
    const bool full = given_[number_of(warp)].full();
    counters_.given_full += full;
    return full;
  }
  const bool empty = access == QueueAccess::address ? link.addresses.empty() : link.predicates.empty();
  counters_.queue_empty += empty;
  if (empty || access == QueueAccess::predicate) return empty;
  const bool is_there = link.addresses.front().ready <= turn_;
  counters_.data_not_there += !is_there;
  somebody_waits_for_memory_ |= !is_there;
  return !is_there;
}

const MicroOp* AffineMachine::execute(Warp& warp, const MicroOp& op) {
  const uint32_t mask = warp.active & warp.guard_mask(op);
  if (op.counts_guard) {
    GuardCounter& counter = warp.block->counters->guards[op.instruction];
    counter.lanes += static_cast<unsigned>(std::popcount(mask));
    counter.off += mask == 0;
  }
  Observer* observer = op.is_instruction ? warp.block->observer : nullptr;
  if (mask == 0) {
    if (observer) observer->passed(*warp.block, warp, op);
    if (observer) (void)observer->take_left_out();
    return &op + 1;
  }
  warp.mask = mask;
  if (observer) observer->before(*warp.block, warp, op);
  const MicroOp* next = op.handler(warp, op);
  // A turn of this machine is one instruction: an observer's request to leave out more is not honoured.
  if (observer) (void)observer->take_left_out();
  if (check_ && next && op.is_instruction && check_->checks_datum(op))
    if (const std::string wrong = check_->check_datum(warp, op, mask); !wrong.empty()) return mismatch(warp, op, wrong);
  if (!observer || next != &op + 1) return next;
  // Further micro-operations of the instruction (the parts of an unpacking after the first) belong to it.
  while (!next->is_instruction && next->instruction == op.instruction) {
    warp.mask = warp.active & warp.guard_mask(*next);
    next = warp.mask ? next->handler(warp, *next) : next + 1;
  }
  observer->after(*warp.block, warp, op, mask);
  return next;
}

void AffineMachine::suspend(Warp& warp, const MicroOp* next) {
  warp.splits.push_back({next, warp.activation, warp.active, warp.meeting, SplitState::runnable, 0});
  warp.active = 0;
}

const MicroOp* AffineMachine::mismatch(Warp& warp, const MicroOp& op, const std::string& what) {
  return warp.block->fail(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)), what);
}

const MicroOp* AffineMachine::dequeue_address(Warp& warp, const MicroOp& op) {
  AddressRecord record = links_[number_of(warp)].addresses.pop();
  locks_->unlock(record.locked);
  if (record.site != op.extra || record.access.lanes != warp.mask)
    return mismatch(warp, op,
                    fmt::format("the streams do not fit together: address {} for lanes {:#010x} is wanted, and the "
                                "queue has {} for lanes {:#010x}",
                                op.extra, warp.mask, record.site, record.access.lanes));
  uint64_t* lanes = warp.lanes<uint64_t>(op.destination[0]);
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    lanes[lane] = record.access.addresses[lane];
  }
  ++counters_.addresses;
  if (record.kind == TupleKind::data) {
    ++counters_.early_loads;
    const uint64_t lead = warp_->enqueued(record.site) - record.number - 1;
    counters_.lead += lead;
    counters_.most_lead = std::max(counters_.most_lead, lead);
  }
  if (check_)
    if (const std::string wrong = check_->check_addresses(warp, record.site, warp.mask, record.access.addresses);
        !wrong.empty())
      return mismatch(warp, op, wrong);
  return &op + 1;
}

const MicroOp* AffineMachine::dequeue_predicate(Warp& warp, const MicroOp& op) {
  const PredicateRecord record = links_[number_of(warp)].predicates.pop();
  if (record.site != op.extra || record.lanes != warp.mask)
    return mismatch(warp, op,
                    fmt::format("the streams do not fit together: predicate {} for lanes {:#010x} is wanted, and the "
                                "queue has {} for lanes {:#010x}",
                                op.extra, warp.mask, record.site, record.lanes));
  uint32_t& target = warp.predicate(op.destination[0]);
  target = (target & ~warp.mask) | (record.bits & warp.mask);
  ++counters_.predicates;
  if (check_)
    if (const std::string wrong = check_->check_predicate(warp, record.site, warp.mask, record.bits); !wrong.empty())
      return mismatch(warp, op, wrong);
  return &op + 1;
}

const MicroOp* AffineMachine::give_predicate(Warp& warp, const MicroOp& op) {
  given_[number_of(warp)].push({op.extra, warp.mask, warp.predicate(op.source[0]) & warp.mask});
  return &op + 1;
}

void AffineMachine::barrier_passed(uint32_t slot, uint32_t warps) {
  for (; warps; warps &= warps - 1)
    ++links_[slot * launch_->warps + static_cast<unsigned>(std::countr_zero(warps))].barriers_passed;
}

// Checks that no queue entry is left.
bool AffineMachine::check_end() {
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp) {
    const size_t left = links_[warp].addresses.size() + links_[warp].predicates.size() + given_[warp].size();
    if (left == 0 && queue_->next(warp, true) == nullptr) continue;
    report_affine(fmt::format("the streams do not fit together: {} entries are left in the queues of warp {}", left,
                              warp % batch_->warps_per_block()));
    return false;
  }
  return true;
}

void AffineMachine::report_affine(std::string message) {
  if (failure_) return;
  const Block& block = *blocks_.front();
  MicroOp op;
  op.instruction = program_->function().first_instruction;
  if (warp_->place().valid()) op.instruction += warp_->place().index();
  failure_ = block.describe(block.warps.front(), op, 0, "DAC's affine warp: " + std::move(message),
                            FailureKind::program_fault);
  failure_->has_thread = false;
}

// Cannot occur with streams that fit together; lists the waits of all warps for debugging.
void AffineMachine::report_deadlock() {
  std::string text = fmt::format("deadlock: the tuple queue has {} of {} entries, {} lines are locked", queue_->size(),
                                 tuple_queue_entries, locks_->locked_lines());
  constexpr uint32_t most_warps = 4;
  uint32_t shown = 0;
  for (const auto& block : blocks_)
    for (const Warp& warp : block->warps) {
      if (warp.state == WarpState::finished || warp.splits.empty() || shown++ >= most_warps) continue;
      const Link& link = links_[number_of(warp)];
      const Split& split = warp.splits.back();
      const MicroOp& op = split.state == SplitState::at_barrier ? split.next[-1] : *split.next;
      const Failure place = block->describe(warp, op, 0, {}, FailureKind::deadlock);
      const uint32_t line = place.range.empty() ? 0 : launch_->image->module->source.locate(place.range.begin).line;
      text += fmt::format("; block {} warp {} {} line {} with {} addresses, {} predicates, {} given", block->linear,
                          warp.index, split.state == SplitState::at_barrier ? "at the barrier of" : "in", line,
                          link.addresses.size(), link.predicates.size(), given_[number_of(warp)].size());
    }
  report_affine(std::move(text));
  if (failure_) failure_->kind = FailureKind::deadlock;
}

} // namespace ptxrewrite::emulator
