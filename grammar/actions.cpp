// The reader's loop side of ReaderActions: items, annotations, errors, and putting instructions into blocks.
#include "grammar/actions.h"

#include <algorithm>

namespace ptxrewrite::grammar {

using namespace ir;

ReaderActions::ReaderActions(Module& module, Diagnostics& diagnostics, const ReadOptions& options)
    : module_(module), diagnostics_(diagnostics), options_(options), source_(module.source.text()), names_(module),
      forms_(1024) {}

void ReaderActions::error(SourceRange range, std::string message) {
  if (limit_reached()) return;
  if (range.empty() && range.end < source_.size()) range.end = range.begin + 1;
  diagnostics_.error(range, std::move(message));
}

void ReaderActions::fail(SourceRange range, std::string message) {
  error(range, std::move(message));
  throw StatementError{};
}

std::string ReaderActions::quote(SourceRange range) const {
  constexpr size_t limit = 60;
  std::string_view words = text(range);
  std::string quoted = "'";
  for (char c : words.substr(0, limit))
    quoted += c >= ' ' && c < 0x7f ? c : '?';
  return quoted + (words.size() > limit ? "...'" : "'");
}

// Parses a number with a limit; an excessive number is reported and read as 0.
uint32_t ReaderActions::number32(const Lexeme& literal, uint64_t limit) {
  const IntegerLiteral parsed = parse_integer(text(literal));
  if (parsed.value > limit || literal.range.end - literal.range.begin > 40) {
    error(literal.range, "the number " + quote(literal.range) + " is too large here");
    return 0;
  }
  return static_cast<uint32_t>(parsed.value);
}

void ReaderActions::begin_item(SourceRange item) {
  item_ = item;
  is_verbatim_ = false;
  linkage_ = Linkage::none;
  linkage_range_ = {};
  alias_ = {};
  declaration_ = {};
  operands_.clear();
  notes_.clear();
  open_groups_.clear();
  constants_.reset();
  section_bits_ = 0;
  section_minus_ = false;
}

void ReaderActions::end_item(uint32_t end) {
  if (!is_verbatim_) return;
  SourceRange range{item_.begin, std::max(end, item_.begin)};
  module_.items.push_back({ItemKind::verbatim, 0, text(range), range});
}

void ReaderActions::annotation_item(SourceRange comment) {
  std::string_view words = text(comment);
  while (!words.empty() && (words.back() == '\r' || words.back() == ' '))
    words.remove_suffix(1);
  if (words == "//@ ptxrewrite hardware 1" && !version_seen_) {
    module_.hardware_form = true;
    return;
  }
  module_.items.push_back({ItemKind::verbatim, 0, words, comment});
}

void ReaderActions::annotations(std::span<const SourceRange> comments) {
  for (SourceRange comment : comments) {
    if (!in_body_) continue;
    std::string_view words = text(comment).substr(2);
    while (!words.empty() && (words.back() == '\r' || words.back() == ' '))
      words.remove_suffix(1);
    Operand operand;
    operand.kind = OperandKind::text;
    operand.id = module_.intern(words).index();
    append_behind(InstructionKind::annotation, comment, {&operand, 1});
  }
}

void ReaderActions::abandon_statement() {
  operands_.clear();
  notes_.clear();
  open_groups_.clear();
  pending_.clear();
  constants_.reset();
  unknown_instruction_ = false;
  reading_prototype_ = false;
  register_text_.clear();
  declares_registers_ = false;
}

void ReaderActions::abandon_item() {
  abandon_statement();
  if (function_) close_function();
}

BlockId ReaderActions::block() {
  if (!block_) {
    block_ = function_->add_block();
    function_->place_block(block_);
  }
  return block_;
}

InstructionId ReaderActions::append(Instruction instruction, std::span<const Operand> operands) {
  BlockId target = block();
  InstructionId id = function_->add_instruction(instruction, operands);
  function_->append(target, id);
  return id;
}

InstructionId ReaderActions::append_marker(InstructionKind kind, SourceRange range, std::span<const Operand> operands) {
  Instruction instruction;
  instruction.kind = kind;
  instruction.range = range;
  return append(instruction, operands);
}

// Appends a statement that belongs to the previous one: it stays in the block even after a branch or exit.
void ReaderActions::append_behind(InstructionKind kind, SourceRange range, std::span<const Operand> operands) {
  const BlockId current = block_;
  if (!block_) block_ = function_->layout.back();
  append_marker(kind, range, operands);
  block_ = current;
}

// Moves unresolved names to the scope; `first_operand` is the index of the operands in the pool.
void ReaderActions::flush_pending_operands(uint32_t first_operand) {
  for (const LocalPending& pending : pending_)
    names_.add_pending(first_operand + pending.operand, pending.name, pending.range, pending.wants);
  pending_.clear();
}

} // namespace ptxrewrite::grammar
