// Measures the redundancy of a launch from the values of its instructions, for all limit studies at once: each value is
// classified when it is written, and the result is cached until the value is read.
//
//   ValueStudy study({});
//   request.observer = &study;
//   program->launch(request);
//   study.rows(): by static instruction, how much of its executions each limit study removes
//
// The rules:
//  * WP: a warp's active lanes have the same sources (r2d2-isca23 §2.2).
//  * TB: another warp of the block has executed the instruction before, for the same lanes with the same sources (and
//    at the same place). Sources are registers, constants, special registers and addresses; memory contents are not.
//  * An instance is the n-th execution of an instruction by each warp. It is redundant in the block if all warps of the
//    block have the same source vectors, and in the grid if all warps of the grid do (darsie-asplos20 Fig. 1): one
//    execution per block, or grid, would suffice. Instances of loads also have to load the same values; where a guard
//    disables lanes, old values and the guard have to be the same.
//  * Kinds of instances (darsie-asplos20 §2): all sources uniform, else all affine, else unstructured.
//  * UV: uniform sources, no memory access, and another warp of the block has executed the same before (§5 there).
//  * DAC-IDEAL: sources and results are a base and a stride from lane to lane (§2, §5 there), no memory access:
//    executed once per batch of blocks resident on an SM. In several dimensions: affine in the thread index, as in DAC
//    itself (dac-isca17 §4.4).
//  * In diverged warps, or warps with ended lanes, only WP and TB find redundancy. Instructions without results
//    (stores, branches, barriers), atomics and volatile accesses are not redundant; WP and TB leave that to their user.
// Vectors are compared by hashes of 58 bits.
//
// Values can be sampled: one block of each group of neighbouring blocks, and one trip of each group of trips of a loop,
// the same trips for all its instructions and all warps. They are selected by hashes of the groups' numbers, so that
// results are reproducible. Counts are scaled to all trips of the sampled blocks, by each instruction's executions; the
// user of the study scales them to all blocks.
#pragma once

#include "emulator/core/observer.h"
#include "emulator/observe/lane_facts.h"

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

enum class RedundancyKind : uint8_t { uniform, affine, unstructured };
inline constexpr size_t redundancy_kinds = 3;

// Executions by warps, and the active lanes of these executions.
struct WorkCount {
  uint64_t warps = 0, lanes = 0;
  WorkCount& operator+=(const WorkCount& other) {
    warps += other.warps;
    lanes += other.lanes;
    return *this;
  }
  bool operator==(const WorkCount&) const = default;
};
// Counts of trips that are all looked at, and of trips that are sampled.
using SampledCount = std::array<WorkCount, 2>;

// The executions that a study classifies as redundant, and those of them that are needed nevertheless.
struct Redundant {
  WorkCount all, once;
  Redundant& operator+=(const Redundant& other) {
    all += other.all;
    once += other.once;
    return *this;
  }
};

// Scales counts of the executions that were looked at to all executions.
class Scale {
public:
  Scale(const WorkCount& looked_at, const WorkCount& all) : looked_at_(looked_at), all_(all) {}
  WorkCount operator()(const WorkCount& count) const {
    return {scaled(count.warps, looked_at_.warps, all_.warps), scaled(count.lanes, looked_at_.lanes, all_.lanes)};
  }
  Redundant operator()(const Redundant& count) const { return {(*this)(count.all), (*this)(count.once)}; }

private:
  static uint64_t scaled(uint64_t count, uint64_t looked_at, uint64_t all) {
    if (looked_at == all || looked_at == 0) return count;
    return static_cast<uint64_t>(
        std::llround(static_cast<double>(count) * static_cast<double>(all) / static_cast<double>(looked_at)));
  }
  WorkCount looked_at_, all_;
};

struct ValueRow {
  const ir::Function* function = nullptr; // nullptr: no instruction has this number
  ir::InstructionId instruction;
  bool has_results = false;
  WorkCount executed;       // with at least one active lane
  uint64_t guarded_off = 0; // by warps in which no lane's guard was true
  uint64_t trips = 0;       // the largest number of executions by one warp, those guarded off included
  WorkCount uniform;        // WP
  WorkCount repeated;       // TB
  WorkCount warp_redundant; // WP, in undiverged warps, of eligible instructions
  std::array<Redundant, redundancy_kinds> block;
  Redundant grid;
  WorkCount reused;              // UV
  Redundant consecutive, affine; // DAC-IDEAL in one and in several dimensions; lanes of `once`: of the affine unit
};

// An execution by a warp, for studies that follow registers.
struct StudiedExecution {
  uint64_t block = 0; // its number among the blocks that are looked at
  uint32_t warp = 0;  // in the block
  uint32_t number = 0;
  uint32_t lanes = 0;      // that executed it
  uint32_t stands_for = 1; // executions: more than one if trips are sampled
  bool all_lanes = false;  // whether `lanes` are all lanes of the warp
  bool finished = false;   // false: its results are written later or elsewhere
  // Facts of the results in the lanes that executed it, in the order of operands. Empty unless finished.
  std::span<const LaneFacts> written;
};
class ExecutionListener {
public:
  virtual ~ExecutionListener() = default;
  virtual void prepare(const Block& block) = 0; // called before the first execution with any block of the launch
  virtual void executed(const StudiedExecution& execution) = 0;
};

struct ValueStudyOptions {
  // The number of blocks resident on an SM (a batch of DAC-IDEAL), given the shared memory of a block. Empty: one.
  std::function<uint64_t(uint64_t)> resident_blocks;
  ExecutionListener* listener = nullptr;
  // Looks at one block of each group of `sample` neighbours, selected by a hash, in launches with enough blocks;
  // neighbours share batches and patterns of the grid. Counts are those of the blocks looked at. `by_first_block`: the
  // group size follows from the share of executions looked at in the first block.
  static constexpr uint64_t by_first_block = 0;
  uint64_t sample = 1;
  // After the first `whole_trips` trips of a warp through an instruction, looks at one trip of each group of
  // `trip_sample`, a power of two.
  uint32_t trip_sample = 1, whole_trips = 16;
};

// The number of groups of blocks, one block of which is looked at.
uint64_t sampled_blocks(uint64_t blocks, uint64_t sample);

// Options for a study that costs less than five times the plain run: it looks at one trip in eight of long loops, and
// at as many blocks (at least two) as make up a sixth of all executions. Depends on counts only, never on time.
ValueStudyOptions adaptive_sample();
// The size of a group of blocks if the study looks at this share of the executions in a block.
uint64_t adaptive_group(double share, uint64_t blocks);

class ValueStudy final : public Observer {
public:
  // For one launch.
  explicit ValueStudy(ValueStudyOptions options);
  ~ValueStudy() override;
  ValueStudy(ValueStudy&&) noexcept;

  bool wants(const Block& block) override;
  void before(Block& block, Warp& warp, const MicroOp& op) override;
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) override;
  void passed(Block& block, Warp& warp, const MicroOp& op) override;
  void block_ended(Block& block) override;

  // By the instruction's number in the kernel. Call it after the launch.
  const std::vector<ValueRow>& rows();
  // A listener's count for instruction `number`, scaled to all trips like the rows. Call it after rows().
  WorkCount of_all_trips(uint32_t number, const SampledCount& count) const;
  // Executions by warps in the sampled blocks, including those guarded off, and the number of those looked at.
  uint64_t executions() const { return looked_at_ + passed_by_; }
  uint64_t executions_looked_at() const { return looked_at_; }
  uint64_t blocks_looked_at() const { return blocks_; }
  // Instances that were not compared because the limit of memory was reached; they count as not redundant.
  uint64_t forgotten_instances() const { return forgotten_; }

private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Source;
  struct ValueSite;
  struct Execution;
  struct Tally;
  struct Instance;
  struct GridInstance;
  struct BlockState;

  // Executions in trips that are all looked at, or in sampled trips.
  struct Stratum {
    ValueRow row;
    WorkCount passed_by; // executions that were not looked at
    uint64_t passed_by_guarded_off = 0;
    Scale scale() const;
  };

  void prepare(const Block& block);
  void choose_group(uint64_t group, const Block& block);
  void prepare_function(const DecodedFunction& decoded, bool is_entry, const Block& block);
  BlockState& state_of(const Block& block);
  LaneFacts facts_of(const Source& source, const Warp& warp, uint32_t mask);
  void look_at_sources(Execution& execution, const Warp& warp);
  bool begin(const Block& block, const Warp& warp, const MicroOp& op, uint32_t mask);
  uint32_t instance_of(uint32_t trip) const;
  Execution& next_execution(const Warp& warp, const MicroOp& op);
  void finish_pending(const Warp& warp, bool finished);
  void update_registers(const ValueSite& site, const Warp& warp, uint32_t mask);
  void tell_listener(const Execution& execution, const Warp& warp, bool finished);
  void count(const Execution& execution);
  void count_instance(const Execution& execution);
  void drain();
  void merge_instance(uint64_t block, uint32_t number, size_t index, const Instance& instance);
  bool is_sampled(size_t index) const; // whether some of the instance's trips are not looked at
  void fill_rows(uint32_t number);

  ValueStudyOptions options_;
  uint64_t batch_ = 1;            // blocks
  uint32_t warps_ = 0;            // of a block
  uint64_t blocks_ = 0;           // looked at
  uint64_t group_ = 0;            // blocks per group; 0: not yet known
  std::vector<WarpShape> shapes_; // by warp
  std::vector<ValueSite> sites_;  // by number
  std::vector<Source> sources_;   // of all sites: the sources, then the written registers
  std::vector<bool> uncacheable_; // by cached register
  uint32_t cached_registers_ = 0; // of the entry
  uint32_t eligible_sites_ = 0;
  std::array<std::vector<Stratum>, 2> strata_;                        // by number
  std::vector<ValueRow> rows_;                                        // the result, filled in when the launch is over
  std::array<std::vector<Tally>, 2> tallies_;                         // by number
  std::vector<std::vector<GridInstance>> grid_;                       // by eligible site and trip
  std::unordered_map<uint64_t, std::unique_ptr<BlockState>> running_; // running blocks
  std::vector<std::unique_ptr<BlockState>> spare_;
  BlockState* current_ = nullptr;
  uint64_t current_block_ = UINT64_MAX;
  uint32_t current_instance_ = none; // the execution's number by instance_of(); none: it is not sampled
  // The instruction and its active lanes if the execution is not sampled.
  const ValueSite* passed_by_site_ = nullptr;
  uint32_t passed_by_mask_ = 0;
  bool is_pending_ = false; // the next place of the queue holds the current execution
  std::vector<LaneFacts> written_;
  std::vector<Execution> queue_; // a ring: delays counting until prefetched table entries are in the cache
  size_t queue_next_ = 0;
  uint64_t instances_ = 0, grid_instances_ = 0, forgotten_ = 0;
  uint64_t looked_at_ = 0, passed_by_ = 0;
  bool finished_ = false;
};

} // namespace ptxrewrite::emulator
