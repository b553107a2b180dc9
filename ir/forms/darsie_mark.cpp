// Reads and writes DARSIE's marks, promotes them for a block shape, and finds them next to instructions.
#include "ir/forms/darsie_mark.h"

#include "ir/core/module.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t warp_lanes = 32;

// Removes the next word from `text` and returns it.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  std::string_view word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

bool divides_warp(uint64_t count) {
  return count <= warp_lanes && std::has_single_bit(count);
}

// The mark in the text of an annotation (`@ darsie V`) or a pragma (`darsie V`).
std::optional<DarsieMark> mark_in(std::string_view text) {
  if (text.starts_with('@')) text.remove_prefix(1);
  if (take_word(text) != mark_prefix.substr(0, mark_prefix.size() - 1)) return std::nullopt;
  text = text.substr(0, text.find('+'));
  return parse_mark(text);
}

std::optional<DarsieMark> mark_of_carrier(const Function& function, InstructionId carrier) {
  const InstructionKind kind = function.instructions[carrier].kind;
  if (kind != InstructionKind::annotation && kind != InstructionKind::pragma) return std::nullopt;
  for (const Operand& operand : function.operands_of(carrier))
    if (operand.is(OperandKind::text))
      if (auto mark = mark_in(function.module().text(Symbol(operand.id)))) return mark;
  return std::nullopt;
}

} // namespace

DarsieMark weakest(DarsieMark first, DarsieMark second) {
  const MarkStrength strength = std::max(first.strength, second.strength);
  if (strength == MarkStrength::vector) return {};
  return {strength, std::max(first.kind, second.kind)};
}

std::string_view spelling(MarkKind kind) {
  switch (kind) {
  case MarkKind::uniform:
    return "uniform";
  case MarkKind::affine:
    return "affine";
  case MarkKind::unstructured:
    return "unstructured";
  }
  return "";
}

std::string to_string(DarsieMark mark) {
  switch (mark.strength) {
  case MarkStrength::definite:
    return "DR " + std::string(spelling(mark.kind));
  case MarkStrength::conditional_x:
    return "CR x " + std::string(spelling(mark.kind));
  case MarkStrength::conditional_xy:
    return "CR xy " + std::string(spelling(mark.kind));
  case MarkStrength::vector:
    break;
  }
  return "V";
}

std::optional<DarsieMark> parse_mark(std::string_view text) {
  DarsieMark mark;
  const std::string_view strength = take_word(text);
  std::string_view word = take_word(text);
  if (strength == "V") return word.empty() ? std::optional(mark) : std::nullopt;
  if (strength == "DR") {
    mark.strength = MarkStrength::definite;
  } else if (strength == "CR") {
    mark.strength = word == "xy" ? MarkStrength::conditional_xy : MarkStrength::conditional_x;
    if (word == "x" || word == "xy") word = take_word(text);
  } else {
    return std::nullopt;
  }
  for (MarkKind kind : {MarkKind::uniform, MarkKind::affine, MarkKind::unstructured})
    if (word == spelling(kind) && take_word(text).empty()) {
      mark.kind = kind;
      return mark;
    }
  return std::nullopt;
}

DarsieMark promote(DarsieMark mark, const std::array<uint32_t, 3>& block) {
  const auto [x, y, z] = block;
  const bool several_dimensions = y > 1 || z > 1;
  const bool holds = (mark.strength == MarkStrength::conditional_x && several_dimensions && divides_warp(x)) ||
                     (mark.strength == MarkStrength::conditional_xy && z > 1 && divides_warp(uint64_t(x) * y));
  if (mark.is_definite() || holds) return {MarkStrength::definite, mark.kind};
  return {};
}

std::optional<DarsieMark> written_mark(const Function& function, InstructionId instruction) {
  InstructionId at = function.instructions[instruction].next;
  for (; at && function.instructions[at].kind == InstructionKind::annotation; at = function.instructions[at].next)
    if (auto mark = mark_of_carrier(function, at)) return mark;
  at = function.instructions[instruction].previous;
  for (; at && function.instructions[at].kind == InstructionKind::pragma; at = function.instructions[at].previous)
    if (auto mark = mark_of_carrier(function, at)) return mark;
  return std::nullopt;
}

bool carries_mark(const Function& function, InstructionId instruction) {
  return mark_of_carrier(function, instruction).has_value();
}

bool has_written_marks(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (carries_mark(function, id)) return true;
  return false;
}

} // namespace ptxrewrite::ir
