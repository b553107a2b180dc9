// spcompress, spdecompress: sparse vectors in registers of a lane (PTX ISA 9.4, 9.7.10.30 and 9.7.10.31).
#include "emulator/special/sparse_vectors.h"

#include "emulator/core/block.h"
#include "emulator/core/lanes.h"
#include "emulator/semantics/sparse_groups.h"
#include "emulator/special/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

constexpr size_t most_registers = 256; // ptxas takes 253 in one instruction

struct SparseVector {
  unsigned element_bits = 16, index_bits = 2, groups = 0;
  semantics::SparseRatio ratio;
  // Registers in the instruction's list, in this order.
  uint32_t indices = 0, kept = 0, data = 0;
};

const SparseVector& vector_of(const Warp& warp, const MicroOp& op) {
  return *static_cast<const SparseVector*>(warp.activation->function->descriptions[op.auxiliary].get());
}

// The instruction's registers in one lane.
struct LaneWords {
  LaneWords(const Warp& warp, const MicroOp& op, const SparseVector& vector)
      : lists(warp.activation->function->lists.data() + op.extra), indices(words.data(), vector.indices),
        kept(words.data() + vector.indices, vector.kept),
        data(words.data() + vector.indices + vector.kept, vector.data) {}
  void read(const Warp& warp, std::span<uint32_t> part, unsigned lane) {
    for (uint32_t& word : part)
      word = warp.lanes<uint32_t>(lists[&word - words.data()])[lane];
  }
  void write(const Warp& warp, std::span<uint32_t> part, unsigned lane) {
    for (const uint32_t& word : part)
      warp.lanes<uint32_t>(lists[&word - words.data()])[lane] = word;
  }
  const LaneRef* lists;
  std::array<uint32_t, most_registers> words = {};
  std::span<uint32_t> indices, kept, data;
};

const MicroOp* compress(Warp& warp, const MicroOp& op) {
  const SparseVector& vector = vector_of(warp, op);
  warp.block->take_fuel(vector.data);
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const uint32_t descriptor = warp.lanes<uint32_t>(op.source[0])[lane];
    const auto choice = semantics::sparse_choice(descriptor, vector.element_bits);
    if (!choice) return warp.block->fail(warp, op, lane, fmt::format("sparsity descriptor {:#x}", descriptor));
    LaneWords words(warp, op, vector);
    words.read(warp, words.data, lane);
    semantics::compress_groups(words.data, vector.element_bits, vector.index_bits, *choice, words.kept, words.indices);
    words.write(warp, words.indices, lane);
    words.write(warp, words.kept, lane);
  }
  return &op + 1;
}

const MicroOp* decompress(Warp& warp, const MicroOp& op) {
  const SparseVector& vector = vector_of(warp, op);
  warp.block->take_fuel(vector.data);
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    LaneWords words(warp, op, vector);
    words.read(warp, words.indices, lane);
    words.read(warp, words.kept, lane);
    if (!semantics::decompress_groups(words.kept, words.indices, vector.element_bits, vector.index_bits, vector.ratio,
                                      vector.groups, words.data))
      return warp.block->fail(warp, op, lane, fmt::format("an index in a group of {} elements", vector.ratio.of));
    words.write(warp, words.data, lane);
  }
  return &op + 1;
}

// --- decoding ---

semantics::SparseRatio ratio_of(const ir::Form& form) {
  using enum ir::Modifier;
  constexpr std::pair<ir::Modifier, semantics::SparseRatio> ratios[] = {
      {sp_1_2, {1, 2}}, {sp_1_4, {1, 4}}, {sp_1_8, {1, 8}},   {sp_1_16, {1, 16}}, {sp_2_4, {2, 4}},
      {sp_2_8, {2, 8}}, {sp_4_8, {4, 8}}, {sp_2_16, {2, 16}}, {sp_4_16, {4, 16}}};
  for (const auto& [modifier, ratio] : ratios)
    if (form.has(modifier)) return ratio;
  return {};
}

} // namespace

void decode_sparse_vector(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const bool compresses = form.opcode == ir::Opcode::spcompress;
  const std::vector<ir::Operand> indices = matrix_registers(decoder, compresses ? 0 : 1),
                                 kept = matrix_registers(decoder, compresses ? 1 : 2),
                                 data = matrix_registers(decoder, compresses ? 2 : 0);
  SparseVector vector;
  vector.element_bits = form.type() == ir::ScalarType::b16 ? 16 : 8;
  vector.index_bits = form.has(ir::Modifier::b4) ? 4 : 2;
  vector.ratio = ratio_of(form);
  vector.indices = static_cast<uint32_t>(indices.size());
  vector.kept = static_cast<uint32_t>(kept.size());
  vector.data = static_cast<uint32_t>(data.size());
  const uint32_t elements = vector.data * 32 / vector.element_bits;
  vector.groups = std::min(elements / vector.ratio.of, vector.kept * 32 / vector.element_bits / vector.ratio.kept);
  if (indices.size() + kept.size() + data.size() > most_registers ||
      vector.groups * vector.ratio.kept * vector.index_bits > vector.indices * 32)
    return decoder.unsupported("a sparse vector of this many registers");
  std::vector<LaneRef> list;
  for (const auto* part : {&indices, &kept, &data})
    for (const ir::Operand& operand : *part)
      list.push_back((part == &data) == compresses ? decoder.source(operand, lanes_of_bits(32))
                                                   : decoder.destination(operand, lanes_of_bits(32)));
  LaneRef descriptor;
  if (compresses) descriptor = decoder.source(decoder.operands()[decoder.top_level(3)], lanes_of_bits(32));
  const uint32_t first = decoder.add_list(list);
  const uint32_t description = add_description(decoder, vector);
  MicroOp& op = decoder.emit(compresses ? &compress : &decompress);
  op.source[0] = descriptor;
  op.extra = first;
  op.auxiliary = description;
}

} // namespace ptxrewrite::emulator
