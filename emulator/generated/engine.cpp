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
constexpr uint64_t worth_planning = 1'000'000, worth_of_one = 200'000;
// Smaller plans are not worth the entry and exit, nor are plans that consist mostly of calls.
constexpr unsigned smallest_plan = 6;

class GeneratedKernel;

struct Version {
  std::atomic<Code> code{nullptr};
  std::atomic<bool> impossible{false};
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
};

const MicroOp* enter(Warp& warp, const MicroOp& op);

// Generated code of a kernel, kept from launch to launch.
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

  // Region entries do not use MicroOp::immediate themselves.
  void install() {
    for (RegionEntry& entry : entries_) {
      if (!entry.op) continue;
      entry.op->handler = &enter;
      entry.op->immediate = std::bit_cast<int64_t>(&entry);
    }
  }
  void remove() {
    for (RegionEntry& entry : entries_)
      if (entry.op) entry.op->handler = entry.original;
  }

  // For the launch: warp instructions that an entry interprets before code is made. At least one: the values that it
  // leaves in the frame show the compiler the pattern of the addresses.
  uint64_t worth = 1;

  // Returns nullptr if there is no code now.
  Code code_for(RegionEntry& entry, const Warp& warp, bool uniform) {
    Version& version = entry.versions[warp.active == full_mask][uniform];
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr; // another host thread is compiling
    if (Code made = version.code.load()) return made;
    const uint32_t index = entry.code->index_of(entry.op);
    Plan plan(*entry.code, index, uniform ? uniform_registers(*entry.code, index, warp) : UniformAtEntry());
    if (worth > 1 && entry.executed.load() < plan.size() * worth_of_one) {
      entry.worth = plan.size() * worth_of_one;
      return nullptr;
    }
    plan.frames.push_back(warp.activation->registers);
    for (const Warp& other : warp.block->warps) // warps that came here before; frames of calls cannot be found
      if (warp.activation == &warp.root && &other != &warp && other.root.registers)
        plan.frames.push_back(other.root.registers);
    const Code code = plan.built < std::max(smallest_plan, plan.called)
                          ? nullptr
                          : Compiler::get()->compile(plan, warp.active == full_mask, memory_);
    version.code.store(code);
    version.impossible.store(code == nullptr);
    return code;
  }

private:
  // Returns the registers that are live at the entry and hold one number in all active lanes of this warp.
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
  std::mutex mutex_;
  CodeMemory memory_;
};

class Launch final : public GeneratedLaunch {
public:
  Launch(std::shared_ptr<GeneratedKernel> kernel, uint64_t worth) : kernel_(std::move(kernel)) {
    kernel_->worth = worth;
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

// Returns nullptr if there is no code, and the interpreter continues.
Code find_code(RegionEntry& entry, const Warp& warp, bool uniform) {
  Version& version = entry.versions[warp.active == full_mask][uniform];
  if (Code code = version.code.load(std::memory_order_acquire)) [[likely]]
    return code;
  if (version.impossible.load(std::memory_order_relaxed)) return nullptr;
  const uint64_t executed = entry.executed.load(std::memory_order_relaxed);
  // If several host threads count at the same time, some counts are lost, which does not matter.
  entry.executed.store(executed + entry.op->auxiliary, std::memory_order_relaxed);
  if (executed < entry.kernel->worth || (entry.kernel->worth > 1 && executed < entry.worth)) return nullptr;
  return entry.kernel->code_for(entry, warp, uniform);
}

// The handler of region entries during the launch.
const MicroOp* enter(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  RegionEntry& entry = *std::bit_cast<RegionEntry*>(op.immediate);
  const MicroOp* meeting = meeting_of(warp);
  if (entry.is_meeting && meeting == &op) return warp.arrive(&op);
  if (block.fuel < static_cast<int64_t>(op.auxiliary)) [[unlikely]]
    return entry.original(warp, op);
  for (const bool uniform : {true, false}) {
    const Code code = find_code(entry, warp, uniform);
    if (!code) break;
    CodeContext context;
    context.registers = warp.activation->registers;
    context.thread_specials = warp.base[static_cast<unsigned>(LaneBase::thread_special)];
    context.block_specials = warp.base[static_cast<unsigned>(LaneBase::block_special)];
    context.parameters = block.parameters.data();
    context.shared = block.shared;
    context.shared_bytes = block.shared_bytes;
    context.ranges = block.sites.empty() ? nullptr : &block.sites.front().range;
    context.regions = block.counters->regions.data();
    context.guards = block.counters->guards.data();
    context.meeting = meeting;
    context.fuel = block.fuel;
    context.warp = &warp;
    context.active = warp.active;
    context.live = warp.live;
    const MicroOp* next = code(&context);
    if (next == not_for_this_warp) continue;
    block.clock += static_cast<uint64_t>(block.fuel - context.fuel);
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

const MicroOp* call_one(Warp* warp, const MicroOp* op, uint32_t mask) {
  warp->mask = mask;
  return op->handler(*warp, *op);
}

} // namespace generated

std::unique_ptr<GeneratedLaunch> generated_launch(KernelImage& image, const LaunchRequest& request) {
  using generated::GeneratedKernel;
  const Engine engine = request.machines.get<EngineSetting>().engine.value_or(default_engine());
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
  return std::make_unique<generated::Launch>(std::move(kernel),
                                             engine == Engine::generated ? 1 : generated::worth_planning);
}

std::string why_no_generator() {
  return generated::Compiler::get() ? std::string() : generated::Compiler::why_none();
}

} // namespace ptxrewrite::emulator
