// Runs one block: its warps execute in turn, each until it waits, spins or ends.
#include "emulator/core/block.h"

#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/machine.h"
#include "emulator/core/observer.h"

#include "support/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ptxrewrite::emulator {

std::byte* FramePool::take(uint32_t bytes) {
  for (auto& [size, frames] : free_)
    if (size == bytes && !frames.empty()) {
      std::byte* frame = frames.back();
      frames.pop_back();
      return frame;
    }
  // Zeroed so that lanes that do not exist read the same values in every run.
  const uint64_t rounded = align_up(std::max<uint32_t>(bytes, 64), 64);
  if (!share_.try_grow(rounded)) return nullptr;
  auto* frame = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
  if (!frame) return nullptr;
  std::memset(frame, 0, bytes);
  all_.push_back(frame);
  return frame;
}

void FramePool::give_back(std::byte* frame, uint32_t bytes) {
  for (auto& [size, frames] : free_)
    if (size == bytes) {
      frames.push_back(frame);
      return;
    }
  free_.push_back({bytes, {frame}});
}

FramePool::~FramePool() {
  for (std::byte* frame : all_)
    std::free(frame);
}

Block::Block(LaunchState& launch_state, WorkerCounters& worker_counters, FramePool& frame_pool,
             std::vector<std::byte>& thread_specials)
    : launch(&launch_state), image(launch_state.image), counters(&worker_counters), frames(&frame_pool),
      shared_bytes(launch_state.shared_bytes), local_stride(launch_state.local_stride),
      parameters(launch_state.request->parameters), count_memory(launch_state.request->count_memory),
      share_(launch_state.memory->budget()), thread_specials_(&thread_specials),
      block_specials_(launch_state.block_specials) {}

Status Block::prepare() {
  MemoryBudget& budget = share_.budget();
  const uint64_t threads = uint64_t(launch->warps) * warp_size;
  const uint64_t local_bytes = threads * local_stride; // bounded: threads of a block, local bytes of a thread
  uint64_t bytes = local_bytes + shared_bytes + launch->warps * sizeof(Warp);
  if (launch->request->clock_unit == ClockUnit::reads) clock_reads.resize(threads);
  if (launch->request->check)
    bytes += checker_bytes(shared_bytes, local_bytes, launch->request->cluster ? launch->request->cluster->count() : 1);
  if (!share_.try_grow(bytes))
    return budget.refusal(
        bytes, fmt::format("a block with {} bytes of shared and {} of local memory", shared_bytes, local_bytes));
  shared_storage_.resize(shared_bytes + 64);
  auto address = reinterpret_cast<uintptr_t>(shared_storage_.data());
  shared = shared_storage_.data() + ((64 - address % 64) % 64);
  if (local_stride) {
    local = static_cast<std::byte*>(std::calloc(threads, local_stride));
    if (!local) return Error{fmt::format("the host has no {} bytes for the local memory of a block", local_bytes), {}};
  }
  warps.resize(launch->warps);
  sites.resize(image->memory_operations);
  if (launch->request->check) checker = make_memory_checker(*launch);
  if (launch->request->late_copies) late_copies = std::make_unique<LateCopies>(launch->warps * warp_size);
  watch_memory = count_memory || checker;
  if (launch->machine) machine = launch->machine->attach(*this);
  return {};
}

Block::~Block() {
  std::free(local);
}

namespace {
void fill(std::vector<std::byte>& specials, BlockSpecial which, uint32_t value) {
  auto* lanes = reinterpret_cast<uint32_t*>(specials.data() + block_special(which).offset());
  std::fill_n(lanes, warp_size, value);
}
} // namespace

// Special registers that differ between blocks of a cluster and between clusters (PTX ISA 10, %clusterid ff.).
void Block::fill_cluster_specials() {
  const Dimensions& size = *launch->request->cluster;
  const Dimensions in_cluster{index.x % size.x, index.y % size.y, index.z % size.z};
  cluster_rank = in_cluster.x + size.x * (in_cluster.y + size.y * in_cluster.z);
  fill(block_specials_, BlockSpecial::clusterid_x, index.x / size.x);
  fill(block_specials_, BlockSpecial::clusterid_y, index.y / size.y);
  fill(block_specials_, BlockSpecial::clusterid_z, index.z / size.z);
  fill(block_specials_, BlockSpecial::cluster_ctaid_x, in_cluster.x);
  fill(block_specials_, BlockSpecial::cluster_ctaid_y, in_cluster.y);
  fill(block_specials_, BlockSpecial::cluster_ctaid_z, in_cluster.z);
  fill(block_specials_, BlockSpecial::cluster_ctarank, cluster_rank);
  fill(block_specials_, BlockSpecial::shared_begin, cluster_rank << shared_rank_shift);
}

void Block::start(uint64_t linear_index) {
  linear = linear_index;
  const Dimensions& grid = launch->request->grid;
  index = {static_cast<uint32_t>(linear % grid.x), static_cast<uint32_t>(linear / grid.x % grid.y),
           static_cast<uint32_t>(linear / grid.x / grid.y)};
  fill(block_specials_, BlockSpecial::ctaid_x, index.x);
  fill(block_specials_, BlockSpecial::ctaid_y, index.y);
  fill(block_specials_, BlockSpecial::ctaid_z, index.z);
  if (image->clustered) fill_cluster_specials();
  fill(block_specials_, BlockSpecial::smid, static_cast<uint32_t>(linear % emulated_sm_count));
  std::memset(shared, 0, shared_bytes); // undefined in PTX; zeroed so that runs are reproducible
  barriers.fill({});
  live_warps = launch->warps;
  whole_waiting = 0;
  handed_on_ = nullptr;
  began_a_round_ = false;
  single_steps = checker || count_memory || launch->machine || launch->request->observer;
  waits_whole_ = !checker && !launch->machine && !launch->request->cluster && !image->clustered;
  next_to_start_ = 0;
  fuel = static_cast<int64_t>(std::min<uint64_t>(launch->request->fuel, INT64_MAX));
  clock = counted_clock = 0;
  std::ranges::fill(clock_reads, 0u);
  failure.reset();
  printed.clear();
  ++counters->blocks;
  counters->warps += launch->warps;
  if (checker) checker->start_block(*this);
  if (machine) machine->start_block();
  if (late_copies) late_copies->start_block();
  if (warp_groups) warp_groups->start_block();
  if (tensor_unit) tensor_unit->start_block();
  warp_registers.clear();
}

// The lanes that read a clock together get one value, as on GPUs, and no lane reads the same value twice.
uint64_t Block::read_clock(const Warp& warp) {
  constexpr uint64_t clock_step = 64;    // so that loops that wait for a time end after few turns
  const uint64_t instructions = clock++; // fuel is charged alike in either unit
  if (clock_reads.empty()) return instructions;
  const std::span lanes = std::span(clock_reads).subspan(size_t(warp.index) * warp_size, warp_size);
  uint32_t last = 0;
  for (uint32_t mask = warp.mask; mask; mask &= mask - 1)
    last = std::max(last, lanes[static_cast<unsigned>(std::countr_zero(mask))]);
  for (uint32_t mask = warp.mask; mask; mask &= mask - 1)
    lanes[static_cast<unsigned>(std::countr_zero(mask))] = last + 1;
  return (last + 1) * clock_step;
}

void Block::start_warp(Warp& warp) {
  const DecodedFunction& entry = *image->functions.front();
  const auto number = static_cast<uint32_t>(&warp - warps.data());
  const uint32_t threads = std::min(launch->threads - number * warp_size, warp_size);
  warp.index = number;
  warp.block = this;
  warp.members = warp.live = threads == warp_size ? full_mask : (1u << threads) - 1;
  warp.behind_barrier = nullptr;
  warp.splits.clear();
  warp.meetings.clear();
  warp.patience = 0;
  warp.past_states.clear();
  warp.arrived = false;
  warp.cluster_arrived = warp.cluster_passed = 0;
  warp.state = WarpState::runnable;
  std::byte* frame = frames->take(entry.frame_bytes);
  if (!frame) {
    warp.activation = &warp.root;
    MicroOp place;
    place.instruction = entry.first_instruction;
    fail(warp, place, 0, call_failure(entry));
    return;
  }
  warp.root = {frame, &entry, nullptr, 0, entry.local_bytes};
  for (const ZeroedLanes& zeroed : entry.zeroed)
    std::memset(warp.root.registers + zeroed.offset, 0, zeroed.bytes);
  warp.base[static_cast<unsigned>(LaneBase::constants)] = image->constants.data();
  warp.base[static_cast<unsigned>(LaneBase::thread_special)] =
      thread_specials_->data() + size_t(number) * static_cast<size_t>(ThreadSpecial::count) * lane_array_bytes;
  warp.base[static_cast<unsigned>(LaneBase::block_special)] = block_specials_.data();
  warp.splits.push_back({entry.code.data(), &warp.root, warp.live, no_meeting, SplitState::runnable, 0});
}

Warp& Block::run_warp(Warp& first) {
  Warp* current = &first;
  first.state = WarpState::runnable;
  const MicroOp* op = first.behind_barrier ? std::exchange(first.behind_barrier, nullptr) : first.next_split();
  if (observer) [[unlikely]] {
    run_warp_observed(first, op);
    return first;
  }
  for (;;) {
    run_from(*current, op);
    if (!handed_on_) return *current;
    current = std::exchange(handed_on_, nullptr);
    op = handed_on_at_;
  }
}

void Block::run_from(Warp& warp, const MicroOp* op) {
  while (op) {
    uint32_t mask = warp.active;
    if (op->guard) {
      mask &= op->guard_negated ? ~warp.predicate(op->guard) : warp.predicate(op->guard);
      if (op->counts_guard) {
        GuardCounter& counter = counters->guards[op->instruction];
        counter.lanes += static_cast<unsigned>(std::popcount(mask));
        counter.off += mask == 0;
      }
      if (mask == 0) {
        ++op;
        continue;
      }
    }
    warp.mask = mask;
    op = op->handler(warp, *op);
  }
}

namespace {
// Returns the lanes that execute `op` and updates the guard counters.
inline uint32_t counted_mask(const Warp& warp, const MicroOp& op, WorkerCounters& counters) {
  if (!op.guard) return warp.active;
  const uint32_t mask = warp.active & warp.guard_mask(op);
  if (op.counts_guard) {
    GuardCounter& counter = counters.guards[op.instruction];
    counter.lanes += static_cast<unsigned>(std::popcount(mask));
    counter.off += mask == 0;
  }
  return mask;
}
} // namespace

// run_warp() with an observer, which is called before and after every instruction.
void Block::run_warp_observed(Warp& warp, const MicroOp* op) {
  observer->take_left_out();
  const bool wants_after = observer->wants_after();
  while (op) {
    if (observer->leaves_out()) [[unlikely]] {
      op = run_warp_unseen(warp, op);
      continue;
    }
    const uint32_t mask = counted_mask(warp, *op, *counters);
    if (mask == 0) {
      if (op->is_instruction) observer->passed(*this, warp, *op);
      ++op;
      continue;
    }
    warp.mask = mask;
    const MicroOp* current = op;
    if (current->is_instruction) observer->before(*this, warp, *current);
    op = op->handler(warp, *op);
    if (!wants_after || !current->is_instruction || op != current + 1) continue;
    // Further micro-operations of the same instruction (all parts of an unpacking but the first) run before after().
    while (!op->is_instruction && op->instruction == current->instruction) {
      warp.mask = warp.active & warp.guard_mask(*op);
      op = warp.mask ? op->handler(warp, *op) : op + 1;
    }
    observer->after(*this, warp, *current, mask);
  }
}

// Executes as many instructions as the observer wants to skip, without calling it.
const MicroOp* Block::run_warp_unseen(Warp& warp, const MicroOp* op) {
  const uint64_t most = observer->take_left_out();
  uint64_t left = most;
  const bool watched = watch_memory;
  watch_memory = count_memory || checker;
  while (op && (left || !op->is_instruction)) {
    left -= op->is_instruction;
    warp.mask = counted_mask(warp, *op, *counters);
    op = warp.mask ? op->handler(warp, *op) : op + 1;
  }
  watch_memory = watched;
  observer->left_out(*this, warp, most - left);
  return op;
}

void Block::warp_finished(Warp& warp) {
  for (Meeting& meeting : warp.meetings)
    if (meeting.in_use && meeting.callee) end_activation(warp, meeting.callee);
  frames->give_back(warp.root.registers, image->functions.front()->frame_bytes);
  warp.root.registers = nullptr;
  --live_warps;
  if (warp_groups) warp_groups->forget(warp);
  if (tensor_unit) tensor_unit->warp_ended(warp);
  if (live_warps == 0 && late_copies) late_copies->finish();
  if (live_warps == 0 && tensor_unit) tensor_unit->block_ended(warp);
  for (unsigned number = 0; number < barriers.size(); ++number)
    if (barriers[number].in_use) complete_barrier_if_full(number);
  if (whole_waiting != 0 && whole_waiting == live_warps) release_whole();
}

void Block::release_whole() {
  barriers[whole_number] = {};
  whole_waiting = 0;
  for (Warp& warp : warps)
    if (warp.behind_barrier) warp.state = WarpState::runnable;
}

void Block::unfold_whole() {
  if (whole_waiting == 0) return;
  for (Warp& warp : warps) {
    if (!warp.behind_barrier || warp.state != WarpState::waiting) continue;
    warp.splits.push_back({std::exchange(warp.behind_barrier, nullptr), warp.activation, warp.active, warp.meeting,
                           SplitState::at_barrier, whole_number});
    warp.active = 0;
    warp.arrived = true;
  }
  Barrier& barrier = barriers[whole_number];
  barrier.in_use = true;
  barrier.arrived_warps += whole_waiting;
  whole_waiting = 0;
}

// The warp has arrived once all its live lanes wait at the same barrier.
void Block::note_arrival(Warp& warp) {
  if (warp.arrived || warp.splits.empty()) return;
  const uint32_t wait = warp.splits.front().wait;
  for (const Split& split : warp.splits)
    if (split.state != SplitState::at_barrier || split.wait != wait) return;
  if (checker) checker->lanes_gathered(warp);
  warp.arrived = true;
  warp_arrives(warp, wait & 0xff, wait >> 8);
}

void Block::warp_arrives(Warp& warp, unsigned number, uint32_t expected_warps) {
  if (checker) checker->warp_arrived(warp, number);
  unfold_whole();
  Barrier& barrier = barriers[number];
  barrier.in_use = true;
  barrier.expected_warps = expected_warps;
  ++barrier.arrived_warps;
  complete_barrier_if_full(number);
}

void Block::complete_barrier_if_full(unsigned number) {
  Barrier& barrier = barriers[number];
  const uint32_t needed = barrier.expected_warps ? barrier.expected_warps : live_warps;
  if (barrier.arrived_warps < needed) return;
  const bool of_all = barrier.expected_warps == 0;
  barrier = {.result_count = barrier.true_count, .result_all = barrier.all_true};
  uint32_t waiting = 0;
  for (Warp& warp : warps) {
    if (!warp.arrived || (warp.splits.front().wait & 0xff) != number) continue;
    for (Split& split : warp.splits)
      split.state = SplitState::runnable;
    warp.arrived = false;
    warp.state = WarpState::runnable;
    waiting |= 1u << warp.index;
  }
  if (checker) checker->barrier_completed(*this, number, waiting, of_all);
  if (machine) machine->barrier_completed(waiting);
}

// A warp that only waits returns to earlier states, one for each of its splits. Hashing registers is enough: a change
// of memory becomes visible in the registers as soon as the warp loads it.
bool Block::is_in_new_state(Warp& warp) {
  uint64_t hash = 0;
  auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  auto mix_registers = [&](const Activation& activation) {
    for (uint32_t at = 0; at + sizeof(uint64_t) <= activation.function->frame_bytes; at += sizeof(uint64_t)) {
      uint64_t value;
      std::memcpy(&value, activation.registers + at, sizeof value);
      mix(value);
    }
  };
  mix_registers(warp.root);
  for (const Split& split : warp.splits) {
    mix(reinterpret_cast<uintptr_t>(split.next));
    mix(uint64_t(split.mask) << 32 | static_cast<uint32_t>(split.state));
    if (split.activation != &warp.root) mix_registers(*split.activation);
  }
  if (std::find(warp.past_states.begin(), warp.past_states.end(), hash) != warp.past_states.end()) return false;
  if (warp.past_states.size() == warp_size) warp.past_states.erase(warp.past_states.begin());
  warp.past_states.push_back(hash);
  return true;
}

BlockState Block::run() {
  return machine ? machine->run(*this) : run_warps();
}

BlockState Block::run_warps() {
  changed = false;
  for (;;) {
    bool progress = false, spinning = false;
    for (uint32_t number = 0; number < warps.size(); ++number) {
      Warp& warp = warps[number];
      if (number == next_to_start_) {
        start_warp(warp);
        if (warp.state == WarpState::failed) return BlockState::failed;
        ++next_to_start_;
      } else if (warp.state != WarpState::runnable && warp.state != WarpState::yielded) {
        continue;
      }
      Warp& last = run_warp(warp);
      if (&last != &warp || began_a_round_) {
        // All warps in between have arrived at a barrier.
        spinning = spinning && !began_a_round_;
        progress = !began_a_round_ || last.index != 0;
        changed = true;
        began_a_round_ = false;
        number = last.index;
      }
      switch (last.state) {
      case WarpState::failed:
        return BlockState::failed;
      case WarpState::finished:
        warp_finished(last);
        progress = changed = true;
        break;
      case WarpState::yielded:
        spinning = true;
        changed = changed || !watch_progress || is_in_new_state(last);
        break;
      default:
        note_arrival(last);
        progress = changed = true;
      }
    }
    if (live_warps == 0) return BlockState::finished;
    if (spinning && !progress) return BlockState::yielded;
    if (std::none_of(warps.begin(), warps.end(), [](const Warp& warp) {
          return warp.state == WarpState::runnable || warp.state == WarpState::yielded;
        })) {
      if (waits_at_cluster_barrier()) {
        if (complete_cluster_barrier()) continue;
        if (cluster) return BlockState::waiting;
      }
      report_deadlock();
      return BlockState::failed;
    }
  }
}

Warp* Block::start_next_warp() {
  if (next_to_start_ == warps.size()) return nullptr;
  Warp& warp = warps[next_to_start_++];
  start_warp(warp);
  return &warp;
}

void Block::start_all_warps() {
  while (start_next_warp())
    ;
}

void Block::settle(Warp& warp) {
  if (warp.state == WarpState::waiting) note_arrival(warp);
  if (warp.state == WarpState::finished) warp_finished(warp);
}

Activation* Block::new_activation(Warp& warp, const DecodedFunction& callee) {
  const uint64_t local_offset = warp.activation->stack_pointer;
  if (local_offset + callee.local_bytes > local_stride && callee.local_bytes) return nullptr;
  if (warp.depth >= maximum_call_depth) return nullptr;
  std::byte* frame = frames->take(callee.frame_bytes);
  if (!frame) return nullptr;
  ++warp.depth;
  if (free_activations_.empty()) {
    activations_.push_back(std::make_unique<Activation>());
    free_activations_.push_back(activations_.back().get());
  }
  Activation* activation = free_activations_.back();
  free_activations_.pop_back();
  *activation = {frame, &callee, warp.activation, local_offset, local_offset + callee.local_bytes};
  for (const ZeroedLanes& zeroed : callee.zeroed)
    std::memset(activation->registers + zeroed.offset, 0, zeroed.bytes);
  if (checker) checker->activation_started(warp, *activation);
  return activation;
}

std::string Block::call_failure(const DecodedFunction& function) const {
  if (Status room = share_.budget().take(function.frame_bytes, "a call's registers"); !room)
    return room.error().message;
  share_.budget().give_back(function.frame_bytes);
  return fmt::format("stack overflow: calls need more than {} bytes of local memory a thread, or are {} deep",
                     local_stride, maximum_call_depth);
}

void Block::end_activation(Warp& warp, Activation* activation) {
  --warp.depth;
  frames->give_back(activation->registers, activation->function->frame_bytes);
  free_activations_.push_back(activation);
}

Dimensions Block::thread_index(const Warp& warp, unsigned lane) const {
  const Dimensions& block = launch->request->block;
  const uint32_t thread = warp.index * warp_size + lane;
  return {thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
}

Failure Block::describe(const Warp& warp, const MicroOp& op, unsigned lane, std::string message,
                        FailureKind kind) const {
  Failure failure_to_fill;
  const DecodedFunction& function = image->function_of(op.instruction);
  const ir::Module& module = *image->module;
  failure_to_fill.kind = kind;
  failure_to_fill.message = std::move(message);
  failure_to_fill.kernel = module.text(image->functions.front()->source->name);
  failure_to_fill.function = module.text(function.source->name);
  failure_to_fill.block = index;
  failure_to_fill.thread = thread_index(warp, lane);
  failure_to_fill.has_thread = true;
  const ir::InstructionId id(op.instruction - function.first_instruction);
  if (id.index() < function.source->instructions.size()) {
    failure_to_fill.instruction = id;
    failure_to_fill.range = function.source->instructions[id].range;
    find_source_line(*function.source, id, failure_to_fill);
  }
  return failure_to_fill;
}

const MicroOp* Block::fail(Warp& warp, const MicroOp& op, unsigned lane, std::string message, FailureKind kind) {
  failure = describe(warp, op, lane, std::move(message), kind);
  warp.state = WarpState::failed;
  return nullptr;
}

const MicroOp* Block::fail(Warp& warp, const MicroOp& op, unsigned lane, std::string message, FaultKind fault) {
  const MicroOp* next = fail(warp, op, lane, std::move(message));
  failure->fault = fault;
  return next;
}

// No warp can continue. Lists which warps wait where, grouped by place.
void Block::report_deadlock() {
  unfold_whole();
  std::string text = "deadlock: no warp of the block can go on";
  std::vector<std::pair<std::string, std::vector<uint32_t>>> places;
  const Warp* first = nullptr;
  const MicroOp* where = nullptr;
  for (const Warp& warp : warps) {
    for (const Split& split : warp.splits) {
      const bool at_any_barrier =
          split.state == SplitState::at_barrier || split.state == SplitState::at_cluster_barrier;
      const MicroOp& op = at_any_barrier ? split.next[-1] : *split.next;
      const Failure place = describe(warp, op, 0, {}, FailureKind::deadlock);
      const uint32_t line = place.range.empty() ? 0 : image->module->source.locate(place.range.begin).line;
      std::string what =
          split.state == SplitState::at_barrier ? fmt::format("at barrier {} in line {}", split.wait & 0xff, line)
          : split.state == SplitState::at_cluster_barrier ? fmt::format("at the cluster's barrier in line {}", line)
          : split.state == SplitState::at_warp_group
              ? fmt::format("for a matrix product of the whole warp group in line {}", line)
              : fmt::format("for lanes {:#010x} in line {}", split.wait & warp.live & ~split.mask, line);
      auto found = std::find_if(places.begin(), places.end(), [&](const auto& known) { return known.first == what; });
      if (found == places.end()) found = places.insert(places.end(), {what, {}});
      if (found->second.empty() || found->second.back() != warp.index) found->second.push_back(warp.index);
      if (!first) {
        first = &warp;
        where = &op;
      }
    }
  }
  for (const auto& [what, waiting] : places) {
    text += fmt::format("; warp{} ", waiting.size() == 1 ? "" : "s");
    for (size_t i = 0; i < waiting.size(); ++i) {
      size_t last = i;
      while (last + 1 < waiting.size() && waiting[last + 1] == waiting[last] + 1)
        ++last;
      text += fmt::format("{}{}", i ? ", " : "", waiting[i]);
      if (last > i) text += fmt::format("-{}", waiting[last]);
      i = last;
    }
    text += fmt::format(" wait{} {}", waiting.size() == 1 ? "s" : "", what);
  }
  if (first) failure = describe(*first, *where, 0, text, FailureKind::deadlock);
  if (failure) failure->has_thread = false;
}

} // namespace ptxrewrite::emulator
