// Pass `spill`: makes each function fit into a number of registers as our own allocator counts them.
//
// Each round colours the function (ir/machine/registers/allocation.h). If a value gets no register, the cheapest value
// that is live at the same time is spilled: it is recomputed before each reader if that takes one instruction whose
// operands are available there (literals, parameters, special registers, comparisons of live values); otherwise it is
// stored to local memory after its definition and loaded before each reader. Values that share a register, because one
// is passed to the other as a block parameter, share a slot too, so that no move is needed on the edge. Readers that
// absorb other instructions (ir/machine/select/lowering.h) get copies of those; otherwise the value would stay live for
// them.
//
// Slots are not reused. Stores on an edge out of a conditional branch are placed before the branch, under its
// condition.
#include "transforms/registers/spill.h"

#include "ir/core/insertion.h"
#include "ir/core/module.h"
#include "ir/edit/dead_code.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/figures/target.h"
#include "transforms/manager/pass.h"
#include "transforms/registers/spill_choice.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::transforms {

namespace {

using namespace ir;

// The widths of loads, stores and copies; predicates are stored as 0 or 1 in 32 bits.
unsigned stored_bits(ScalarType type) {
  return type == ScalarType::pred ? 32 : std::max(8u, bit_width(type));
}
std::string access(std::string_view opcode, ScalarType type) {
  return std::string(opcode) + ".local.b" + std::to_string(stored_bits(type));
}
ScalarType loaded_type(ScalarType type) {
  return type == ScalarType::pred ? ScalarType::b32 : type;
}

// The function's array of spill slots.
class Depot {
public:
  explicit Depot(Function& function) : function_(&function) {}

  uint32_t add_slot(ScalarType type) {
    uint32_t bytes = stored_bits(type) / 8;
    size_ = (size_ + bytes - 1) / bytes * bytes;
    uint32_t offset = size_;
    size_ += bytes;
    return offset;
  }
  void append_address(std::vector<Operand>& operands, uint32_t offset) {
    if (!variable_) declare();
    ir::append_address(operands, Operand::symbol(SymbolRef::local_variable(variable_)), offset);
  }
  // Sets the size of the array, when all slots are known.
  void close() {
    if (!variable_) return;
    uint64_t bytes = size_;
    function_->variables[variable_].dimensions = function_->dimensions.add(std::span(&bytes, 1));
  }
  uint32_t bytes() const { return size_; }

private:
  void declare() {
    Variable variable;
    variable.space = StateSpace::local;
    variable.type = ScalarType::b8;
    variable.is_array = true;
    variable.alignment = 8;
    variable.name = free_name();
    variable_ = function_->variables.add(variable);
    Operand operand = Operand::symbol(SymbolRef::local_variable(variable_));
    ir::builder_at_start(*function_, function_->entry()).emit_marker(InstructionKind::declare_variable, {operand});
  }
  Symbol free_name() {
    Module& module = function_->module();
    for (unsigned suffix = 0;; ++suffix) {
      Symbol name = module.intern("__spill_slots" + (suffix ? "_" + std::to_string(suffix) : std::string()));
      auto same = [&](const Variable& other) { return other.name == name; };
      if (std::ranges::none_of(function_->variables, same) && std::ranges::none_of(module.variables, same)) return name;
    }
  }

  Function* function_;
  VariableId variable_;
  uint32_t size_ = 0;
};

// Spills the webs of a round.
class WebSpiller {
public:
  WebSpiller(Function& function, const MachineValues& values, const std::vector<SpillWeb>& webs, Depot& depot,
             SpillStatistics& statistics, std::vector<bool>& unspillable)
      : function_(function), values_(values), webs_(webs), depot_(depot), statistics_(statistics),
        unspillable_(unspillable), web_of_(function.values.size(), no_web), slots_(webs.size()),
        definition_(function.values.size()) {
    for (uint32_t i = 0; i < webs.size(); ++i)
      for (ValueId value : webs[i].values)
        web_of_[value.index()] = i;
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        for_each_definition(function, id, [&](ValueId value) { definition_[value.index()] = id; });
  }

  void run() {
    for (size_t i = 0; i < webs_.size(); ++i) {
      if (!webs_[i].recompute) slots_[i] = depot_.add_slot(function_.values[webs_[i].values[0]].type);
      ++(webs_[i].recompute ? statistics_.recomputed : statistics_.spilled);
    }
    const size_t known = function_.values.size();
    std::vector<BlockId> blocks = function_.layout;
    for (BlockId block : blocks) {
      std::vector<InstructionId> instructions;
      for (InstructionId id : function_.instructions_in(block))
        instructions.push_back(id);
      for (InstructionId id : instructions)
        serve(id);
      serve_edges(block);
    }
    for (size_t i = 0; i < webs_.size(); ++i)
      for (ValueId value : webs_[i].values)
        if (InstructionId id = definition_[value.index()]; id && !webs_[i].recompute) {
          Builder builder(function_);
          builder.after(id);
          store(builder, value, slots_[i]);
        }
    // New values, and the remaining values of the webs, have minimal live ranges: spilling them again gains nothing.
    unspillable_.resize(function_.values.size());
    for (size_t i = known; i < unspillable_.size(); ++i)
      unspillable_[i] = true;
    for (const SpillWeb& web : webs_)
      for (ValueId value : web.values)
        unspillable_[value.index()] = true;
    function_.changed();
  }

private:
  using Replacements = std::map<ValueId, ValueId>;
  static constexpr uint32_t no_web = UINT32_MAX;

  uint32_t web_of(ValueId value) const { return value.index() < web_of_.size() ? web_of_[value.index()] : no_web; }

  // Does a reader of the value read a register of a web, or of this one?
  bool concerns(ValueId value) const {
    return value.index() < web_of_.size() &&
           std::ranges::any_of(values_.stands_for(value), [&](ValueId part) { return web_of(part) != no_web; });
  }
  bool concerns(ValueId value, uint32_t web) const {
    return value.index() < web_of_.size() &&
           std::ranges::any_of(values_.stands_for(value), [&](ValueId part) { return web_of(part) == web; });
  }

  // Provides a machine instruction with the values of the webs that it reads.
  void serve(InstructionId id) {
    if (std::ranges::none_of(values_.reads(id), [&](ValueId part) { return web_of(part) != no_web; })) return;
    Replacements done;
    Builder builder(function_);
    builder.before(id);
    std::vector<Operand> operands(function_.operands_of(id).begin(), function_.operands_of(id).end());
    for (Operand& operand : operands)
      if (operand.is(OperandKind::value) && !operand.is_definition())
        operand.id = replacement(builder, operand.as_value(), done).index();
    ValueId guard = function_.instructions[id].guard;
    if (guard) guard = replacement(builder, guard, done);
    function_.set_operands(id, operands);
    function_.instructions[id].guard = guard;
  }

  // Returns the value at the builder's position: loaded, or computed by a copy of its definition from such values.
  ValueId replacement(Builder& builder, ValueId value, Replacements& done) {
    if (!concerns(value)) return value;
    auto [place, fresh] = done.try_emplace(value);
    if (!fresh) return place->second;
    const uint32_t web = web_of(value);
    const bool in_memory = web != no_web && !webs_[web].recompute;
    const ValueId result =
        in_memory ? load(builder, value, slots_[web]) : copy_of(builder, definition_[value.index()], value, done);
    return done[value] = result;
  }

  // Copies the instruction with another result and with operands at the builder's position.
  ValueId copy_of(Builder& builder, InstructionId id, ValueId value, Replacements& done) {
    std::vector<Operand> operands(function_.operands_of(id).begin(), function_.operands_of(id).end());
    ValueId result = function_.add_value(function_.values[value]);
    for (Operand& operand : operands) {
      if (!operand.is(OperandKind::value)) continue;
      if (operand.is_definition())
        operand.id = result.index();
      else
        operand.id = replacement(builder, operand.as_value(), done).index();
    }
    ValueId guard = function_.instructions[id].guard;
    if (guard) guard = replacement(builder, guard, done);
    builder.standing_for(id).guarded_by(guard, function_.instructions[id].guard_negated);
    builder.emit(function_.form_of(id).mnemonic, operands);
    builder.unguarded();
    return result;
  }

  ValueId load(Builder& builder, ValueId value, uint32_t slot) {
    ScalarType type = function_.values[value].type;
    Value row = function_.values[value];
    row.type = loaded_type(type);
    if (type == ScalarType::pred) row.name = Symbol();
    ValueId loaded = function_.add_value(row);
    std::vector<Operand> operands{Operand::definition(loaded)};
    depot_.append_address(operands, slot);
    builder.emit(access("ld", type), operands);
    ++statistics_.loads;
    if (type != ScalarType::pred) return loaded;
    ValueId predicate = function_.add_value(function_.values[value]);
    builder.emit("setp.ne.u32", {Operand::definition(predicate), Operand::value(loaded), Operand::integer(0)});
    return predicate;
  }

  // A value that is not written yet is stored as 0, because the slot is loaded wherever the register was read.
  void store(Builder& builder, ValueId value, uint32_t slot, ValueId guard = {}, bool negated = false) {
    ScalarType type = function_.values[value].type;
    bool undefined = function_.values[value].is_undefined;
    if (type == ScalarType::pred && !undefined) {
      ValueId number = builder.new_value(ScalarType::b32, "%r");
      builder.emit("selp.b32",
                   {Operand::definition(number), Operand::integer(1), Operand::integer(0), Operand::value(value)});
      value = number;
    }
    std::vector<Operand> operands;
    depot_.append_address(operands, slot);
    operands.push_back(undefined ? Operand::integer(0) : Operand::value(value));
    builder.guarded_by(guard, negated);
    builder.emit(access("st", type), operands);
    builder.unguarded();
    ++statistics_.stores;
  }

  // Loads for other parameters come first, because the stores may overwrite their slots.
  void serve_edges(BlockId block) {
    InstructionId terminator = function_.terminator(block);
    Builder builder(function_);
    terminator ? builder.before(terminator) : builder.at_end(block);
    Replacements done;
    struct Store {
      size_t edge;
      ValueId value;
      uint32_t slot;
    };
    std::vector<Store> stores;
    std::vector<EdgeId> edges(function_.successors(block).begin(), function_.successors(block).end());
    for (size_t k = 0; k < edges.size(); ++k) {
      std::vector<ValueId> arguments(function_.arguments(edges[k]).begin(), function_.arguments(edges[k]).end());
      std::span<const ValueId> parameters = function_.parameters(function_.edges[edges[k]].to);
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (!values_.in_register(parameters[i])) continue;
        const uint32_t web = web_of(parameters[i]);
        if (web == no_web || webs_[web].recompute)
          arguments[i] = replacement(builder, arguments[i], done);
        else if (!concerns(arguments[i], web))
          stores.push_back({k, replacement(builder, arguments[i], done), slots_[web]});
      }
      function_.set_arguments(edges[k], arguments);
    }
    // Of two outgoing edges, the first one is taken under the branch's condition.
    bool conditional = edges.size() == 2 && terminator && function_.instructions[terminator].guard;
    for (const Store& one : stores) {
      if (!conditional) {
        store(builder, one.value, one.slot);
        continue;
      }
      const Instruction& branch = function_.instructions[terminator];
      store(builder, one.value, one.slot, branch.guard, branch.guard_negated != (one.edge == 1));
    }
  }

  Function& function_;
  const MachineValues& values_;
  const std::vector<SpillWeb>& webs_;
  Depot& depot_;
  SpillStatistics& statistics_;
  std::vector<bool>& unspillable_;
  std::vector<uint32_t> web_of_; // by value
  std::vector<uint32_t> slots_;  // by web: offset in the depot
  std::vector<InstructionId> definition_;
};

constexpr uint32_t max_rounds = 200;
// Rounds that spill one of the values that are live at the same time, and then colour the registers again. Later rounds
// spill several: a kernel with hundreds of such values would exceed max_rounds.
constexpr uint32_t careful_rounds = 64;

} // namespace

Result<Allocation> spill_to_limit(Function& function, const AllocationOptions& options, SpillStatistics& statistics) {
  Depot depot(function);
  std::vector<bool> unspillable;
  for (; statistics.rounds < max_rounds; ++statistics.rounds) {
    ControlFlow flow(function);
    MachineValues values(function, flow, options.compute_capability);
    Allocation allocation = colour_registers(function, values, options);
    if (allocation.unplaced.empty()) {
      depot.close();
      statistics.bytes = depot.bytes();
      return allocation;
    }
    std::vector<SpillWeb> webs = SpillChooser(function, values, options, unspillable)
                                     .choose(allocation.unplaced, statistics.rounds >= careful_rounds);
    if (webs.empty()) break;
    WebSpiller(function, values, webs, depot, statistics, unspillable).run();
    ir::remove_dead_code(function);
  }
  depot.close();
  return Error{"does not fit into " + std::to_string(options.register_limit) + " registers and " +
                   std::to_string(options.predicate_limit) + " predicates, whatever waits in memory",
               function.header_range};
}

namespace {

// Sections of a hardware form run on separate threads, which do not share local memory with the body.
bool has_sections(const Function& function) {
  return std::ranges::any_of(function.instructions, [](const Instruction& instruction) {
    return instruction.block && instruction.kind == InstructionKind::section_begin;
  });
}

Change run(Function& function, PassContext& context) {
  if (has_sections(function)) return Change::unchanged;
  AllocationOptions options;
  options.compute_capability = target_capability(function.module());
  options.register_limit = register_limit_of(
      function, static_cast<uint32_t>(std::clamp<int64_t>(context.options.number("limit", 255), 0, 255)));
  options.predicate_limit = static_cast<uint32_t>(std::clamp<int64_t>(context.options.number("predicates", 7), 1, 7));
  SpillStatistics statistics;
  Result<Allocation> allocation = spill_to_limit(function, options, statistics);
  context.statistics["spill.slots"] += statistics.spilled;
  context.statistics["spill.recomputed"] += statistics.recomputed;
  context.statistics["spill.loads"] += statistics.loads;
  context.statistics["spill.stores"] += statistics.stores;
  context.statistics["spill.bytes"] += statistics.bytes;
  if (!allocation) context.remarks.push_back(Remark(allocation.error().message));
  return statistics.spilled + statistics.recomputed > 0 ? Change::changed : Change::unchanged;
}

const RegisterPass registration({"spill",
                                 "make functions fit into a number of registers by local memory",
                                 run,
                                 {{"limit", "registers of a thread, at most 255", PassOptionKind::number},
                                  {"predicates", "predicates of a thread, at most 7", PassOptionKind::number}}});

} // namespace
} // namespace ptxrewrite::transforms
