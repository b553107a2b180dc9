// The affine stream has those blocks of the body that its branches lead to, in the body's order.
#include "transforms/dac/dac_streams.h"

#include "ir/core/builder.h"
#include "ir/edit/dead_code.h"
#include "ir/forms/dac.h"
#include "transforms/dac/dac_body.h"
#include "transforms/dac/dac_control.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace ptxrewrite::transforms::dac {

using ir::BlockId;
using ir::Builder;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandFlag;
using ir::OperandKind;
using ir::RegisterClass;
using ir::ValueId;

namespace {

constexpr unsigned condition_registers = 8; // of the DCRF (4.8)

class AffineStreamMaker {
public:
  AffineStreamMaker(const ir::LinearForms& forms, const Plan& plan)
      : function_(forms.function()), plan_(plan), post_dominators_(function_, forms.control_flow()),
        stream_(ir::make_affine_stream(function_)), builder_(*stream_), values_(function_.values.size()),
        blocks_(function_.blocks.size()) {
    for (const DacSite& site : plan.sites)
      sites_[site.kind == SiteKind::predicate && site.reader ? site.reader : site.instruction].push_back(&site);
    for (const Given& given : plan.given)
      given_[given.instruction] = given.number;
  }

  std::unique_ptr<ir::Function> run() {
    choose_blocks();
    for (BlockId block : kept_)
      emit_block(block);
    for (size_t i = 0; i < kept_.size(); ++i)
      connect(i);
    return std::move(stream_);
  }

private:
  // ---------------------------------------------------------------- control flow

  bool is_relevant(BlockId block) const { return plan_.relevant_branch[block.index()]; }

  // The successors of a block of the body in the affine stream, in the order of its edges.
  std::vector<BlockId> next_blocks(BlockId block) const {
    std::vector<BlockId> next;
    if (function_.successors(block).size() > 1 && !is_relevant(block)) {
      if (BlockId meeting = post_dominators_.immediate_post_dominator(block)) next.push_back(meeting);
      return next;
    }
    for (EdgeId edge : function_.successors(block))
      next.push_back(function_.edges[edge].to);
    return next;
  }

  void choose_blocks() {
    std::vector<bool> seen(function_.blocks.size());
    std::vector<BlockId> work{function_.entry()};
    seen[function_.entry().index()] = true;
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (BlockId next : next_blocks(block)) {
        if (seen[next.index()]) continue;
        seen[next.index()] = true;
        work.push_back(next);
      }
    }
    for (BlockId block : function_.layout) {
      if (!seen[block.index()]) continue;
      kept_.push_back(block);
      BlockId& made = blocks_[block.index()];
      if (block == function_.entry()) {
        made = stream_->entry();
        stream_->blocks[made].label = function_.blocks[block].label;
      } else {
        made = stream_->add_block(function_.blocks[block].label);
        stream_->place_block(made);
      }
      std::vector<ValueId> parameters;
      for (ValueId parameter : function_.parameters(block))
        if (plan_.needed[parameter.index()]) parameters.push_back(known(parameter));
      stream_->set_parameters(made, parameters);
    }
  }

  EdgeId add_edge(BlockId from, BlockId to, EdgeId original) {
    std::vector<ValueId> arguments;
    for (size_t i = 0; i < function_.parameters(to).size(); ++i)
      if (plan_.needed[function_.parameters(to)[i].index()]) {
        assert(original && "two ways to a tuple, but not their branch");
        arguments.push_back(known(function_.arguments(original)[i]));
      }
    return stream_->add_edge(blocks_[from.index()], blocks_[to.index()], arguments);
  }

  // The end of a block: its branch or exit, and its edges.
  void connect(size_t place) {
    const BlockId block = kept_[place];
    const BlockId behind = place + 1 < kept_.size() ? kept_[place + 1] : BlockId();
    const InstructionId last = function_.terminator(block);
    const bool branches = function_.successors(block).size() > 1;
    builder_.at_end(blocks_[block.index()]);
    std::vector<BlockId> next = next_blocks(block);
    if (branches && is_relevant(block)) {
      emit_branch(block, last);
      return;
    }
    if (has_guarded_exit(function_, block) && is_relevant(block)) emit_guarded(last, "ret", {});
    if (next.empty()) {
      emit(last, "ret", {});
      return;
    }
    const bool falls = next[0] == behind;
    if (!falls) emit(last, "bra.uni", {{Operand::block(blocks_[next[0].index()])}});
    const EdgeId edge = add_edge(block, next[0], branches ? EdgeId() : function_.successors(block)[0]);
    stream_->set_successors(blocks_[block.index()], {&edge, 1}, falls);
  }

  void emit_branch(BlockId block, InstructionId last) {
    std::span<const EdgeId> edges = function_.successors(block);
    const BlockId target = function_.edges[edges[0]].to;
    emit_guarded(last, function_.form_of(last).mnemonic, {{Operand::block(blocks_[target.index()])}});
    std::vector<EdgeId> made;
    for (EdgeId edge : edges)
      made.push_back(add_edge(block, function_.edges[edge].to, edge));
    stream_->set_successors(blocks_[block.index()], made, function_.blocks[block].falls_through);
  }

  void emit_guarded(InstructionId last, std::string_view mnemonic, const std::vector<Operand>& operands) {
    const ir::Instruction& row = function_.instructions[last];
    const auto given = given_.find(last);
    const ValueId guard = given == given_.end()
                              ? known(row.guard)
                              : ir::add_queue_value(*stream_, RegisterClass::taken_predicate, given->second);
    builder_.guarded_by(guard, row.guard_negated);
    emit(last, mnemonic, operands);
    builder_.unguarded();
  }

  // Emits an instruction; `original` is its counterpart in the body, or invalid.
  void emit(InstructionId original, std::string_view mnemonic, const std::vector<Operand>& operands) {
    const InstructionId made = builder_.emit(mnemonic, operands);
    if (!original) return;
    stream_->instructions[made].range = function_.instructions[original].range;
    stream_->instructions[made].provenance = function_.instructions[original].provenance;
  }

  // ---------------------------------------------------------------- instructions

  ValueId known(ValueId value) {
    ValueId& made = values_[value.index()];
    if (!made) made = stream_->add_value(function_.values[value]);
    return made;
  }

  Operand translated(Operand operand) {
    if (operand.is(OperandKind::value)) operand.id = known(operand.as_value()).index();
    return operand;
  }

  void emit_block(BlockId block) {
    builder_.at_end(blocks_[block.index()]);
    if (auto join = std::ranges::find(plan_.divergent_joins, block); join != plan_.divergent_joins.end()) {
      const auto number = static_cast<int64_t>(join - plan_.divergent_joins.begin()) % condition_registers;
      emit({}, "dac.condition", {{Operand::integer(number)}});
    }
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real) continue;
      if (plan_.in_affine[id.index()]) copy(id);
      if (auto found = sites_.find(id); found != sites_.end()) enqueue(found->second);
      if (std::ranges::find(plan_.barriers, id) != plan_.barriers.end()) copy_barrier(id);
    }
  }

  void guard_as(InstructionId id) {
    const ir::Instruction& row = function_.instructions[id];
    if (row.guard)
      builder_.guarded_by(known(row.guard), row.guard_negated);
    else
      builder_.unguarded();
  }

  void copy(InstructionId id) {
    std::vector<Operand> operands;
    for (const Operand& operand : function_.operands_of(id))
      operands.push_back(translated(operand));
    guard_as(id);
    if (AffineClasses::is_mask(function_, id)) { // x & 31 is x mod 32 (4.4)
      operands[2] = Operand::integer(operands[2].immediate + 1);
      emit(id, "rem.u32", operands);
    } else if (const ir::Form& form = function_.form_of(id);
               form.opcode == Opcode::not_ && form.type() != ir::ScalarType::pred) { // -1 - x
      operands.insert(operands.begin() + 1, Operand::integer(-1));
      emit(id, "sub.s" + std::to_string(ir::bit_width(form.type())), operands);
    } else if (plan_.sums_by_or.contains(id)) {
      emit(id, "add.s" + std::to_string(ir::bit_width(form.type())), operands);
    } else {
      emit(id, form.mnemonic, operands);
    }
    builder_.unguarded();
  }

  // A guard that crosses over is enqueued first, because its reader dequeues it first.
  void enqueue(std::vector<const DacSite*>& sites) {
    std::ranges::stable_sort(sites, {}, [](const DacSite* site) { return site->kind != SiteKind::predicate; });
    for (const DacSite* site : sites)
      enqueue(*site);
  }

  void enqueue(const DacSite& site) {
    std::span<const Operand> operands = function_.operands_of(site.instruction);
    const Operand number = Operand::integer(site.number);
    if (site.kind == SiteKind::predicate) {
      emit(site.instruction, "dac.enq.pred", {number, Operand::value(known(operands[0].as_value()))});
      return;
    }
    const ir::Form& form = function_.form_of(site.instruction);
    std::string mnemonic = site.kind == SiteKind::data ? "dac.enq.data" : "dac.enq.addr";
    if (form.space != ir::StateSpace::none) mnemonic += "." + std::string(ir::spelling(form.space));
    if (site.kind == SiteKind::data) {
      if (form.vector_width > 1) mnemonic += ".v" + std::to_string(form.vector_width);
      mnemonic += "." + std::string(ir::spelling(form.type()));
    }
    guard_as(site.instruction);
    // Without the access's qualifiers: a queue takes any address.
    const Operand address = Operand::group(OperandKind::address, 1, operands[site.address].immediate);
    emit(site.instruction, mnemonic, {number, address, translated(operands[site.address + 1])});
    builder_.unguarded();
  }

  void copy_barrier(InstructionId id) {
    std::vector<Operand> operands;
    for (const Operand& operand : function_.operands_of(id)) {
      if (operand.is_definition() || operand.has(OperandFlag::old_value)) continue;
      if (operand.is(OperandKind::value) && function_.values[operand.as_value()].type == ir::ScalarType::pred)
        continue; // the predicate of a reduction at a barrier
      operands.push_back(translated(operand));
    }
    emit(id, function_.form_of(id).opcode == Opcode::barrier ? "barrier.sync" : "bar.sync", operands);
  }

  const ir::Function& function_;
  const Plan& plan_;
  ir::PostDominatorTree post_dominators_;
  std::unique_ptr<ir::Function> stream_;
  Builder builder_;
  std::vector<ValueId> values_;                                // by ValueId of the body
  std::vector<BlockId> blocks_;                                // by BlockId of the body
  std::vector<BlockId> kept_;                                  // in layout order
  std::map<InstructionId, std::vector<const DacSite*>> sites_; // by the instruction that reads the site
  std::map<InstructionId, uint32_t> given_;
};

void take_address(ir::Function& function, const DacSite& site) {
  std::span<const Operand> old = function.operands_of(site.instruction);
  std::vector<Operand> operands(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(site.address));
  const RegisterClass queue = site.kind == SiteKind::data ? RegisterClass::queued_data : RegisterClass::queued_address;
  operands.push_back(Operand::group(OperandKind::address, 1));
  operands.push_back(Operand::value(ir::add_queue_value(function, queue, site.number)));
  std::span<const Operand> rest = function.operands_of(site.instruction).subspan(site.address + 2);
  operands.insert(operands.end(), rest.begin(), rest.end());
  function.set_operands(site.instruction, operands);
}

void take_predicate(ir::Function& function, const DacSite& site) {
  if (site.reader) {
    function.instructions[site.reader].guard =
        ir::add_queue_value(function, RegisterClass::queued_predicate, site.number);
    function.changed();
    return; // the comparison is dead now
  }
  const Operand result = function.operands_of(site.instruction)[0];
  Builder(function)
      .before(site.instruction)
      .standing_for(site.instruction)
      .emit("dac.deq.pred", {result, Operand::integer(site.number)});
  function.remove(site.instruction);
}

} // namespace

std::unique_ptr<ir::Function> make_affine_stream(const ir::LinearForms& forms, const Plan& plan) {
  return AffineStreamMaker(forms, plan).run();
}

void make_body(ir::Function& function, const Plan& plan) {
  for (const Given& given : plan.given)
    Builder(function)
        .before(given.instruction)
        .standing_for(given.instruction)
        .emit("dac.give.pred",
              {Operand::integer(given.number), Operand::value(function.instructions[given.instruction].guard)});
  for (const DacSite& site : plan.sites)
    if (site.kind == SiteKind::predicate)
      take_predicate(function, site);
    else
      take_address(function, site);
  const ir::ControlFlow flow(function);
  drop_branches(function, ControlDependence(function, flow), plan.needed_in_body);
  ir::remove_dead_code(function);
}

} // namespace ptxrewrite::transforms::dac
