// Registers, reads and live ranges of machine values: see machine_values.h.
#include "ir/machine/registers/machine_values.h"

#include "ir/machine/registers/live_loops.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::ir {

bool overlap(std::span<const LiveRange> a, std::span<const LiveRange> b) {
  if (a.size() > b.size()) std::swap(a, b);
  // The shorter list looks up its ranges in the longer one.
  auto place = b.begin();
  for (const LiveRange& range : a) {
    place = std::lower_bound(place, b.end(), range.begin,
                             [](const LiveRange& other, uint32_t point) { return other.end <= point; });
    if (place == b.end()) return false;
    if (place->begin < range.end) return true;
  }
  return false;
}

namespace {

bool earlier(const LiveRange& a, const LiveRange& b) {
  return a.begin < b.begin;
}

void merge_lists(std::vector<LiveRange>& ranges, std::span<const LiveRange> more) {
  size_t middle = ranges.size();
  ranges.insert(ranges.end(), more.begin(), more.end());
  std::inplace_merge(ranges.begin(), ranges.begin() + static_cast<ptrdiff_t>(middle), ranges.end(), earlier);
  size_t kept = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin <= ranges[kept].end)
      ranges[kept].end = std::max(ranges[kept].end, ranges[i].end);
    else
      ranges[++kept] = ranges[i];
  }
  ranges.resize(kept + 1);
}

// Changes only the ranges that touch the new one.
void merge_range(std::vector<LiveRange>& ranges, LiveRange range) {
  auto first = std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                                [](const LiveRange& other, uint32_t point) { return other.end < point; });
  auto last = first;
  for (; last != ranges.end() && last->begin <= range.end; ++last)
    range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
  if (first == last) {
    ranges.insert(first, range);
    return;
  }
  *first = range;
  ranges.erase(first + 1, last);
}

} // namespace

void merge_ranges(std::vector<LiveRange>& ranges, std::span<const LiveRange> more) {
  if (more.empty()) return;
  // A short list is inserted: a register of many values receives theirs one after the other.
  constexpr size_t shorter = 16;
  if (more.size() > ranges.size() / shorter) {
    merge_lists(ranges, more);
    return;
  }
  for (const LiveRange& range : more)
    merge_range(ranges, range);
}

MachineValues::MachineValues(const Function& function, const ControlFlow& flow, uint32_t compute_capability,
                             const std::set<ValueId>& apart)
    : MachineValues(function, flow, std::make_shared<const Lowering>(lower_as_written(function, compute_capability)),
                    apart) {}

MachineValues::MachineValues(const Function& function, const ControlFlow& flow,
                             std::shared_ptr<const Lowering> lowering, const std::set<ValueId>& apart)
    : function_(function), lowering_(std::move(lowering)), definition_(function.values.size()),
      units_(function.values.size()), stand_ins_(function.values.size()) {
  assert(function.is_ssa);
  for (ValueId value : function.values.ids())
    self_.push_back(value);
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      for_each_definition(function, id, [&](ValueId value) { definition_[value.index()] = id; });
  number_points();
  decide_units(apart);
  find_stand_ins(apart);
  list_accesses();
  drop_unread();
  find_ranges(flow);
}

bool MachineValues::is_predicate(ValueId value) const {
  return function_.values[value].type == ScalarType::pred;
}

bool MachineValues::is_issued(InstructionId id) const {
  const Instruction& instruction = function_.instructions[id];
  if (instruction.kind == InstructionKind::linear_row) return true;
  return instruction.kind == InstructionKind::real && lowering_->needed(id) && !lowering_->absorbed(id);
}

std::span<const ValueId> MachineValues::stands_for(ValueId value) const {
  if (in_register(value)) return std::span(self_).subspan(value.index(), 1);
  return stand_ins_[value.index()];
}

bool MachineValues::live_at(ValueId value, uint32_t point) const {
  LiveRange here{point, point + 1};
  return overlap(std::span(&here, 1), ranges(value));
}

void MachineValues::number_points() {
  instruction_index_.assign(function_.instructions.size(), UINT32_MAX);
  block_start_.assign(function_.blocks.size(), UINT32_MAX);
  block_end_ = block_start_;
  for (BlockId block : function_.layout) {
    block_start_[block.index()] = index_count_++;
    for (InstructionId id : function_.instructions_in(block))
      instruction_index_[id.index()] = index_count_++;
    block_end_[block.index()] = index_count_++;
  }
}

unsigned MachineValues::width_of(ValueId value) const {
  const Value& row = function_.values[value];
  if (row.type == ScalarType::pred) return 1;
  return std::max(1u, (bit_width(row.type) + 31) / 32) * row.vector_width;
}

// True for a copy that is an alias of its source and needs no code.
bool MachineValues::is_renaming(InstructionId id) const {
  if (function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard) return false;
  const Form& form = function_.form_of(id);
  if (form.opcode != Opcode::mov && form.opcode != Opcode::cvta) return false;
  if (form.opcode == Opcode::cvta && form.space != StateSpace::global && !form.has(Modifier::to)) return false;
  std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() != 2 || !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value)) return false;
  if (operands[1].selector != no_selector || operands[1].has(OperandFlag::negated)) return false;
  return width_of(operands[0].as_value()) == width_of(operands[1].as_value()) &&
         is_predicate(operands[0].as_value()) == is_predicate(operands[1].as_value());
}

// Values that are copied to another register: arguments of edges, and old values of guarded instructions. They cannot
// be absorbed there, so they are in a register whatever their readers do.
std::vector<bool> MachineValues::handed_over() const {
  std::vector<bool> result(function_.values.size());
  for (BlockId block : function_.layout) {
    for (EdgeId edge : function_.successors(block))
      for (ValueId argument : function_.arguments(edge))
        result[argument.index()] = true;
    for (InstructionId id : function_.instructions_in(block))
      for (const Operand& operand : function_.operands_of(id))
        if (operand.is(OperandKind::value) && operand.has(OperandFlag::old_value))
          result[operand.as_value().index()] = true;
  }
  return result;
}

void MachineValues::decide_units(const std::set<ValueId>& apart) {
  const std::vector<bool> handed = handed_over();
  for (BlockId block : function_.layout) {
    for (ValueId parameter : function_.parameters(block))
      if (function_.values[parameter].register_class == RegisterClass::general)
        units_[parameter.index()] = static_cast<uint8_t>(width_of(parameter));
    for (InstructionId id : function_.instructions_in(block)) {
      const Instruction& instruction = function_.instructions[id];
      if (instruction.kind != InstructionKind::real || !lowering_->needed(id)) continue;
      bool absorbed = lowering_->absorbed(id), renaming = is_renaming(id);
      for_each_definition(function_, id, [&](ValueId value) {
        if (function_.values[value].register_class != RegisterClass::general) return;
        bool in_register = is_predicate(value) || lowering_->register_units(value) > 0;
        if (absorbed) in_register = handed[value.index()];
        if (renaming) in_register = false;
        if (apart.count(value)) in_register = true;
        if (in_register) units_[value.index()] = static_cast<uint8_t>(width_of(value));
      });
    }
  }
  // A copy of a value without a register needs one itself if its readers require it.
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (!is_renaming(id) || !lowering_->needed(id)) continue;
      std::span<const Operand> operands = function_.operands_of(id);
      ValueId copy = operands[0].as_value(), original = operands[1].as_value();
      if (is_predicate(copy) || in_register(copy) || in_register(original)) continue;
      InstructionId source = definition_[original.index()];
      if (!source || is_renaming(source) || lowering_->absorbed(source)) continue;
      units_[copy.index()] = static_cast<uint8_t>(lowering_->register_units(copy));
    }
}

// In dominance order, so that the registers behind a value's operands are known before the value.
void MachineValues::find_stand_ins(const std::set<ValueId>& apart) {
  ControlFlow flow(function_);
  for (BlockId block : flow.reverse_postorder())
    for (InstructionId id : function_.instructions_in(block)) {
      const Instruction& instruction = function_.instructions[id];
      if (instruction.kind != InstructionKind::real || !lowering_->needed(id)) continue;
      bool absorbed = lowering_->absorbed(id), renaming = is_renaming(id);
      if (!absorbed && !renaming) continue; // a literal, a parameter, or a register of another file
      for_each_definition(function_, id, [&](ValueId value) {
        if (in_register(value) || apart.count(value)) return;
        std::vector<ValueId>& list = stand_ins_[value.index()];
        auto add = [&](ValueId operand) {
          for (ValueId part : stands_for(operand))
            if (std::find(list.begin(), list.end(), part) == list.end()) list.push_back(part);
        };
        if (ValueId rest = lowering_->without_constant(value))
          add(rest);
        else
          for_each_use(function_, id, add);
      });
    }
}

void MachineValues::list_accesses() {
  read_start_.assign(function_.instructions.size() + 1, 0);
  write_start_ = read_start_;
  for (InstructionId id : function_.instructions.ids()) {
    const Instruction& instruction = function_.instructions[id];
    size_t reads_before = reads_.size(), writes_before = writes_.size();
    bool real = instruction.block &&
                (instruction.kind == InstructionKind::real || instruction.kind == InstructionKind::linear_row);
    bool kept = false; // absorbed, but in a register anyway
    if (real)
      for_each_definition(function_, id, [&](ValueId value) {
        if (!in_register(value)) return;
        kept = true;
        if (std::find(writes_.begin() + static_cast<ptrdiff_t>(writes_before), writes_.end(), value) == writes_.end())
          writes_.push_back(value);
      });
    if (real && (kept || (is_issued(id) && !is_renaming(id))))
      for_each_use(function_, id, [&](ValueId value) {
        for (ValueId part : stands_for(value))
          if (std::find(reads_.begin() + static_cast<ptrdiff_t>(reads_before), reads_.end(), part) == reads_.end())
            reads_.push_back(part);
      });
    read_start_[id.index() + 1] = static_cast<uint32_t>(reads_.size());
    write_start_[id.index() + 1] = static_cast<uint32_t>(writes_.size());
  }
}

// Block parameters that only feed one another and results without readers need no register: machines have a register
// and a predicate that discard writes. Vectors are written as a whole.
void MachineValues::drop_unread() {
  std::vector<bool> read(function_.values.size());
  std::vector<ValueId> work;
  auto mark = [&](ValueId value) {
    if (read[value.index()]) return;
    read[value.index()] = true;
    work.push_back(value);
  };
  std::vector<std::vector<ValueId>> arguments(function_.values.size()); // of parameters
  for (BlockId block : function_.layout) {
    for (EdgeId edge : function_.successors(block)) {
      std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
      for (size_t i = 0; i < parameters.size(); ++i)
        arguments[parameters[i].index()].push_back(function_.arguments(edge)[i]);
    }
    for (InstructionId id : function_.instructions_in(block)) {
      for (ValueId value : reads(id))
        mark(value);
      if (writes(id).size() > 1)
        for (ValueId value : writes(id))
          if (!is_predicate(value)) mark(value);
    }
  }
  while (!work.empty()) {
    ValueId value = work.back();
    work.pop_back();
    for (ValueId argument : arguments[value.index()])
      for (ValueId part : stands_for(argument))
        mark(part);
  }
  for (ValueId value : function_.values.ids())
    if (!read[value.index()]) units_[value.index()] = 0;
  // Rebuild the lists of writes without them.
  std::vector<ValueId> old = std::move(writes_);
  std::vector<uint32_t> start = write_start_;
  writes_.clear();
  for (size_t i = 0; i + 1 < start.size(); ++i) {
    for (uint32_t k = start[i]; k < start[i + 1]; ++k)
      if (in_register(old[k])) writes_.push_back(old[k]);
    write_start_[i + 1] = static_cast<uint32_t>(writes_.size());
  }
}

struct MachineValues::Places {
  struct Use {
    BlockId block;
    uint32_t end; // after the point of the last reader there
  };
  // All by value.
  std::vector<std::vector<Use>> uses;
  std::vector<BlockId> home; // block that writes it; invalid if there is none
  std::vector<uint32_t> born;

  void use(ValueId value, BlockId block, uint32_t index) {
    std::vector<Use>& list = uses[value.index()];
    if (!list.empty() && list.back().block == block)
      list.back().end = std::max(list.back().end, 2 * index + 1);
    else
      list.push_back({block, 2 * index + 1});
  }
  void define(ValueId value, BlockId block, uint32_t index) {
    home[value.index()] = block;
    born[value.index()] = 2 * index + 1;
  }
};

MachineValues::Places MachineValues::find_places(const ControlFlow& flow) const {
  size_t count = function_.values.size();
  Places places{std::vector<std::vector<Places::Use>>(count), std::vector<BlockId>(count),
                std::vector<uint32_t>(count)};
  for (BlockId block : function_.layout) {
    if (!flow.reachable(block)) continue;
    for (ValueId parameter : function_.parameters(block))
      places.define(parameter, block, start_of(block));
    for (InstructionId id : function_.instructions_in(block)) {
      for (ValueId value : reads(id))
        places.use(value, block, index_of(id));
      for (ValueId value : writes(id))
        places.define(value, block, index_of(id));
    }
    for (EdgeId edge : function_.successors(block)) {
      std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
      for (size_t i = 0; i < parameters.size(); ++i)
        if (in_register(parameters[i]))
          for (ValueId part : stands_for(function_.arguments(edge)[i]))
            places.use(part, block, end_of(block));
    }
  }
  return places;
}

// Walks backwards from the blocks that read a value to its definition.
class MachineValues::RangeWalk {
public:
  RangeWalk(const MachineValues& values, const ControlFlow& flow)
      : values_(values), function_(values.function_), flow_(flow), entered_(function_.blocks.size(), UINT32_MAX) {
    // In a small function a visit to each block costs less than the loops.
    constexpr size_t few_blocks = 64;
    if (function_.layout.size() < few_blocks) return;
    loops_.emplace(function_, flow);
    entered_loops_.assign(loops_->count(), UINT32_MAX);
  }

  // The ranges of a value that is written in block `defined` at point `birth`: sorted, perhaps overlapping.
  const std::vector<LiveRange>& of(ValueId value, BlockId defined, uint32_t birth, std::span<const Places::Use> uses) {
    value_ = value.index();
    defined_ = defined;
    list_.clear();
    list_.push_back({birth, birth + 1}); // the register is written even if nothing reads it
    for (const Places::Use& use : uses) {
      const bool inside = use.block == defined && use.end > birth;
      list_.push_back({inside ? birth : 2 * values_.start_of(use.block), use.end});
      if (!inside) enter(use.block);
    }
    while (!work_.empty()) {
      const Entered at = work_.back();
      work_.pop_back();
      for (EdgeId edge : flow_.predecessors(at.block)) {
        const BlockId from = function_.edges[edge].from;
        if (!flow_.reachable(from) || (at.loop && loops_->contains(at.loop, from))) continue;
        list_.push_back({from == defined ? birth : 2 * values_.start_of(from), 2 * values_.end_of(from) + 2});
        if (from != defined) enter(from);
      }
    }
    std::ranges::sort(list_, {}, &LiveRange::begin);
    return list_;
  }

private:
  // A block into which the value is live; with a loop, its header and all of its blocks.
  struct Entered {
    BlockId block;
    LoopId loop;
  };

  void enter(BlockId block) {
    if (entered_[block.index()] == value_) return;
    entered_[block.index()] = value_;
    const LoopId loop = loops_ ? loops_->around(block, defined_) : LoopId();
    if (!loop) {
      work_.push_back({block, {}});
      return;
    }
    if (entered_loops_[loop.index()] == value_) return;
    entered_loops_[loop.index()] = value_;
    const auto [first, last] = loops_->extent(loop);
    list_.push_back({2 * values_.start_of(first), 2 * values_.end_of(last) + 2});
    work_.push_back({loops_->header(loop), loop});
  }

  const MachineValues& values_;
  const Function& function_;
  const ControlFlow& flow_;
  std::optional<LiveLoops> loops_;
  std::vector<uint32_t> entered_, entered_loops_; // by block and loop: the last value that is live into it
  uint32_t value_ = 0;
  BlockId defined_;
  std::vector<LiveRange> list_;
  std::vector<Entered> work_;
};

void MachineValues::find_ranges(const ControlFlow& flow) {
  const Places places = find_places(flow);
  ranges_.resize(function_.values.size());
  RangeWalk walk(*this, flow);
  for (ValueId value : function_.values.ids())
    if (const BlockId defined = places.home[value.index()]; in_register(value) && defined)
      merge_ranges(ranges_[value.index()],
                   walk.of(value, defined, places.born[value.index()], places.uses[value.index()]));
}

} // namespace ptxrewrite::ir
