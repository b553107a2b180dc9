// Describes the assembled value byte by byte (composite_bytes.h); the four sources must then be the row's element, each
// with its own byte of the same registers.
#include "transforms/composite/composite_elements.h"

#include "transforms/composite/composite_bytes.h"
#include "transforms/composite/composite_match.h"

#include <algorithm>
#include <array>
#include <optional>

namespace ptxrewrite::transforms::legal::composite {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::ValueId;

constexpr size_t vector_size = 4;
constexpr int64_t byte_bits = 8;

// A load or store of a vector of four bytes: the mnemonic for one register, and the index of the vector operand.
struct ByteVector {
  std::string joined;
  size_t vector = 0;
};

std::optional<ByteVector> as_byte_vector(const ir::Function& function, InstructionId id) {
  const ir::Instruction& instruction = function.instructions[id];
  if (instruction.kind != ir::InstructionKind::real || instruction.guard) return std::nullopt;
  const ir::Form& form = function.form_of(id);
  const bool is_load = form.opcode == ir::Opcode::ld;
  if ((!is_load && form.opcode != ir::Opcode::st) || form.vector_width != vector_size || form.types.size() != 1 ||
      ir::bit_width(form.type()) != byte_bits || form.effects.volatile_result || form.effects.atomic)
    return std::nullopt;
  const std::span<const Operand> operands = function.operands_of(id);
  ByteVector found;
  found.vector = is_load ? 0 : ir::next_sibling(operands, 0);
  const Operand& vector = operands[found.vector];
  if (!vector.is(OperandKind::vector) || vector.group_size() != vector_size) return std::nullopt;
  for (const Operand& element : operands.subspan(found.vector + 1, vector_size)) {
    const bool is_unread = is_load && element.is(OperandKind::sink);
    if (!is_unread && !element.is(OperandKind::value)) return std::nullopt;
    if (is_unread) continue;
    const unsigned bits = ir::bit_width(function.values[element.as_value()].type);
    if (bits != 16 && bits != 32) return std::nullopt;
  }
  constexpr std::string_view vector_word = ".v4.";
  found.joined = std::string(form.mnemonic.substr(0, form.mnemonic.rfind(vector_word))) + ".b32";
  const Result<ir::FormId> joined = ir::resolve_form(found.joined);
  return joined && !ir::form(*joined).opaque ? std::optional(found) : std::nullopt;
}

class Joiner {
public:
  explicit Joiner(ir::Function& function) : function_(function), builder_(function) {}

  void load(InstructionId id, const ByteVector& found) {
    const std::vector<Operand> operands = operands_of(id);
    const bool is_signed = ir::is_signed(function_.form_of(id).type());
    builder_.before(id).standing_for(id);
    const ValueId word = builder_.new_value(ScalarType::b32);
    std::vector<Operand> joined{Operand::definition(word)};
    joined.insert(joined.end(), operands.begin() + 1 + vector_size, operands.end());
    builder_.emit(found.joined, joined);
    for (size_t i = 0; i < vector_size; ++i) {
      const Operand element = operands[1 + i];
      if (!element.is(OperandKind::value)) continue;
      const bool is_narrow = ir::bit_width(function_.values[element.as_value()].type) == 16;
      const Operand byte = is_narrow ? Operand::definition(builder_.new_value(ScalarType::b32)) : element;
      builder_.emit(is_signed ? "bfe.s32" : "bfe.u32",
                    {byte, Operand::value(word), Operand::integer(byte_bits * static_cast<int64_t>(i)),
                     Operand::integer(byte_bits)});
      if (is_narrow) builder_.emit("cvt.u16.u32", {element, Operand::value(byte.as_value())});
    }
    function_.remove(id);
  }

  void store(InstructionId id, const ByteVector& found) {
    const std::vector<Operand> operands = operands_of(id);
    builder_.before(id).standing_for(id);
    std::array<Operand, vector_size> wide;
    for (size_t i = 0; i < vector_size; ++i) {
      wide[i] = operands[found.vector + 1 + i];
      if (ir::bit_width(function_.values[wide[i].as_value()].type) == 16)
        wide[i] = Operand::value(builder_.emit_value("cvt.u32.u16", ScalarType::b32, {wide[i]}));
    }
    const Operand low = permuted(wide[0], wide[1], 0x0040), high = permuted(wide[2], wide[3], 0x0040);
    std::vector<Operand> joined(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(found.vector));
    joined.push_back(permuted(low, high, 0x5410));
    builder_.emit(found.joined, joined);
    function_.remove(id);
  }

private:
  std::vector<Operand> operands_of(InstructionId id) const {
    const std::span<const Operand> view = function_.operands_of(id);
    return {view.begin(), view.end()};
  }
  Operand permuted(const Operand& a, const Operand& b, uint32_t selector) {
    return Operand::value(
        builder_.emit_value("prmt.b32", ScalarType::b32, {a, b, literal_operand("prmt.b32", selector)}));
  }

  ir::Function& function_;
  ir::Builder builder_;
};

std::optional<Match> match_elements(const Editor& editor, const FourBytes& four, const Rule& row) {
  Match all;
  for (size_t i = 0; i < four.sources.size(); ++i) {
    std::optional<Match> found = match(editor, row.elements[i], {}, editor.computation(four.sources[i]), all);
    if (!found) return std::nullopt;
    all = *std::move(found);
  }
  // The root first.
  std::vector<InstructionId> inside = four.inside;
  for (InstructionId id : all.inside)
    if (std::ranges::find(inside, id) == inside.end()) inside.push_back(id);
  all.inside = std::move(inside);
  return all;
}

} // namespace

size_t join_byte_vectors(ir::Function& function) {
  size_t count = 0;
  Joiner joiner(function);
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const std::optional<ByteVector> found = as_byte_vector(function, id);
      if (!found) continue;
      if (found->vector == 0)
        joiner.load(id, *found);
      else
        joiner.store(id, *found);
      ++count;
    }
  return count;
}

const Rule* compute_together(Editor& editor, InstructionId root, std::span<const RuleRow* const> rows, bool force) {
  // Instructions that can join the last bytes of a register.
  constexpr std::string_view joining[] = {"or.b32", "xor.b32", "add.s32", "prmt.b32", "bfi.b32"};
  if (rows.empty() || std::ranges::find(joining, canonical(editor.mnemonic(root))) == std::end(joining)) return nullptr;
  const std::optional<FourBytes> four = as_four_bytes(editor, root);
  if (!four) return nullptr;
  for (const RuleRow* row : rows)
    for (const Rule& rule : rules_of(*row)) {
      const std::optional<Match> found = match_elements(editor, *four, rule);
      if (!found || (!force && benefit(editor, rule, *found) <= 0)) continue;
      replace(editor, rule, *found);
      return &rule;
    }
  return nullptr;
}

} // namespace ptxrewrite::transforms::legal::composite
