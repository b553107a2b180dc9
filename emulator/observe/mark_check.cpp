#include "emulator/observe/mark_check.h"

#include "ir/analysis/redundancy/redundancy.h"
#include "ir/core/print.h"
#include "support/mix.h"

#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {

namespace {

constexpr size_t most_messages = 20;

// The finaliser of SplitMix64.
uint64_t chain(uint64_t state, uint64_t value) {
  return mixed_bits(state + 0x9e3779b97f4a7c15 + value);
}

// Hashes all 32 lanes: lanes that the guard disables keep their old values, which are part of the result.
uint64_t hash_of_results(const ObservedInstruction& at) {
  uint64_t state = 0;
  for (const ObservedValue& result : at.results) {
    if (result.bits == 1) {
      uint32_t mask = 0;
      std::memcpy(&mask, result.lanes, sizeof mask);
      state = chain(state, mask);
      continue;
    }
    uint64_t word = 0;
    for (unsigned byte = 0; byte < warp_size * result.bits / 8; byte += sizeof word) {
      std::memcpy(&word, result.lanes + byte, sizeof word);
      state = chain(state, word);
    }
  }
  return state;
}

// Affine: one stride between the lanes of a row of threads, with identical rows.
ir::MarkKind kind_of(const ObservedValue& value, unsigned row) {
  if (value.same_in(full_mask)) return ir::MarkKind::uniform;
  if (value.bits < 8 || value.bits > 64) return ir::MarkKind::unstructured;
  const uint64_t mask = value.bits == 64 ? UINT64_MAX : (uint64_t{1} << value.bits) - 1;
  const uint64_t first = value.low(0), stride = row > 1 ? value.low(1) - first : 0;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if (((first + stride * (lane % row) - value.low(lane)) & mask) != 0) return ir::MarkKind::unstructured;
  return ir::MarkKind::affine;
}

ir::MarkKind kind_of_results(const ObservedInstruction& at, uint32_t width) {
  const unsigned row = width < warp_size && std::has_single_bit(width) ? width : warp_size;
  ir::MarkKind kind = ir::MarkKind::uniform;
  for (const ObservedValue& result : at.results)
    kind = std::max(kind, kind_of(result, row));
  return kind;
}

// A barrier at which all warps of the block wait: without a number of threads.
bool is_block_barrier(const ObservedInstruction& at, const ir::Form& form) {
  const bool barrier = form.opcode == ir::Opcode::bar || form.opcode == ir::Opcode::barrier;
  if (!barrier || form.has(ir::Modifier::warp) || form.has(ir::Modifier::cluster)) return false;
  const size_t operands = at.function->operands_of(at.instruction).size();
  return form.has(ir::Modifier::sync) ? operands == 1 : form.has(ir::Modifier::red) && operands == 3;
}

} // namespace

MarkRow& MarkCheck::row_of(const Block& block, const ir::Function& function, ir::InstructionId instruction) {
  auto [place, fresh] = rows_.try_emplace({&function, instruction});
  MarkRow& row = place->second;
  if (fresh) {
    auto [marks, unknown] = marks_.try_emplace(&function);
    if (unknown) marks->second.marks = ir::marks_of(function);
    row.function = &function;
    row.instruction = instruction;
    row.mark = mark_everything_ ? ir::DarsieMark::uniform() : marks->second.marks[instruction.index()];
  }
  const Dimensions& shape = block.launch->request->block;
  row.promoted = promote(row.mark, {shape.x, shape.y, shape.z});
  return row;
}

MarkCheck::Histories& MarkCheck::histories_of(const Block& block) {
  Histories& histories = blocks_[block.linear];
  histories.branches.resize(std::max(histories.branches.size(), block.warps.size()));
  histories.barriers.resize(histories.branches.size());
  return histories;
}

void MarkCheck::executing(const ObservedInstruction& at) {
  const ir::Form& form = at.function->form_of(at.instruction);
  const bool waits = is_block_barrier(at, form);
  if (form.effects.writes_memory || form.effects.atomic || (form.effects.barrier && !waits)) ++stores_;
  Histories& histories = histories_of(*at.block);
  uint64_t& branches = histories.branches[at.warp->index];
  if (form.effects.transfers_control()) branches = chain(branches, uint64_t(at.number) << 32 | at.mask);
  if (!waits) return;
  // After a barrier the branches taken before it no longer distinguish the warps.
  uint64_t& barriers = histories.barriers[at.warp->index];
  barriers = chain(barriers, at.number);
  branches = barriers;
}

void MarkCheck::passed(Block& block, Warp& warp, const MicroOp& op) {
  const DecodedFunction& function = *warp.activation->function;
  const ir::InstructionId id(op.instruction - function.first_instruction);
  if (!function.source->form_of(id).effects.transfers_control()) return;
  uint64_t& branches = histories_of(block).branches[warp.index];
  branches = chain(branches, uint64_t(op.instruction) << 32);
}

void MarkCheck::executed(const ObservedInstruction& at) {
  if (at.results.empty() || at.warp->active != full_mask) return;
  MarkRow& row = row_of(*at.block, *at.function, at.instruction);
  ++row.executions;
  const ir::Form& form = at.function->form_of(at.instruction);
  Histories& histories = histories_of(*at.block);
  const uint64_t instance = chain(histories.branches[at.warp->index], at.number);
  const Seen now{hash_of_results(at), stores_, at.warp->index};
  auto [place, fresh] = histories.instances.try_emplace(instance, now);
  if (fresh) return;
  Seen& earlier = place->second;
  const bool is_stale = form.effects.reads_memory && earlier.stores != stores_;
  if (is_stale || earlier.warp == now.warp) {
    earlier = now;
    return;
  }
  if (earlier.result == now.result) {
    ++row.repeated;
    ++row.repeated_by_kind[static_cast<size_t>(kind_of_results(at, at.block->launch->request->block.x))];
  } else if (row.promoted.is_definite()) {
    contradict(row, at, earlier);
  }
}

void MarkCheck::contradict(MarkRow& row, const ObservedInstruction& at, const Seen& earlier) {
  ++row.contradicted;
  ++contradictions_;
  if (messages_.size() >= most_messages) return;
  messages_.push_back(std::string(at.function->module().text(at.function->name)) + ": " +
                      print_instruction(*at.function, at.instruction) + " (" + to_string(row.mark) + "): block " +
                      std::to_string(at.block->linear) + ", warps " + std::to_string(earlier.warp) + " and " +
                      std::to_string(at.warp->index));
}

void MarkCheck::block_ended(Block& block) {
  blocks_.erase(block.linear);
}

std::vector<MarkRow> MarkCheck::rows() const {
  std::vector<MarkRow> all;
  for (const auto& [key, row] : rows_)
    all.push_back(row);
  return all;
}

} // namespace ptxrewrite::emulator
