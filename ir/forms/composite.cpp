// Splits the mnemonics of composite instructions.
#include "ir/forms/composite.h"

#include <string>
#include <string_view>

namespace ptxrewrite::ir {

namespace {

constexpr std::string_view name_space = "crf.";

bool starts_second_half(std::string_view word) {
  for (std::string_view name : {"shl", "shr", "add", "sub", "rsub", "and", "or", "xor", "cvt"})
    if (word == name) return true;
  return false;
}

// "shl.wide.s32" is a shl.b64 of the extended 32-bit register.
CompositePart part_of(std::string_view mnemonic) {
  constexpr std::string_view wide = "shl.wide.";
  CompositePart part;
  if (mnemonic.starts_with(wide)) {
    part.widens = true;
    part.widens_signed = mnemonic.ends_with(".s32");
    mnemonic = "shl.b64";
  }
  part.form = known_form(mnemonic);
  return part;
}

} // namespace

bool is_composite(const Form& form) {
  return form.extension && form.mnemonic.starts_with(name_space);
}

std::optional<CompositeParts> composite_parts(const Form& form) {
  if (!is_composite(form)) return std::nullopt;
  std::string_view text = form.mnemonic.substr(name_space.size());
  // The second half begins at the first operation name after the first half's.
  size_t cut = text.find('.');
  while (cut != std::string_view::npos) {
    size_t end = text.find('.', cut + 1);
    if (starts_second_half(text.substr(cut + 1, end - cut - 1))) break;
    cut = end;
  }
  if (cut == std::string_view::npos) return std::nullopt;
  std::string second(text.substr(cut + 1));
  CompositeParts parts;
  if (second.starts_with("rsub.")) {
    parts.reversed = true;
    second.erase(0, 1);
  }
  parts.second_has_operand = !second.starts_with("cvt.");
  parts.first = part_of(text.substr(0, cut));
  parts.second = part_of(second);
  parts.intermediate_bits = bit_width(ir::form(parts.first.form).type());
  return parts;
}

unsigned composite_source_bits(const CompositeParts& parts, unsigned index) {
  auto is_shift = [](const CompositePart& part) {
    const Opcode opcode = form(part.form).opcode;
    return opcode == Opcode::shl || opcode == Opcode::shr;
  };
  const CompositePart& part = index < 2 ? parts.first : parts.second;
  // A shift amount has 32 bits. In `.shl.wide` it is the amount by which the intermediate result is shifted.
  const bool distance = is_shift(part) && (index == 1 || (index == 2 && !parts.reversed));
  if (distance || part.widens) return 32;
  return bit_width(form(part.form).type());
}

bool reads_composite_slot(const Operand& operand) {
  return operand.is(OperandKind::special_register) && static_cast<SpecialRegister>(operand.id) == SpecialRegister::crf;
}

namespace {

// `held`: width in bits of the value in the slot, 0 if there is none; `index`: the source operand that reads it.
std::string wrong_slot_read(const Form& form, unsigned held, unsigned index) {
  if (held == 0) return "no composite instruction of this block has written what it reads";
  if (const std::optional<CompositeParts> parts = composite_parts(form)) {
    const unsigned wanted = composite_source_bits(*parts, index);
    if (wanted == held) return {};
    return "reads " + std::to_string(wanted) + " bits of a slot of " + std::to_string(held);
  }
  if (held == 64 && bit_width(form.type()) != 64) return "does not read all 64 bits of the slot";
  return {};
}

void check_stream_slots(const Function& function, bool is_affine_stream, std::vector<FormFinding>& findings) {
  for (BlockId block : function.layout) {
    unsigned held = 0;
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const Form& form = function.form_of(id);
      const std::span<const Operand> operands = function.operands_of(id);
      for (size_t i = 0; i < operands.size(); ++i) { // operands of composite instructions are never groups
        if (!reads_composite_slot(operands[i])) continue;
        std::string wrong = wrong_slot_read(form, held, static_cast<unsigned>(i - form.definitions));
        if (!wrong.empty()) findings.push_back({is_affine_stream, id, std::move(wrong)});
      }
      if (std::optional<CompositeParts> parts = composite_parts(form)) held = parts->intermediate_bits;
      if (form.effects.call) held = 0;
    }
  }
}

} // namespace

std::vector<FormFinding> check_composite_slots(const Function& kernel) {
  std::vector<FormFinding> findings;
  check_stream_slots(kernel, false, findings);
  if (kernel.affine_stream) check_stream_slots(*kernel.affine_stream, true, findings);
  return findings;
}

} // namespace ptxrewrite::ir
