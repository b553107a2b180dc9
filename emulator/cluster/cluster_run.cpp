#include "emulator/cluster/cluster_run.h"

#include "emulator/cluster/operations.h"
#include "emulator/core/check.h"
#include "emulator/core/observer.h"
#include "emulator/memory/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

// Limit on clusters that spin on one another and stay resident.
constexpr size_t resident_cluster_limit = 512;
// Turns of spinning clusters, without one of them ending, before changes are tracked; the launch is given up after this
// many turns per resident cluster without a change.
constexpr uint64_t patient_turns = 10'000;
constexpr uint64_t turns_without_change = 64;

class ClusterModel final : public MachineModel {
public:
  std::string_view name() const override { return "cluster"; }
  std::string_view title() const override { return "a launch in clusters of several blocks"; }
  void add_operations(OperationTable& table) const override {
    add_cluster_barrier_operations(table);
    add_cluster_address_operations(table);
    add_async_store_operations(table);
    add_launch_control_operations(table);
  }
  bool takes(const KernelImage&, const LaunchRequest& request) const override {
    return request.cluster && request.cluster->count() > 1;
  }
  // Observers see blocks that take turns, as with spinning blocks.
  bool allows_observer() const override { return true; }
  Result<std::unique_ptr<MachineRun>> begin(KernelImage&, const LaunchRequest& request) const override {
    std::unique_ptr<MachineRun> run = std::make_unique<ClusterRun>(request);
    return run;
  }
};

uint64_t linear_index(const Dimensions& grid, const Dimensions& index) {
  return index.x + uint64_t(grid.x) * (index.y + uint64_t(grid.y) * index.z);
}

// The index of the first block of cluster `number`, counted like blocks: x first.
Dimensions origin_of(const LaunchRequest& request, uint64_t number) {
  const Dimensions& grid = request.grid;
  const Dimensions& size = *request.cluster;
  const uint64_t columns = grid.x / size.x, rows = grid.y / size.y;
  return {static_cast<uint32_t>(number % columns) * size.x, static_cast<uint32_t>(number / columns % rows) * size.y,
          static_cast<uint32_t>(number / columns / rows) * size.z};
}

// The index of the block of that rank in the cluster of `size` blocks whose first block is `origin`.
Dimensions index_of(const Dimensions& origin, const Dimensions& size, uint32_t rank) {
  return {origin.x + rank % size.x, origin.y + rank / size.x % size.y, origin.z + rank / size.x / size.y};
}

} // namespace

const MachineModel& cluster_machine() {
  static const ClusterModel model;
  return model;
}

// --- one cluster ---

RunningCluster::RunningCluster(std::vector<std::unique_ptr<Block>> blocks) : blocks_(std::move(blocks)) {
  for (const auto& block : blocks_)
    members_.blocks.push_back(block.get());
}

void RunningCluster::start(BlockSource& source, const Dimensions& origin) {
  const LaunchRequest& request = *source.launch().request;
  const Dimensions& size = *request.cluster;
  members_.has_exited.assign(blocks_.size(), false);
  for (size_t rank = 0; rank < blocks_.size(); ++rank) {
    blocks_[rank]->cluster = &members_;
    source.start(*blocks_[rank], linear_index(request.grid, index_of(origin, size, static_cast<uint32_t>(rank))));
  }
}

BlockState RunningCluster::run(BlockSource& source) {
  for (;;) {
    bool progress = false, spinning = false, live = false;
    for (size_t rank = 0; rank < blocks_.size(); ++rank) {
      if (members_.has_exited[rank]) continue;
      Block& block = *blocks_[rank];
      const BlockState state = block.run();
      const uint64_t executed = block.clock - std::exchange(block.counted_clock, block.clock);
      source.take_fuel(executed);
      if (state == BlockState::failed) {
        fail(source, block);
        return BlockState::failed;
      }
      live = live || state != BlockState::finished;
      spinning = spinning || state == BlockState::yielded;
      progress = progress || state == BlockState::finished || (state == BlockState::waiting && executed);
      if (state != BlockState::finished) continue;
      members_.has_exited[rank] = true;
      if (block.checker) block.checker->block_ended();
      source.finish(block);
    }
    if (!live) return BlockState::finished;
    // Threads that have ended do not delay a barrier.
    for (size_t rank = 0; rank < blocks_.size() && !progress; ++rank)
      progress = !members_.has_exited[rank] && blocks_[rank]->complete_cluster_barrier();
    if (progress) continue;
    if (spinning) return BlockState::yielded;
    report_deadlock(source);
    return BlockState::failed;
  }
}

bool RunningCluster::changed() const {
  return std::ranges::any_of(blocks_, [](const auto& block) { return block->live_warps && block->changed; });
}

void RunningCluster::watch_progress(bool watch) {
  for (const auto& block : blocks_)
    block->watch_progress = watch;
}

// The output of the other blocks is taken, too.
void RunningCluster::fail(BlockSource& source, Block& failed) {
  for (size_t rank = 0; rank < blocks_.size(); ++rank)
    if (!members_.has_exited[rank] && blocks_[rank].get() != &failed) source.take_output(*blocks_[rank]);
  source.fail(failed);
}

// Reports the deadlock at the first block with a wait other than the cluster's barrier; all others wait for it.
void RunningCluster::report_deadlock(BlockSource& source) {
  Block* where = nullptr;
  for (size_t rank = 0; rank < blocks_.size(); ++rank) {
    Block& block = *blocks_[rank];
    if (members_.has_exited[rank]) continue;
    const bool elsewhere = std::ranges::any_of(block.warps, [](const Warp& warp) {
      return std::ranges::any_of(warp.splits,
                                 [](const Split& split) { return split.state != SplitState::at_cluster_barrier; });
    });
    if (!where || elsewhere) where = &block;
    if (elsewhere) break;
  }
  if (!where) return;
  where->report_deadlock();
  if (where->failure) where->failure->message += "; the other blocks of the cluster wait at its barrier or have ended";
  fail(source, *where);
}

void RunningCluster::give_up(BlockSource& source) {
  for (const auto& block : blocks_)
    for (Warp& warp : block->warps)
      if (block->live_warps && !warp.splits.empty() && !block->failure) {
        const Split& split = warp.splits.back();
        const bool waits = split.state == SplitState::at_barrier || split.state == SplitState::at_cluster_barrier;
        block->fail(warp, waits ? split.next[-1] : *split.next, 0,
                    "all blocks spin: nothing that they wait for will come", FailureKind::deadlock);
        return fail(source, *block);
      }
}

// --- a launch ---

// Whether the observer lets the cluster run. If it samples blocks and wants only some of them, the launch fails.
bool ClusterRun::is_to_run(BlockSource& source, const Dimensions& origin) const {
  const Dimensions& size = *request_->cluster;
  if (!request_->observer) return true;
  uint64_t wanted = 0;
  for (uint32_t rank = 0; rank < size.count(); ++rank)
    wanted += request_->observer->runs(linear_index(request_->grid, index_of(origin, size, rank)));
  if (wanted == 0 || wanted == size.count()) return wanted != 0;
  const ir::Function& kernel = *source.launch().image->functions.front()->source;
  Failure failure;
  failure.message = "blocks of a launch in clusters cannot be sampled: some of a cluster would be left out";
  failure.kernel = failure.function = request_->kernel;
  failure.block = origin;
  failure.range = kernel.header_range;
  source.fail(std::move(failure));
  return false;
}

// The next cluster of the grid, started. nullptr: there are no more, no fuel is left, or no memory for another one.
std::unique_ptr<RunningCluster> ClusterRun::next_cluster(BlockSource& source, bool is_needed) {
  const Dimensions& size = *request_->cluster;
  const uint64_t count = source.count() / size.count();
  Dimensions origin;
  for (bool found = false; !found; next_ += !found) {
    if (next_ == count || source.has_failed()) return nullptr;
    origin = origin_of(*request_, request_->reversed ? count - 1 - next_ : next_);
    found = is_to_run(source, origin);
  }
  if (!source.has_fuel_for(linear_index(request_->grid, origin), static_cast<uint32_t>(size.count()))) return nullptr;
  if (!spare_) {
    std::vector<std::unique_ptr<Block>> blocks;
    while (blocks.size() < size.count()) {
      blocks.push_back(source.make_block(is_needed));
      if (!blocks.back()) return nullptr;
    }
    spare_ = std::make_unique<RunningCluster>(std::move(blocks));
  }
  ++next_;
  spare_->start(source, origin);
  return std::move(spare_);
}

bool ClusterRun::nothing_will_come(const RunningCluster& cluster, size_t resident) {
  if (++turns_ <= patient_turns) return false;
  if (cluster.changed()) {
    unchanged_turns_ = 0;
    return false;
  }
  if (++unchanged_turns_ <= turns_without_change * resident) return false;
  unchanged_turns_ = 0;
  return true;
}

// Spinning clusters go to the end of the queue, and new ones are started: they may be the ones waited for.
void ClusterRun::run(BlockSource& source) {
  std::deque<std::unique_ptr<RunningCluster>> spinning;
  for (;;) {
    std::unique_ptr<RunningCluster> cluster;
    if (spinning.size() < resident_cluster_limit) cluster = next_cluster(source, spinning.empty());
    if (!cluster && (source.has_failed() || spinning.empty())) return;
    if (!cluster) {
      cluster = std::move(spinning.front());
      spinning.pop_front();
    }
    cluster->watch_progress(turns_ >= patient_turns);
    switch (cluster->run(source)) {
    case BlockState::failed:
      return;
    case BlockState::yielded:
      if (nothing_will_come(*cluster, spinning.size() + 1)) {
        if (!shares_memory_with_program(*source.launch().memory)) return cluster->give_up(source);
        std::this_thread::yield();
      }
      spinning.push_back(std::move(cluster));
      break;
    default:
      spare_ = std::move(cluster);
      turns_ = unchanged_turns_ = 0;
    }
  }
}

} // namespace ptxrewrite::emulator
