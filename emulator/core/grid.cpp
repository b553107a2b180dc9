#include "emulator/core/grid.h"

#include "emulator/core/block.h"
#include "emulator/core/check.h"
#include "emulator/core/engine.h"
#include "emulator/core/fuel.h"
#include "emulator/core/machine.h"
#include "emulator/core/observer.h"
#include "emulator/memory/global_shadow.h"
#include "emulator/memory/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t call_stack_bytes = uint64_t(64) << 10;
// All blocks that spin on one another stay resident; a real GPU keeps some thousands, too.
constexpr uint64_t resident_block_limit = 4096;
// Turns of spinning blocks, without one of them ending, before the worker starts to check them for any change.
constexpr uint64_t patient_turns = 10'000;
// After this many turns per resident block without a change, the launch is taken for a deadlock.
constexpr uint64_t turns_without_change = 64;

uint32_t* lanes_at(std::vector<std::byte>& bytes, LaneRef ref, size_t base = 0) {
  return reinterpret_cast<uint32_t*>(bytes.data() + base + ref.offset());
}

// Moves `thread` to the next one of a block of this size.
void step(Dimensions& thread, const Dimensions& block) {
  if (++thread.x < block.x) return;
  thread.x = 0;
  if (++thread.y < block.y) return;
  thread.y = 0;
  ++thread.z;
}

std::vector<std::byte> make_thread_specials(const LaunchRequest& request, uint32_t warps) {
  const size_t size = static_cast<size_t>(ThreadSpecial::count) * lane_array_bytes;
  std::vector<std::byte> bytes(size * warps);
  Dimensions thread{0, 0, 0}; // counted up: three divisions a thread cost more than short kernels
  for (uint32_t warp = 0; warp < warps; ++warp)
    for (uint32_t lane = 0; lane < warp_size; ++lane) {
      auto set = [&](ThreadSpecial which, uint32_t value) {
        lanes_at(bytes, thread_special(which), size * warp)[lane] = value;
      };
      set(ThreadSpecial::tid_x, thread.x);
      set(ThreadSpecial::tid_y, thread.y);
      set(ThreadSpecial::tid_z, thread.z);
      step(thread, request.block);
      set(ThreadSpecial::laneid, lane);
      set(ThreadSpecial::warpid, warp);
      const uint32_t own = 1u << lane;
      set(ThreadSpecial::lanemask_eq, own);
      set(ThreadSpecial::lanemask_lt, own - 1);
      set(ThreadSpecial::lanemask_le, own | (own - 1));
      set(ThreadSpecial::lanemask_ge, ~(own - 1));
      set(ThreadSpecial::lanemask_gt, ~(own | (own - 1)));
    }
  return bytes;
}

std::vector<std::byte> make_block_specials(const LaunchState& launch) {
  std::vector<std::byte> bytes(static_cast<size_t>(BlockSpecial::count) * lane_array_bytes);
  auto set = [&](BlockSpecial which, uint32_t value) {
    std::fill_n(lanes_at(bytes, block_special(which)), warp_size, value);
  };
  const LaunchRequest& request = *launch.request;
  set(BlockSpecial::ntid_x, request.block.x);
  set(BlockSpecial::ntid_y, request.block.y);
  set(BlockSpecial::ntid_z, request.block.z);
  set(BlockSpecial::nctaid_x, request.grid.x);
  set(BlockSpecial::nctaid_y, request.grid.y);
  set(BlockSpecial::nctaid_z, request.grid.z);
  set(BlockSpecial::nwarpid, launch.warps);
  set(BlockSpecial::nsmid, emulated_sm_count);
  set(BlockSpecial::dynamic_smem_size, request.shared_bytes);
  set(BlockSpecial::total_smem_size,
      static_cast<uint32_t>((launch.shared_bytes + 127) / 128 * 128)); // rounded up to granules of 128 bytes
  set(BlockSpecial::envreg1, static_cast<uint32_t>(request.grid_workspace >> 32));
  set(BlockSpecial::envreg2, static_cast<uint32_t>(request.grid_workspace));
  set(BlockSpecial::one, 1);
  if (const std::optional<Dimensions>& cluster = request.cluster) {
    set(BlockSpecial::nclusterid_x, request.grid.x / cluster->x);
    set(BlockSpecial::nclusterid_y, request.grid.y / cluster->y);
    set(BlockSpecial::nclusterid_z, request.grid.z / cluster->z);
    set(BlockSpecial::cluster_nctaid_x, cluster->x);
    set(BlockSpecial::cluster_nctaid_y, cluster->y);
    set(BlockSpecial::cluster_nctaid_z, cluster->z);
    set(BlockSpecial::cluster_nctarank, static_cast<uint32_t>(cluster->count()));
  }
  return bytes;
}

// State shared by the host threads of one launch.
struct Grid {
  explicit Grid(const LaunchRequest& request) : fuel(request) {}

  LaunchState launch;
  LaunchFuel fuel;
  uint64_t blocks = 0;
  alignas(64) std::atomic<uint64_t> next{0}; // the next block that no worker has taken
  alignas(64) uint64_t share = 1; // blocks that a worker takes at once: taking costs more than running a small block
  std::mutex mutex;               // guards the members that follow
  std::optional<Error> error;     // of the host: out of memory
  std::optional<Failure> failure;
  std::atomic<uint64_t> failed_block{UINT64_MAX};
  unsigned workers = 1;
  std::atomic<unsigned> idle_workers{0}; // workers without blocks, or whose blocks all wait for other blocks
  PrintedBlocks printed;
  FindingTable findings;
  WorkerCounters total;
};

Failure failure_without_fuel(const Grid& grid, uint64_t linear) {
  const ir::Function& kernel = *grid.launch.image->functions.front()->source;
  const Dimensions& size = grid.launch.request->grid;
  Failure failure;
  failure.kind = FailureKind::out_of_fuel;
  failure.message = has_program_ended()
                        ? "the program has exited, and the kernel goes on for too long"
                        : fmt::format("out of fuel: the {} blocks of the launch have executed the {} warp instructions "
                                      "that they may (--fuel allows more)",
                                      grid.blocks, grid.fuel.limit());
  failure.kernel = failure.function = grid.launch.image->module->text(kernel.name);
  failure.block = {static_cast<uint32_t>(linear % size.x), static_cast<uint32_t>(linear / size.x % size.y),
                   static_cast<uint32_t>(linear / size.x / size.y)};
  failure.range = kernel.header_range;
  return failure;
}

// Fails the launch at block `linear`, which is not started.
void fail_without_fuel(Grid& grid, uint64_t linear) {
  std::lock_guard lock(grid.mutex);
  if (linear > grid.failed_block) return;
  grid.failed_block = linear;
  grid.failure = failure_without_fuel(grid, linear);
}

class Worker final : public BlockSource {
public:
  // `is_first`: if it has no memory for its blocks, the launch fails; the other workers are optional.
  explicit Worker(Grid& grid, bool is_first = true)
      : grid_(grid), frames_(grid.launch.memory->budget()),
        thread_specials_(make_thread_specials(*grid.launch.request, grid.launch.warps)), is_first_(is_first) {
    const KernelImage& image = *grid.launch.image;
    counters_.regions.resize(image.region_count);
    counters_.guards.resize(image.instruction_count);
    if (grid.launch.request->count_memory) counters_.transactions.resize(image.instruction_count);
  }

  // Allocates memory for a first block before other workers allocate theirs.
  void reserve() { spare_ = make_block(true); }

  // Runs all blocks on a machine, which takes them in its own order.
  void run_on(MachineRun& machine) {
    machine.run(*this);
    add_counters();
  }

  // A spinning block goes to the end of the queue, and a new block starts: it may be the one that is waited for.
  void run() {
    std::deque<std::unique_ptr<Block>> spinning;
    bool has_memory = true;
    for (;;) {
      if (!spare_ && has_memory && spinning.size() < resident_block_limit && !is_over()) {
        spare_ = make_block(spinning.empty());
        has_memory = spare_ != nullptr;
        if (!spare_ && spinning.empty()) break;
      }
      const uint64_t taken = spare_ && spinning.size() < resident_block_limit ? take_block() : UINT64_MAX;
      std::unique_ptr<Block> block;
      const uint64_t linear = number(taken);
      if (taken < grid_.blocks && leaves_out(linear)) continue;
      if (taken < grid_.blocks && linear <= grid_.failed_block && has_fuel_for(linear, 1)) {
        block = std::move(spare_);
        start(*block, linear);
      } else if (!spinning.empty()) {
        block = std::move(spinning.front());
        spinning.pop_front();
      } else {
        break;
      }
      block->watch_progress = turns_ > patient_turns;
      const BlockState state = block->run();
      count(*block, state);
      switch (state) {
      case BlockState::yielded:
        if (nothing_will_come(*block, spinning.size() + 1)) give_up(*block);
        if (block->failure)
          fail(*block);
        else
          spinning.push_back(std::move(block));
        break;
      case BlockState::failed:
        fail(*block);
        work_again();
        break;
      default:
        finish(*block);
        spare_ = std::move(block);
        has_memory = true;
        work_again();
      }
    }
    if (!idle_) ++grid_.idle_workers;
    add_counters();
  }

  // --- BlockSource ---
  LaunchState& launch() override { return grid_.launch; }
  uint64_t count() const override { return grid_.blocks; }
  uint64_t number(uint64_t n) const override { return grid_.launch.request->reversed ? grid_.blocks - 1 - n : n; }

  // Returns nullptr if memory runs out. A worker without any memory runs no blocks, if another worker has some.
  std::unique_ptr<Block> make_block(bool is_needed) override {
    auto block = std::make_unique<Block>(grid_.launch, counters_, frames_, thread_specials_);
    const Status status = block->prepare();
    if (status.ok()) return block;
    std::lock_guard lock(grid_.mutex);
    if (is_needed && is_first_ && !grid_.error) grid_.error = status.error();
    return nullptr;
  }

  bool has_fuel_for(uint64_t first, uint32_t blocks) override {
    if (grid_.fuel.start_block(grid_.launch.warps * blocks)) return true;
    fail_without_fuel(grid_, first);
    return false;
  }

  void take_fuel(uint64_t warp_instructions) override { (void)grid_.fuel.take(warp_instructions); }

  void start(Block& block, uint64_t number) override {
    block.start(number);
    Observer* observer = grid_.launch.request->observer;
    block.observer = observer && observer->wants(block) ? observer : nullptr;
    block.watch_memory = block.count_memory || block.checker || (block.observer && block.observer->wants_accesses());
  }

  void take_output(Block& block) override {
    if (block.printed.empty() && !block.checker) return;
    std::lock_guard lock(grid_.mutex);
    grid_.printed.add(block.linear, std::move(block.printed));
    if (block.checker) block.checker->take_findings(grid_.findings);
  }

  void finish(Block& block) override {
    if (block.observer) block.observer->block_ended(block);
    take_output(block);
  }

  // The failure of the block with the lowest number is reported, whichever worker finds it first.
  void fail(Block& block) override {
    std::lock_guard lock(grid_.mutex);
    if (block.linear > grid_.failed_block) return;
    grid_.failed_block = block.linear;
    grid_.failure = std::move(block.failure);
    grid_.printed.add(block.linear, std::move(block.printed));
    if (block.checker) block.checker->take_findings(grid_.findings);
  }

  void fail(Failure failure) override {
    std::lock_guard lock(grid_.mutex);
    grid_.failure = std::move(failure);
  }

  bool has_failed() const override {
    std::lock_guard lock(grid_.mutex);
    return grid_.failure.has_value();
  }

private:
  // Returns the number of the next block for this worker; at or above grid_.blocks if there are no more.
  uint64_t take_block() {
    if (next_ == end_) {
      next_ = grid_.next.fetch_add(grid_.share);
      end_ = next_ + grid_.share;
    }
    return next_++;
  }

  bool leaves_out(uint64_t linear) const {
    Observer* observer = grid_.launch.request->observer;
    return observer && !observer->runs(linear);
  }

  // Is there no block left for this worker to take?
  bool is_over() const { return next_ == end_ && grid_.next.load() >= grid_.blocks; }

  // Takes the instructions that the block has executed since the last call off the launch's fuel.
  void count(Block& block, BlockState state) {
    const uint64_t executed = block.clock - std::exchange(block.counted_clock, block.clock);
    if (!grid_.fuel.take(executed) && state == BlockState::yielded)
      block.failure = failure_without_fuel(grid_, block.linear);
  }

  // Called after a turn of a spinning block: do all blocks of all host threads spin without any change?
  bool nothing_will_come(const Block& block, uint64_t resident) {
    ++turns_;
    if (!block.watch_progress) return false;
    if (block.changed) {
      unchanged_turns_ = all_idle_turns_ = 0;
      set_idle(false);
      return false;
    }
    if (++unchanged_turns_ < turns_without_change * resident) return false;
    set_idle(true);
    // The last changes made by other host threads must have become visible here first.
    all_idle_turns_ = grid_.idle_workers == grid_.workers ? all_idle_turns_ + 1 : 0;
    if (all_idle_turns_ <= turns_without_change * resident) return false;
    if (!shares_memory_with_program(*grid_.launch.memory)) return true;
    std::this_thread::yield();
    unchanged_turns_ = all_idle_turns_ = 0;
    set_idle(false);
    return false;
  }

  void work_again() {
    turns_ = unchanged_turns_ = all_idle_turns_ = 0;
    set_idle(false);
  }

  void set_idle(bool idle) {
    if (idle == idle_) return;
    idle_ = idle;
    if (idle)
      ++grid_.idle_workers;
    else
      --grid_.idle_workers;
  }

  void give_up(Block& block) {
    block.unfold_whole();
    for (Warp& warp : block.warps)
      if (!warp.splits.empty() && !block.failure)
        block.fail(warp, *warp.splits.back().next, 0,
                   has_program_ended() ? "the program has exited, and all blocks of the kernel wait"
                                       : "all blocks spin: nothing that they wait for will come",
                   FailureKind::deadlock);
  }

  void add_counters() {
    std::lock_guard lock(grid_.mutex);
    WorkerCounters& total = grid_.total;
    for (size_t i = 0; i < counters_.regions.size(); ++i) {
      const RegionCounter& counter = counters_.regions[i];
      total.regions[i].executions += counter.executions + counter.full_executions;
      total.regions[i].lanes += counter.lanes + counter.full_executions * warp_size;
    }
    for (size_t i = 0; i < counters_.guards.size(); ++i) {
      total.guards[i].lanes += counters_.guards[i].lanes;
      total.guards[i].off += counters_.guards[i].off;
    }
    for (size_t i = 0; i < counters_.transactions.size(); ++i)
      total.transactions[i] += counters_.transactions[i];
    total.blocks += counters_.blocks;
    total.warps += counters_.warps;
    total.generated += counters_.generated;
  }

  Grid& grid_;
  uint64_t next_ = 0, end_ = 0; // blocks taken but not started
  WorkerCounters counters_;
  FramePool frames_;
  std::vector<std::byte> thread_specials_;
  bool is_first_;
  std::unique_ptr<Block> spare_;
  uint64_t turns_ = 0; // turns of spinning blocks since one of them has ended
  uint64_t unchanged_turns_ = 0;
  uint64_t all_idle_turns_ = 0;
  bool idle_ = false;
};

// Memory that the budget does not count may run out, too, in any host thread.
template <class Body> void guarded(Grid& grid, Body&& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    std::lock_guard lock(grid.mutex);
    grid.error = Error{"the host has no more memory for this launch", {}};
    grid.failed_block = 0;
  }
}

// Counters of a section of a hardware form; nullopt if no machine knows the section.
std::optional<SectionExecutions> section_executions(const DecodedFunction& function, ir::InstructionId id,
                                                    const LaunchFacts& facts) {
  const auto section = static_cast<ir::SectionKind>(function.section_of[id.index()] - 1);
  for (const MachineModel* machine : machines())
    if (auto counted = machine->section_executions(function, id, section, facts)) return counted;
  return std::nullopt;
}

// Adds the rows that a machine has counted itself for a function.
void add_rows(FunctionCounters rows, Counters& counters) {
  for (const InstructionCounters& row : rows.instructions) {
    counters.warp_instructions += row.executions;
    counters.thread_instructions += row.lanes;
  }
  counters.functions.push_back(std::move(rows));
}

// `machine`: the machine that the launch ran on, or nullptr.
Counters make_counters(const KernelImage& image, const WorkerCounters& total, const LaunchFacts& facts,
                       MachineRun* machine) {
  Counters counters;
  counters.blocks = total.blocks;
  counters.warps = total.warps;
  for (const auto& function : image.functions) {
    FunctionCounters rows;
    rows.source = function->source;
    rows.function = image.module->text(function->source->name);
    rows.instructions.resize(function->source->instructions.size());
    if (machine && machine->count(*function, rows)) {
      add_rows(std::move(rows), counters);
      continue;
    }
    for (ir::BlockId block : function->source->layout)
      for (ir::InstructionId id : function->source->instructions_in(block)) {
        if (function->section_of[id.index()]) {
          const auto counted = section_executions(*function, id, facts);
          if (!counted) continue;
          rows.instructions[id.index()].executions = counted->warps;
          rows.instructions[id.index()].lanes = counted->lanes;
          counters.warp_instructions += counted->warps;
          counters.thread_instructions += counted->lanes;
          continue;
        }
        const uint32_t region = function->region_of[id.index()];
        if (region == UINT32_MAX) continue;
        InstructionCounters& row = rows.instructions[id.index()];
        const uint32_t number = function->first_instruction + id.index();
        row.executions = total.regions[region].executions;
        row.lanes = function->source->instructions[id].guard ? total.guards[number].lanes : total.regions[region].lanes;
        row.guarded_off = total.guards[number].off;
        if (!total.transactions.empty()) row.transactions = total.transactions[number];
        counters.warp_instructions += row.executions;
        counters.thread_instructions += row.lanes;
      }
    counters.functions.push_back(std::move(rows));
  }
  return counters;
}

unsigned host_threads(const KernelImage& image, const LaunchRequest& request, uint64_t blocks) {
  // Check mode tracks the global memory of all blocks together; one thread makes it report the same races every time.
  if (request.observer || request.check || (image.order_sensitive && !request.unordered)) return 1;
  const unsigned wanted = request.host_threads ? request.host_threads : std::thread::hardware_concurrency();
  return static_cast<unsigned>(std::clamp<uint64_t>(wanted, 1, std::max<uint64_t>(blocks, 1)));
}

} // namespace

Result<LaunchResult> run_grid(KernelImage& image, const LaunchRequest& request, DeviceMemory& memory,
                              MachineRun* machine) {
  if (image.uses_heap)
    if (Status status = memory.prepare_heap(); !status) return status.error();
  Grid grid(request);
  LaunchState& launch = grid.launch;
  launch.image = &image;
  launch.request = &request;
  launch.memory = &memory;
  launch.machine = machine;
  const std::unique_ptr<GeneratedLaunch> generated = machine ? nullptr : generated_launch(image, request);
  launch.threads = static_cast<uint32_t>(request.block.count());
  launch.warps = (launch.threads + warp_size - 1) / warp_size;
  launch.shared_bytes = image.static_shared() + request.shared_bytes;
  launch.local_stride = image.functions.front()->local_bytes;
  if (image.has_calls || image.uses_stack) launch.local_stride += call_stack_bytes;
  launch.block_specials = make_block_specials(launch);
  std::optional<GlobalShadow> global_shadow;
  MemoryShare shadow_share(memory.budget());
  if (request.check) {
    const MemoryBudget& budget = memory.budget();
    const uint64_t bytes =
        std::min((budget.limit() - std::min(budget.limit(), budget.used())) / 4, GlobalShadow::default_limit);
    launch.global_shadow = &global_shadow.emplace(shadow_share.try_grow(bytes) ? bytes : 0);
  }
  grid.blocks = request.grid.count();
  grid.total.regions.resize(image.region_count);
  grid.total.guards.resize(image.instruction_count);
  if (request.count_memory) grid.total.transactions.resize(image.instruction_count);

  LaunchResult result;
  const unsigned threads = machine ? 1 : host_threads(image, request, grid.blocks);
  const bool side_by_side = machine && machine->runs_side_by_side();
  launch.concurrent = threads > 1 || shares_memory_with_program(*launch.memory);
  grid.workers = threads;
  grid.share = threads == 1 ? 1 : std::clamp<uint64_t>(grid.blocks / (threads * 64), 1, 16);
  std::optional<Worker> first;
  guarded(grid, [&] { first.emplace(grid); });
  if (first && !side_by_side) guarded(grid, [&] { first->reserve(); });
  if (grid.error) return Error{grid.error->message, image.functions.front()->source->header_range};
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back([&grid] { guarded(grid, [&] { Worker(grid, false).run(); }); });
  guarded(grid, [&] {
    if (side_by_side)
      first->run_on(*machine);
    else
      first->run();
  });
  for (std::thread& other : others)
    other.join();
  if (generated) warp_instructions_by_code() += grid.total.generated;
  if (grid.error) return Error{grid.error->message, image.functions.front()->source->header_range};

  result.counters = make_counters(image, grid.total,
                                  {grid.blocks, launch.warps, launch.threads,
                                   request.multiprocessors ? request.multiprocessors : emulated_sm_count},
                                  machine);
  if (machine) machine->finish(result);
  result.printed = grid.printed.take(grid.failed_block);
  result.findings = grid.findings.take(grid.failed_block);
  result.failure = std::move(grid.failure);
  return result;
}

} // namespace ptxrewrite::emulator
