// The redundancy of a launch by the values that its instructions take, for all limit studies at once: each value is
// looked at when it is written, and what it is like is remembered until it is read.
//
//   ValueStudy study({});
//   request.observer = &study;
//   program->launch(request);
//   study.rows(): by static instruction, how much of its executions each limit study removes
//
// The rules:
//  * WP: a warp's active lanes have the same sources (r2d2-isca23 §2.2).
//  * TB: another warp of the block has executed the instruction before, for the same lanes with the same sources (the
//    same place). Sources are registers, constants, special registers and addresses; what memory holds is none.
//  * An instance is the n-th time that a warp comes to an instruction. It is redundant in the block when all warps of
//    the block take the same vectors, and in the grid when all warps of the grid do (darsie-asplos20 Fig. 1): then once
//    per block, or grid, would do. Here a load has read the same, too; the old value counts where a guard leaves lanes
//    out, and the guard as well.
//  * Kinds of instances (darsie-asplos20 §2): all sources uniform, else all affine, else unstructured.
//  * UV: uniform sources, no access to memory, and another warp of the block has done the same before (§5 there).
//  * DAC-IDEAL: sources and results are a base and a stride from lane to lane (§2, §5 there), no access to memory: once
//    per batch of blocks that are on an SM at the same time. Of several dimensions: affine in the thread index, as DAC
//    itself has it (dac-isca17 §4.4).
//  * Where some lanes of a warp have gone another way or have ended, nothing is redundant but by WP and TB. Neither is
//    what has no results (stores, branches, barriers), atomics, and what is volatile; WP and TB leave it to their user.
// Hashes of 58 bits stand for vectors.
//
// Not all values need be looked at. Of a launch with many blocks one block of each group of neighbours will do; of a
// loop with many trips one trip of each group, for all instructions in it and all warps the same ones. Which ones is
// decided by hashes of the groups' numbers, so it is the same every time. What is found is scaled to all trips of those
// blocks, by each instruction's executions; the study's user scales it to all blocks.
#pragma once

#include "emulator/core/observer.h"
#include "emulator/observe/lane_facts.h"

#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

enum class RedundancyKind : uint8_t { uniform, affine, unstructured };
inline constexpr size_t redundancy_kinds = 3;

// Executions by warps, and their active lanes.
struct WorkCount {
  uint64_t warps = 0, lanes = 0;
  WorkCount& operator+=(const WorkCount& other) {
    warps += other.warps;
    lanes += other.lanes;
    return *this;
  }
  bool operator==(const WorkCount&) const = default;
};
// In trips that are all looked at, and in those of which some are.
using SampledCount = std::array<WorkCount, 2>;

// What a study classifies as redundant, and how much of that has to be executed all the same.
struct Redundant {
  WorkCount all, once;
  Redundant& operator+=(const Redundant& other) {
    all += other.all;
    once += other.once;
    return *this;
  }
};

// From the executions that were looked at to all, by how many they are.
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
        static_cast<double>(count) * static_cast<double>(all) / static_cast<double>(looked_at) + 0.5);
  }
  WorkCount looked_at_, all_;
};

struct ValueRow {
  const ir::Function* function = nullptr; // null: no instruction has this number
  ir::InstructionId instruction;
  bool has_results = false;
  WorkCount executed;       // with at least one active lane
  uint64_t guarded_off = 0; // by warps in which no lane's guard was true
  uint64_t trips = 0;       // the most executions by one warp, those guarded off included
  WorkCount uniform;        // WP
  WorkCount repeated;       // TB
  WorkCount warp_redundant; // WP, in undiverged warps, of eligible instructions
  std::array<Redundant, redundancy_kinds> block;
  Redundant grid;
  WorkCount reused;              // UV
  Redundant consecutive, affine; // DAC-IDEAL, of several dimensions; a lane of `once` is one of the affine unit
};

// What a warp has done, for studies that know registers.
struct StudiedExecution {
  uint64_t block = 0; // its number among those that are looked at
  uint32_t warp = 0;  // in the block
  uint32_t number = 0;
  uint32_t lanes = 0;      // that executed it
  uint32_t stands_for = 1; // executions: more than one where not all trips are looked at
  bool all_lanes = false;  // are those all that the warp has?
  bool finished = false;   // false: what it writes, it writes later, or elsewhere
  // By definition in the order of operands, in the lanes that executed it. Empty unless finished.
  std::span<const LaneFacts> written;
};
class ExecutionListener {
public:
  virtual ~ExecutionListener() = default;
  virtual void prepare(const Block& block) = 0; // before the first execution: any block of the launch
  virtual void executed(const StudiedExecution& execution) = 0;
};

struct ValueStudyOptions {
  // Blocks on an SM at the same time, a batch of DAC-IDEAL: of the shared memory of a block. Empty: one.
  std::function<uint64_t(uint64_t)> resident_blocks;
  ExecutionListener* listener = nullptr;
  // Look at one block of so many, where the launch has enough of them: neighbours share batches and patterns of the
  // grid, so it is one of each group, by chance. Counts are then those of the blocks looked at. `by_first_block`: how
  // much the study looks at in the first block decides.
  static constexpr uint64_t by_first_block = 0;
  uint64_t sample = 1;
  // Of the trips of a warp through an instruction behind the first `whole_trips`, look at one of so many: a power of
  // two.
  uint32_t trip_sample = 1, whole_trips = 16;
};

// Of how many groups of blocks one block each is looked at.
uint64_t sampled_blocks(uint64_t blocks, uint64_t sample);

// For a study that costs less than five times the plain run: looks at one trip in eight of loops of some length, and at
// as many blocks (two at least) as make it a sixth of all executions. All of that goes by counts, never by time.
ValueStudyOptions adaptive_sample();
// One block of how many, if the study looks at this share of the executions in a block.
uint64_t adaptive_group(double share, uint64_t blocks);

class ValueStudy final : public Observer {
public:
  // Of one launch.
  explicit ValueStudy(ValueStudyOptions options);
  ~ValueStudy() override;
  ValueStudy(ValueStudy&&) noexcept;

  bool wants(const Block& block) override;
  void before(Block& block, Warp& warp, const MicroOp& op) override;
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) override;
  void passed(Block& block, Warp& warp, const MicroOp& op) override;
  void block_ended(Block& block) override;

  // By the instruction's number in the kernel, when the launch is over.
  const std::vector<ValueRow>& rows();
  // What a listener has counted of instruction `number`, scaled to all trips as the rows are. Behind `rows`.
  WorkCount of_all_trips(uint32_t number, const SampledCount& count) const;
  // Executions by warps in the blocks that were looked at, those guarded off included, and those that were looked at.
  uint64_t executions() const { return looked_at_ + passed_by_; }
  uint64_t executions_looked_at() const { return looked_at_; }
  uint64_t blocks_looked_at() const { return blocks_; }
  // Instances that were not compared, because there are too many to remember; they count as not redundant.
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

  // Of executions in trips that are all looked at, or of which some are.
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
  bool is_sampled(size_t index) const; // of an instance: are there trips like it that are not looked at?
  void fill_rows(uint32_t number);

  ValueStudyOptions options_;
  uint64_t batch_ = 1;            // blocks
  uint32_t warps_ = 0;            // of a block
  uint64_t blocks_ = 0;           // that are looked at
  uint64_t group_ = 0;            // blocks for each of those; 0: not yet known
  std::vector<WarpShape> shapes_; // by warp
  std::vector<ValueSite> sites_;  // by number
  std::vector<Source> sources_;   // of all sites: what they take, then the registers that they write
  std::vector<bool> uncacheable_; // by cached register
  uint32_t cached_registers_ = 0; // of the entry
  uint32_t eligible_sites_ = 0;
  std::array<std::vector<Stratum>, 2> strata_;                        // by number
  std::vector<ValueRow> rows_;                                        // all together, when the launch is over
  std::array<std::vector<Tally>, 2> tallies_;                         // by number
  std::vector<std::vector<GridInstance>> grid_;                       // by eligible site and trip
  std::unordered_map<uint64_t, std::unique_ptr<BlockState>> running_; // blocks
  std::vector<std::unique_ptr<BlockState>> spare_;
  BlockState* current_ = nullptr;
  uint64_t current_block_ = UINT64_MAX;
  uint32_t current_instance_ = none; // the execution's number by instance_of(); none: it is not sampled
  // The instruction and its active lanes where the execution is not sampled.
  const ValueSite* passed_by_site_ = nullptr;
  uint32_t passed_by_mask_ = 0;
  bool is_pending_ = false; // the queue's next place holds what is being executed
  std::vector<LaneFacts> written_;
  std::vector<Execution> queue_; // a ring: their places in tables are on their way to the cache
  size_t queue_next_ = 0;
  uint64_t instances_ = 0, grid_instances_ = 0, forgotten_ = 0;
  uint64_t looked_at_ = 0, passed_by_ = 0;
  bool finished_ = false;
};

} // namespace ptxrewrite::emulator
