// Annotations and machine instructions of a kernel, see staging_plan.h.
#include "emulator/machines/regless/staging_plan.h"

#include "emulator/core/decode.h"
#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"
#include "ir/core/special_registers.h"
#include "ir/machine/registers/warp_liveness.h"
#include "ir/ssa/ssa.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace ptxrewrite::emulator {

using ir::InstructionId;
using ir::ValueId;

namespace {

// Annotations parsed from the PTX, with the value or instruction that each annotates.
struct MarkedText {
  uint32_t compute_capability = 0;
  std::map<ValueId, std::vector<uint16_t>> registers;             // of the text
  std::vector<std::pair<InstructionId, ir::RegLessMark>> regions; // in the order of the text
  std::map<InstructionId, ir::RegLessMark> releases;
};

Result<MarkedText> read_marks(const ir::Function& function) {
  MarkedText text;
  std::map<std::string, std::vector<uint16_t>> names;
  std::optional<ir::RegLessMark> region;
  for (ir::BlockId block : function.layout) {
    InstructionId last;
    for (InstructionId id : function.instructions_in(block)) {
      if (ir::carries_regless_mark(function, id)) {
        Result<ir::RegLessMark> mark = ir::regless_mark_of(function, id);
        if (!mark) return mark.error();
        switch (mark->kind) {
        case ir::RegLessMark::Kind::machine:
          text.compute_capability = mark->compute_capability;
          break;
        case ir::RegLessMark::Kind::alloc:
          for (auto& [name, registers] : mark->registers)
            names[name] = std::move(registers);
          break;
        case ir::RegLessMark::Kind::region:
          if (region) return Error{"a region without instructions", function.instructions[id].range};
          region = std::move(*mark);
          break;
        case ir::RegLessMark::Kind::release:
          if (!last || !text.releases.try_emplace(last, std::move(*mark)).second)
            return Error{"a second last access, or none that it belongs to", function.instructions[id].range};
        }
        continue;
      }
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      last = id;
      if (region) text.regions.push_back({id, *std::exchange(region, std::nullopt)});
      auto name_registers = [&](ValueId value) {
        auto found = names.find(function.value_name(value));
        if (found != names.end() && !found->second.empty()) text.registers.try_emplace(value, found->second);
      };
      ir::for_each_use(function, id, name_registers);
      ir::for_each_definition(function, id, name_registers);
    }
  }
  if (text.compute_capability == 0 || text.regions.empty())
    return Error{"has no annotations of RegLess (opt -p regless --form annotated), or not all", function.header_range};
  return text;
}

// §5.4.
uint32_t metadata_of(const ir::RegLessMark& mark, uint32_t weight) {
  const auto entries = static_cast<uint32_t>(mark.preload.count() + mark.invalidate.count());
  if (entries <= 2 && weight <= 4) return 1;
  return 1 + (entries > 3 ? (entries - 3 + 5) / 6 : 0) + (weight + 8) / 9;
}

StagedLatency latency_of(const ir::Form& form) {
  switch (form.kind) {
  case ir::InstructionClass::texture:
  case ir::InstructionClass::surface:
    return StagedLatency::memory;
  case ir::InstructionClass::load:
  case ir::InstructionClass::atomic:
    if (ir::is_shared(form.space)) return StagedLatency::shared;
    if (form.space == ir::StateSpace::constant || ir::is_param(form.space)) return StagedLatency::special;
    return StagedLatency::memory;
  default:
    return form.opcode == ir::Opcode::shfl ? StagedLatency::shared : StagedLatency::arithmetic;
  }
}

} // namespace

class StagingPlanner {
public:
  StagingPlanner(KernelImage& image, StagingPlan& plan)
      : plan_(plan), image_(image), entry_(*image.functions.front()), source_(*entry_.source), copy_(source_),
        known_(static_cast<uint32_t>(source_.values.size())) {
    plan.entry_ = &entry_;
  }

  Status run() {
    Result<MarkedText> text = read_marks(source_);
    if (!text) return text.error();
    text_ = std::move(*text);
    if (Status status = make_machine_values(); !status.ok()) return status;
    if (Status status = place_values(); !status.ok()) return status;
    find_code();
    if (Status status = list_instructions(); !status.ok()) return status;
    find_needs();
    return check_regions();
  }

private:
  Error refuse(std::string message, InstructionId id) const {
    return Error{"RegLess: " + std::move(message), id ? source_.instructions[id].range : source_.header_range};
  }

  Status make_machine_values() {
    for (const ir::Value& value : source_.values)
      if (value.vector_width > 1) return refuse("registers that are vectors are not staged", {});
    const Symbol name = copy_.module().intern("%register");
    for (ValueId value : copy_.values.ids()) {
      copy_.values[value].name = name;
      copy_.values[value].number = value.index();
    }
    if (Status status = ir::construct_ssa(copy_); !status.ok()) return status;
    std::set<ValueId> apart;
    for (ValueId value : copy_.values.ids())
      if (text_.registers.contains(text_value(value))) apart.insert(value);
    flow_.emplace(copy_);
    apart = ir::apart_by_names(copy_, *flow_, text_.compute_capability, std::move(apart));
    machine_.emplace(copy_, *flow_, text_.compute_capability, apart);
    definition_.resize(copy_.values.size());
    remade_.assign(copy_.values.size(), unknown);
    constant_ = remade_;
    for (ir::BlockId block : copy_.layout)
      for (InstructionId id : copy_.instructions_in(block))
        ir::for_each_definition(copy_, id, [&](ValueId value) { definition_[value.index()] = id; });
    return {};
  }

  ValueId text_value(ValueId value) const { return ValueId(copy_.values[value].number); }
  bool is_predicate(ValueId value) const { return copy_.values[value].type == ir::ScalarType::pred; }
  // Whether the value is held by an entry of the unit.
  bool in_unit(ValueId value) const { return machine_->in_register(value) && !is_predicate(value); }

  // Whether the value is in no register and can be recomputed anywhere: readers execute its instruction.
  bool is_remade(ValueId value) const {
    int8_t& known = remade_[value.index()];
    if (known == unknown) known = can_be_remade(value) ? 1 : 0;
    return known == 1;
  }

  bool can_be_remade(ValueId value) const {
    if (machine_->in_register(value)) return false;
    const InstructionId id = definition_[value.index()];
    if (!id || copy_.instructions[id].kind != ir::InstructionKind::real || copy_.instructions[id].guard) return false;
    return machine_->lowering().absorbed(id) || (is_pure(id) && is_renaming(value)) || is_constant(value);
  }

  // Whether the value depends only on parameters, literals and the like.
  bool is_constant(ValueId value) const {
    int8_t& known = constant_[value.index()];
    if (known != unknown) return known == 1;
    const InstructionId id = definition_[value.index()];
    bool constant =
        id && copy_.instructions[id].kind == ir::InstructionKind::real && !copy_.instructions[id].guard && is_pure(id);
    if (constant)
      ir::for_each_use(copy_, id, [&](ValueId operand) {
        constant = constant && !machine_->in_register(operand) && is_constant(operand);
      });
    known = constant ? 1 : 0;
    return constant;
  }

  // Whether the instruction gives the same result at any place of the kernel.
  bool is_pure(InstructionId id) const {
    const ir::Form& form = copy_.form_of(id);
    const ir::Effects& effects = form.effects;
    const bool reads_constants = form.space == ir::StateSpace::constant || ir::loads_kernel_parameter(copy_, id);
    return !(effects.writes_memory || effects.volatile_result || effects.convergent || effects.side_effect ||
             effects.reads_carry || effects.writes_carry || effects.transfers_control() || effects.atomic ||
             (effects.reads_memory && !reads_constants));
  }

  // Whether the value is in no register, and operands of its instruction replace it.
  bool is_renaming(ValueId value) const {
    return !machine_->in_register(value) && !machine_->stands_for(value).empty();
  }

  // Assigns storage to the registers of the text that the machine keeps.
  Status place_values() {
    for (ValueId value : copy_.values.ids()) {
      const ValueId origin = text_value(value);
      if (origin.index() >= known_) {
        if (in_unit(value)) return refuse("a value has no register of the text", {});
        continue;
      }
      const bool in_unit_now = in_unit(value);
      if (in_unit_now && !text_.registers.contains(origin))
        return refuse(source_.value_name(origin) + " has no machine register", definition_[value.index()]);
      if (value_of_.contains(origin) || !entry_.registers[origin.index()].valid()) continue;
      const uint32_t bits = lane_bits(source_.values[origin].type);
      StagedValue row{entry_.registers[origin.index()], bits, {}, 0};
      if (auto found = text_.registers.find(origin); found != text_.registers.end()) {
        row.registers = found->second;
        if (row.registers.size() != std::max(1u, bits / 32) || bits == 1)
          return refuse(source_.value_name(origin) + " has a wrong number of machine registers", {});
        for (uint16_t number : row.registers)
          plan_.registers_ = std::max<uint32_t>(plan_.registers_, number + 1u);
      } else {
        row.home = plan_.home_bytes_;
        plan_.home_bytes_ += lane_array_size(bits);
      }
      value_of_[origin] = static_cast<uint32_t>(plan_.values_.size());
      plan_.values_.push_back(std::move(row));
    }
    return {};
  }

  void find_code() {
    plan_.places_.resize(entry_.code.size());
    code_of_.resize(source_.instructions.size());
    const auto count = static_cast<uint32_t>(entry_.code.size());
    for (uint32_t at = 0; at < count;) {
      if (is_region_entry(entry_.code[at])) {
        ++at;
        continue;
      }
      const uint32_t number = entry_.code[at].instruction - entry_.first_instruction;
      uint32_t past = at;
      bool own = false;
      for (; past < count && !is_region_entry(entry_.code[past]) &&
             entry_.code[past].instruction == entry_.code[at].instruction;
           ++past)
        own |= entry_.code[past].is_instruction;
      if (own && number < source_.instructions.size()) code_of_[number] = {at, past};
      at = past;
    }
  }

  Status list_instructions() {
    size_t next_region = 0;
    uint32_t region = UINT32_MAX;
    for (ir::BlockId block : source_.layout) {
      if (!copy_.blocks[block].in_layout) continue;
      region = UINT32_MAX; // regions do not cross blocks
      for (InstructionId id : source_.instructions_in(block)) {
        if (next_region < text_.regions.size() && text_.regions[next_region].first == id) {
          region = static_cast<uint32_t>(plan_.regions_.size());
          plan_.regions_.push_back({.mark = std::move(text_.regions[next_region++].second)});
        }
        if (source_.instructions[id].kind != ir::InstructionKind::real) continue;
        if (Status status = list_instruction(id, region); !status.ok()) return status;
      }
    }
    if (next_region != text_.regions.size()) return refuse("a region in code that is never reached", {});
    return {};
  }

  Status list_instruction(InstructionId id, uint32_t region) {
    StagedInstruction row;
    row.id = id;
    row.is_issued = machine_->is_issued(id) || !machine_->writes(id).empty();
    row.weight = row.is_issued ? machine_->lowering().cost(id).weight : 0;
    row.ends = !source_.instructions[id].guard &&
               (source_.is_opcode(id, ir::Opcode::ret) || source_.is_opcode(id, ir::Opcode::exit));
    row.latency = latency_of(source_.form_of(id));
    row.region = region;
    auto release = text_.releases.find(id);
    if (release != text_.releases.end()) {
      row.erase = release->second.erase;
      row.evict = release->second.evict;
      if (!row.is_issued) return refuse("a last access where the machine executes nothing", id);
    }
    if (row.is_issued) {
      if (region != UINT32_MAX && source_.form_of(id).effects.convergent) plan_.regions_[region].gathers_lanes = true;
      if (region == UINT32_MAX) return refuse("an instruction in front of its block's first region", id);
      StagedRegion& of = plan_.regions_[region];
      row.place = of.instructions++;
      of.weight += row.weight;
      bool all_remade = true, any = false;
      ir::for_each_definition(copy_, id, [&](ValueId value) {
        any = true;
        all_remade = all_remade && is_remade(value);
      });
      row.is_executed = !(any && all_remade);
      if (row.is_executed)
        if (Status status = list_operands(id, row); !status.ok()) return status;
    }
    if (!row.is_issued && is_pure(id) && source_.instructions[id].guard) list_free(id, row);
    // Each read of a clock changes the next one (ClockUnit::reads), although nothing uses its result.
    if (!row.is_issued && !source_.instructions[id].guard && ir::reads_volatile_register(source_, id))
      row.is_free = true;
    const auto [first, past] = code_of_[id.index()];
    if (past > first)
      plan_.places_[first] = {static_cast<uint32_t>(plan_.instructions_.size()), past};
    else if (row.is_executed)
      return refuse("an instruction without micro-operations", id);
    plan_.instructions_.push_back(std::move(row));
    return {};
  }

  // A value known to the assembler but computed under a guard: readers cannot recompute it, as the old value is lost.
  void list_free(InstructionId id, StagedInstruction& row) {
    StagedInstruction free = row;
    free.is_free = list_operands(id, free).ok() && free.read.none() && free.written.none() && !free.writes.empty();
    if (free.is_free) row = std::move(free);
  }

  Status list_operands(InstructionId id, StagedInstruction& row) {
    steps_ = &row.steps;
    current_.clear();
    failed_.clear();
    std::vector<ValueId> operands = operands_of(id);
    ensure_all(operands, 0);
    if (!failed_.empty()) return refuse(failed_, id);
    for (const StagedStep& step : row.steps)
      if (step.kind == StagedStep::Kind::fetch)
        for (uint16_t number : plan_.values_[step.value].registers)
          row.read.set(number);
    ir::for_each_definition(copy_, id, [&](ValueId value) {
      if (is_remade(value)) return;
      if (!machine_->in_register(value) && !is_kept(value)) return;
      auto found = value_of_.find(text_value(value));
      if (found == value_of_.end() || std::ranges::find(row.writes, found->second) != row.writes.end()) return;
      row.writes.push_back(found->second);
      for (uint16_t number : plan_.values_[found->second].registers)
        row.written.set(number);
    });
    return {};
  }

  // Whether the value is stored in a separate file and not recomputed. (Values without reads are in no file.)
  bool is_kept(ValueId value) const { return !text_.registers.contains(text_value(value)); }

  // The operands of the instruction without old values: lanes that it does not write keep their stored values.
  std::vector<ValueId> operands_of(InstructionId id) const {
    std::vector<ValueId> operands;
    auto add = [&](ValueId value) {
      if (std::ranges::find(operands, value) == operands.end()) operands.push_back(value);
    };
    for (const ir::Operand& operand : copy_.operands_of(id))
      if (operand.is(ir::OperandKind::value) && !operand.is_definition() && !operand.has(ir::OperandFlag::old_value))
        add(operand.as_value());
    if (ValueId guard = copy_.instructions[id].guard) add(guard);
    return operands;
  }

  // --- steps ---

  bool is_there(ValueId value) const {
    auto found = current_.find(text_value(value));
    return found != current_.end() && found->second == value;
  }

  // Brings all values to their lanes at once. Recomputing one may overwrite another's lanes if a name is reused.
  void ensure_all(const std::vector<ValueId>& values, int depth) {
    if (depth > 64) {
      failed_ = "operands that stand for others in turn";
      return;
    }
    constexpr int attempts = 3;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      for (ValueId value : values)
        if (!is_there(value)) ensure(value, depth);
      if (std::ranges::all_of(values, [&](ValueId value) { return is_there(value); })) return;
    }
    const uint32_t first_slot = slots_used_;
    slots_used_ += static_cast<uint32_t>(values.size());
    plan_.slots_ = std::max(plan_.slots_, slots_used_);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!is_there(values[i])) ensure(values[i], depth);
      move(StagedStep::Kind::save, values[i], first_slot + static_cast<uint32_t>(i));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      move(StagedStep::Kind::restore, values[i], first_slot + static_cast<uint32_t>(i));
      current_[text_value(values[i])] = values[i];
    }
    slots_used_ = first_slot;
  }

  void move(StagedStep::Kind kind, ValueId value, uint32_t slot) {
    StagedStep step;
    step.kind = kind;
    step.value = text_value(value).index();
    step.slot = slot;
    steps_->push_back(step);
  }

  void ensure(ValueId value, int depth) {
    current_[text_value(value)] = value;
    if (copy_.values[value].is_undefined) {
      if (text_value(value).index() < known_ && entry_.registers[text_value(value).index()].valid())
        move(StagedStep::Kind::zero, value, 0);
      return;
    }
    if (!is_remade(value)) {
      auto found = value_of_.find(text_value(value));
      if (found == value_of_.end()) return; // undefined, or a sink
      StagedStep step;
      step.value = found->second;
      steps_->push_back(step);
      return;
    }
    const InstructionId id = definition_[value.index()];
    if (ValueId rest = machine_->lowering().without_constant(value); rest && !reads(id, rest))
      return add_constant(value, rest, depth);
    else if (rest)
      for (ValueId literal : operands_of(id))
        if (literal != rest && is_constant(literal)) execute(definition_[literal.index()], depth); // an immediate
    execute(id, depth);
  }

  void execute(InstructionId id, int depth) {
    ensure_all(operands_of(id), depth + 1);
    const auto [first, past] = code_of_[id.index()];
    StagedStep step;
    step.kind = StagedStep::Kind::execute;
    step.first = first;
    step.past = past;
    steps_->push_back(step);
    ir::for_each_definition(copy_, id, [&](ValueId result) { current_[text_value(result)] = result; });
  }

  bool reads(InstructionId id, ValueId value) const {
    bool found = false;
    ir::for_each_use(copy_, id, [&](ValueId operand) { found |= operand == value; });
    return found;
  }

  // The value is the sum of another one and a constant: the machine reads the other one.
  void add_constant(ValueId value, ValueId rest, int depth) {
    int64_t own = 0, other = 0;
    if (!add_constants_of(value, own) || !add_constants_of(rest, other)) {
      failed_ = "a sum whose constant is not known";
      return;
    }
    if (text_value(value) == text_value(rest)) {
      failed_ = "a sum that stands for another one of its name";
      return;
    }
    ensure_all({rest}, depth + 1);
    StagedStep step;
    step.kind = StagedStep::Kind::add;
    step.value = text_value(value).index();
    step.source = text_value(rest).index();
    step.constant = own - other;
    steps_->push_back(step);
    current_[text_value(value)] = value;
  }

  // Adds the constants of the sums that are operands of a sum.
  bool add_constants_of(ValueId sum, int64_t& constant) const {
    const InstructionId definition = definition_[sum.index()];
    if (!definition) return false;
    for (ValueId operand : operands_of(definition))
      if (!strip_constants(operand, constant)) return false;
    return true;
  }

  bool strip_constants(ValueId operand, int64_t& constant) const {
    while (ValueId rest = machine_->lowering().without_constant(operand)) {
      const InstructionId id = definition_[operand.index()];
      if (!reads(id, rest)) {
        int64_t own = 0, other = 0;
        if (!add_constants_of(operand, own) || !add_constants_of(rest, other)) return false;
        constant += own - other;
      } else {
        for (const ir::Operand& part : copy_.operands_of(id)) {
          if (part.is(ir::OperandKind::integer)) constant += part.immediate;
          if (!part.is(ir::OperandKind::value) || part.is_definition() || part.as_value() == rest) continue;
          const std::optional<int64_t> literal = literal_of(part.as_value());
          if (!literal) return false;
          constant += *literal;
        }
      }
      operand = rest;
    }
    return true;
  }

  // The literal or address that a move writes to all lanes.
  std::optional<int64_t> literal_of(ValueId value) const {
    const InstructionId id = definition_[value.index()];
    if (!id || !is_constant(value) || !copy_.is_opcode(id, ir::Opcode::mov)) return std::nullopt;
    const auto [first, past] = code_of_[id.index()];
    if (past != first + 1 || entry_.code[first].source[0].base() != LaneBase::constants) return std::nullopt;
    const std::byte* lanes = image_.constants.data() + entry_.code[first].source[0].offset();
    int64_t wide = 0;
    int32_t narrow = 0;
    if (lane_bits(copy_.values[value].type) == 64)
      std::memcpy(&wide, lanes, sizeof wide);
    else
      std::memcpy(&narrow, lanes, sizeof narrow);
    return wide + narrow;
  }

  // Finds the registers that lanes need at each place, for the machine's checks of useless copies and entries.
  void find_needs() {
    ir::Allocation allocation;
    allocation.registers = plan_.registers_;
    for (ValueId value : copy_.values.ids())
      if (in_unit(value)) allocation.place(value, text_.registers.at(text_value(value)).front());
    const ir::RegisterProgram program = ir::register_program(copy_, *machine_, allocation);
    const ir::WarpLiveness liveness(program);
    std::map<InstructionId, StagedInstruction*> rows;
    for (StagedInstruction& row : plan_.instructions_)
      rows[row.id] = &row;
    for (uint32_t block = 0; block < program.blocks.size(); ++block) {
      ir::RegisterSet needed = liveness.live_in(block);
      for (uint32_t i = 0; i < program.blocks[block].instructions.size(); ++i) {
        const ir::RegisterInstruction& instruction = program.blocks[block].instructions[i];
        StagedInstruction& row = *rows.at(instruction.id);
        if (row.is_issued && row.place == 0) plan_.regions_[row.region].needed = needed;
        row.updated = liveness.soft(block, i) | instruction.reads;
        needed = liveness.live_behind(block, i);
        if (copy_.form_of(instruction.id).effects.terminates) row.needed_elsewhere = needed;
      }
    }
  }

  Status check_regions() {
    for (uint32_t i = 0; i < plan_.region_count(); ++i) {
      StagedRegion& region = plan_.regions_[i];
      if (region.mark.number != i) return refuse("region " + std::to_string(i) + " is missing", {});
      for (uint32_t number = plan_.registers_; number < region.mark.preload.size(); ++number)
        if (region.mark.preload.test(number) || region.mark.invalidate.test(number)) plan_.registers_ = number + 1;
      if (region.instructions == 0) return refuse("region " + std::to_string(i) + " is empty", {});
      region.metadata = metadata_of(region.mark, region.weight);
    }
    return {};
  }

  StagingPlan& plan_;
  KernelImage& image_;
  const DecodedFunction& entry_;
  const ir::Function& source_;
  ir::Function copy_;
  uint32_t known_;
  MarkedText text_;
  std::optional<ir::ControlFlow> flow_;
  std::optional<ir::MachineValues> machine_;
  std::vector<InstructionId> definition_; // by ValueId of the copy
  static constexpr int8_t unknown = -1;
  mutable std::vector<int8_t> remade_, constant_;      // by ValueId of the copy
  std::map<ValueId, uint32_t> value_of_;               // of the text: index into plan_.values_
  std::vector<std::pair<uint32_t, uint32_t>> code_of_; // by InstructionId
  std::vector<StagedStep>* steps_ = nullptr;           // of the instruction being listed
  std::map<ValueId, ValueId> current_;                 // by register of the text: the value in its lanes
  uint32_t slots_used_ = 0;
  std::string failed_;
};

Result<std::unique_ptr<StagingPlan>> StagingPlan::make(KernelImage& image) {
  auto plan = std::make_unique<StagingPlan>();
  const ir::Function& source = *image.functions.front()->source;
  if (source.is_ssa) return Error{"RegLess's machine runs kernels as they were read", source.header_range};
  for (const auto& function : image.functions)
    for (ir::BlockId block : function->source->layout)
      for (ir::InstructionId id : function->source->instructions_in(block))
        if (function->source->is_opcode(id, ir::Opcode::wgmma))
          return Error{"RegLess's machine has no asynchronous matrix products",
                       function->source->instructions[id].range};
  if (Status status = StagingPlanner(image, *plan).run(); !status.ok()) return status.error();
  return plan;
}

uint32_t least_staging_entries(const ir::Module& module) {
  uint32_t most = 1;
  for (const auto& function : module.functions)
    for (ir::BlockId block : function->layout)
      for (InstructionId id : function->instructions_in(block)) {
        if (!ir::carries_regless_mark(*function, id)) continue;
        if (Result<ir::RegLessMark> mark = ir::regless_mark_of(*function, id); mark.ok())
          for (uint8_t lines : mark->banks)
            most = std::max<uint32_t>(most, lines);
      }
  constexpr uint32_t shards = 4;
  return most * shards * ir::staging_banks;
}

uint32_t StagingPlan::bits(uint32_t text_value) const {
  return lane_bits(entry_->source->values[ValueId(text_value)].type);
}

uint32_t StagingPlan::largest_bank() const {
  uint32_t most = 0;
  for (const StagedRegion& region : regions_)
    for (uint8_t lines : region.mark.banks)
      most = std::max<uint32_t>(most, lines);
  return most;
}

} // namespace ptxrewrite::emulator
