#include "emulator/machines/dac/compact_affine.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// Whether consecutive lanes of the mask differ by one stride.
bool has_one_stride(const ObservedValue& value, uint32_t mask, bool& is_uniform) {
  is_uniform = value.same_in(mask);
  if (is_uniform) return true;
  if (value.bits == 1 || value.bits > 64) return false;
  const uint64_t unused = 64 - value.bits;
  const uint64_t first = value.low(0), stride = value.low(1) - first;
  const auto lanes = static_cast<unsigned>(std::popcount(mask));
  for (unsigned lane = 2; lane < lanes; ++lane)
    if ((value.low(lane) - first - stride * lane) << unused) return false;
  return true;
}

// The operations of an affine unit: integer additions and multiplications, and comparisons of warp-uniform
// values.
enum class UnitOperation : uint8_t { none, sum, product, comparison };

UnitOperation operation_of(const ir::Form& form) {
  using ir::Opcode;
  if (ir::is_float(form.type())) return UnitOperation::none;
  switch (form.opcode) {
  case Opcode::mov:
  case Opcode::add:
  case Opcode::sub:
  case Opcode::neg:
  case Opcode::cvta:
    return UnitOperation::sum;
  case Opcode::cvt:
    return ir::is_float(form.type(1)) ? UnitOperation::none : UnitOperation::sum;
  case Opcode::mul:
  case Opcode::mad:
    return form.has(ir::Modifier::hi) ? UnitOperation::none : UnitOperation::product;
  case Opcode::shl:
    return UnitOperation::product;
  case Opcode::setp:
    return UnitOperation::comparison;
  case Opcode::ld: // of parameters, which are the same for all threads
    return ir::is_param(form.space) ? UnitOperation::sum : UnitOperation::none;
  default:
    return UnitOperation::none;
  }
}

bool is_affine(const ObservedInstruction& at, const std::vector<bool>& tags) {
  const UnitOperation operation = operation_of(at.function->form_of(at.instruction));
  if (operation == UnitOperation::none || at.mask != at.warp->members) return false;
  bool tagged = true;
  ir::for_each_use(*at.function, at.instruction, [&](ir::ValueId value) { tagged = tagged && tags[value.index()]; });
  if (!tagged) return false;
  for (size_t i = 0; i < at.sources.size(); ++i) {
    bool is_uniform = false;
    if (!has_one_stride(at.sources[i], at.mask, is_uniform)) return false;
    if (operation == UnitOperation::comparison && !is_uniform) return false;
  }
  if (operation != UnitOperation::product) return true;
  // One of the factors must be a scalar; the addend of mad may be any affine value.
  const size_t factors = std::min<size_t>(at.sources.size(), 2);
  return std::ranges::any_of(at.sources.first(factors),
                             [&](const ObservedValue& factor) { return factor.same_in(at.mask); });
}

} // namespace

std::vector<bool>& CompactAffine::tags_of(const ObservedInstruction& at) {
  std::vector<bool>& tags = tags_[at.block->linear][at.warp->index][at.function];
  tags.resize(at.function->values.size());
  return tags;
}

void CompactAffine::executing(const ObservedInstruction& at) {
  CompactAffineRow& row = rows_[at.number];
  row.function = at.function;
  row.instruction = at.instruction;
  ++row.executions;
  std::vector<bool>& tags = tags_of(at);
  const bool affine = is_affine(at, tags);
  row.affine += affine;
  ir::for_each_definition(*at.function, at.instruction, [&](ir::ValueId value) { tags[value.index()] = affine; });
}

void CompactAffine::block_ended(Block& block) {
  tags_.erase(block.linear);
}

} // namespace ptxrewrite::emulator
