#include "emulator/machines/datapath/register_numbers.h"

#include "ir/flow/cfg.h"
#include "ir/flow/liveness.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;

// From the first to the last position at which the value is defined, used or live.
struct Range {
  uint32_t first = nowhere, last = 0;
  void include(uint32_t place) {
    first = std::min(first, place);
    last = std::max(last, place);
  }
};

std::vector<Range> ranges_of(const ir::Function& function) {
  std::vector<Range> ranges(function.values.size());
  const ir::ControlFlow flow(function);
  const ir::Liveness liveness(function, flow);
  uint32_t place = 0;
  for (ir::BlockId block : function.layout) {
    for (ir::ValueId value : liveness.live_in(block))
      ranges[value.index()].include(place);
    for (ir::InstructionId id : function.instructions_in(block)) {
      ++place;
      ir::for_each_use(function, id, [&](ir::ValueId value) { ranges[value.index()].include(place); });
      ir::for_each_definition(function, id, [&](ir::ValueId value) { ranges[value.index()].include(place); });
    }
    ++place;
    for (ir::ValueId value : liveness.live_out(block))
      ranges[value.index()].include(place);
  }
  return ranges;
}

// Occupied numbers, each until the end of a value's range.
class Places {
public:
  uint32_t take(uint32_t words, const Range& range) {
    for (uint32_t at = 0;; at += words) {
      if (at + words > busy_until_.size()) busy_until_.resize(at + words);
      const auto begin = busy_until_.begin() + at;
      // A value whose range ends where another one begins is read before the other one is written.
      if (!std::all_of(begin, begin + words, [&](uint32_t until) { return until <= range.first; })) continue;
      std::fill(begin, begin + words, std::max(range.last, range.first + 1));
      return at;
    }
  }
  uint32_t count() const { return static_cast<uint32_t>(busy_until_.size()); }

private:
  std::vector<uint32_t> busy_until_;
};

} // namespace

RegisterNumbers number_registers(const ir::Function& function, const std::function<bool(ir::InstructionId)>& in_file) {
  RegisterNumbers numbers;
  std::vector<bool> written(function.values.size());
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::real && in_file(id))
        ir::for_each_definition(function, id, [&](ir::ValueId value) { written[value.index()] = true; });
  numbers.of.resize(function.values.size());
  const std::vector<Range> ranges = ranges_of(function);
  std::vector<uint32_t> order;
  for (uint32_t value = 0; value < ranges.size(); ++value)
    if (ranges[value].first != nowhere) order.push_back(value);
  std::ranges::stable_sort(order, {}, [&](uint32_t value) { return ranges[value].first; });
  Places words, others;
  for (uint32_t index : order) {
    const ir::Value& value = function.values[ir::ValueId(index)];
    const bool is_predicate = value.type == ir::ScalarType::pred;
    const uint32_t bits = std::max(ir::bit_width(value.type), 32u) * std::max<uint32_t>(value.vector_width, 1);
    const uint32_t count = std::bit_ceil((bits + 31) / 32);
    HardwareRegister& place = numbers.of[index];
    place.words = static_cast<uint8_t>(is_predicate ? 0 : count);
    place.in_file = !is_predicate && written[index];
    place.number = place.in_file ? words.take(count, ranges[index]) : others.take(1, ranges[index]);
  }
  numbers.registers = words.count();
  numbers.others = others.count();
  return numbers;
}

} // namespace ptxrewrite::emulator
