// Looks through the widening of operands; a table lists the f32 operations that may be done on halves.
#include "transforms/packed/half_via_float.h"

#include "ir/core/builder.h"
#include "ir/core/module.h"
#include "ir/flow/def_use.h"
#include "ir/isa/isa_availability.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace ptxrewrite::transforms::packed {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

struct Row {
  std::string_view in_float, in_half;
};
constexpr Row rows[] = {
    {"add.f32", "add.rn.f16"},        {"add.rn.f32", "add.rn.f16"},     {"add.ftz.f32", "add.rn.f16"},
    {"add.rn.ftz.f32", "add.rn.f16"}, {"sub.f32", "sub.rn.f16"},        {"sub.rn.f32", "sub.rn.f16"},
    {"sub.ftz.f32", "sub.rn.f16"},    {"sub.rn.ftz.f32", "sub.rn.f16"}, {"mul.f32", "mul.rn.f16"},
    {"mul.rn.f32", "mul.rn.f16"},     {"mul.ftz.f32", "mul.rn.f16"},    {"mul.rn.ftz.f32", "mul.rn.f16"},
    {"min.f32", "min.f16"},           {"min.ftz.f32", "min.f16"},       {"max.f32", "max.f16"},
    {"max.ftz.f32", "max.f16"},
};

// The half with the same value, if it exists: finite and exact.
std::optional<uint16_t> half_of(uint32_t single) {
  const uint32_t sign = single >> 31, exponent = single >> 23 & 0xff, fraction = single & 0x7fffff;
  if (exponent == 0 && fraction == 0) return static_cast<uint16_t>(sign << 15);
  const int scale = static_cast<int>(exponent) - 127;
  if (scale < -14 || scale > 15 || (fraction & 0x1fff) != 0) return std::nullopt;
  return static_cast<uint16_t>(sign << 15 | static_cast<uint32_t>(scale + 15) << 10 | fraction >> 13);
}

bool is_plain(const ir::Function& function, InstructionId id) {
  return id && function.instructions[id].kind == ir::InstructionKind::real && !function.instructions[id].guard;
}

class HalfFinder {
public:
  explicit HalfFinder(const ir::Function& function) : function_(function) {}

  std::vector<HalfOperation> run() {
    std::vector<InstructionId> roots;
    for (ir::BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (is_root(id)) roots.push_back(id);
    std::vector<HalfOperation> list;
    if (roots.empty()) return list;
    def_use_.emplace(function_);
    for (const InstructionId root : roots)
      if (std::optional<HalfOperation> found = at(root)) list.push_back(*std::move(found));
    return list;
  }

private:
  bool is_root(InstructionId id) const {
    if (!function_.is_opcode(id, ir::Opcode::cvt) || !is_plain(function_, id)) return false;
    const std::string_view mnemonic = function_.form_of(id).mnemonic;
    return mnemonic == "cvt.rn.f16x2.f32" || mnemonic == "cvt.rn.f16.f32";
  }

  std::optional<HalfOperation> at(InstructionId id) const {
    HalfOperation found{id, {}};
    const std::span<const Operand> operands = function_.operands_of(id);
    for (size_t i = operands.size(); i-- > 1;) { // the upper half comes first in the operands
      std::optional<HalfOperation::Half> half = half_of_operand(operands[i]);
      if (!half) return std::nullopt;
      found.halves.push_back(*std::move(half));
    }
    return found;
  }

  InstructionId definition(const Operand& operand) const {
    if (!operand.is(OperandKind::value) || operand.has(ir::OperandFlag::negated)) return {};
    const InstructionId id = def_use_->definition(operand.as_value()).instruction;
    return is_plain(function_, id) ? id : InstructionId();
  }

  std::optional<HalfOperation::Half> half_of_operand(const Operand& rounded) const {
    const InstructionId id = definition(rounded);
    if (!id) return std::nullopt;
    const auto row = std::ranges::find(rows, function_.form_of(id).mnemonic, &Row::in_float);
    const std::span<const Operand> operands = function_.operands_of(id);
    if (row == std::end(rows) || operands.size() != 3 || !is_available(row->in_half)) return std::nullopt;
    HalfOperation::Half half{id, {}, row->in_half};
    bool has_register = false;
    for (const Operand& operand : operands.subspan(1)) {
      const std::optional<Operand> narrow = narrowed(operand);
      if (!narrow) return std::nullopt;
      has_register |= narrow->is(OperandKind::value);
      half.operands.push_back(*narrow);
    }
    return has_register ? std::optional(half) : std::nullopt;
  }

  // The half from which an f32 operand was widened.
  std::optional<Operand> narrowed(const Operand& operand) const {
    if (operand.is(OperandKind::float32)) {
      const std::optional<uint16_t> bits = packed::half_of(static_cast<uint32_t>(operand.immediate));
      return bits ? std::optional(Operand::integer(*bits)) : std::nullopt;
    }
    const InstructionId id = definition(operand);
    if (!id) return std::nullopt;
    const std::string_view mnemonic = function_.form_of(id).mnemonic;
    const Operand& source = function_.operands_of(id).back();
    if (mnemonic == "mov.f32" && source.is(OperandKind::float32)) return narrowed(source);
    if ((mnemonic != "cvt.f32.f16" && mnemonic != "cvt.ftz.f32.f16") || !source.is(OperandKind::value) ||
        source.has(ir::OperandFlag::negated) || source.selector != ir::no_selector ||
        ir::bit_width(function_.values[source.as_value()].type) != 16)
      return std::nullopt;
    return Operand::value(source.as_value());
  }

  bool is_available(std::string_view mnemonic) const {
    const ir::Module& module = function_.module();
    const ir::PtxVersion version{module.version_major, module.version_minor};
    return !module.targets.empty() && std::ranges::all_of(module.targets, [&](Symbol target) {
      const std::string_view word = module.text(target);
      return !(word.starts_with("sm_") || word.starts_with("compute_")) ||
             ir::why_not_available(ir::form(ir::known_form(mnemonic)), version, word).empty();
    });
  }

  const ir::Function& function_;
  std::optional<ir::DefUse> def_use_; // if there is a root
};

} // namespace

std::vector<HalfOperation> find_half_operations(const ir::Function& function) {
  return HalfFinder(function).run();
}

std::string description(const ir::Function& function, const HalfOperation& half) {
  std::string text;
  for (const HalfOperation::Half& one : half.halves)
    text += (text.empty() ? "" : ", ") + std::string(function.form_of(one.operation).mnemonic);
  text += " of halves -> ";
  for (const HalfOperation::Half& one : half.halves)
    text += (&one == half.halves.data() ? "" : ", ") + std::string(one.mnemonic);
  return text;
}

void replace(ir::Function& function, const HalfOperation& half) {
  ir::Builder builder(function);
  builder.before(half.root).standing_for(half.root);
  const Operand result = function.operands_of(half.root)[0];
  std::vector<ValueId> made;
  for (const HalfOperation::Half& one : half.halves) {
    std::vector<Operand> operands(1);
    for (const Operand& operand : one.operands)
      operands.push_back(operand.is(OperandKind::value)
                             ? operand
                             : Operand::value(builder.emit_value("mov.b16", ir::ScalarType::b16, {operand})));
    const bool is_whole = half.halves.size() == 1;
    made.push_back(is_whole ? result.as_value() : builder.new_value(ir::ScalarType::b16));
    operands[0] = Operand::definition(made.back());
    builder.emit(one.mnemonic, operands);
  }
  if (made.size() == 2)
    builder.emit("mov.b32",
                 {result, Operand::group(OperandKind::vector, 2), Operand::value(made[0]), Operand::value(made[1])});
  function.remove(half.root);
}

} // namespace ptxrewrite::transforms::packed
