// Launches with generated code: each region entry looks for code for its plan, and requests compilation once it has
// executed enough instructions to make that worthwhile.
#include "emulator/core/engine.h"

#include "emulator/core/decode.h"
#include "emulator/generated/compiler.h"
#include "support/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>

namespace ptxrewrite::emulator {
namespace generated {
namespace {

// Warp instructions that an entry interprets before a plan is made, and per micro-operation of the plan before it is
// compiled: compiling one micro-operation takes as long as interpreting that many.
constexpr uint64_t worth_planning = 100'000, worth_of_one = 20'000;
// Less is not worth the way in and out, nor is a plan that is mostly calls.
constexpr unsigned smallest_plan = 6;
// Entries after which it is decided whether code executes enough each time, and warp instructions that are enough.
constexpr uint64_t trial_entries = 512, enough_of_an_entry = 5;
// Wrong guesses before code is made again, and how often that is done at most.
constexpr uint32_t many_wrong_guesses = 64, most_versions = 3;

class GeneratedKernel;

// Code of a region entry, with its execution counts and its wrong address guesses.
struct EntryCode {
  std::shared_ptr<const LoadedCode> loaded;
  Code code = nullptr;
  std::vector<AddressGuess> guesses;
  uint32_t plan_size = 0;
  int64_t fuel = 0;                              // that there has to be
  std::atomic<uint64_t> entries{0}, executed{0}; // warp instructions
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
      }
    }
  }
  ~GeneratedKernel() { Compiler::get()->forget(this); }
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
    if (plan->built < std::max(smallest_plan, plan->called)) {
      version.impossible = true;
      return nullptr;
    }
    const bool full = warp.active == full_mask;
    version.pending = true;
    ++version.made;
    if (!at_once) {
      Compiler::get()->do_later(this, [this, &version, plan, full] {
        std::unique_lock later(mutex_);
        make(version, *plan, full, later);
      });
      return nullptr;
    }
    return make(version, *plan, full, lock);
  }

private:
  // Returns nullptr if no entry has been executed often enough yet.
  std::shared_ptr<Plan> plan_for(RegionEntry& entry, const Warp& warp, bool uniform) {
    const uint32_t index = entry.code->index_of(entry.op);
    const auto has_code = [&](uint32_t at) {
      const MicroOp& op = entry.code->op(at);
      return op.handler == &enter && entries_[op.extra].version_for(warp, uniform).code.load() != nullptr;
    };
    auto plan = std::make_shared<Plan>(
        *entry.code, index, uniform ? uniform_registers(*entry.code, index, warp) : UniformAtEntry(), has_code);
    const uint64_t whole_worth = plan->size() * worth_of_operation;
    if (entry.executed.load() < whole_worth) {
      entry.worth = whole_worth;
      return nullptr;
    }
    std::vector<const std::byte*> frames{warp.activation->registers};
    for (const Warp& other : warp.block->warps) // that came here before; frames of calls are not to be found
      if (warp.activation == &warp.root && &other != &warp && other.root.registers)
        frames.push_back(other.root.registers);
    plan->guess_addresses(frames, entry.code->known_places);
    return plan;
  }

  // `lock`: of mutex_, which is open while LLVM works.
  EntryCode* make(Version& version, Plan& plan, bool full, std::unique_lock<std::mutex>& lock) {
    Compiler::Module module = Compiler::get()->write(plan, full);
    std::shared_ptr<const LoadedCode> loaded;
    if (module) {
      lock.unlock();
      loaded = Compiler::get()->compile(std::move(module));
      lock.lock();
    }
    version.pending = false;
    if (!loaded) {
      version.impossible = true;
      return nullptr;
    }
    EntryCode& made = *made_.emplace_back(std::make_unique<EntryCode>());
    made.loaded = loaded;
    made.code = loaded->code;
    made.guesses = plan.guesses;
    made.plan_size = static_cast<uint32_t>(plan.size());
    made.fuel = static_cast<int64_t>(plan.fuel);
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
  std::mutex mutex_;
};

class Launch final : public GeneratedLaunch {
public:
  Launch(std::shared_ptr<GeneratedKernel> kernel, bool at_once, std::optional<uint64_t> worth)
      : kernel_(std::move(kernel)) {
    kernel_->at_once = at_once;
    kernel_->worth = at_once ? 1 : worth.value_or(worth_planning);
    kernel_->worth_of_operation = at_once || worth ? 0 : worth_of_one;
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
    if (entries % trial_entries != trial_entries - 1) [[likely]]
      return made;
    if (made->executed.load(std::memory_order_relaxed) < entries * enough_of_an_entry) {
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

CodeContext context_for(Warp& warp, const MicroOp* meeting, EntryCode& code) {
  Block& block = *warp.block;
  CodeContext context;
  context.registers = warp.activation->registers;
  context.thread_specials = warp.base[static_cast<unsigned>(LaneBase::thread_special)];
  context.block_specials = warp.base[static_cast<unsigned>(LaneBase::block_special)];
  context.parameters = block.parameters.data();
  context.shared = block.shared;
  context.shared_bytes = block.shared_bytes;
  context.ranges = block.sites.empty() ? nullptr : &block.sites.front().range;
  context.ops = warp.activation->function->code.data();
  context.constant_bank = block.image->constant_bank.data();
  context.call = &call_one;
  context.call_access = &call_access;
  context.guesses = code.guesses.data();
  context.regions = block.counters->regions.data();
  context.guards = block.counters->guards.data();
  context.meeting = meeting;
  context.fuel = block.fuel;
  context.warp = &warp;
  context.active = warp.active;
  context.live = warp.live;
  return context;
}

// The handler of region entries while the launch lasts.
const MicroOp* enter(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  RegionEntry& entry = *std::bit_cast<RegionEntry*>(op.immediate);
  const MicroOp* meeting = meeting_of(warp);
  if (entry.is_meeting && meeting == &op) return warp.arrive(&op);
  // Code of a full warp does not ask whether its lanes meet others: all are here.
  if (warp.active == full_mask && meeting) [[unlikely]]
    return entry.original(warp, op);
  for (const bool uniform : {true, false}) {
    EntryCode* code = find_code(entry, warp, uniform);
    if (!code || block.fuel < code->fuel) break;
    CodeContext context = context_for(warp, meeting, *code);
    const MicroOp* next = code->code(&context);
    add_to(code->entries, 1);
    if (next == not_for_this_warp) continue;
    const auto executed = static_cast<uint64_t>(block.fuel - context.fuel);
    add_to(code->executed, executed);
    block.clock += executed;
    block.counters->generated += executed;
    block.fuel = context.fuel;
    return next;
  }
  return entry.original(warp, op);
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
  return std::make_unique<generated::Launch>(std::move(kernel), engine == Engine::generated, setting.worth);
}

std::string why_no_generator() {
  return generated::Compiler::get() ? std::string() : generated::Compiler::why_none();
}

std::vector<std::string> unknown_generator_rows() {
  const std::vector<std::string_view>& patterns = generated::RowTable::get().unknown_patterns();
  return {patterns.begin(), patterns.end()};
}

} // namespace ptxrewrite::emulator
