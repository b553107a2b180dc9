// The static information of DARSIE's machine about a kernel: redundant instructions of this launch, their results,
// starts of blocks, branches at which warps may diverge, and instructions that remove loads from the skip table.
#pragma once

#include "emulator/core/program.h"
#include "ir/analysis/redundancy/redundancy.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/flow/liveness.h"
#include "ir/flow/loops.h"
#include "ir/forms/darsie_mark.h"

#include <array>
#include <optional>
#include <vector>

namespace ptxrewrite::emulator {

// A PTX register that a redundant instruction writes.
struct SharedResult {
  uint32_t value = 0; // ir::ValueId of the register
  LaneRef lanes;
  uint32_t bytes = 0;     // of all lanes
  uint32_t registers = 0; // vector registers of 32 lanes of 32 bits
};

// The role of a micro-operation of the kernel.
struct SkipPlace {
  enum class Kind : uint8_t {
    block_start, // `number` is the ir::BlockId
    region,      // only counts the instructions that follow
    rest,        // a further one of an instruction, or of a linear table
    instruction, // the first one of an instruction; `number` is the ir::InstructionId
  };
  Kind kind = Kind::rest;
  bool is_redundant = false;
  bool may_part_warps = false; // a branch that warps may take differently
  uint32_t number = 0;
  uint32_t own = 0;  // index of the main operation among the instruction's micro-operations,
  uint32_t past = 0; // and the index after the last one
};

// No results: the value is an operand of other instructions in machine code, so no register is renamed.
struct RedundantInstruction {
  ir::MarkKind kind = ir::MarkKind::unstructured;
  bool is_load = false; // of memory that the kernel can write
  bool may_be_global = false;
  unsigned registers = 0; // of all results
  std::vector<SharedResult> results;
};

class SkipPlan {
public:
  SkipPlan(const KernelImage& image, std::span<const ir::DarsieMark> marks, const std::array<uint32_t, 3>& block);

  const DecodedFunction& entry() const { return *entry_; }
  const SkipPlace& place(uint32_t code_index) const { return places_[code_index]; }
  const RedundantInstruction& redundant(uint32_t instruction) const {
    return redundant_[redundant_index_[instruction]];
  }
  // Whether redundant instructions write the register: all others are never renamed.
  bool may_be_renamed(uint32_t value) const { return shared_values_[value]; }
  bool is_live_in(uint32_t block, uint32_t value) const {
    return liveness_->is_live_in(ir::BlockId(block), ir::ValueId(value));
  }
  // Of those, the registers that the instruction writes, and those that are dead after it.
  std::span<const uint32_t> written(uint32_t instruction) const { return written_[instruction]; }
  std::span<const uint32_t> dying(uint32_t instruction) const { return dying_[instruction]; }

  // By the image-wide number of an instruction: its effects on memory that other warps can observe.
  bool stores(uint32_t number) const { return effects_[number] & effect_stores; }     // a plain store
  bool drops_loads(uint32_t number) const { return effects_[number] & effect_drops; } // other changes of memory
  bool is_fence(uint32_t number) const { return effects_[number] & effect_fence; }    // for the whole SM

  const ir::LoopForest& loops() const { return loops_; }
  // The loop whose header is the block; invalid if there is none.
  ir::LoopId headed_by(uint32_t block) const { return headed_by_[block]; }

private:
  static constexpr uint8_t effect_stores = 1, effect_drops = 2, effect_fence = 4;
  void find_places();
  void find_redundant(std::span<const ir::DarsieMark> marks, const std::array<uint32_t, 3>& block);
  void find_deaths();
  void find_effects(const KernelImage& image);

  const DecodedFunction* entry_;
  ir::ControlFlow flow_;
  ir::DominatorTree dominators_;
  ir::LoopForest loops_;
  std::vector<bool> shared_values_; // by ir::ValueId
  std::vector<RedundantInstruction> redundant_;
  std::vector<uint32_t> redundant_index_; // by ir::InstructionId; UINT32_MAX: not redundant
  std::optional<ir::Liveness> liveness_;  // of shared values
  std::vector<SkipPlace> places_;         // by code index
  std::vector<std::vector<uint32_t>> written_, dying_;
  std::vector<ir::LoopId> headed_by_;
  std::vector<uint8_t> effects_; // by image-wide number
};

} // namespace ptxrewrite::emulator
