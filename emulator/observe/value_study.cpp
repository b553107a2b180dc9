#include "emulator/observe/value_study.h"

#include "emulator/core/decode.h"
#include "emulator/observe/repeat_table.h"
#include "support/mix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr size_t queue_length = 32;
constexpr uint64_t least_sampled_blocks = 2;           // smaller launches are studied as a whole
constexpr double adaptive_share = 6;                   // one in this many executions is looked at
constexpr uint64_t instance_limit = uint64_t(1) << 24; // of a block and of the grid: 16 bytes each

uint64_t combine(uint64_t state, uint64_t hash) {
  return std::rotl((state ^ hash) * 0x9fb21c651e98df25, 29);
}

WorkCount& add(WorkCount& count, uint64_t warps, uint64_t lanes) {
  count.warps += warps;
  count.lanes += warps * lanes;
  return count;
}

} // namespace

// A source or result of an instruction.
struct ValueStudy::Source {
  enum class Kind : uint8_t { cached, constant, live };
  OperandLanes operand;
  Kind kind = Kind::live;
  uint32_t index = none; // of the cached register
  LaneFacts constant;
};

struct ValueStudy::ValueSite {
  uint32_t first_source = 0, first_written = 0;
  uint16_t source_count = 0, written_count = 0;
  uint32_t eligible = none; // index among the sites whose instances are compared
  bool has_results = false;
  bool complete = false;
  bool memory = false;     // accesses memory
  bool collective = false; // lanes of several splits may execute it together
};

struct ValueStudy::Execution {
  BlockState* state = nullptr; // nullptr: this place of the queue is empty
  const ValueSite* site = nullptr;
  uint64_t hash = 0;          // of instruction, lanes and sources
  uint64_t instance_hash = 0; // also of loaded values and of old values of disabled lanes
  uint32_t number = 0;
  uint32_t mask = 0;
  uint32_t instance = 0; // the trip's number among those that are looked at
  uint8_t warp = 0;
  bool sampled = false;                                      // some trips of its group are not looked at
  bool uniform = false, affine = false, consecutive = false; // all sources
  bool convergent = false;                                   // all lanes of the warp are in this split
  bool whole = false;                                        // the guard is true in all lanes
  bool passed = false;                                       // the guard is false in all lanes
  bool affine_results = false, consecutive_results = false;
};

// Executions counted by combinations of properties; fill_rows() sums them up to rows.
struct ValueStudy::Tally {
  static constexpr unsigned uniform = 1, repeated = 2, undiverged = 4;
  std::array<WorkCount, 8> counts;

  WorkCount of(unsigned all_of) const {
    WorkCount sum;
    for (unsigned i = 0; i < counts.size(); ++i)
      if ((i & all_of) == all_of) sum += counts[i];
    return sum;
  }
};

// The common properties of the warps of a block that executed an instance.
struct ValueStudy::Instance {
  uint64_t hash = 0;
  uint16_t warps = 0;
  uint16_t affine = 0, consecutive = 0; // executions of DAC-IDEAL's affine unit
  RedundancyKind kind{};
  uint8_t lanes = 0;
  bool differs = false;
};

struct ValueStudy::GridInstance {
  uint64_t hash = 0;
  uint32_t blocks = 0;                                    // that executed it
  uint32_t affine_batch = none, consecutive_batch = none; // the last batches with an affine or a consecutive execution
  uint8_t lanes = 0;
  bool differs = false;
};

struct ValueStudy::BlockState {
  uint64_t ordinal = 0; // its number among the blocks that are looked at
  // By warp and cached register: facts of the lanes in `facts_of`, the last split of the warp that was looked at.
  std::vector<LaneFacts> facts;
  std::vector<uint32_t> facts_of; // by warp
  RepeatTable done;
  std::vector<uint32_t> occurrences;            // by warp and site
  std::vector<std::vector<Instance>> instances; // by eligible site and trip
};

ValueStudy::ValueStudy(ValueStudyOptions options) : options_(std::move(options)), queue_(queue_length) {}
ValueStudy::~ValueStudy() = default;
ValueStudy::ValueStudy(ValueStudy&&) noexcept = default;

uint64_t sampled_blocks(uint64_t blocks, uint64_t sample) {
  const uint64_t groups = (blocks + sample - 1) / sample;
  return groups < least_sampled_blocks ? blocks : groups;
}

ValueStudyOptions adaptive_sample() {
  ValueStudyOptions options;
  options.sample = ValueStudyOptions::by_first_block;
  options.trip_sample = 8;
  return options;
}

uint64_t adaptive_group(double share, uint64_t blocks) {
  const auto group = static_cast<uint64_t>(std::ceil(share * adaptive_share));
  return std::clamp<uint64_t>(group, 1, std::max<uint64_t>((blocks + 1) / least_sampled_blocks, 1));
}

void ValueStudy::choose_group(uint64_t group, const Block& block) {
  const uint64_t all = block.launch->request->grid.count();
  blocks_ = sampled_blocks(all, group);
  group_ = blocks_ == all ? 1 : group;
}

bool ValueStudy::wants(const Block& block) {
  const bool is_first = sites_.empty();
  if (is_first) prepare(block);
  if (is_first && group_ == 0 && block.linear == 0 && block.launch->request->grid.count() > 1) return true;
  if (group_ == 0) {
    const double share = looked_at_ ? static_cast<double>(looked_at_) / static_cast<double>(executions()) : 1.0;
    choose_group(adaptive_group(share, block.launch->request->grid.count()), block);
  }
  if (group_ == 1) return true;
  const uint64_t group = block.linear / group_;
  const uint64_t members = std::min(group_, block.launch->request->grid.count() - group * group_);
  // The first block of the launch may have been studied already.
  return block.linear == group * group_ + (group ? mixed_bits(group + 1) % members : 0);
}

// --- static properties of each instruction ---

void ValueStudy::prepare(const Block& block) {
  const LaunchState& launch = *block.launch;
  warps_ = launch.warps;
  if (options_.sample != ValueStudyOptions::by_first_block) choose_group(options_.sample, block);
  if (options_.resident_blocks) batch_ = std::max<uint64_t>(options_.resident_blocks(launch.shared_bytes), 1);
  for (uint32_t warp = 0; warp < warps_; ++warp)
    shapes_.push_back(WarpShape::of(warp, launch.request->block.x, launch.request->block.y));
  sites_.resize(block.image->instruction_count);
  for (std::vector<Stratum>& stratum : strata_)
    stratum.resize(block.image->instruction_count);
  for (std::vector<Tally>& tallies : tallies_)
    tallies.resize(block.image->instruction_count);
  for (const auto& function : block.image->functions)
    prepare_function(*function, function == block.image->functions.front(), block);
  grid_.resize(eligible_sites_);
  uncacheable_.resize(cached_registers_);
  if (options_.listener) options_.listener->prepare(block);
}

void ValueStudy::prepare_function(const DecodedFunction& decoded, bool is_entry, const Block& block) {
  const ir::Function& function = *decoded.source;
  // Registers whose facts are cached: only those of the entry, because other functions have several activations.
  std::map<uint32_t, uint32_t> cached;
  auto cached_register = [&](uint32_t offset) {
    return cached.try_emplace(offset, cached_registers_ + cached.size()).first->second;
  };
  if (is_entry && !function.is_ssa)
    for (uint32_t value = 0; value < decoded.registers.size(); ++value)
      if (decoded.registers[value].valid() && function.values[ir::ValueId(value)].vector_width == 1)
        cached_register(decoded.registers[value].offset());
  auto source_of = [&](const OperandLanes& operand) {
    Source source{.operand = operand, .constant = {}};
    const auto known = cached.find(operand.lanes.offset());
    if (operand.lanes.base() == LaneBase::registers && known != cached.end()) {
      source.kind = Source::Kind::cached;
      source.index = known->second;
    } else if (operand.lanes.base() == LaneBase::constants) {
      source.kind = Source::Kind::constant;
      source.constant = lane_facts(block.image->constants.data() + operand.lanes.offset(), operand.bits, shapes_[0]);
    }
    return source;
  };
  for (ir::BlockId ir_block : function.layout)
    for (ir::InstructionId id : function.instructions_in(ir_block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      ValueSite& site = sites_[decoded.first_instruction + id.index()];
      const InstructionLanes& lanes = decoded.lanes_of[id.index()];
      const ir::Effects& effects = function.form_of(id).effects;
      site.first_source = static_cast<uint32_t>(sources_.size());
      site.source_count = static_cast<uint16_t>(lanes.sources.size());
      for (const OperandLanes& operand : lanes.sources)
        sources_.push_back(source_of(operand));
      site.first_written = static_cast<uint32_t>(sources_.size());
      for (const ir::Operand& operand : function.operands_of(id)) {
        if (!operand.is(ir::OperandKind::value) || !operand.is_definition()) continue;
        site.has_results = true;
        const ir::Value& value = function.values[operand.as_value()];
        const LaneRef place = decoded.registers[operand.id];
        if (!place.valid()) continue;
        sources_.push_back(source_of({place, static_cast<uint8_t>(lane_bits(value.type))}));
      }
      site.written_count = static_cast<uint16_t>(sources_.size() - site.first_written);
      site.complete = lanes.complete && !effects.reads_carry;
      site.memory = effects.reads_memory || effects.writes_memory || effects.atomic;
      site.collective = effects.convergent;
      const bool eligible = site.has_results && site.complete && !effects.writes_memory && !effects.atomic &&
                            !effects.barrier && !effects.transfers_control() && !effects.volatile_result &&
                            !effects.writes_carry && site.written_count > 0;
      if (eligible) site.eligible = eligible_sites_++;
      ValueRow& row = strata_[0][decoded.first_instruction + id.index()].row;
      row.function = &function;
      row.instruction = id;
      row.has_results = site.has_results;
    }
  cached_registers_ += static_cast<uint32_t>(cached.size());
}

ValueStudy::BlockState& ValueStudy::state_of(const Block& block) {
  if (block.linear == current_block_) return *current_;
  std::unique_ptr<BlockState>& state = running_[block.linear];
  if (!state) {
    if (spare_.empty()) spare_.push_back(std::make_unique<BlockState>());
    state = std::move(spare_.back());
    spare_.pop_back();
    state->ordinal = group_ ? block.linear / group_ : 0;
    state->facts.assign(size_t(warps_) * cached_registers_, {});
    state->facts_of.assign(warps_, 0);
    state->occurrences.assign(warps_ * sites_.size(), 0);
    state->instances.resize(eligible_sites_);
  }
  current_ = state.get();
  current_block_ = block.linear;
  return *current_;
}

// --- properties of values ---

inline LaneFacts ValueStudy::facts_of(const Source& source, const Warp& warp, uint32_t mask) {
  if (source.kind == Source::Kind::constant) return source.constant;
  auto look = [&](uint32_t at) {
    const std::byte* lanes = warp.lanes<std::byte>(source.operand.lanes);
    const WarpShape& shape = shapes_[warp.index];
    return at == full_mask ? lane_facts(lanes, source.operand.bits, shape)
                           : lane_facts_in(lanes, source.operand.bits, shape, at);
  };
  if (source.kind != Source::Kind::cached || uncacheable_[source.index] || warp.activation != &warp.root)
    return look(mask);
  LaneFacts& facts = current_->facts[size_t(warp.index) * cached_registers_ + source.index];
  const uint32_t known_lanes = current_->facts_of[warp.index];
  if (!facts.known()) facts = look(known_lanes);
  return mask == known_lanes || facts.uniform() ? facts : look(mask);
}

void ValueStudy::look_at_sources(Execution& execution, const Warp& warp) {
  const ValueSite& site = *execution.site;
  uint64_t hash = mixed_bits(uint64_t(execution.number) << 32 | execution.mask);
  bool uniform = true, affine = true, consecutive = true;
  for (uint32_t i = 0; i < site.source_count; ++i) {
    const LaneFacts facts = facts_of(sources_[site.first_source + i], warp, execution.mask);
    uniform = uniform && facts.uniform();
    affine = affine && facts.affine();
    consecutive = consecutive && facts.consecutive();
    hash = combine(hash, facts.hash());
  }
  execution.uniform = uniform;
  execution.affine = affine;
  execution.consecutive = consecutive;
  execution.hash = execution.instance_hash = mixed_bits(hash);
  if (execution.whole || site.eligible == none) return;
  // Lanes that the guard disables keep their old values, which are part of the result.
  for (uint32_t i = 0; i < site.written_count; ++i)
    execution.instance_hash =
        combine(execution.instance_hash, facts_of(sources_[site.first_written + i], warp, warp.active).hash());
}

// The trip's number among those that are looked at, or `none`. One trip of each group is looked at, selected by a hash
// of the group's number: in a loop it is the same trip for all instructions.
inline uint32_t ValueStudy::instance_of(uint32_t trip) const {
  const uint32_t whole = options_.whole_trips;
  if (trip < whole || options_.trip_sample == 1) return trip;
  const auto shift = static_cast<unsigned>(std::countr_zero(options_.trip_sample));
  const uint32_t group = (trip - whole) >> shift;
  // Selects the first trip of the first group, so that a loop of a few more than whole_trips trips has a sampled one.
  const uint64_t chosen = uint64_t(group) * 0x9e3779b97f4a7c15 >> (64 - shift);
  return ((trip - whole) & (options_.trip_sample - 1)) == chosen ? whole + group : none;
}

// Starts an execution by the lanes of `mask`. Returns whether it is looked at.
inline bool ValueStudy::begin(const Block& block, const Warp& warp, const MicroOp& op, uint32_t mask) {
  if (is_pending_) finish_pending(warp, false);
  BlockState& state = block.linear == current_block_ ? *current_ : state_of(block);
  current_instance_ = instance_of(state.occurrences[warp.index * sites_.size() + op.instruction]++);
  if (current_instance_ != none) {
    ++looked_at_;
    return true;
  }
  ++passed_by_;
  Stratum& stratum = strata_[1][op.instruction];
  stratum.passed_by_guarded_off += mask == 0;
  stratum.passed_by += {mask != 0, static_cast<uint64_t>(std::popcount(mask))};
  return false;
}

// Returns the next place in the queue; the execution that it held is counted first.
inline ValueStudy::Execution& ValueStudy::next_execution(const Warp& warp, const MicroOp& op) {
  BlockState& state = *current_;
  if (state.facts_of[warp.index] != warp.active) {
    std::fill_n(state.facts.begin() + static_cast<ptrdiff_t>(size_t(warp.index) * cached_registers_), cached_registers_,
                LaneFacts());
    state.facts_of[warp.index] = warp.active;
  }
  Execution& execution = queue_[queue_next_];
  if (execution.state) count(execution);
  execution = {};
  execution.state = &state;
  execution.site = &sites_[op.instruction];
  execution.number = op.instruction;
  execution.instance = current_instance_;
  execution.sampled = current_instance_ >= options_.whole_trips && options_.trip_sample > 1;
  execution.warp = static_cast<uint8_t>(warp.index);
  execution.convergent = warp.active == warp.members;
  return execution;
}

void ValueStudy::before(Block& block, Warp& warp, const MicroOp& op) {
  if (!begin(block, warp, op, warp.mask)) {
    passed_by_site_ = &sites_[op.instruction];
    passed_by_mask_ = warp.mask;
    is_pending_ = true;
    return;
  }
  Execution& execution = next_execution(warp, op);
  execution.mask = warp.mask;
  execution.whole = warp.mask == warp.active;
  if (execution.site->complete) {
    look_at_sources(execution, warp);
    execution.state->done.prefetch(execution.hash);
  }
  is_pending_ = true;
}

void ValueStudy::after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) {
  (void)block, (void)op, (void)mask;
  finish_pending(warp, true);
}

// Ends the execution that `before` started: its results are available, or (not finished) cannot be observed.
void ValueStudy::finish_pending(const Warp& warp, bool finished) {
  is_pending_ = false;
  const bool looked_at = current_instance_ != none;
  Execution& execution = queue_[queue_next_];
  const ValueSite& site = looked_at ? *execution.site : *passed_by_site_;
  if (!finished) {
    // The results of calls and of waiting instructions are written later.
    for (uint32_t i = 0; i < site.written_count; ++i)
      if (const Source& written = sources_[site.first_written + i]; written.kind == Source::Kind::cached)
        uncacheable_[written.index] = true;
  }
  if (!looked_at) {
    if (finished && (site.written_count > 0 || site.collective)) update_registers(site, warp, passed_by_mask_);
    return;
  }
  queue_next_ = (queue_next_ + 1) % queue_length;
  if (!finished) {
    if (options_.listener) tell_listener(execution, warp, false);
    return;
  }
  if (site.written_count == 0 && !site.collective) {
    if (options_.listener) tell_listener(execution, warp, true);
    return;
  }
  update_registers(site, warp, execution.mask);
  if (options_.listener) tell_listener(execution, warp, true);
  if (site.eligible == none || !execution.convergent) return;
  if (site.memory) {
    for (uint32_t i = 0; i < site.written_count; ++i)
      execution.instance_hash =
          combine(execution.instance_hash, facts_of(sources_[site.first_written + i], warp, execution.mask).hash());
  } else if (execution.affine && execution.whole) {
    bool affine = true, consecutive = execution.consecutive;
    for (uint32_t i = 0; i < site.written_count && affine; ++i) {
      const Source& written = sources_[site.first_written + i];
      if (written.operand.bits == 1) continue;
      const LaneFacts facts = facts_of(written, warp, execution.mask);
      affine = facts.affine();
      consecutive = consecutive && facts.consecutive();
    }
    execution.affine_results = affine;
    execution.consecutive_results = affine && consecutive;
  }
}

void ValueStudy::tell_listener(const Execution& execution, const Warp& warp, bool finished) {
  const ValueSite& site = *execution.site;
  written_.clear();
  for (uint32_t i = 0; i < site.written_count && finished; ++i)
    written_.push_back(facts_of(sources_[site.first_written + i], warp, execution.mask));
  options_.listener->executed(
      {execution.state->ordinal, execution.warp, execution.number, static_cast<uint32_t>(std::popcount(execution.mask)),
       execution.sampled ? options_.trip_sample : 1, execution.convergent && execution.whole, finished, written_});
}

void ValueStudy::update_registers(const ValueSite& site, const Warp& warp, uint32_t mask) {
  if (warp.activation != &warp.root) return;
  LaneFacts* facts = current_->facts.data() + size_t(warp.index) * cached_registers_;
  // Lanes of other splits may have executed the collective instruction with it, and written other registers.
  if (site.collective && (mask != full_mask || !warp.gathered.empty())) {
    std::fill_n(facts, cached_registers_, LaneFacts());
    return;
  }
  // The facts of written registers are computed when they are next read.
  for (uint32_t i = 0; i < site.written_count; ++i)
    if (const Source& written = sources_[site.first_written + i]; written.kind == Source::Kind::cached)
      facts[written.index] = LaneFacts();
}

void ValueStudy::passed(Block& block, Warp& warp, const MicroOp& op) {
  if (!begin(block, warp, op, 0)) return;
  Execution& execution = next_execution(warp, op);
  ++strata_[execution.sampled][op.instruction].row.guarded_off;
  execution.uniform = execution.affine = execution.passed = true;
  execution.hash = execution.instance_hash = mixed_bits(uint64_t(op.instruction) << 32);
  queue_next_ = (queue_next_ + 1) % queue_length;
}

// --- counting ---

void ValueStudy::drain() {
  for (size_t i = 0; i < queue_length; ++i) {
    Execution& place = queue_[(queue_next_ + i) % queue_length];
    if (place.state) count(place);
    place.state = nullptr;
  }
}

void ValueStudy::count(const Execution& execution) {
  const ValueSite& site = *execution.site;
  if (!execution.passed) {
    unsigned which = 0;
    if (site.complete)
      which = (execution.uniform ? Tally::uniform : 0) |
              (execution.state->done.repeats(execution.hash, execution.warp) ? Tally::repeated : 0) |
              (execution.convergent && execution.whole ? Tally::undiverged : 0);
    WorkCount& count = tallies_[execution.sampled][execution.number].counts[which];
    ++count.warps;
    count.lanes += static_cast<uint64_t>(std::popcount(execution.mask));
  }
  if (site.eligible != none) count_instance(execution);
}

void ValueStudy::count_instance(const Execution& execution) {
  BlockState& state = *execution.state;
  const uint32_t site = execution.site->eligible;
  std::vector<Instance>& instances = state.instances[site];
  if (execution.instance >= instances.size()) {
    if (execution.instance > instances.size() || instances_ >= instance_limit) {
      ++forgotten_;
      return;
    }
    ++instances_;
    const bool uniform = execution.uniform && (execution.whole || execution.passed);
    instances.push_back({.hash = execution.instance_hash,
                         .kind = uniform                               ? RedundancyKind::uniform
                                 : execution.affine && execution.whole ? RedundancyKind::affine
                                                                       : RedundancyKind::unstructured,
                         .lanes = static_cast<uint8_t>(std::popcount(execution.mask))});
  }
  Instance& instance = instances[execution.instance];
  ++instance.warps;
  instance.affine = static_cast<uint16_t>(instance.affine + execution.affine_results);
  instance.consecutive = static_cast<uint16_t>(instance.consecutive + execution.consecutive_results);
  instance.differs = instance.differs || !execution.convergent || instance.hash != execution.instance_hash;
}

void ValueStudy::block_ended(Block& block) {
  if (is_pending_) {
    Warp nobody;
    finish_pending(nobody, false);
  }
  drain();
  const auto found = running_.find(block.linear);
  if (found == running_.end()) return;
  BlockState& state = *found->second;
  for (uint32_t number = 0; number < sites_.size(); ++number) {
    uint64_t& trips = strata_[0][number].row.trips;
    for (uint32_t warp = 0; warp < warps_; ++warp)
      trips = std::max<uint64_t>(trips, state.occurrences[warp * sites_.size() + number]);
    const uint32_t site = sites_[number].eligible;
    if (site == none) continue;
    std::vector<Instance>& instances = state.instances[site];
    for (size_t index = 0; index < instances.size(); ++index)
      merge_instance(state.ordinal, number, index, instances[index]);
    instances_ -= instances.size();
    instances.clear();
  }
  state.done.clear();
  spare_.push_back(std::move(found->second));
  running_.erase(found);
  current_ = nullptr;
  current_block_ = UINT64_MAX;
}

bool ValueStudy::is_sampled(size_t index) const {
  return index >= options_.whole_trips && options_.trip_sample > 1;
}

// Merges an instance of a finished block into the rows of the block study and into the grid's instances.
void ValueStudy::merge_instance(uint64_t block, uint32_t number, size_t index, const Instance& instance) {
  ValueRow& row = strata_[is_sampled(index)][number].row;
  const bool redundant = !instance.differs && instance.warps == warps_ && warps_ > 1;
  if (redundant) {
    Redundant& sum = row.block[static_cast<size_t>(instance.kind)];
    add(sum.all, instance.warps, instance.lanes);
    add(sum.once, 1, instance.lanes);
  }
  std::vector<GridInstance>& grid = grid_[sites_[number].eligible];
  if (index >= grid.size()) {
    if (index > grid.size() || grid_instances_ >= instance_limit) return;
    ++grid_instances_;
    grid.push_back({.hash = instance.hash, .lanes = instance.lanes});
  }
  GridInstance& whole = grid[index];
  ++whole.blocks;
  whole.differs = whole.differs || instance.differs || instance.warps != warps_ || whole.hash != instance.hash;
  const auto batch = static_cast<uint32_t>(block / batch_);
  auto on_affine_unit = [&](uint16_t executions, Redundant& sum, uint32_t& last_batch) {
    if (executions == 0) return;
    add(sum.all, executions, instance.lanes);
    if (std::exchange(last_batch, batch) != batch) add(sum.once, 1, 1);
  };
  on_affine_unit(instance.affine, row.affine, whole.affine_batch);
  on_affine_unit(instance.consecutive, row.consecutive, whole.consecutive_batch);
}

Scale ValueStudy::Stratum::scale() const {
  const WorkCount looked_at{row.executed.warps + row.guarded_off, row.executed.lanes};
  return {looked_at, {looked_at.warps + passed_by.warps + passed_by_guarded_off, looked_at.lanes + passed_by.lanes}};
}

// Writes the tallies of an instruction to the rows of both strata.
void ValueStudy::fill_rows(uint32_t number) {
  for (unsigned sampled = 0; sampled < strata_.size(); ++sampled) {
    ValueRow& row = strata_[sampled][number].row;
    const Tally& tally = tallies_[sampled][number];
    row.executed = tally.of(0);
    row.uniform = tally.of(Tally::uniform);
    row.repeated = tally.of(Tally::repeated);
    if (sites_[number].eligible == none) continue;
    row.warp_redundant = tally.of(Tally::uniform | Tally::undiverged);
    if (!sites_[number].memory) row.reused = tally.of(Tally::uniform | Tally::undiverged | Tally::repeated);
  }
  if (sites_[number].eligible == none) return;
  const std::vector<GridInstance>& instances = grid_[sites_[number].eligible];
  for (size_t index = 0; index < instances.size(); ++index) {
    const GridInstance& instance = instances[index];
    if (instance.differs || instance.blocks != blocks_ || blocks_ * warps_ < 2) continue;
    Redundant& grid = strata_[is_sampled(index)][number].row.grid;
    add(grid.all, blocks_ * warps_, instance.lanes);
    add(grid.once, 1, instance.lanes);
  }
}

const std::vector<ValueRow>& ValueStudy::rows() {
  if (std::exchange(finished_, true)) return rows_;
  rows_.resize(sites_.size());
  for (uint32_t number = 0; number < sites_.size(); ++number) {
    fill_rows(number);
    ValueRow& row = rows_[number] = strata_[0][number].row;
    const Stratum& sampled = strata_[1][number];
    const Scale scale = sampled.scale();
    row.executed += sampled.row.executed;
    row.executed += sampled.passed_by;
    row.guarded_off += sampled.row.guarded_off + sampled.passed_by_guarded_off;
    row.uniform += scale(sampled.row.uniform);
    row.repeated += scale(sampled.row.repeated);
    row.warp_redundant += scale(sampled.row.warp_redundant);
    for (size_t kind = 0; kind < redundancy_kinds; ++kind)
      row.block[kind] += scale(sampled.row.block[kind]);
    row.grid += scale(sampled.row.grid);
    row.reused += scale(sampled.row.reused);
    row.consecutive += scale(sampled.row.consecutive);
    row.affine += scale(sampled.row.affine);
  }
  return rows_;
}

WorkCount ValueStudy::of_all_trips(uint32_t number, const SampledCount& count) const {
  if (number >= sites_.size()) return count[0];
  WorkCount all = count[0];
  return all += strata_[1][number].scale()(count[1]);
}

} // namespace ptxrewrite::emulator
