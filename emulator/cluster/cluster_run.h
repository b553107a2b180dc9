// Launches in clusters (thread block clusters, PTX ISA 5.1 "Cluster of Cooperative Thread Arrays"): the blocks of a
// cluster are started together and take turns on one host thread, each until it ends or cannot continue without another
// block. Like the papers' machines, none of which runs clusters, this one is registered by a row of
// emulator/machines/registry.def.
#pragma once

#include "emulator/core/machine.h"

#include <deque>
#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

const MachineModel& cluster_machine();

// The blocks of one cluster while they run.
class RunningCluster {
public:
  // Takes prepared blocks, by rank. They are reused when the object is started as another cluster.
  explicit RunningCluster(std::vector<std::unique_ptr<Block>> blocks);

  // Starts the cluster whose first block is `origin` in the grid.
  void start(BlockSource& source, const Dimensions& origin);
  // Runs until all blocks have ended, one has failed (source has the failure), or all runnable warps spin.
  BlockState run(BlockSource& source);
  // Whether the last run() changed anything (Block::watch_progress).
  bool changed() const;
  void watch_progress(bool watch);
  // Fails the launch because all blocks of all clusters spin.
  void give_up(BlockSource& source);
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }

private:
  void fail(BlockSource& source, Block& block);
  void report_deadlock(BlockSource& source);

  std::vector<std::unique_ptr<Block>> blocks_;
  BlockCluster members_;
};

// One launch in clusters.
class ClusterRun final : public MachineRun {
public:
  explicit ClusterRun(const LaunchRequest& request) : request_(&request) {}
  bool runs_side_by_side() const override { return true; }
  void run(BlockSource& source) override;

private:
  std::unique_ptr<RunningCluster> next_cluster(BlockSource& source, bool is_needed);
  bool is_to_run(BlockSource& source, const Dimensions& origin) const;
  bool nothing_will_come(const RunningCluster& cluster, size_t resident);

  const LaunchRequest* request_;
  uint64_t next_ = 0; // the next cluster to start
  std::unique_ptr<RunningCluster> spare_;
  uint64_t turns_ = 0; // of spinning clusters, since a cluster last ended
  uint64_t unchanged_turns_ = 0;
};

} // namespace ptxrewrite::emulator
