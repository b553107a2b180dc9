// Which values of an SSA-form function a machine keeps in registers, which of them each instruction reads there, and
// where each one is live.
//
// PTX values are not machine values (ir/machine/select/lowering.h): a literal, a parameter or an address plus a
// constant is part of its reader's word; of an instruction that its readers take over (an extension in a wide
// multiply-add) they read the operands; a plain copy is another name of what it copies. All of those have no register
// here, and what they are made of is live until their readers have read it.
//
// Program points: every instruction, and the start and the end of every block, has two: it reads at 2n and writes at
// 2n + 1. A block's parameters are written at its start; an edge's arguments are read at the end of the block that it
// leaves. Blocks are numbered in layout order.
#pragma once

#include "ir/flow/cfg.h"
#include "ir/machine/select/lowering.h"

#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

struct LiveRange {
  uint32_t begin, end; // program points, the end left out
  bool operator==(const LiveRange&) const = default;
};
// Of two lists of ranges that are sorted and do not overlap inside.
bool overlap(std::span<const LiveRange> a, std::span<const LiveRange> b);
// Adds `more`, sorted by `begin`, to `ranges`; what overlaps is joined.
void merge_ranges(std::vector<LiveRange>& ranges, std::span<const LiveRange> more);

class MachineValues {
public:
  // `apart`: values that get a register of their own even if their readers could do without.
  MachineValues(const Function& function, const ControlFlow& flow, uint32_t compute_capability,
                const std::set<ValueId>& apart = {});

  // Does a register hold the value, general or predicate?
  bool in_register(ValueId value) const { return units_[value.index()] != 0; }
  // How many registers of 32 bits; 1 for a predicate; 0 for a value that is in none.
  unsigned units(ValueId value) const { return units_[value.index()]; }
  bool is_predicate(ValueId value) const;
  // The registers that are read where the value is named: itself if it has one.
  std::span<const ValueId> stands_for(ValueId value) const;
  // What the machine reads and writes at an instruction, each value once; guard and old values are read too.
  std::span<const ValueId> reads(InstructionId id) const { return part(reads_, read_start_, id.index()); }
  std::span<const ValueId> writes(InstructionId id) const { return part(writes_, write_start_, id.index()); }
  // True if the instruction is issued: it is live and has not been fused into its readers.
  bool is_issued(InstructionId id) const;

  // Indices: program points are 2 * index (read) and 2 * index + 1 (write).
  uint32_t index_of(InstructionId id) const { return instruction_index_[id.index()]; }
  uint32_t start_of(BlockId block) const { return block_start_[block.index()]; }
  uint32_t end_of(BlockId block) const { return block_end_[block.index()]; }
  uint32_t index_count() const { return index_count_; }

  std::span<const LiveRange> ranges(ValueId value) const { return ranges_[value.index()]; }
  bool live_at(ValueId value, uint32_t point) const;

  const Lowering& lowering() const { return lowering_; }

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
  Places find_places(const ControlFlow& flow) const;
  void find_ranges(const ControlFlow& flow);

  const Function& function_;
  Lowering lowering_;
  std::vector<InstructionId> definition_; // by ValueId; invalid for parameters
  std::vector<uint8_t> units_;
  std::vector<std::vector<ValueId>> stand_ins_; // of values without register
  std::vector<ValueId> self_;                   // every value, for stands_for
  std::vector<uint32_t> read_start_, write_start_;
  std::vector<ValueId> reads_, writes_;
  std::vector<uint32_t> instruction_index_, block_start_, block_end_;
  uint32_t index_count_ = 0;
  std::vector<std::vector<LiveRange>> ranges_;
};

} // namespace ptxrewrite::ir
