#include "emulator/study/value_study.h"

#include "emulator/decode.h"
#include "emulator/study/repeat_table.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr size_t queue_length = 32;
constexpr uint64_t least_sampled_blocks = 2;           // a launch with fewer is looked at as a whole
constexpr uint64_t instance_limit = uint64_t(1) << 24; // of a block and of the grid: 16 bytes each
constexpr uint32_t none = UINT32_MAX;

uint64_t combine(uint64_t state, uint64_t hash) {
  return std::rotl((state ^ hash) * 0x9fb21c651e98df25, 29);
}

WorkCount& add(WorkCount& count, uint64_t warps, uint64_t lanes) {
  count.warps += warps;
  count.lanes += warps * lanes;
  return count;
}

} // namespace

// A value that an instruction takes or gives.
struct ValueStudy::Source {
  enum class Kind : uint8_t { cached, constant, live };
  OperandLanes operand;
  Kind kind = Kind::live;
  uint32_t index = none; // of the cached register
  LaneFacts constant;
};

struct ValueStudy::Site {
  uint32_t first_source = 0, first_written = 0;
  uint16_t source_count = 0, written_count = 0;
  uint32_t eligible = none; // index among the sites whose instances are compared
  bool has_results = false;
  bool complete = false;
  bool memory = false;     // reads or writes it
  bool collective = false; // lanes of several splits may execute it together
};

struct ValueStudy::Execution {
  BlockState* state = nullptr; // null: there is none in this place of the queue
  const Site* site = nullptr;
  uint64_t hash = 0;          // of instruction, lanes and sources
  uint64_t instance_hash = 0; // also of what a load read, and of old values
  uint32_t number = 0;
  uint32_t mask = 0;
  uint8_t warp = 0;
  bool uniform = false, affine = false; // all sources
  bool convergent = false;              // no lane of the warp is elsewhere
  bool whole = false;                   // no lane's guard is false
  bool passed = false;                  // all are
  bool affine_results = false;
};

// Executions by what they have in common: added up to rows in the end.
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

// What the warps of a block that came to an instance had in common.
struct ValueStudy::Instance {
  uint64_t hash = 0;
  uint16_t warps = 0;
  uint16_t affine = 0; // executions of DAC-IDEAL's affine unit
  RedundancyKind kind{};
  uint8_t lanes = 0;
  bool differs = false;
};

struct ValueStudy::GridInstance {
  uint64_t hash = 0;
  uint32_t blocks = 0;   // that came to it
  uint32_t batch = none; // the last one in which it was affine
  uint8_t lanes = 0;
  bool differs = false;
};

struct ValueStudy::BlockState {
  uint64_t ordinal = 0;         // among the blocks that are looked at
  std::vector<LaneFacts> facts; // by warp and cached register; hash 0: not known
  RepeatTable done;
  std::vector<uint32_t> occurrences;            // by warp and eligible site
  std::vector<std::vector<Instance>> instances; // by eligible site and trip
};

ValueStudy::ValueStudy(ValueStudyOptions options) : options_(std::move(options)), queue_(queue_length) {}
ValueStudy::~ValueStudy() = default;
ValueStudy::ValueStudy(ValueStudy&&) noexcept = default;

uint64_t sampled_blocks(uint64_t blocks, uint64_t sample) {
  const uint64_t groups = (blocks + sample - 1) / sample;
  return groups < least_sampled_blocks ? blocks : groups;
}

bool ValueStudy::wants(const Block& block) {
  if (sites_.empty()) prepare(block);
  if (group_ == 1) return true;
  const uint64_t group = block.linear / group_;
  const uint64_t members = std::min(group_, block.launch->request->grid.count() - group * group_);
  return block.linear == group * group_ + mix_hash(group + 1) % members;
}

// --- what there is to know of each instruction ---

void ValueStudy::prepare(const Block& block) {
  const LaunchState& launch = *block.launch;
  warps_ = launch.warps;
  const uint64_t all_blocks = launch.request->grid.count();
  blocks_ = sampled_blocks(all_blocks, options_.sample);
  group_ = blocks_ == all_blocks ? 1 : options_.sample;
  if (options_.resident_blocks) batch_ = std::max<uint64_t>(options_.resident_blocks(launch.shared_bytes), 1);
  for (uint32_t warp = 0; warp < warps_; ++warp)
    shapes_.push_back(WarpShape::of(warp, launch.request->block.x, launch.request->block.y));
  sites_.resize(block.image->instruction_count);
  rows_.resize(block.image->instruction_count);
  tallies_.resize(block.image->instruction_count);
  for (const auto& function : block.image->functions)
    prepare_function(*function, function == block.image->functions.front(), block);
  grid_.resize(eligible_sites_);
  uncacheable_.resize(cached_registers_);
  if (options_.listener) options_.listener->prepare(block);
}

void ValueStudy::prepare_function(const DecodedFunction& decoded, bool is_entry, const Block& block) {
  const ir::Function& function = *decoded.source;
  // Registers whose values are remembered: of the entry, because other functions have several activations.
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
      Site& site = sites_[decoded.first_instruction + id.index()];
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
      ValueRow& row = rows_[decoded.first_instruction + id.index()];
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
    state->ordinal = block.linear / group_;
    state->facts.assign(size_t(warps_) * cached_registers_, {});
    state->occurrences.assign(size_t(warps_) * eligible_sites_, 0);
    state->instances.resize(eligible_sites_);
  }
  current_ = state.get();
  current_block_ = block.linear;
  return *current_;
}

// --- what values are like ---

inline LaneFacts ValueStudy::facts_of(const Source& source, const Warp& warp, uint32_t mask) {
  if (source.kind == Source::Kind::constant) return source.constant;
  const std::byte* lanes = warp.lanes<std::byte>(source.operand.lanes);
  const WarpShape& shape = shapes_[warp.index];
  const unsigned bits = source.operand.bits;
  if (source.kind != Source::Kind::cached || uncacheable_[source.index] || warp.activation != &warp.root)
    return mask == full_mask ? lane_facts(lanes, bits, shape) : lane_facts_in(lanes, bits, shape, mask);
  LaneFacts& facts = current_->facts[size_t(warp.index) * cached_registers_ + source.index];
  if (!facts.known()) facts = lane_facts(lanes, bits, shape);
  return mask == full_mask || facts.uniform() ? facts : lane_facts_in(lanes, bits, shape, mask);
}

void ValueStudy::look_at_sources(Execution& execution, const Warp& warp) {
  const Site& site = *execution.site;
  uint64_t hash = mix_hash(uint64_t(execution.number) << 32 | execution.mask);
  bool uniform = true, affine = true;
  for (uint32_t i = 0; i < site.source_count; ++i) {
    const LaneFacts facts = facts_of(sources_[site.first_source + i], warp, execution.mask);
    uniform = uniform && facts.uniform();
    affine = affine && facts.affine();
    hash = combine(hash, facts.hash());
  }
  execution.uniform = uniform;
  execution.affine = affine;
  execution.hash = execution.instance_hash = mix_hash(hash);
  if (execution.whole || site.eligible == none) return;
  // Where the guard leaves lanes out, the result holds what they held.
  for (uint32_t i = 0; i < site.written_count; ++i)
    execution.instance_hash =
        combine(execution.instance_hash, facts_of(sources_[site.first_written + i], warp, warp.active).hash());
}

// A place in the queue, which what it held is counted out of.
inline ValueStudy::Execution& ValueStudy::next_execution(const Block& block, const Warp& warp, const MicroOp& op) {
  if (is_pending_) finish_pending(warp, false);
  BlockState& state = block.linear == current_block_ ? *current_ : state_of(block);
  Execution& execution = queue_[queue_next_];
  if (execution.state) count(execution);
  execution = {};
  execution.state = &state;
  execution.site = &sites_[op.instruction];
  execution.number = op.instruction;
  execution.warp = static_cast<uint8_t>(warp.index);
  execution.convergent = warp.active == warp.members;
  return execution;
}

void ValueStudy::before(Block& block, Warp& warp, const MicroOp& op) {
  Execution& execution = next_execution(block, warp, op);
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

// The results of the execution that `before` has seen are there, or never will be where we could see it.
void ValueStudy::finish_pending(const Warp& warp, bool finished) {
  is_pending_ = false;
  Execution& execution = queue_[queue_next_];
  queue_next_ = (queue_next_ + 1) % queue_length;
  const Site& site = *execution.site;
  if (!finished) {
    // A call's results come with its end, a waiting instruction's later on.
    for (uint32_t i = 0; i < site.written_count; ++i)
      if (const Source& written = sources_[site.first_written + i]; written.kind == Source::Kind::cached)
        uncacheable_[written.index] = true;
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
    execution.affine_results = true;
    for (uint32_t i = 0; i < site.written_count; ++i) {
      const Source& written = sources_[site.first_written + i];
      execution.affine_results =
          execution.affine_results && (written.operand.bits == 1 || facts_of(written, warp, execution.mask).affine());
    }
  }
}

void ValueStudy::tell_listener(const Execution& execution, const Warp& warp, bool finished) {
  const Site& site = *execution.site;
  written_.clear();
  for (uint32_t i = 0; i < site.written_count && finished; ++i)
    written_.push_back(facts_of(sources_[site.first_written + i], warp, execution.mask));
  options_.listener->executed({execution.state->ordinal, execution.warp, execution.number,
                               static_cast<uint32_t>(std::popcount(execution.mask)),
                               execution.convergent && execution.whole, finished, written_});
}

void ValueStudy::update_registers(const Site& site, const Warp& warp, uint32_t mask) {
  if (warp.activation != &warp.root) return;
  LaneFacts* facts = current_->facts.data() + size_t(warp.index) * cached_registers_;
  // Lanes of other splits may have executed theirs with it, into registers of their own choice.
  if (site.collective && (mask != full_mask || !warp.gathered.empty())) {
    std::fill_n(facts, cached_registers_, LaneFacts());
    return;
  }
  // Looked at when they are read.
  for (uint32_t i = 0; i < site.written_count; ++i)
    if (const Source& written = sources_[site.first_written + i]; written.kind == Source::Kind::cached)
      facts[written.index] = LaneFacts();
}

void ValueStudy::passed(Block& block, Warp& warp, const MicroOp& op) {
  Execution& execution = next_execution(block, warp, op);
  ++rows_[op.instruction].guarded_off;
  execution.uniform = execution.affine = execution.passed = true;
  execution.hash = execution.instance_hash = mix_hash(uint64_t(op.instruction) << 32);
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
  const Site& site = *execution.site;
  if (!execution.passed) {
    unsigned which = 0;
    if (site.complete)
      which = (execution.uniform ? Tally::uniform : 0) |
              (execution.state->done.repeats(execution.hash, execution.warp) ? Tally::repeated : 0) |
              (execution.convergent && execution.whole ? Tally::undiverged : 0);
    WorkCount& count = tallies_[execution.number].counts[which];
    ++count.warps;
    count.lanes += static_cast<uint64_t>(std::popcount(execution.mask));
  }
  if (site.eligible != none) count_instance(execution);
}

void ValueStudy::count_instance(const Execution& execution) {
  BlockState& state = *execution.state;
  const uint32_t site = execution.site->eligible;
  const uint32_t trip = state.occurrences[size_t(execution.warp) * eligible_sites_ + site]++;
  std::vector<Instance>& instances = state.instances[site];
  if (trip >= instances.size()) {
    if (trip > instances.size() || instances_ >= instance_limit) {
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
  Instance& instance = instances[trip];
  ++instance.warps;
  instance.affine = static_cast<uint16_t>(instance.affine + execution.affine_results);
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
    const uint32_t site = sites_[number].eligible;
    if (site == none) continue;
    std::vector<Instance>& instances = state.instances[site];
    rows_[number].trips = std::max<uint64_t>(rows_[number].trips, instances.size());
    for (size_t trip = 0; trip < instances.size(); ++trip)
      merge_instance(state.ordinal, number, trip, instances[trip]);
    instances_ -= instances.size();
    instances.clear();
  }
  state.done.clear();
  spare_.push_back(std::move(found->second));
  running_.erase(found);
  current_ = nullptr;
  current_block_ = UINT64_MAX;
}

// A block is over: what an instance was in it, and what that makes of it in the grid.
void ValueStudy::merge_instance(uint64_t block, uint32_t number, size_t trip, const Instance& instance) {
  ValueRow& row = rows_[number];
  const bool redundant = !instance.differs && instance.warps == warps_ && warps_ > 1;
  if (redundant) {
    Redundant& sum = row.block[static_cast<size_t>(instance.kind)];
    add(sum.all, instance.warps, instance.lanes);
    add(sum.once, 1, instance.lanes);
  }
  std::vector<GridInstance>& grid = grid_[sites_[number].eligible];
  if (trip >= grid.size()) {
    if (trip > grid.size() || grid_instances_ >= instance_limit) return;
    ++grid_instances_;
    grid.push_back({.hash = instance.hash, .lanes = instance.lanes});
  }
  GridInstance& whole = grid[trip];
  ++whole.blocks;
  whole.differs = whole.differs || instance.differs || instance.warps != warps_ || whole.hash != instance.hash;
  if (instance.affine) {
    add(row.affine.all, instance.affine, instance.lanes);
    const auto batch = static_cast<uint32_t>(block / batch_);
    if (whole.batch != batch) add(row.affine.once, 1, 1);
    whole.batch = batch;
  }
}

const std::vector<ValueRow>& ValueStudy::rows() {
  if (std::exchange(finished_, true)) return rows_;
  for (uint32_t number = 0; number < sites_.size(); ++number) {
    ValueRow& row = rows_[number];
    const Tally& tally = tallies_[number];
    row.executed = tally.of(0);
    row.uniform = tally.of(Tally::uniform);
    row.repeated = tally.of(Tally::repeated);
    if (sites_[number].eligible == none) continue;
    row.warp_redundant = tally.of(Tally::uniform | Tally::undiverged);
    if (!sites_[number].memory) row.reused = tally.of(Tally::uniform | Tally::undiverged | Tally::repeated);
    for (const GridInstance& instance : grid_[sites_[number].eligible]) {
      if (instance.differs || instance.blocks != blocks_ || blocks_ * warps_ < 2) continue;
      add(rows_[number].grid.all, blocks_ * warps_, instance.lanes);
      add(rows_[number].grid.once, 1, instance.lanes);
    }
  }
  return rows_;
}

} // namespace ptxrewrite::emulator
