#include "emulator/study/datapath_study.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

// Does the operand, no register, differ between lanes?
bool differs_in_warp(const ir::Operand& operand) {
  return operand.is(ir::OperandKind::special_register) &&
         ir::info(static_cast<ir::SpecialRegister>(operand.id)).uniformity == ir::Uniformity::thread;
}

// Does the operand, no register, say all there is to say in 16 bits?
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
  Site& site = sites_[decoded.first_instruction + id.index()];
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
  numbers_ =
      number_registers(function, [&](ir::InstructionId id) { return options_.instruction(function, id).weight > 0; });
  sites_.resize(function.instructions.size());
  scalar_executions_.resize(function.instructions.size());
  for (ir::BlockId ir_block : function.layout)
    for (ir::InstructionId id : function.instructions_in(ir_block))
      if (function.instructions[id].kind == ir::InstructionKind::real) prepare_site(function, entry, id);
  const RegisterSpace space{resident_blocks_ * block_warps_, numbers_.registers, numbers_.others};
  scalar_ = std::make_unique<ScalarUnit>(space, options_.scalar_entries);
  sliced_ = std::make_unique<SlicedDatapath>(space);
}

// Warps of blocks that follow one another on the SM have the numbers of those before.
void DatapathStudy::start_block(uint64_t block) {
  current_block_ = block;
  if (block / resident_blocks_ != current_batch_) sliced_->pair_up();
  current_batch_ = block / resident_blocks_;
  const auto first = static_cast<uint32_t>(block % resident_blocks_) * block_warps_;
  for (uint32_t warp = first; warp < first + block_warps_; ++warp) {
    scalar_->start(warp);
    sliced_->start(warp);
  }
}

void DatapathStudy::count_reads(uint32_t slot, std::span<const HardwareRegister> uses) {
  for (const HardwareRegister& use : uses) {
    if (!use.in_file) continue;
    const bool scalar = scalar_->is_scalar(slot, use), half = sliced_->is_half(slot, use);
    counts_.reads += use.words;
    if (half) counts_.half_reads += use.words;
    (scalar ? counts_.with_scalar.scalar : counts_.with_scalar.full) += use.words;
    (half ? counts_.with_slices.half : counts_.with_slices.full) += use.words;
    (scalar ? counts_.with_both.scalar : half ? counts_.with_both.half : counts_.with_both.full) += use.words;
  }
}

void DatapathStudy::executed(const StudiedExecution& execution) {
  if (execution.number >= sites_.size()) return;
  const Site& site = sites_[execution.number];
  // Blocks that spin take turns: their bits are lost then.
  if (execution.block != current_block_) start_block(execution.block);
  const uint32_t slot = static_cast<uint32_t>(execution.block % resident_blocks_) * block_warps_ + execution.warp;
  const std::span<const HardwareRegister> uses(registers_.data() + site.first_use, site.uses);
  const uint64_t weight = site.instruction.weight;
  counts_.instructions += weight;
  bool is_narrow = false;
  if (weight > 0) {
    count_reads(slot, uses);
    if (scalar_->issue(slot, uses, site.scalar && execution.all_lanes, weight)) {
      counts_.scalar += weight;
      scalar_executions_[execution.number] += {1, execution.lanes};
    }
    is_narrow = sliced_->issue(slot, uses, site.narrow, weight);
  }
  write(slot, site, execution, is_narrow);
}

void DatapathStudy::write(uint32_t slot, const Site& site, const StudiedExecution& execution, bool is_narrow) {
  written_.clear();
  bool same = execution.finished && execution.all_lanes && site.definitions > 0;
  for (uint32_t i = 0; i < site.definitions; ++i) {
    const HardwareRegister& destination = registers_[site.first_definition + i];
    const LaneFacts facts = execution.finished ? execution.written[i] : LaneFacts();
    same = same && facts.uniform;
    const bool scalar = scalar_->write(slot, destination, execution.all_lanes, facts.uniform);
    written_.push_back({destination, facts.narrow, facts.negative});
    if (!destination.in_file || site.instruction.weight == 0) continue;
    counts_.writes += destination.words;
    (scalar ? counts_.with_scalar.scalar : counts_.with_scalar.full) += destination.words;
    if (scalar) counts_.with_both.scalar += destination.words;
  }
  if (same) counts_.redundant += site.instruction.weight;
  sliced_->write(slot, written_, execution.all_lanes, is_narrow, site.instruction.weight);
  for (const WrittenValue& value : written_) {
    if (!value.destination.in_file || site.instruction.weight == 0) continue;
    const uint32_t words = value.destination.words;
    const bool half = sliced_->is_half(slot, value.destination);
    if (half) counts_.half_writes += words;
    (half ? counts_.with_slices.half : counts_.with_slices.full) += words;
    if (!scalar_->is_scalar(slot, value.destination)) (half ? counts_.with_both.half : counts_.with_both.full) += words;
  }
}

DatapathCounts DatapathStudy::counts() {
  if (!sliced_) return counts_; // nothing was executed
  sliced_->pair_up();
  const ScalarCounters& scalar = scalar_->counters();
  const SlicedCounters& sliced = sliced_->counters();
  counts_.narrow = sliced.narrow;
  counts_.stalls = sliced.stalls;
  counts_.paired = sliced.paired;
  counts_.paired_by_chance = sliced.paired_by_chance;
  // An expansion reads one file and writes the other.
  counts_.with_scalar.full += scalar.expansions;
  counts_.with_scalar.scalar += scalar.expansions;
  counts_.with_slices.half += sliced.expansions;
  counts_.with_both.full += scalar.expansions;
  counts_.with_both.scalar += scalar.expansions;
  counts_.with_both.half += sliced.expansions;
  return counts_;
}

} // namespace ptxrewrite::emulator
