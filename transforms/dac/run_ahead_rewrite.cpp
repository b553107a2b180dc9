// Emits the slices, the early loads, the rings and their readers.
#include "transforms/dac/run_ahead_rewrite.h"

#include "ir/core/insertion.h"
#include "ir/core/module.h"

#include <algorithm>
#include <array>
#include <map>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::SpecialRegister;
using ir::ValueId;

// One trip of the slice. An invalid predicate always holds.
struct Trip {
  std::map<ValueId, ValueId> values; // values of the loop in this trip
  ValueId active;                    // is the trip executed?
  std::map<BlockId, ValueId> reached;

  ValueId operator[](ValueId value) const {
    const auto known = values.find(value);
    return known == values.end() ? value : known->second;
  }
};

// Slots for loads of one size. A stage holds the loads of one trip: for each load, adjacent slots of all threads.
struct Ring {
  unsigned bytes = 0;        // per slot
  std::vector<size_t> loads; // indices into the plan
  uint64_t offset = 0;       // of the ring in the array, in bytes
  uint64_t stage = 0;        // bytes
  ValueId begin, end;        // the thread's slot in the first stage, and after the last one; excluding `offset`
  ValueId read, write;       // parameters of the header: the thread's slots for this trip and for the one ahead
};

std::vector<Ring> rings_of(const RunAheadPlan& plan, const RunAheadChoice& choice) {
  std::vector<Ring> rings;
  for (unsigned bytes : {16u, 8u, 4u}) {
    Ring ring;
    ring.bytes = bytes;
    for (size_t i = 0; i < plan.loads.size(); ++i)
      if (plan.loads[i].bytes == bytes) ring.loads.push_back(i);
    if (ring.loads.empty()) continue;
    ring.stage = uint64_t(choice.threads) * bytes * ring.loads.size();
    if (!rings.empty()) ring.offset = rings.back().offset + rings.back().stage * (choice.distance + 1);
    rings.push_back(std::move(ring));
  }
  return rings;
}

class LoopRewriter {
public:
  LoopRewriter(ir::Function& function, const RunAheadPlan& plan, const RunAheadChoice& choice)
      : function_(function), plan_(plan), choice_(choice), builder_(function) {}

  void run();

private:
  ValueId emit(std::string_view mnemonic, std::initializer_list<Operand> sources);
  ValueId both(ValueId a, ValueId b);
  ValueId either(ValueId a, ValueId b);

  void make_preheader();
  void retarget(EdgeId edge, BlockId from, BlockId to);
  Symbol new_name(std::string_view stem);

  void emit_slice(Trip& trip);
  ValueId reach(Trip& trip, BlockId block);
  ValueId taken(Trip& trip, EdgeId edge);
  Trip next(Trip& trip);
  // Adds a parameter of the header with this value in the first trip.
  ValueId carry(ValueId first);
  ValueId guard_of(Trip& trip, const RunAheadLoad& load);
  Operand address_base(const Trip& trip, const RunAheadLoad& load) const;

  void declare_rings();
  void issue(Trip& trip, unsigned stage);
  void copy_to_slot(const RunAheadLoad& load, Operand base, ValueId slot, uint64_t offset);
  std::vector<ValueId> load_to_registers(const RunAheadLoad& load, Operand base, ValueId guard);
  void prefetch(const RunAheadLoad& load, Operand base);
  void emit_in_header();
  void advance_rings();
  void read_slots();
  void place_wait();
  void read_registers();
  void replace_reads(ValueId from, ValueId to);
  void finish();

  ir::Function& function_;
  const RunAheadPlan& plan_;
  const RunAheadChoice& choice_;
  ir::Builder builder_;
  BlockId preheader_;
  EdgeId entry_edge_;
  std::vector<ValueId> new_parameters_, first_values_, later_values_; // of the header, in addition to the original ones
  bool may_end_ = true; // a predicate is carried that says whether the trip ahead is executed
  std::vector<Ring> rings_;
  // registers: values loaded by the trips ahead; by trip, by load, by register
  std::vector<std::vector<std::vector<ValueId>>> loaded_;
  std::vector<std::vector<ValueId>> arriving_; // by load: this trip's registers, parameters of the header
};

ValueId LoopRewriter::emit(std::string_view mnemonic, std::initializer_list<Operand> sources) {
  const bool is_predicate = mnemonic.starts_with("setp") || mnemonic.ends_with(".pred");
  return builder_.emit_value(mnemonic, is_predicate ? ScalarType::pred : ScalarType::b32, sources,
                             is_predicate ? "%p" : "%r");
}

ValueId LoopRewriter::both(ValueId a, ValueId b) {
  if (!a || !b) return a ? a : b;
  return emit("and.pred", {Operand::value(a), Operand::value(b)});
}

ValueId LoopRewriter::either(ValueId a, ValueId b) {
  if (!a || !b) return {};
  return emit("or.pred", {Operand::value(a), Operand::value(b)});
}

Symbol LoopRewriter::new_name(std::string_view stem) {
  ir::Module& module = function_.module();
  // If no text of the module contains the name, it is unused in the function, too.
  const std::string prefix(stem);
  std::string name = prefix;
  for (unsigned number = 1; module.strings.find(name); ++number)
    name = prefix + '_' + std::to_string(number);
  return module.intern(name);
}

// --- blocks ---

void LoopRewriter::retarget(EdgeId edge, BlockId from, BlockId to) {
  function_.edges[edge].to = to;
  const InstructionId terminator = function_.terminator(function_.edges[edge].from);
  if (!terminator) return;
  for (Operand& operand : function_.operands_of(terminator))
    if (operand.is(OperandKind::block) && operand.as_block() == from) operand = Operand::block(to);
}

// A block through which all entries of the loop lead.
void LoopRewriter::make_preheader() {
  const BlockId header = plan_.header;
  std::vector<EdgeId> entries;
  for (BlockId block : function_.layout)
    for (EdgeId edge : function_.successors(block))
      if (function_.edges[edge].to == header && edge != plan_.back_edge) entries.push_back(edge);
  preheader_ = function_.add_block(new_name("$L_" + std::string(function_.module().text(function_.name)) + "_ahead"));
  function_.place_block_before(preheader_, header);
  std::vector<ValueId> parameters;
  const auto old = function_.parameters(header);
  for (ValueId value : std::vector<ValueId>(old.begin(), old.end())) {
    const ir::Value row = function_.values[value];
    parameters.push_back(function_.add_value(row));
  }
  function_.set_parameters(preheader_, parameters);
  for (EdgeId edge : entries)
    retarget(edge, header, preheader_);
  entry_edge_ = function_.add_edge(preheader_, header, parameters);
  function_.set_successors(preheader_, std::array{entry_edge_}, true);
}

ValueId LoopRewriter::carry(ValueId first) {
  const ir::Value row = function_.values[first];
  ir::Value copy = row;
  copy.is_undefined = false;
  const ValueId parameter = function_.add_value(copy);
  new_parameters_.push_back(parameter);
  first_values_.push_back(first);
  return parameter;
}

// --- the slice ---

void LoopRewriter::emit_slice(Trip& trip) {
  for (InstructionId id : plan_.slice.instructions) {
    ir::Instruction copy = function_.instructions[id];
    const auto old = function_.operands_of(id);
    std::vector<Operand> operands(old.begin(), old.end());
    for (Operand& operand : operands) {
      if (!operand.is(OperandKind::value)) continue;
      const ValueId value = operand.as_value();
      if (operand.is_definition()) {
        const ir::Value row = function_.values[value];
        trip.values[value] = function_.add_value(row);
      }
      operand.id = trip[value].index();
    }
    builder_.standing_for(id);
    if (copy.guard)
      builder_.guarded_by(trip[copy.guard], copy.guard_negated);
    else
      builder_.unguarded();
    builder_.emit(function_.form_of(id).mnemonic, operands);
    builder_.unguarded();
  }
}

ValueId LoopRewriter::taken(Trip& trip, EdgeId edge) {
  const ValueId from = reach(trip, function_.edges[edge].from);
  const EdgeCondition condition = condition_of(function_, edge);
  if (!condition.predicate) return from;
  ValueId predicate = trip[condition.predicate];
  if (!condition.holds) predicate = emit("not.pred", {Operand::value(predicate)});
  return both(from, predicate);
}

ValueId LoopRewriter::reach(Trip& trip, BlockId block) {
  if (const auto known = trip.reached.find(block); known != trip.reached.end()) return known->second;
  const Reach& how = plan_.slice.reach.at(block);
  ValueId result = trip.active;
  if (how.same_as) {
    result = reach(trip, how.same_as);
  } else if (!how.edges.empty()) {
    result = taken(trip, how.edges.front());
    for (size_t i = 1; i < how.edges.size(); ++i) {
      const ValueId other = taken(trip, how.edges[i]);
      result = either(result, other);
    }
  }
  trip.reached[block] = result;
  return result;
}

Trip LoopRewriter::next(Trip& trip) {
  Trip after;
  after.active = taken(trip, plan_.back_edge);
  for (uint32_t index : plan_.slice.parameters)
    after.values[function_.parameters(plan_.header)[index]] = trip[function_.arguments(plan_.back_edge)[index]];
  return after;
}

ValueId LoopRewriter::guard_of(Trip& trip, const RunAheadLoad& load) {
  const ir::Instruction instruction = function_.instructions[load.instruction]; // a copy, because reach() adds
                                                                                // instructions
  const ValueId reached = reach(trip, load.block);
  if (!instruction.guard) return reached;
  ValueId guard = trip[instruction.guard];
  if (instruction.guard_negated) guard = emit("not.pred", {Operand::value(guard)});
  return both(reached, guard);
}

Operand LoopRewriter::address_base(const Trip& trip, const RunAheadLoad& load) const {
  return Operand::value(trip[function_.operands_of(load.instruction)[load.address + 1].as_value()]);
}

// --- issues ---

void LoopRewriter::declare_rings() {
  rings_ = rings_of(plan_, choice_);
  ir::Variable variable;
  variable.name = new_name(std::string(function_.module().text(function_.name)) + "_ahead");
  variable.space = ir::StateSpace::shared;
  variable.type = ScalarType::b8;
  variable.is_array = true;
  variable.alignment = 16;
  const uint64_t bytes = ring_bytes(plan_, choice_);
  variable.dimensions = function_.dimensions.add(std::span(&bytes, 1));
  const Operand symbol = Operand::symbol(ir::SymbolRef::local_variable(function_.variables.add(variable)));
  ir::builder_at_start(function_, function_.entry()).emit_marker(InstructionKind::declare_variable, {symbol});

  // The linear index of the thread in the block.
  const auto read = [&](SpecialRegister special, unsigned component) {
    return Operand::value(
        emit("mov.u32", {Operand::special(static_cast<uint32_t>(special), ir::component_selector(component))}));
  };
  const ValueId row = emit(
      "mad.lo.u32", {read(SpecialRegister::ntid, 1), read(SpecialRegister::tid, 2), read(SpecialRegister::tid, 1)});
  const ValueId thread =
      emit("mad.lo.u32", {read(SpecialRegister::ntid, 0), Operand::value(row), read(SpecialRegister::tid, 0)});
  const ValueId array = emit("mov.u32", {symbol});
  for (Ring& ring : rings_) {
    ring.begin = emit("mad.lo.u32", {Operand::value(thread), Operand::integer(ring.bytes), Operand::value(array)});
    const uint64_t stages = ring.stage * (choice_.distance + 1);
    ring.end = emit("add.u32", {Operand::value(ring.begin), Operand::integer(static_cast<int64_t>(stages))});
  }
}

void LoopRewriter::copy_to_slot(const RunAheadLoad& load, Operand base, ValueId slot, uint64_t offset) {
  std::vector<Operand> operands;
  ir::append_address(operands, Operand::value(slot), static_cast<int64_t>(offset));
  ir::append_address(operands, base, function_.operands_of(load.instruction)[load.address].immediate);
  operands.push_back(Operand::integer(load.bytes));
  builder_.emit("cp.async.ca.shared.global", operands);
}

void LoopRewriter::prefetch(const RunAheadLoad& load, Operand base) {
  std::vector<Operand> operands;
  ir::append_address(operands, base, function_.operands_of(load.instruction)[load.address].immediate);
  builder_.emit("prefetch.global.L2", operands);
}

std::vector<ValueId> LoopRewriter::load_to_registers(const RunAheadLoad& load, Operand base, ValueId guard) {
  const auto old = function_.operands_of(load.instruction);
  std::vector<Operand> operands;
  std::vector<ValueId> written;
  for (Operand operand : std::vector<Operand>(old.begin(), old.end())) {
    if (operand.has(ir::OperandFlag::old_value)) break;
    if (operand.is(OperandKind::value) && operand.is_definition()) {
      ir::Value row = function_.values[operand.as_value()];
      written.push_back(function_.add_value(row));
      operand.id = written.back().index();
    }
    operands.push_back(operand);
  }
  operands[load.address + 1] = base;
  // The values of a trip that is not executed are never read.
  if (guard)
    for (ValueId value : written) {
      ir::Value row = function_.values[value];
      row.is_undefined = true;
      Operand kept = Operand::value(function_.add_value(row));
      kept.flags = ir::OperandFlag::old_value;
      operands.push_back(kept);
    }
  builder_.emit(function_.form_of(load.instruction).mnemonic, operands);
  return written;
}

// Emits the accesses of one trip. `stage`: a number before the loop; inside it, `write` addresses the slots.
void LoopRewriter::issue(Trip& trip, unsigned stage) {
  std::vector<ValueId> guards;
  for (const RunAheadLoad& load : plan_.loads)
    guards.push_back(guard_of(trip, load));
  std::vector<std::vector<ValueId>> loaded;
  const auto issue_one = [&](size_t index, auto&& how) {
    const RunAheadLoad& load = plan_.loads[index];
    builder_.standing_for(load.instruction);
    if (guards[index]) builder_.guarded_by(guards[index]);
    how(load, address_base(trip, load));
    builder_.unguarded();
  };
  if (choice_.form == RunAheadForm::ring) {
    for (const Ring& ring : rings_)
      for (size_t i = 0; i < ring.loads.size(); ++i) {
        const uint64_t offset = ring.offset + i * choice_.threads * ring.bytes;
        issue_one(ring.loads[i], [&](const RunAheadLoad& load, Operand base) {
          if (ring.write)
            copy_to_slot(load, base, ring.write, offset);
          else
            copy_to_slot(load, base, ring.begin, offset + stage * ring.stage);
        });
      }
    builder_.emit("cp.async.commit_group", {});
    return;
  }
  for (size_t i = 0; i < plan_.loads.size(); ++i)
    issue_one(i, [&](const RunAheadLoad& load, Operand base) {
      if (choice_.form == RunAheadForm::prefetch)
        prefetch(load, base);
      else
        loaded.push_back(load_to_registers(load, base, guards[i]));
    });
  if (choice_.form == RunAheadForm::registers) loaded_.push_back(std::move(loaded));
}

// --- inside the loop ---

void LoopRewriter::advance_rings() {
  for (Ring& ring : rings_) {
    const ValueId after =
        emit("add.u32", {Operand::value(ring.read), Operand::integer(static_cast<int64_t>(ring.stage))});
    const ValueId at_end = emit("setp.eq.u32", {Operand::value(after), Operand::value(ring.end)});
    later_values_.push_back(
        emit("selp.b32", {Operand::value(ring.begin), Operand::value(after), Operand::value(at_end)}));
    // There is one stage more than trips ahead: the copies of the next trip go where this trip has read.
    later_values_.push_back(ring.read);
  }
}

// At the head of each trip: the accesses of the trip `distance` later.
void LoopRewriter::emit_in_header() {
  builder_.at_end(plan_.header);
  for (InstructionId id : function_.instructions_in(plan_.header))
    if (function_.instructions[id].kind == InstructionKind::real) {
      builder_.before(id);
      break;
    }
  Trip ahead;
  size_t place = 0;
  for (uint32_t index : plan_.slice.parameters)
    ahead.values[function_.parameters(plan_.header)[index]] = new_parameters_[place++];
  if (may_end_) ahead.active = new_parameters_[place];
  emit_slice(ahead);
  issue(ahead, choice_.distance);
  Trip after = next(ahead);
  for (uint32_t index : plan_.slice.parameters)
    later_values_.push_back(after.values.at(function_.parameters(plan_.header)[index]));
  if (may_end_) later_values_.push_back(after.active);
}

// After the wait for its group, each load reads its slot.
void LoopRewriter::read_slots() {
  for (const Ring& ring : rings_)
    for (size_t i = 0; i < ring.loads.size(); ++i) {
      const RunAheadLoad& load = plan_.loads[ring.loads[i]];
      const ir::Form& form = function_.form_of(load.instruction);
      std::string mnemonic = "ld.shared";
      if (form.vector_width > 1) mnemonic += ".v" + std::to_string(form.vector_width);
      mnemonic += "." + std::string(spelling(form.type()));
      function_.instructions[load.instruction].form = ir::known_form(mnemonic);
      const auto operands = function_.operands_of(load.instruction);
      operands[load.address].immediate = static_cast<int64_t>(ring.offset + i * choice_.threads * ring.bytes);
      operands[load.address].flags = ir::OperandFlag::none;
      operands[load.address + 1] = Operand::value(ring.read);
    }
  function_.changed();
}

// Waits as late as all loads allow: before the first one if they are in one block, otherwise at the head of the trip.
void LoopRewriter::place_wait() {
  const RunAheadLoad& first = plan_.loads.front();
  const bool one_block =
      std::ranges::all_of(plan_.loads, [&](const RunAheadLoad& load) { return load.block == first.block; });
  ir::Builder wait(function_);
  if (one_block)
    wait.before(first.instruction).standing_for(first.instruction);
  else
    wait = builder_;
  wait.unguarded();
  wait.emit("cp.async.wait_group", {Operand::integer(choice_.distance)});
}

void LoopRewriter::replace_reads(ValueId from, ValueId to) {
  for (BlockId block : function_.layout) {
    for (InstructionId id : function_.instructions_in(block)) {
      for (Operand& operand : function_.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.is_definition() && operand.as_value() == from)
          operand.id = to.index();
      if (function_.instructions[id].guard == from) function_.instructions[id].guard = to;
    }
    for (EdgeId edge : function_.successors(block))
      for (ValueId& argument : function_.arguments(edge))
        if (argument == from) argument = to;
  }
}

void LoopRewriter::read_registers() {
  for (size_t i = 0; i < plan_.loads.size(); ++i) {
    const InstructionId id = plan_.loads[i].instruction;
    std::vector<ValueId> written, kept;
    for (const Operand& operand : function_.operands_of(id)) {
      if (operand.is(OperandKind::value) && operand.is_definition()) written.push_back(operand.as_value());
      if (operand.has(ir::OperandFlag::old_value)) kept.push_back(operand.as_value());
    }
    const ir::Instruction load = function_.instructions[id];
    if (!load.guard) {
      function_.remove(id);
      for (size_t k = 0; k < written.size(); ++k)
        replace_reads(written[k], arriving_[i][k]);
      continue;
    }
    for (size_t k = 0; k < written.size(); ++k) {
      const unsigned bits = ir::bit_width(function_.values[written[k]].type);
      Operand old = Operand::value(kept[k]);
      old.flags = ir::OperandFlag::old_value;
      builder_.before(id).standing_for(id).guarded_by(load.guard, load.guard_negated);
      builder_.emit("mov.b" + std::to_string(bits),
                    {Operand::definition(written[k]), Operand::value(arriving_[i][k]), old});
    }
    function_.remove(id);
  }
  function_.changed();
}

void LoopRewriter::finish() {
  const auto append = [&](EdgeId edge, const std::vector<ValueId>& values) {
    const auto old = function_.arguments(edge);
    std::vector<ValueId> list(old.begin(), old.end());
    list.insert(list.end(), values.begin(), values.end());
    function_.set_arguments(edge, list);
  };
  append(entry_edge_, first_values_);
  append(plan_.back_edge, later_values_);
  const auto old = function_.parameters(plan_.header);
  std::vector<ValueId> list(old.begin(), old.end());
  list.insert(list.end(), new_parameters_.begin(), new_parameters_.end());
  function_.set_parameters(plan_.header, list);
  function_.changed();
}

void LoopRewriter::run() {
  make_preheader();
  builder_.at_end(preheader_);
  if (choice_.form == RunAheadForm::ring) declare_rings();
  Trip trip;
  for (uint32_t index : plan_.slice.parameters)
    trip.values[function_.parameters(plan_.header)[index]] = function_.parameters(preheader_)[index];
  for (unsigned stage = 0; stage < choice_.distance; ++stage) {
    emit_slice(trip);
    issue(trip, stage);
    trip = next(trip);
  }
  for (uint32_t index : plan_.slice.parameters)
    carry(trip.values.at(function_.parameters(plan_.header)[index]));
  may_end_ = trip.active.valid();
  if (may_end_) carry(trip.active);
  for (Ring& ring : rings_) {
    ring.read = carry(ring.begin);
    const uint64_t last = ring.stage * choice_.distance;
    ring.write = carry(emit("add.u32", {Operand::value(ring.begin), Operand::integer(static_cast<int64_t>(last))}));
  }
  if (choice_.form == RunAheadForm::registers) {
    std::vector<std::vector<std::vector<ValueId>>> carried = loaded_;
    for (auto& of_trip : carried)
      for (auto& of_load : of_trip)
        for (ValueId& value : of_load)
          value = carry(value);
    arriving_ = carried.front();
    emit_in_header();
    carried.push_back(loaded_.back());
    for (size_t ahead = 1; ahead < carried.size(); ++ahead)
      for (const auto& of_load : carried[ahead])
        later_values_.insert(later_values_.end(), of_load.begin(), of_load.end());
    read_registers();
  } else {
    emit_in_header();
    if (choice_.form == RunAheadForm::ring) {
      place_wait();
      advance_rings();
      read_slots();
    }
  }
  finish();
}

} // namespace

std::string_view spelling(RunAheadForm form) {
  switch (form) {
  case RunAheadForm::ring:
    return "ring";
  case RunAheadForm::registers:
    return "registers";
  case RunAheadForm::prefetch:
    return "prefetch";
  case RunAheadForm::producer:
    return "producer";
  }
  return {};
}

uint64_t ring_bytes(const RunAheadPlan& plan, const RunAheadChoice& choice) {
  uint64_t bytes = 0;
  for (const Ring& ring : rings_of(plan, choice))
    bytes = ring.offset + ring.stage * (choice.distance + 1);
  return bytes;
}

void rewrite_run_ahead(ir::Function& function, const RunAheadPlan& plan, const RunAheadChoice& choice) {
  LoopRewriter(function, plan, choice).run();
}

} // namespace ptxrewrite::transforms::legal
