#include "transforms/divisor/float_division.h"

#include "ir/core/builder.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;

constexpr float largest_odd = 255;
constexpr float further[] = {1.5f, 2.5f, 257,  365,  375,  625,   999,   1001,  1023,
                             1025, 2047, 2049, 4095, 8191, 16383, 32767, 65535, 131071};

// The literal divisor of a division to be rewritten; nothing for other instructions.
std::optional<uint32_t> divisor_of(const ir::Function& function, InstructionId id) {
  if (!function.is_opcode(id, ir::Opcode::div) || function.instructions[id].guard) return std::nullopt;
  const ir::Form& form = function.form_of(id);
  const std::span<const Operand> operands = function.operands_of(id);
  if (form.type() != ir::ScalarType::f32 || !form.has(ir::Modifier::rn) || form.has(ir::Modifier::ftz) ||
      operands.size() != 3 || !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value) ||
      operands[1].selector != ir::no_selector || operands[1].has(ir::OperandFlag::negated) ||
      !operands[2].is(OperandKind::float32))
    return std::nullopt;
  const auto bits = static_cast<uint32_t>(operands[2].immediate);
  return is_exact_divisor(bits) ? std::optional(bits) : std::nullopt;
}

void rewrite(ir::Function& function, InstructionId id, uint32_t bits) {
  const Operand result = function.operands_of(id)[0], x = function.operands_of(id)[1];
  const float reciprocal = 1.0f / std::bit_cast<float>(bits);
  ir::Builder builder(function);
  builder.before(id).standing_for(id);
  auto value = [&](const char* mnemonic, std::initializer_list<Operand> sources) {
    return Operand::value(builder.emit_value(mnemonic, ir::ScalarType::f32, sources, "%f"));
  };
  auto literal = [](float number) { return Operand::float32_bits(std::bit_cast<uint32_t>(number)); };
  const Operand q = value("mul.rn.f32", {x, literal(reciprocal)});
  const Operand rest = value("fma.rn.f32", {q, Operand::float32_bits(bits), value("neg.f32", {x})});
  const Operand number = value("max.f32", {rest, literal(-0x1.fffffep127f)});
  builder.emit("fma.rn.f32", {result, number, literal(-reciprocal), q});
  function.remove(id);
}

} // namespace

bool is_exact_divisor(uint32_t bits) {
  const auto number = std::bit_cast<float>(bits);
  if (number >= 3 && number <= largest_odd) {
    const auto whole = static_cast<uint32_t>(number);
    if (static_cast<float>(whole) == number && whole % 2 == 1) return true;
  }
  return std::ranges::find(further, number) != std::end(further);
}

bool divide_floats(legal::Attempt& attempt, legal::SiteFilter& sites) {
  ir::Function& function = attempt.function();
  bool changed = false;
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const std::optional<uint32_t> bits = divisor_of(function, id);
      if (!bits || !sites.take(id, "div.rn.f32 by a literal -> product and correction")) continue;
      attempt.rest_on("the product, corrected once, is the quotient rounded to nearest", "divisor: f32 by a literal",
                      "", "all floats were compared for this literal", function.instructions[id].range);
      rewrite(function, id, *bits);
      changed = true;
    }
  if (changed) function.changed();
  return changed;
}

} // namespace ptxrewrite::transforms
