#include "emulator/observe/datapath_study.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

// Whether the operand, which is not a register, differs between the lanes of a warp.
bool differs_in_warp(const ir::Operand& operand) {
  return operand.is(ir::OperandKind::special_register) &&
         ir::info(static_cast<ir::SpecialRegister>(operand.id)).uniformity == ir::Uniformity::thread;
}

// Whether the value of the operand, which is not a register, fits 16 bits.
bool fits_16_bits(const ir::Operand& operand) {
  if (operand.is(ir::OperandKind::integer)) return operand.immediate >= -65536 && operand.immediate <= 65535;
  return !operand.is(ir::OperandKind::float32) && !operand.is(ir::OperandKind::float64) &&
         !operand.is(ir::OperandKind::symbol) && !operand.is(ir::OperandKind::special_register);
}

} // namespace

RegisterAccesses& RegisterAccesses::operator+=(const RegisterAccesses& other) {
  full += other.full;
  half += other.half;
  scalar += other.scalar;
  return *this;
}

DatapathCounts& DatapathCounts::operator+=(const DatapathCounts& other) {
  instructions += other.instructions;
  redundant += other.redundant;
  scalar += other.scalar;
  narrow += other.narrow;
  stalls += other.stalls;
  paired += other.paired;
  paired_by_chance += other.paired_by_chance;
  paired_by_search += other.paired_by_search;
  reads += other.reads;
  writes += other.writes;
  half_reads += other.half_reads;
  half_writes += other.half_writes;
  with_scalar += other.with_scalar;
  with_slices += other.with_slices;
  with_both += other.with_both;
  return *this;
}

void DatapathStudy::prepare_site(const ir::Function& function, const DecodedFunction& decoded, ir::InstructionId id) {
  DatapathSite& site = sites_[decoded.first_instruction + id.index()];
  site.instruction = options_.instruction(function, id);
  site.scalar = site.instruction.is_fma;
  site.narrow = site.instruction.integer;
  site.first_use = static_cast<uint32_t>(registers_.size());
  ir::for_each_use(function, id, [&](ir::ValueId value) { registers_.push_back(numbers_.of[value.index()]); });
  site.uses = static_cast<uint16_t>(registers_.size() - site.first_use);
  site.first_definition = static_cast<uint32_t>(registers_.size());
  for (const ir::Operand& operand : function.operands_of(id)) {
    if (!operand.is(ir::OperandKind::value)) {
      site.scalar = site.scalar && !differs_in_warp(operand);
      site.narrow = site.narrow && fits_16_bits(operand);
    } else if (operand.is_definition() && decoded.registers[operand.id].valid()) {
      registers_.push_back(numbers_.of[operand.id]);
      site.narrow = site.narrow && registers_.back().words <= 1;
    }
  }
  site.definitions = static_cast<uint16_t>(registers_.size() - site.first_definition);
}

void DatapathStudy::prepare(const Block& block) {
  const DecodedFunction& entry = *block.image->functions.front();
  const ir::Function& function = *entry.source;
  block_warps_ = block.launch->warps;
  if (options_.resident_blocks)
    resident_blocks_ =
        static_cast<uint32_t>(std::max<uint64_t>(options_.resident_blocks(block.launch->shared_bytes), 1));
  auto in_file = [&](ir::InstructionId id) { return options_.instruction(function, id).weight > 0; };
  numbers_ = options_.numbers ? *options_.numbers : number_registers(function, in_file);
  sites_.resize(function.instructions.size());
  scalar_executions_.resize(function.instructions.size());
  narrow_executions_.resize(function.instructions.size());
  for (ir::BlockId ir_block : function.layout)
    for (ir::InstructionId id : function.instructions_in(ir_block))
      if (function.instructions[id].kind == ir::InstructionKind::real) prepare_site(function, entry, id);
  const RegisterSpace space{resident_blocks_ * block_warps_, numbers_.registers, numbers_.others};
  scalar_ = std::make_unique<ScalarUnit>(space, options_.scalar_entries);
  sliced_ = std::make_unique<SlicedDatapath>(space);
}

// Blocks that follow one another on the SM reuse the warp slots of earlier blocks.
void DatapathStudy::start_block(uint64_t block) {
  current_block_ = block;
  if (block / resident_blocks_ != current_batch_) sliced_->pair_up();
  current_batch_ = block / resident_blocks_;
  first_slot_ = static_cast<uint32_t>(block % resident_blocks_) * block_warps_;
  for (uint32_t warp = first_slot_; warp < first_slot_ + block_warps_; ++warp) {
    scalar_->start(warp);
    sliced_->start(warp);
  }
}

// The access counter of the register file that holds `of` if the machine has both units.
inline uint64_t& DatapathStudy::file_with_both(uint32_t slot, const HardwareRegister& of) {
  RegisterAccesses& accesses = counts_.with_both;
  if (scalar_->is_scalar(slot, of)) return accesses.scalar;
  return sliced_->is_half(slot, of) ? accesses.half : accesses.full;
}

void DatapathStudy::executed(const StudiedExecution& execution) {
  if (execution.number >= sites_.size()) return;
  const DatapathSite& site = sites_[execution.number];
  // Blocks that run in turns (spinning on each other) lose the state of their registers at every switch.
  if (execution.block != current_block_) start_block(execution.block);
  const uint32_t slot = first_slot_ + execution.warp;
  const uint64_t weight = site.instruction.weight, times = execution.stands_for;
  counts_.instructions += weight * times;
  bool is_narrow = false;
  if (weight > 0) {
    const std::span<const HardwareRegister> uses(registers_.data() + site.first_use, site.uses);
    for (const HardwareRegister& use : uses)
      if (use.in_file) file_with_both(slot, use) += use.words * times;
    const bool is_scalar = scalar_->issue(slot, uses, site.scalar && execution.all_lanes, weight, times);
    if (is_scalar) scalar_executions_[execution.number][times > 1] += {1, execution.lanes};
    is_narrow = sliced_->issue(slot, uses, site.narrow, weight, times);
    if (is_narrow) {
      NarrowExecutions& narrow = narrow_executions_[execution.number];
      narrow.all[times > 1] += {1, execution.lanes};
      if (!is_scalar) narrow.not_scalar[times > 1] += {1, execution.lanes};
    }
  }
  if (site.definitions > 0) write(slot, site, execution, is_narrow, times);
}

void DatapathStudy::write(uint32_t slot, const DatapathSite& site, const StudiedExecution& execution, bool is_narrow,
                          uint64_t times) {
  written_.clear();
  bool same = execution.finished && execution.all_lanes;
  for (uint32_t i = 0; i < site.definitions; ++i) {
    const HardwareRegister& destination = registers_[site.first_definition + i];
    const LaneFacts facts = execution.finished ? execution.written[i] : LaneFacts();
    same = same && facts.uniform();
    scalar_->write(slot, destination, execution.all_lanes, facts.uniform(), times);
    written_.push_back({destination, facts.narrow(), facts.negative()});
  }
  if (same) counts_.redundant += site.instruction.weight * times;
  sliced_->write(slot, written_, execution.all_lanes, is_narrow, site.instruction.weight, times);
  for (const WrittenValue& value : written_)
    if (value.destination.in_file) file_with_both(slot, value.destination) += value.destination.words * times;
}

DatapathCounts DatapathStudy::counts() {
  if (!sliced_) return counts_; // nothing was executed
  sliced_->pair_up();
  const ScalarCounters& scalar = scalar_->counters();
  const SlicedCounters& sliced = sliced_->counters();
  DatapathCounts counts = counts_;
  counts.scalar = scalar.issued;
  counts.narrow = sliced.narrow;
  counts.stalls = sliced.stalls;
  counts.paired = sliced.paired;
  counts.paired_by_chance = sliced.paired_by_chance;
  counts.paired_by_search = sliced.paired_by_search;
  counts.reads = sliced.reads;
  counts.writes = sliced.writes;
  counts.half_reads = sliced.half_reads;
  counts.half_writes = sliced.half_writes;
  counts.with_scalar = {scalar.vector_reads + scalar.vector_writes, 0, scalar.scalar_reads + scalar.scalar_writes};
  counts.with_slices.half = sliced.half_reads + sliced.half_writes;
  counts.with_slices.full = counts.accesses() - counts.with_slices.half;
  // An expansion reads one register file and writes another; expanding a half writes the other half of the register.
  for (RegisterAccesses* accesses : {&counts.with_scalar, &counts.with_both}) {
    accesses->full += scalar.expansions;
    accesses->scalar += scalar.expansions;
  }
  counts.with_slices.half += sliced.expansions;
  counts.with_both.half += sliced.expansions;
  return counts;
}

} // namespace ptxrewrite::emulator
