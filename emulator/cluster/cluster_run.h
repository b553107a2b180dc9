// Launches in clusters (thread block clusters, PTX ISA 5.1 "Cluster of Cooperative Thread Arrays"): the blocks of a
// cluster are started together and take turns on one host thread, each until it ends or nothing in it can go on without
// another block. A row of emulator/machines/registry.def makes it known to the emulator, as it does with the papers'
// machines, none of which runs blocks in clusters.
#pragma once

#include "emulator/core/machine.h"

#include <deque>
#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

const MachineModel& cluster_machine();

// The blocks of one cluster while it runs.
class RunningCluster {
public:
  // By rank, prepared. They stay: the cluster may be started again as another one.
  explicit RunningCluster(std::vector<std::unique_ptr<Block>> blocks);

  // Makes it the cluster whose first block is `origin` in the grid.
  void start(BlockSource& source, const Dimensions& origin);
  // Until all blocks have ended, one has failed (source knows), or all that can run spin.
  BlockState run(BlockSource& source);
  // Did the last run() change anything? (Block::watch_progress)
  bool changed() const;
  void watch_progress(bool watch);
  // The launch fails: all blocks of all clusters spin.
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
  uint64_t next_ = 0; // cluster that has not been started
  std::unique_ptr<RunningCluster> spare_;
  uint64_t turns_ = 0; // of clusters that spin, since one has ended
  uint64_t unchanged_turns_ = 0;
};

} // namespace ptxrewrite::emulator
