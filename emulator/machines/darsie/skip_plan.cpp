#include "emulator/machines/darsie/skip_plan.h"

#include "emulator/core/decode.h"
#include "emulator/machines/darsie/rename_table.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

// Whether another warp may do the computation for this one: it has no effects besides its results.
bool can_be_shared(const ir::Form& form) {
  const ir::Effects& effects = form.effects;
  return !(effects.writes_memory || effects.atomic || effects.barrier || effects.convergent ||
           effects.transfers_control() || effects.volatile_result || effects.reads_carry || effects.writes_carry ||
           effects.side_effect || form.opaque);
}

// Constants and kernel parameters do not change while the kernel runs.
bool is_load_of_memory(const ir::Form& form) {
  return form.effects.reads_memory && form.space != ir::StateSpace::constant && !ir::is_param(form.space);
}

// Literals, parameters and constants are operands in machine code and take no register: instructions that only copy
// such a value to a register with no other definition.
bool is_operand_of_others(const ir::Function& function, ir::InstructionId id,
                          const std::vector<uint32_t>& definitions) {
  const ir::Form& form = function.form_of(id);
  const bool loads = form.opcode == ir::Opcode::ld && !is_load_of_memory(form) && form.effects.reads_memory;
  if ((form.opcode != ir::Opcode::mov && !loads) || function.instructions[id].guard) return false;
  bool reads = false, once = true;
  ir::for_each_use(function, id, [&](ir::ValueId) { reads = true; });
  ir::for_each_definition(function, id, [&](ir::ValueId value) { once = once && definitions[value.index()] == 1; });
  for (const ir::Operand& operand : function.operands_of(id))
    reads = reads || operand.is(ir::OperandKind::special_register);
  return once && !reads;
}

std::vector<uint32_t> count_definitions(const ir::Function& function) {
  std::vector<uint32_t> definitions(function.values.size());
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      ir::for_each_definition(function, id, [&](ir::ValueId value) { ++definitions[value.index()]; });
  return definitions;
}

bool is_conditional(const ir::Function& function, ir::InstructionId id) {
  return function.instructions[id].guard.valid() || function.form_of(id).opcode == ir::Opcode::brx;
}

// The results of a redundant instruction; empty if one of them cannot be renamed.
std::vector<SharedResult> results_of(const DecodedFunction& entry, ir::InstructionId id) {
  const ir::Function& function = *entry.source;
  std::vector<SharedResult> results;
  bool can_rename = true;
  ir::for_each_definition(function, id, [&](ir::ValueId value) {
    const ir::Value& info = function.values[value];
    const unsigned bits = lane_bits(info.type);
    can_rename = can_rename && info.vector_width == 1 && info.register_class == ir::RegisterClass::general;
    results.push_back({value.index(), entry.registers[value.index()],
                       bits == 1 ? static_cast<uint32_t>(sizeof(uint32_t)) : warp_size * bits / 8,
                       std::max(1u, bits / 32)});
  });
  if (!can_rename) results.clear();
  return results;
}

} // namespace

SkipPlan::SkipPlan(const KernelImage& image, std::span<const ir::DarsieMark> marks,
                   const std::array<uint32_t, 3>& block)
    : entry_(image.functions.front().get()), flow_(*entry_->source), dominators_(*entry_->source, flow_),
      loops_(*entry_->source, flow_, dominators_), shared_values_(entry_->source->values.size()),
      redundant_index_(entry_->source->instructions.size(), UINT32_MAX), written_(entry_->source->instructions.size()),
      dying_(entry_->source->instructions.size()), headed_by_(entry_->source->blocks.size()) {
  find_redundant(marks, block);
  liveness_.emplace(*entry_->source, flow_, &shared_values_);
  for (ir::LoopId loop : loops_.loops().ids())
    headed_by_[loops_.loops()[loop].header.index()] = loop;
  find_deaths();
  find_effects(image);
  find_places();
}

void SkipPlan::find_redundant(std::span<const ir::DarsieMark> marks, const std::array<uint32_t, 3>& block) {
  const ir::Function& function = *entry_->source;
  const std::vector<uint32_t> definitions = count_definitions(function);
  for (ir::BlockId id_of_block : function.layout)
    for (ir::InstructionId id : function.instructions_in(id_of_block)) {
      const uint32_t index = id.index();
      if (function.instructions[id].kind != ir::InstructionKind::real || entry_->section_of[index]) continue;
      const ir::DarsieMark mark = ir::promote(marks[index], block);
      const ir::Form& form = function.form_of(id);
      if (!mark.is_definite() || !can_be_shared(form) || form.space == ir::StateSpace::local) continue;
      RedundantInstruction redundant;
      redundant.kind = mark.kind;
      redundant.is_load = is_load_of_memory(form);
      redundant.may_be_global = redundant.is_load && !ir::is_shared(form.space);
      redundant.results = results_of(*entry_, id);
      if (redundant.results.empty()) continue;
      if (is_operand_of_others(function, id, definitions)) redundant.results.clear();
      for (const SharedResult& result : redundant.results) {
        shared_values_[result.value] = true;
        redundant.registers += result.registers;
      }
      redundant_index_[index] = static_cast<uint32_t>(redundant_.size());
      redundant_.push_back(std::move(redundant));
    }
}

// Finds the registers that die at each instruction, backwards through each block. PTX has unlimited registers, but
// machine code reuses a register as soon as its value is dead, so a dead value holds no version here.
void SkipPlan::find_deaths() {
  const ir::Function& function = *entry_->source;
  std::vector<bool> live(function.values.size());
  for (ir::BlockId block : function.layout) {
    std::fill(live.begin(), live.end(), false);
    for (ir::ValueId value : liveness_->live_out(block))
      live[value.index()] = true;
    std::vector<ir::InstructionId> backwards;
    for (ir::InstructionId id : function.instructions_in(block))
      backwards.push_back(id);
    std::ranges::reverse(backwards);
    for (ir::InstructionId id : backwards) {
      std::vector<uint32_t>& written = written_[id.index()];
      std::vector<uint32_t>& dying = dying_[id.index()];
      ir::for_each_definition(function, id, [&](ir::ValueId value) {
        const uint32_t index = value.index();
        if (!shared_values_[index]) return;
        written.push_back(index);
        if (!live[index]) dying.push_back(index);
        if (!function.instructions[id].guard) live[index] = false;
      });
      ir::for_each_use(function, id, [&](ir::ValueId value) {
        const uint32_t index = value.index();
        if (!shared_values_[index]) return;
        // A register that is also written has a new value afterwards.
        if (!live[index] && std::ranges::find(written, index) == written.end()) dying.push_back(index);
        live[index] = true;
      });
    }
  }
}

void SkipPlan::find_effects(const KernelImage& image) {
  effects_.resize(image.instruction_count);
  for (const auto& decoded : image.functions) {
    const ir::Function& function = *decoded->source;
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block)) {
        if (function.instructions[id].kind != ir::InstructionKind::real) continue;
        const ir::Form& form = function.form_of(id);
        const ir::Effects& effects = form.effects;
        uint8_t& found = effects_[decoded->first_instruction + id.index()];
        const bool is_memory_fence = form.opcode == ir::Opcode::fence || form.opcode == ir::Opcode::membar;
        const bool is_block_barrier = form.opcode == ir::Opcode::bar || form.opcode == ir::Opcode::barrier;
        if (effects.writes_memory && !effects.atomic && !effects.barrier) found |= effect_stores;
        // Asynchronous copies become visible at the instructions that wait for them.
        else if (effects.writes_memory || effects.atomic || form.opaque ||
                 (effects.barrier && !is_memory_fence && !is_block_barrier))
          found |= effect_drops;
        if (is_memory_fence || (effects.atomic && !ir::is_shared(form.space))) found |= effect_fence;
      }
  }
}

void SkipPlan::find_places() {
  const DecodedFunction& entry = *entry_;
  const ir::Function& function = *entry.source;
  places_.resize(entry.code.size());
  const auto count = static_cast<uint32_t>(entry.code.size());
  for (uint32_t at = 0; at < count;) {
    const MicroOp& op = entry.code[at];
    if (is_region_entry(op)) {
      places_[at++].kind = SkipPlace::Kind::region;
      continue;
    }
    uint32_t past = at;
    uint32_t own = UINT32_MAX;
    for (; past < count && !is_region_entry(entry.code[past]) && entry.code[past].instruction == op.instruction; ++past)
      if (entry.code[past].is_instruction) own = past;
    const uint32_t number = op.instruction - entry.first_instruction;
    if (own != UINT32_MAX && number < function.instructions.size() && !entry.section_of[number]) {
      const ir::InstructionId id(number);
      SkipPlace& place = places_[at];
      place.kind = SkipPlace::Kind::instruction;
      place.number = number;
      place.own = own;
      place.past = past;
      place.is_redundant = redundant_index_[number] != UINT32_MAX;
      place.may_part_warps = function.form_of(id).effects.branch && is_conditional(function, id);
    }
    at = past;
  }
  for (ir::BlockId block : function.layout)
    if (const uint32_t start = entry.block_starts[block.index()]; start != UINT32_MAX) {
      places_[start].kind = SkipPlace::Kind::block_start;
      places_[start].number = block.index();
    }
}

} // namespace ptxrewrite::emulator
