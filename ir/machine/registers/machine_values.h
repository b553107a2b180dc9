// Determines which values of an SSA-form function a machine keeps in registers, which registers each instruction reads,
// and where each value is live.
//
// PTX values are not machine values (ir/machine/select/lowering.h): a literal, a parameter or an address plus a
// constant is part of the instruction word of its reader; the readers of an absorbed instruction (such as an extension
// in a wide multiply-add) read its operands; a plain copy is an alias of its source. None of these has a register, and
// the values that they are computed from are live until their readers have read them.
//
// Program points: every instruction, and the start and the end of every block, has two: it reads at 2n and writes at 2n
// + 1. A block's parameters are written at its start; an edge's arguments are read at the end of its source block.
// Blocks are numbered in layout order.
#pragma once

#include "ir/flow/cfg.h"
#include "ir/machine/select/lowering.h"

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

struct LiveRange {
  uint32_t begin, end; // program points, [begin, end)
  bool operator==(const LiveRange&) const = default;
};
// True if two lists of ranges overlap. Each list is sorted, with disjoint ranges.
bool overlap(std::span<const LiveRange> a, std::span<const LiveRange> b);
// Adds `more`, sorted by `begin`, to `ranges`; overlapping ranges are merged.
void merge_ranges(std::vector<LiveRange>& ranges, std::span<const LiveRange> more);

class MachineValues {
public:
  // `apart`: values that get a register although their readers do not need it.
  MachineValues(const Function& function, const ControlFlow& flow, uint32_t compute_capability,
                const std::set<ValueId>& apart = {});
  // With a lowering that was made before, as written.
  MachineValues(const Function& function, const ControlFlow& flow, std::shared_ptr<const Lowering> lowering,
                const std::set<ValueId>& apart = {});

  // True if the value is in a register, general or predicate.
  bool in_register(ValueId value) const { return units_[value.index()] != 0; }
  // Number of 32-bit registers; 1 for a predicate; 0 for a value without a register.
  unsigned units(ValueId value) const { return units_[value.index()]; }
  bool is_predicate(ValueId value) const;
  // The registers that a reader of the value reads: the value itself if it has one.
  std::span<const ValueId> stands_for(ValueId value) const;
  // The values that an instruction reads and writes, each once; guard and old values are reads, too.
  std::span<const ValueId> reads(InstructionId id) const { return part(reads_, read_start_, id.index()); }
  std::span<const ValueId> writes(InstructionId id) const { return part(writes_, write_start_, id.index()); }
  // True if the instruction is issued: it is live and has not been fused into its readers.
  bool is_issued(InstructionId id) const;

  // Indices: the program points are 2 * index (read) and 2 * index + 1 (write).
  uint32_t index_of(InstructionId id) const { return instruction_index_[id.index()]; }
  uint32_t start_of(BlockId block) const { return block_start_[block.index()]; }
  uint32_t end_of(BlockId block) const { return block_end_[block.index()]; }
  uint32_t index_count() const { return index_count_; }

  std::span<const LiveRange> ranges(ValueId value) const { return ranges_[value.index()]; }
  bool live_at(ValueId value, uint32_t point) const;

  const Lowering& lowering() const { return *lowering_; }
  const std::shared_ptr<const Lowering>& shared_lowering() const { return lowering_; }

private:
  static std::span<const ValueId> part(const std::vector<ValueId>& pool, const std::vector<uint32_t>& start,
                                       uint32_t i) {
    return std::span(pool).subspan(start[i], start[i + 1] - start[i]);
  }
  void number_points();
  std::vector<bool> handed_over() const;
  void decide_units(const std::set<ValueId>& apart);
  unsigned width_of(ValueId value) const;
  bool is_renaming(InstructionId id) const;
  void find_stand_ins(const std::set<ValueId>& apart);
  void list_accesses();
  void drop_unread();
  struct Places;
  class RangeWalk;
  Places find_places(const ControlFlow& flow) const;
  void find_ranges(const ControlFlow& flow);

  const Function& function_;
  std::shared_ptr<const Lowering> lowering_;
  std::vector<InstructionId> definition_; // by ValueId; invalid for parameters
  std::vector<uint8_t> units_;
  std::vector<std::vector<ValueId>> stand_ins_; // of values without a register
  std::vector<ValueId> self_;                   // every value, for stands_for
  std::vector<uint32_t> read_start_, write_start_;
  std::vector<ValueId> reads_, writes_;
  std::vector<uint32_t> instruction_index_, block_start_, block_end_;
  uint32_t index_count_ = 0;
  std::vector<std::vector<LiveRange>> ranges_;
};

} // namespace ptxrewrite::ir
