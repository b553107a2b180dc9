// Instead of matching patterns, evaluates expressions: an expression over the lane ID alone has 32 values, which are
// compared with those of the masks.
#include "transforms/warp/lane_masks.h"

#include "ir/core/builder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>

namespace ptxrewrite::transforms::warp {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::Operation;
using ir::SpecialRegister;
using ir::ValueId;

constexpr unsigned deepest = 4;
using ByLane = std::array<uint32_t, 32>;

struct Mask {
  SpecialRegister name;
  uint32_t (*of)(uint32_t lane);
};
constexpr Mask masks[] = {
    {SpecialRegister::lanemask_eq, [](uint32_t lane) { return 1u << lane; }},
    {SpecialRegister::lanemask_lt, [](uint32_t lane) { return (1u << lane) - 1; }},
    {SpecialRegister::lanemask_le, [](uint32_t lane) { return UINT32_MAX >> (31 - lane); }},
    {SpecialRegister::lanemask_ge, [](uint32_t lane) { return UINT32_MAX << lane; }},
    {SpecialRegister::lanemask_gt, [](uint32_t lane) { return ~(UINT32_MAX >> (31 - lane)); }},
};

std::optional<SpecialRegister> mask_of(const ByLane& values) {
  for (const Mask& mask : masks) {
    bool same = true;
    for (uint32_t lane = 0; lane < values.size(); ++lane)
      same &= values[lane] == mask.of(lane);
    if (same) return mask.name;
  }
  return std::nullopt;
}

template <class Compute> ByLane each(const ByLane& a, const ByLane& b, Compute&& compute) {
  ByLane result;
  for (size_t lane = 0; lane < result.size(); ++lane)
    result[lane] = compute(a[lane], b[lane]);
  return result;
}

class Evaluator {
public:
  Evaluator(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes)
      : function_(function), def_use_(def_use), lanes_(lanes) {}

  std::optional<ByLane> of(InstructionId id, unsigned depth = deepest);
  // The instructions visited, including the one that computes the lane ID.
  const std::vector<InstructionId>& inside() const { return inside_; }

private:
  std::optional<ByLane> of(const Operand& operand, unsigned depth);

  const ir::Function& function_;
  const ir::DefUse& def_use_;
  const WarpLanes& lanes_;
  std::vector<InstructionId> inside_;
};

std::optional<ByLane> Evaluator::of(const Operand& operand, unsigned depth) {
  ByLane result;
  if (operand.is(OperandKind::integer)) {
    result.fill(static_cast<uint32_t>(operand.immediate));
    return result;
  }
  if (!operand.is(OperandKind::value) || depth == 0) return std::nullopt;
  const ValueId value = operand.as_value();
  if (ir::bit_width(function_.values[value].type) != 32) return std::nullopt;
  const InstructionId id = def_use_.definition(value).instruction;
  if (lanes_.of(value) == LaneValue::lane) {
    if (id && function_.form_of(id).operation != Operation::copy) inside_.push_back(id);
    for (uint32_t lane = 0; lane < result.size(); ++lane)
      result[lane] = lane;
    return result;
  }
  return id ? of(id, depth - 1) : std::nullopt;
}

std::optional<ByLane> computed(const ir::Form& form, const ByLane& a, const ByLane& b) {
  switch (form.operation) {
  case Operation::copy:
    return a;
  case Operation::add:
    return each(a, b, [](uint32_t x, uint32_t y) { return x + y; });
  case Operation::subtract:
    return each(a, b, [](uint32_t x, uint32_t y) { return x - y; });
  case Operation::negate:
    return each(a, b, [](uint32_t x, uint32_t) { return 0 - x; });
  case Operation::complement:
    return each(a, b, [](uint32_t x, uint32_t) { return ~x; });
  case Operation::bit_and:
    return each(a, b, [](uint32_t x, uint32_t y) { return x & y; });
  case Operation::bit_or:
    return each(a, b, [](uint32_t x, uint32_t y) { return x | y; });
  case Operation::bit_xor:
    return each(a, b, [](uint32_t x, uint32_t y) { return x ^ y; });
  case Operation::shift_left:
    return each(a, b, [](uint32_t x, uint32_t y) { return y > 31 ? 0 : x << y; });
  case Operation::shift_right:
    if (ir::is_signed(form.type())) return std::nullopt;
    return each(a, b, [](uint32_t x, uint32_t y) { return y > 31 ? 0 : x >> y; });
  case Operation::none:
  case Operation::convert:
  case Operation::convert_address:
  case Operation::absolute:
  case Operation::multiply:
  case Operation::multiply_add:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::logic_of_three:
  case Operation::compare:
  case Operation::select:
    break;
  }
  return std::nullopt;
}

std::optional<ByLane> Evaluator::of(InstructionId id, unsigned depth) {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.kind != ir::InstructionKind::real || instruction.guard) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  const std::span<const Operand> operands = function_.operands_of(id);
  // No modifiers except the type: no .sat, no .cc.
  if (!form.effects.pure() || form.modifiers.size() != 1 || ir::bit_width(form.type()) != 32 || operands.size() < 2 ||
      operands.size() > 3 || operands[0].is_group())
    return std::nullopt;
  inside_.push_back(id);
  const std::optional<ByLane> a = of(operands[1], depth);
  if (!a) return std::nullopt;
  const std::optional<ByLane> b = operands.size() == 3 ? of(operands[2], depth) : a;
  return b ? computed(form, *a, *b) : std::nullopt;
}

// The number of instructions in `inside`, whose first one is the root, that become unused without the root.
unsigned dying(const ir::Function& function, const ir::DefUse& def_use, std::span<const InstructionId> inside) {
  std::vector<InstructionId> dead{inside.front()};
  for (size_t i = 0; i < dead.size(); ++i)
    ir::for_each_use(function, dead[i], [&](ValueId value) {
      const InstructionId id = def_use.definition(value).instruction;
      if (std::ranges::find(inside, id) == inside.end() || std::ranges::find(dead, id) != dead.end()) return;
      const bool unread = std::ranges::all_of(def_use.uses(value), [&](const ir::Use& use) {
        return use.instruction && std::ranges::find(dead, use.instruction) != dead.end();
      });
      if (unread) dead.push_back(id);
    });
  return static_cast<unsigned>(
      std::ranges::count_if(dead, [&](InstructionId id) { return function.form_of(id).operation != Operation::copy; }));
}

} // namespace

bool may_have_lane_masks(const ir::Function& function) {
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = function.form_of(id);
      if (form.operation != Operation::shift_left && form.operation != Operation::shift_right) continue;
      const std::span<const Operand> operands = function.operands_of(id);
      if (operands.size() == 3 && operands[2].is(OperandKind::value)) return true;
    }
  return false;
}

std::vector<LaneMask> find_lane_masks(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes) {
  std::vector<LaneMask> found;
  std::vector<bool> is_part(function.instructions.size());
  for (ir::BlockId block : function.layout | std::views::reverse) {
    std::vector<InstructionId> list;
    for (InstructionId id : function.instructions_in(block))
      list.push_back(id);
    for (InstructionId id : list | std::views::reverse) {
      if (is_part[id.index()] || function.instructions[id].kind != ir::InstructionKind::real) continue;
      Evaluator evaluator(function, def_use, lanes);
      const std::optional<ByLane> values = evaluator.of(id);
      const std::optional<SpecialRegister> mask = values ? mask_of(*values) : std::nullopt;
      if (!mask) continue;
      const unsigned saved = dying(function, def_use, evaluator.inside());
      if (saved < 2) continue;
      for (InstructionId part : evaluator.inside())
        is_part[part.index()] = true;
      found.push_back({id, *mask, saved});
    }
  }
  std::ranges::reverse(found);
  return found;
}

std::string description(const LaneMask& mask) {
  return std::to_string(mask.saved) + " instructions -> " + std::string(ir::info(mask.mask).name);
}

void replace(ir::Function& function, const LaneMask& mask) {
  const Operand result = function.operands_of(mask.root)[0];
  ir::Builder(function).before(mask.root).standing_for(mask.root).emit(
      "mov.u32", {result, Operand::special(static_cast<uint32_t>(mask.mask))});
  function.remove(mask.root);
}

} // namespace ptxrewrite::transforms::warp
