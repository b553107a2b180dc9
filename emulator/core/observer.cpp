#include "emulator/core/observer.h"

#include <array>
#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {

uint64_t ObservedValue::low(unsigned lane) const {
  if (bits == 1) {
    uint32_t mask = 0;
    std::memcpy(&mask, lanes, sizeof mask);
    return (mask >> lane) & 1;
  }
  uint64_t value = 0;
  std::memcpy(&value, lanes + lane * (bits / 8), std::min(bits / 8, 8u));
  return value;
}

uint64_t ObservedValue::high(unsigned lane) const {
  uint64_t value = 0;
  if (bits == 128) std::memcpy(&value, lanes + lane * 16 + 8, sizeof value);
  return value;
}

namespace {
template <class T> bool all_same(const std::byte* lanes, uint32_t mask) {
  T first, value;
  std::memcpy(&first, lanes + static_cast<unsigned>(std::countr_zero(mask)) * sizeof(T), sizeof(T));
  for (; mask; mask &= mask - 1) {
    std::memcpy(&value, lanes + static_cast<unsigned>(std::countr_zero(mask)) * sizeof(T), sizeof(T));
    if (std::memcmp(&value, &first, sizeof(T)) != 0) return false;
  }
  return true;
}
} // namespace

bool ObservedValue::same_in(uint32_t mask) const {
  if (mask == 0) return true;
  switch (bits) {
  case 1: {
    uint32_t predicate = 0;
    std::memcpy(&predicate, lanes, sizeof predicate);
    return (predicate & mask) == 0 || (predicate & mask) == mask;
  }
  case 8:
    return all_same<uint8_t>(lanes, mask);
  case 16:
    return all_same<uint16_t>(lanes, mask);
  case 32:
    return all_same<uint32_t>(lanes, mask);
  case 64:
    return all_same<uint64_t>(lanes, mask);
  default:
    return all_same<std::array<uint64_t, 2>>(lanes, mask);
  }
}

ObservedInstruction ValueObserver::observe(const Block& block, const Warp& warp, const MicroOp& op, uint32_t mask) {
  const DecodedFunction& function = *warp.activation->function;
  const ir::InstructionId id(op.instruction - function.first_instruction);
  const InstructionLanes& lanes = function.lanes_of[id.index()];
  auto look = [&](const std::vector<OperandLanes>& from, std::vector<ObservedValue>& to) {
    to.clear();
    for (const OperandLanes& operand : from)
      to.push_back({warp.lanes<std::byte>(operand.lanes), operand.bits});
  };
  look(lanes.sources, sources_);
  look(lanes.results, results_);
  return {&block, &warp, function.source, id, op.instruction, mask, sources_, results_, lanes.complete};
}

void ValueObserver::before(Block& block, Warp& warp, const MicroOp& op) {
  executing(observe(block, warp, op, warp.mask));
}

void ValueObserver::after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) {
  executed(observe(block, warp, op, mask));
}

} // namespace ptxrewrite::emulator
