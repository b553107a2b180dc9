#include "emulator/observer.h"

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

bool ObservedValue::same_in(uint32_t mask) const {
  if (mask == 0) return true;
  const auto first = static_cast<unsigned>(std::countr_zero(mask));
  const uint64_t low_value = low(first), high_value = high(first);
  for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (low(lane) != low_value || high(lane) != high_value) return false;
  }
  return true;
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
