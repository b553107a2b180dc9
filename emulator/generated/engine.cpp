// Launches with generated code: each region entry looks for code for its plan, and requests compilation once it has
// executed enough instructions to make that worthwhile.
#include "emulator/core/engine.h"

#include "emulator/core/decode.h"
#include "emulator/generated/compiler.h"
#include "emulator/generated/direct_emitter.h"
#include "support/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

namespace ptxrewrite::emulator {
namespace generated {
namespace {

// When code is made, by what has been executed so far, never by a clock: the same launches have the same code.
//
// A tier is compiled as soon as the warp instructions executed so far would have taken less time, by its compile time,
// in that tier. So no kernel takes more than twice the time of the best choice made in advance. Nanoseconds on an idle
// host (README.md): a warp instruction, by the interpreter, in quick and in full code; compiling a micro-operation.
constexpr uint64_t interpreted = 9, in_quick = 5, in_full = 3;
constexpr uint64_t making_quick = 2'000, making_quick_by_llvm = 100'000, making_full = 400'000;
// Per micro-operation of a plan: warp instructions of its pieces that were interpreted before it becomes quick code,
// and that quick code has executed before it becomes full code.
constexpr uint64_t worth_of_quick = making_quick / (interpreted - in_quick);                 // 500
constexpr uint64_t worth_of_quick_by_llvm = making_quick_by_llvm / (interpreted - in_quick); // 25,000
constexpr uint64_t worth_of_full = making_full / (in_quick - in_full);                       // 200,000
// Warp instructions that an entry interprets before a plan is made (automatic), which takes as long for a long kernel.
constexpr uint64_t worth_planning = 20'000;
// Entries after which it is decided whether code executes enough each time, and warp instructions that are enough; of
// entries behind a barrier, which mostly follow the code of another warp.
constexpr uint64_t trial_entries = 512, enough_of_an_entry = 5, enough_behind_barrier = 3;
// Wrong guesses before code is made again, and how often that is done at most.
constexpr uint32_t many_wrong_guesses = 64, most_versions = 3;

class GeneratedKernel;

constexpr uint64_t never = UINT64_MAX;

// Code of a region entry, with its execution counts and its wrong address guesses. What each execution reads and writes
// is one line of the host's cache.
struct alignas(64) EntryCode {
  Code code = nullptr;
  int64_t fuel = 0;                              // that there has to be
  std::atomic<uint64_t> entries{0}, executed{0}; // warp instructions
  std::atomic<uint64_t> full_at{never};          // value of `executed` at which full code is requested
  std::vector<AddressGuess> guesses;
  std::shared_ptr<const LoadedCode> loaded;
  std::shared_ptr<Plan> plan; // of quick code
  uint64_t worth = 0;         // of quick code: value of `executed` that is worth full code
  uint32_t plan_size = 0;
  // Has it no loop, and needs fuel? Then it takes no more fuel than that.
  bool is_straight = false;

  // Fuel for one call of the code: less than the warp's if full code is to replace quick code before that, so that its
  // loops return to the engine.
  int64_t allowance(int64_t fuel_left) const {
    const uint64_t limit = full_at.load(std::memory_order_relaxed), done = executed.load(std::memory_order_relaxed);
    if (limit == never) return fuel_left;
    const auto rest = static_cast<int64_t>(limit - std::min(limit, done));
    return std::min(fuel_left, std::max(rest, fuel));
  }
};

// Code of an entry for one kind of warps.
struct Version {
  std::atomic<EntryCode*> code{nullptr};
  std::atomic<bool> impossible{false}; // or not worth it
  std::atomic<bool> pending{false};    // it is being made
  uint32_t made = 0;
};

struct RegionEntry {
  MicroOp* op = nullptr;
  Handler original = nullptr;
  FunctionCode* code = nullptr;
  GeneratedKernel* kernel = nullptr;
  bool is_meeting = false;
  uint64_t enough = enough_of_an_entry;
  std::atomic<uint64_t> executed{0}; // warp instructions of the region, by the interpreter
  std::atomic<uint64_t> worth{0};    // code is made after this many; 0: not known yet
  // Indexed by: are all lanes active; are registers assumed to be uniform that were uniform in one warp.
  Version versions[2][2];
  Version& version_for(const Warp& warp, bool uniform) { return versions[warp.active == full_mask][uniform]; }
};

const MicroOp* enter(Warp& warp, const MicroOp& op);

// A counter shared by host threads; lost updates do not matter.
void add_to(std::atomic<uint64_t>& counter, uint64_t amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

bool many_were_wrong(const AddressGuess& guess, const EntryCode& code) {
  return guess.wrong >= many_wrong_guesses &&
         uint64_t(guess.wrong) * code.plan_size * 4 > code.executed.load(std::memory_order_relaxed);
}
bool has_wrong_guess(const EntryCode& code) {
  return std::ranges::any_of(code.guesses, [&](const AddressGuess& guess) { return many_were_wrong(guess, code); });
}

// All that there is of a kernel, from launch to launch.
class GeneratedKernel {
public:
  explicit GeneratedKernel(KernelImage& image) : entries_(image.region_count) {
    for (auto& function : image.functions) {
      codes_.push_back(std::make_unique<FunctionCode>(image, *function, &enter));
      for (MicroOp& op : function->code) {
        if (!is_region_entry(op)) continue;
        RegionEntry& entry = entries_[op.extra];
        entry.op = &op;
        entry.original = op.handler;
        entry.code = codes_.back().get();
        entry.kernel = this;
        entry.is_meeting = is_meeting_place(op);
        if (&op != function->code.data() && is_plain_barrier(*(&op - 1))) entry.enough = enough_behind_barrier;
      }
    }
  }
  ~GeneratedKernel() {
    Compiler& compiler = *Compiler::get();
    compiler.forget(this);
    for (const auto& code : made_)
      if (code->plan) compiler.note_executed(code->loaded->full_key, code->executed, code->worth);
  }
  GeneratedKernel(const GeneratedKernel&) = delete;
  GeneratedKernel& operator=(const GeneratedKernel&) = delete;

  // Region entries do not use MicroOp::immediate themselves. The compiler's thread may be writing code for an earlier
  // launch, and looks at the same micro-operations.
  void install() {
    std::lock_guard lock(mutex_);
    for (RegionEntry& entry : entries_) {
      if (!entry.op) continue;
      entry.op->handler = &enter;
      entry.op->immediate = std::bit_cast<int64_t>(&entry);
    }
  }
  void remove() {
    std::lock_guard lock(mutex_);
    for (RegionEntry& entry : entries_)
      if (entry.op) entry.op->handler = entry.original;
  }

  // Of the launch: code is made when it is first asked for, while the launch waits; else when it is worth it, in
  // another thread. An entry is interpreted at least once: what that leaves in the frame tells how addresses lie.
  bool at_once = false;
  uint64_t worth = 1, worth_of_operation = 0; // warp instructions: before a plan is made, and per operation of the plan
  std::optional<CodeTier> tier;               // that a test has chosen for all code
  bool portable = false;                      // quick code by LLVM

  bool makes_direct_code() const { return !portable && has_direct_code(); }
  uint64_t worth_of_quick_code() const { return makes_direct_code() ? worth_of_quick : worth_of_quick_by_llvm; }

  // Has code made for such warps as this one. Null: not now.
  EntryCode* code_for(RegionEntry& entry, const Warp& warp, bool uniform) {
    Version& version = entry.version_for(warp, uniform);
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || version.pending) return nullptr; // another thread is about it
    if (EntryCode* made = version.code.load()) {
      if (!learn_from(*made, version, *entry.code)) return made;
    } else if (version.impossible.load()) {
      return nullptr;
    }
    std::shared_ptr<Plan> plan = plan_for(entry, warp, uniform);
    if (!plan) return nullptr;
    if (!plan->is_worthwhile()) {
      version.impossible = true;
      return nullptr;
    }
    const bool full_warp = warp.active == full_mask;
    const EntryCode* before = version.code.load();
    const CodeTier of_code = tier.value_or(before ? before->loaded->tier : CodeTier::quick);
    ++version.made;
    return make_now_or_later(version, plan, full_warp, of_code, {}, lock);
  }

  // Has full code made instead of quick code, which goes on until then.
  EntryCode* replace(EntryCode& quick, Version& version, const Warp& warp) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || version.pending || quick.full_at.exchange(never) == never) return &quick;
    EntryCode* full =
        make_now_or_later(version, quick.plan, warp.active == full_mask, CodeTier::full, quick.loaded->full_key, lock);
    return full ? full : &quick;
  }

private:
  EntryCode* make_now_or_later(Version& version, const std::shared_ptr<Plan>& plan, bool full_warp, CodeTier of_code,
                               const std::string& key, std::unique_lock<std::mutex>& lock) {
    version.pending = true;
    ++code_work(of_code).requests;
    if (at_once) return make(version, plan, full_warp, of_code, key, lock);
    Compiler::get()->do_later(this, [this, &version, plan, full_warp, of_code, key] {
      std::unique_lock later(mutex_);
      make(version, plan, full_warp, of_code, key, later);
    });
    return nullptr;
  }

  // Returns nullptr if no entry has been executed often enough yet.
  std::shared_ptr<Plan> plan_for(RegionEntry& entry, const Warp& warp, bool uniform) {
    const uint32_t index = entry.code->index_of(entry.op);
    const auto has_code = [&](uint32_t at) {
      const MicroOp& op = entry.code->op(at);
      return op.handler == &enter && entries_[op.extra].version_for(warp, uniform).code.load() != nullptr;
    };
    auto plan = std::make_shared<Plan>(
        *entry.code, index, uniform ? uniform_registers(*entry.code, index, warp) : UniformAtEntry(), has_code);
    // With --engine generated a plan is compiled at its first execution. If part of it is compiled already, as part of
    // another plan, that part has to be executed often enough first: each entry of a long kernel reaches most of the
    // kernel, and compile time would be quadratic.
    std::set<uint32_t>& covered = covered_[warp.active == full_mask][uniform];
    const uint64_t wanted = worth_of_operation != 0 ? plan->size() * worth_of_operation
                            : tier                  ? 0 // tests compare all of it
                                                    : size_within(*plan, covered) * worth_of_quick_code();
    if (!entry.version_for(warp, uniform).code.load() && executed_of(*plan) < wanted) {
      entry.worth = entry.executed.load() * 2;
      return nullptr;
    }
    for (const auto& [first, piece] : plan->pieces)
      if (plan->code.is_region(first)) {
        RegionEntry& inside = entries_[plan->code.op(first).extra];
        covered.insert(plan->code.op(first).extra);
        inside.executed = 0; // has been counted
        inside.worth = 0;
      }
    std::vector<const std::byte*> frames{warp.activation->registers};
    for (const Warp& other : warp.block->warps) // that came here before; frames of calls are not to be found
      if (warp.activation == &warp.root && &other != &warp && other.root.registers)
        frames.push_back(other.root.registers);
    plan->guess_addresses(frames, entry.code->known_places);
    return plan;
  }

  // Warp instructions of the plan's pieces that the interpreter has executed. Counters are by region; a region may be
  // longer than its piece, so its count is scaled by their lengths.
  uint64_t executed_of(const Plan& plan) const {
    uint64_t sum = 0;
    for (const auto& [first, piece] : plan.pieces) {
      if (!plan.code.is_region(first)) continue;
      const MicroOp& op = plan.code.op(first);
      const uint64_t executed = entries_[op.extra].executed.load(), all = std::max<uint64_t>(op.auxiliary, 1);
      sum += executed / all * std::min<uint64_t>(all, piece.past - piece.first);
    }
    return sum;
  }

  // Micro-operations of the plan in regions that code has been made of.
  static uint64_t size_within(const Plan& plan, const std::set<uint32_t>& covered) {
    uint64_t size = 0;
    for (const auto& [first, piece] : plan.pieces)
      if (plan.code.is_region(first) && covered.contains(plan.code.op(first).extra)) size += piece.past - piece.first;
    return size;
  }

  // `lock`: of mutex_, which is open while LLVM works.
  EntryCode* make(Version& version, const std::shared_ptr<Plan>& plan, bool full_warp, CodeTier of_code,
                  const std::string& key, std::unique_lock<std::mutex>& lock) {
    Compiler& compiler = *Compiler::get();
    std::shared_ptr<const LoadedCode> loaded;
    if (of_code == CodeTier::quick && makes_direct_code()) {
      loaded = compiler.make_direct(*plan, full_warp, !tier);
    } else if (Compiler::Module module = compiler.write(*plan, full_warp, of_code)) {
      lock.unlock();
      loaded = compiler.compile(std::move(module), key);
      lock.lock();
    }
    version.pending = false;
    if (!loaded) {
      version.impossible = version.code.load() == nullptr;
      return nullptr;
    }
    EntryCode& made = *made_.emplace_back(std::make_unique<EntryCode>());
    made.loaded = loaded;
    made.code = loaded->code;
    made.guesses = plan->guesses;
    made.plan_size = static_cast<uint32_t>(plan->size());
    made.fuel = static_cast<int64_t>(plan->fuel);
    made.is_straight =
        made.fuel > 0 && std::ranges::none_of(plan->pieces, [](const auto& piece) { return piece.second.begins_loop; });
    if (loaded->tier == CodeTier::quick && !tier) {
      made.plan = plan;
      made.worth = plan->size() * worth_of_full;
      made.full_at = made.worth - std::min(made.worth, compiler.executed_before(loaded->full_key));
    }
    version.code.store(&made, std::memory_order_release);
    return &made;
  }

  // Keeps how the addresses lay where a guess was wrong. False: the code stays as it is.
  bool learn_from(EntryCode& made, Version& version, FunctionCode& code) {
    if (version.made >= most_versions || !has_wrong_guess(made)) return false;
    for (const AddressGuess& guess : made.guesses)
      if (many_were_wrong(guess, made)) code.known_places[guess.op] = guess.varies ? LanePlaces::any : guess.found;
    return true;
  }

  // Those that are needed behind the entry, and hold one number in all active lanes of this warp.
  static UniformAtEntry uniform_registers(FunctionCode& code, uint32_t index, const Warp& warp) {
    UniformAtEntry uniform;
    const std::vector<uint32_t>& offsets = code.live_at(index);
    const std::set<uint32_t> live(offsets.begin(), offsets.end());
    const ir::Function& source = *code.function.source;
    for (ir::ValueId value : source.values.ids()) {
      const LaneRef lanes = code.function.registers[value.index()];
      if (!lanes || !live.contains(lanes.offset()) || source.values[value].vector_width > 1) continue;
      const unsigned bits = lane_bits(source.values[value].type);
      const std::byte* bytes = warp.activation->registers + lanes.offset();
      if (bits == 1) {
        const uint32_t set = warp.predicate(lanes) & warp.active;
        if (set == 0 || set == warp.active) uniform.insert(lanes.offset());
        continue;
      }
      const auto first = static_cast<unsigned>(std::countr_zero(warp.active));
      bool same = true;
      for (unsigned lane = first; lane < warp_size; ++lane)
        same &= !((warp.active >> lane) & 1) ||
                std::memcmp(bytes + lane * bits / 8, bytes + first * bits / 8, bits / 8) == 0;
      if (same) uniform.insert(lanes.offset());
    }
    return uniform;
  }

  std::vector<std::unique_ptr<FunctionCode>> codes_;
  std::vector<RegionEntry> entries_; // by region
  std::vector<std::unique_ptr<EntryCode>> made_;
  // Regions that code has been made of: by the kind of warps, as RegionEntry::versions.
  std::set<uint32_t> covered_[2][2];
  std::mutex mutex_;
};

class Launch final : public GeneratedLaunch {
public:
  Launch(std::shared_ptr<GeneratedKernel> kernel, const EngineSetting& setting, bool at_once)
      : kernel_(std::move(kernel)) {
    kernel_->at_once = at_once;
    kernel_->worth = at_once ? 1 : setting.worth.value_or(worth_planning);
    kernel_->tier = setting.tier ? setting.tier : default_tier();
    kernel_->portable = setting.portable;
    kernel_->worth_of_operation = at_once || setting.worth ? 0 : kernel_->worth_of_quick_code();
    kernel_->install();
  }
  ~Launch() override { kernel_->remove(); }

private:
  std::shared_ptr<GeneratedKernel> kernel_;
};

const MicroOp* meeting_of(const Warp& warp) {
  if (warp.meeting == no_meeting) return nullptr;
  const Meeting& meeting = warp.meetings[warp.meeting];
  return meeting.activation == warp.activation ? meeting.at : nullptr;
}

// Null: there is none, and the interpreter goes on.
EntryCode* find_code(RegionEntry& entry, const Warp& warp, bool uniform) {
  Version& version = entry.version_for(warp, uniform);
  if (EntryCode* made = version.code.load(std::memory_order_acquire)) [[likely]] {
    const uint64_t entries = made->entries.load(std::memory_order_relaxed);
    if (made->executed.load(std::memory_order_relaxed) >= made->full_at.load(std::memory_order_relaxed)) [[unlikely]]
      return entry.kernel->replace(*made, version, warp);
    if (entries % trial_entries != trial_entries - 1) [[likely]]
      return made;
    if (made->executed.load(std::memory_order_relaxed) < entries * entry.enough) {
      version.impossible = true;
      version.code = nullptr;
      return nullptr;
    }
    return has_wrong_guess(*made) ? entry.kernel->code_for(entry, warp, uniform) : made;
  }
  if (version.impossible.load(std::memory_order_relaxed)) return nullptr;
  const uint64_t executed = entry.executed.load(std::memory_order_relaxed);
  add_to(entry.executed, entry.op->auxiliary);
  if (executed < entry.kernel->worth || executed < entry.worth.load(std::memory_order_relaxed)) return nullptr;
  return entry.kernel->code_for(entry, warp, uniform);
}

const MicroOp* call_one(Warp* warp, const MicroOp* op, uint32_t mask) {
  warp->mask = mask;
  return op->handler(*warp, *op);
}

const MicroOp* call_access(Warp* warp, const MicroOp* op, uint32_t mask, AddressGuess* guess) {
  if (guess->places == LanePlaces::any) return call_one(warp, op, mask);
  std::atomic_ref<uint32_t> wrong(guess->wrong);
  if (wrong.load(std::memory_order_relaxed) < many_wrong_guesses) {
    const LanePlaces places = places_of(warp->lanes<std::byte>(op->source[0]), guess->address_bytes, guess->size);
    if (places == guess->places) return call_one(warp, op, mask); // out of the range, or misaligned
    if (wrong.load(std::memory_order_relaxed) == 0)
      guess->found = places;
    else if (places != guess->found)
      guess->varies = true;
  }
  wrong.fetch_add(1, std::memory_order_relaxed);
  return call_one(warp, op, mask);
}

// A context that is written when the first code is called: most entries of some kernels have none, and clearing it
// costs as much as interpreting an instruction.
struct LateContext {
  union {
    CodeContext context;
  };
  const DecodedFunction* function = nullptr; // whose code it is for

  LateContext() {}
  CodeContext& of(Warp& warp) {
    if (function != warp.activation->function) begin(*warp.block, *(function = warp.activation->function));
    context.registers = warp.activation->registers;
    context.thread_specials = warp.base[static_cast<unsigned>(LaneBase::thread_special)];
    context.warp = &warp;
    context.active = warp.active;
    context.live = warp.live;
    return context;
  }

private:
  void begin(Block& block, const DecodedFunction& code_of) {
    new (&context)
        CodeContext{.registers = nullptr,
                    .thread_specials = nullptr,
                    .block_specials = block.warps.front().base[static_cast<unsigned>(LaneBase::block_special)],
                    .parameters = block.parameters.data(),
                    .shared = block.shared,
                    .shared_bytes = block.shared_bytes,
                    .ranges = block.sites.empty() ? nullptr : &block.sites.front().range,
                    .ops = code_of.code.data(),
                    .constant_bank = block.image->constant_bank.data(),
                    .tables = &LaneTables::get(),
                    .call = &call_one,
                    .call_access = &call_access,
                    .guesses = nullptr,
                    .regions = block.counters->regions.data(),
                    .guards = block.counters->guards.data(),
                    .meeting = nullptr,
                    .fuel = 0,
                    .next = nullptr,
                    .warp = nullptr,
                    .active = 0,
                    .live = 0};
  }
};

// Runs code of the region entry `op`, if there is some for this warp and fuel for it, and sets `next`.
bool run_code(Warp& warp, const MicroOp& op, LateContext& late, const MicroOp*& next) {
  Block& block = *warp.block;
  RegionEntry& entry = *std::bit_cast<RegionEntry*>(op.immediate);
  const MicroOp* meeting = meeting_of(warp);
  if (entry.is_meeting && meeting == &op) {
    next = warp.arrive(&op);
    return false;
  }
  // Code of a full warp does not ask whether its lanes meet others: all are here.
  const bool is_elsewhere = warp.active == full_mask && meeting;
  for (const bool uniform : {true, false}) {
    EntryCode* code = is_elsewhere ? nullptr : find_code(entry, warp, uniform);
    if (!code || block.fuel < code->fuel) break;
    CodeContext& context = late.of(warp);
    context.meeting = meeting;
    context.guesses = code->guesses.data();
    const int64_t allowed = context.fuel = code->allowance(block.fuel);
    block.single_steps = true; // handlers that code calls
    next = code->code(&context);
    block.single_steps = false;
    add_to(code->entries, 1);
    if (next == not_for_this_warp) continue;
    const auto executed = static_cast<uint64_t>(allowed - context.fuel);
    add_to(code->executed, executed);
    block.clock += executed;
    block.counters->generated += executed;
    block.fuel -= allowed - context.fuel;
    return true;
  }
  next = entry.original(warp, op);
  return false;
}

// The warp that goes on behind a barrier at which `warp`, about to execute `op`, has arrived at the cost of a counter.
// Returns nullptr if there is none: then `op` is null if the warp has arrived.
Warp* next_behind_barrier(Warp& warp, const MicroOp*& op) {
  Block& block = *warp.block;
  if (!op || warp.active != warp.live || !warp.splits.empty() || !is_plain_barrier(*op)) return nullptr;
  const uint32_t number = warp.lanes<uint32_t>(op->source[0])[std::countr_zero(warp.active)];
  if (number >= block.barriers.size() || !block.waits_whole(warp, number, op + 1)) return nullptr;
  op = nullptr;
  return block.take_next_turn(warp);
}

// Turns of full warps behind one barrier and to the next one: what run_code() and next_behind_barrier() do, with all
// that does not change from warp to warp looked up once. Only of code without loops, which needs no more fuel than its
// plan: so no turn depends on how much fuel the one before has left.
class Round {
public:
  Round() = default;
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  ~Round() { end(); }

  // Has the warp executed code of `op`? Then `next` is set; else nothing has been done.
  bool run(Warp& warp, const MicroOp& op, LateContext& late, const MicroOp*& next) {
    if (&op != op_ && !begin(warp, op, late)) return false;
    if (turns_ == most_turns_ || warp.active != full_mask || warp.meeting != no_meeting || warp.block->fuel < fuel_)
        [[unlikely]]
      return end();
    const MicroOp* behind = call(warp, late.context);
    if (behind == not_for_this_warp) [[unlikely]]
      return end();
    next = behind;
    return true;
  }

  // Executes the warps of the block in turn, barrier after barrier, while each of them runs generated code up to the
  // same barrier. The state of warps and barriers is written once, at the end. On entry `warp` is about to execute
  // `next`; on return they are the warp whose turn is unfinished and its next operation. Returns true if that warp has
  // executed generated code in this turn.
  bool run_block(Warp*& warp, const MicroOp*& next, LateContext& late);

  Warp* follower(Warp& warp, const MicroOp*& op) {
    if (!op || op != barrier_ || warp.active != full_mask || !warp.splits.empty()) [[unlikely]]
      return first_follower(warp, op);
    Block& block = *warp.block;
    if (!block.waits_whole(warp, number_, op + 1)) return nullptr;
    op = nullptr;
    return block.take_next_turn(warp);
  }

private:
  bool begin(Warp& warp, const MicroOp& op, LateContext& late);
  bool end();
  const MicroOp* call(Warp& warp, CodeContext& context);
  Warp* first_follower(Warp& warp, const MicroOp*& op);

  const MicroOp* op_ = nullptr; // the region entry
  Code run_ = nullptr;
  int64_t fuel_ = 0;
  uint64_t turns_ = 0, most_turns_ = 0, executed_ = 0;
  EntryCode* code_ = nullptr;
  WorkerCounters* counters_ = nullptr;
  const MicroOp* barrier_ = nullptr; // where the last warp arrived; its number is a constant
  uint32_t number_ = 0;
  const MicroOp* short_ = nullptr; // a region entry behind whose barrier there was no code: not worth run_block()
};

bool Round::begin(Warp& warp, const MicroOp& op, LateContext& late) {
  end();
  EntryCode* code = std::bit_cast<RegionEntry*>(op.immediate)->versions[1][1].code.load(std::memory_order_acquire);
  if (!code || !code->is_straight) return false;
  const uint64_t entries = code->entries.load(std::memory_order_relaxed) % trial_entries;
  const uint64_t executed = code->executed.load(std::memory_order_relaxed);
  const uint64_t full_at = code->full_at.load(std::memory_order_relaxed);
  if (executed >= full_at) return false;
  op_ = &op;
  code_ = code;
  run_ = code->code;
  fuel_ = code->fuel;
  most_turns_ = trial_entries - 1 - entries;
  if (full_at - executed < most_turns_ * static_cast<uint64_t>(fuel_)) most_turns_ = 1;
  counters_ = warp.block->counters;
  CodeContext& context = late.of(warp);
  context.meeting = nullptr;
  context.guesses = code->guesses.data();
  return true;
}

// Returns false.
bool Round::end() {
  if (!op_) return false;
  op_ = nullptr;
  add_to(code_->entries, turns_);
  add_to(code_->executed, executed_);
  counters_->generated += executed_;
  turns_ = executed_ = 0;
  return false;
}

// A warp that the code is not for costs nothing.
inline const MicroOp* Round::call(Warp& warp, CodeContext& context) {
  Block& block = *warp.block;
  context.registers = warp.activation->registers;
  context.thread_specials = warp.base[static_cast<unsigned>(LaneBase::thread_special)];
  context.warp = &warp;
  context.fuel = fuel_;
  block.single_steps = true;
  const MicroOp* next = run_(&context);
  block.single_steps = false;
  if (next == not_for_this_warp) [[unlikely]]
    return next;
  const int64_t executed = fuel_ - context.fuel;
  ++turns_;
  executed_ += static_cast<uint64_t>(executed);
  block.clock += static_cast<uint64_t>(executed);
  block.fuel -= executed;
  return next;
}

// Is it the turn of the first warp of a block, all of whose warps are full and stand behind a barrier before `op`?
bool stand_together(const Warp& first, const MicroOp* op) {
  const Block& block = *first.block;
  const uint32_t count = block.launch->warps;
  if (first.index != 0 || count < 2 || block.live_warps != count || block.whole_waiting != 0) return false;
  if (!block.has_started(block.warps[count - 1])) return false;
  return std::all_of(block.warps.begin(), block.warps.begin() + count, [&](const Warp& warp) {
    const bool is_there = &warp == &first || (warp.behind_barrier == op && warp.state == WarpState::runnable);
    return is_there && warp.active == full_mask && warp.meeting == no_meeting && warp.splits.empty();
  });
}

// Of a block as stand_together() says: the first `turn` warps have gone on to `barrier`, where none has arrived before
// (null if `turn` is 0), the others are still before `op`. All of their states are `runnable` as before, but that of
// the warp whose turn it is, which may have failed.
void write_turns(Block& block, uint32_t turn, const MicroOp* op, const MicroOp* barrier, uint32_t number) {
  for (uint32_t i = 0; i < block.launch->warps; ++i) {
    Warp& warp = block.warps[i];
    warp.behind_barrier = i == turn ? nullptr : op;
    if (i < turn) (void)block.waits_whole(warp, number, barrier + 1);
  }
}

// Is it a barrier of the block, whose number is a constant, and where nothing has arrived?
bool is_free_barrier(const Warp& warp, const MicroOp* op) {
  if (!op || op == not_for_this_warp || !is_plain_barrier(*op) || op->source[0].base() != LaneBase::constants)
    return false;
  const uint32_t number = *warp.lanes<uint32_t>(op->source[0]);
  return number < warp.block->barriers.size() && !warp.block->barriers[number].in_use;
}

bool Round::run_block(Warp*& warp, const MicroOp*& next, LateContext& late) {
  if (warp->index != 0 || next == short_ || next->handler != &enter) return false;
  if ((next != op_ && !begin(*warp, *next, late)) || !stand_together(*warp, next)) return false;
  Block& block = *warp->block;
  const MicroOp* const first = next;
  const uint32_t count = block.launch->warps;
  const MicroOp *op = next, *before = nullptr;
  for (;;) {
    const bool has_code = op->handler == &enter && (op == op_ || begin(block.warps[0], *op, late));
    const bool has_all = has_code && turns_ + count <= most_turns_ && block.fuel >= fuel_ * count;
    const MicroOp* barrier = nullptr;
    uint32_t number = 0, turn = 0;
    for (; turn < count; ++turn) {
      warp = &block.warps[turn];
      next = has_all ? call(*warp, late.context) : not_for_this_warp;
      if (turn == 0 && is_free_barrier(*warp, next)) {
        barrier = next;
        number = *warp->lanes<uint32_t>(next->source[0]);
      }
      if (!barrier || next != barrier || warp->active != full_mask || !warp->splits.empty()) [[unlikely]]
        break;
    }
    if (turn < count) {
      write_turns(block, turn, op, barrier, number);
      if (!has_code && before == first) short_ = first;
      if (next != not_for_this_warp) return true;
      next = op;
      return end();
    }
    block.barriers[number] = {};
    before = std::exchange(op, barrier + 1);
  }
}

Warp* Round::first_follower(Warp& warp, const MicroOp*& op) {
  const MicroOp* barrier = op;
  Warp* next = next_behind_barrier(warp, op);
  if (next && barrier->source[0].base() == LaneBase::constants) {
    barrier_ = barrier;
    number_ = next->block->whole_number;
  }
  return next;
}

// Code that ends at a barrier is followed by that of the warp whose turn is next: warps take their turns in the order
// that the interpreter has, without going through it. `warp`: the one behind `first`. Returns what the handler of
// `first` returns. Not inlined: most kernels have no barriers, and this takes a large frame.
[[gnu::noinline]] const MicroOp* take_turns(const Warp& first, Warp* warp, LateContext& context) {
  Block& block = *first.block;
  Round round;
  const MicroOp* next = nullptr;
  for (;;) {
    next = std::exchange(warp->behind_barrier, nullptr);
    if (!round.run_block(warp, next, context)) {
      const MicroOp& op = *next;
      if (op.handler != &enter) break;
      if (!round.run(*warp, op, context, next) && !run_code(*warp, op, context, next)) break;
    }
    Warp* follower = round.follower(*warp, next);
    if (!follower) break;
    warp = follower;
  }
  return warp == &first ? next : block.hand_on(*warp, next);
}

// The handler of region entries while the launch lasts.
const MicroOp* enter(Warp& warp, const MicroOp& entry) {
  LateContext context;
  const MicroOp* next = nullptr;
  if (!run_code(warp, entry, context, next)) return next;
  Warp* follower = next_behind_barrier(warp, next);
  return follower ? take_turns(warp, follower, context) : next;
}

// Is the launch observed in a way that only the interpreter supports?
bool is_watched(const KernelImage& image, const LaunchRequest& request) {
  return request.observer || request.check || request.count_memory || request.late_copies || request.cluster ||
         image.clustered;
}

void say_once(const std::string& reason) {
  static std::once_flag said;
  std::call_once(said, [&] { log(LogLevel::info, fmt::format("kernels are interpreted: {}", reason)); });
}

} // namespace

} // namespace generated

std::unique_ptr<GeneratedLaunch> generated_launch(KernelImage& image, const LaunchRequest& request) {
  using generated::GeneratedKernel;
  const EngineSetting& setting = request.machines.get<EngineSetting>();
  const Engine engine = setting.engine.value_or(default_engine());
  if (engine == Engine::interpreter || generated::is_watched(image, request)) return nullptr;
  for (const auto& function : image.functions)
    if (function->stream_of) return nullptr;
  if (!generated::Compiler::get()) {
    generated::say_once(why_no_generator());
    return nullptr;
  }
  auto* known = image.machines.find<std::shared_ptr<GeneratedKernel>>();
  std::shared_ptr<GeneratedKernel> kernel =
      known ? *known : image.machines.set(std::make_shared<GeneratedKernel>(image));
  return std::make_unique<generated::Launch>(std::move(kernel), setting, engine == Engine::generated);
}

std::string why_no_generator() {
  return generated::Compiler::get() ? std::string() : generated::Compiler::why_none();
}

bool has_own_encoder() {
  return generated::has_direct_code();
}

std::vector<std::string> unknown_generator_rows() {
  std::vector<std::string> unknown;
  for (const auto* patterns :
       {&generated::RowTable::get().unknown_patterns(), &generated::DirectTable::get().unknown_patterns()})
    unknown.insert(unknown.end(), patterns->begin(), patterns->end());
  return unknown;
}

} // namespace ptxrewrite::emulator
