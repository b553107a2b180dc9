// Finds the source location of a launch failure.
#include "emulator/core/block.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {
namespace {

// Returns the name in the module's `.file N "name"` item, or an empty string.
std::string source_file_name(const ir::Module& module, int64_t number) {
  const std::string head = fmt::format(".file {} ", number);
  for (const ir::Item& item : module.items) {
    if (item.kind != ir::ItemKind::verbatim || item.text.find(".file") == std::string_view::npos) continue;
    std::string normal;
    for (char c : item.text)
      if (c != '\t' && c != '\n' && c != '\r')
        normal += c;
      else if (!normal.empty() && normal.back() != ' ')
        normal += ' ';
    const size_t at = normal.find(head);
    if (at == std::string::npos) continue;
    const size_t open = normal.find('"', at), close = normal.find('"', open + 1);
    if (open != std::string::npos && close != std::string::npos) return normal.substr(open + 1, close - open - 1);
  }
  return {};
}

} // namespace

void find_source_line(const ir::Function& function, ir::InstructionId instruction, Failure& failure) {
  // The last `.loc` before the instruction, in its block or in an earlier block of the text.
  const ir::Instruction* location = nullptr;
  bool found = false;
  for (ir::BlockId block : function.layout) {
    for (ir::InstructionId id : function.instructions_in(block)) {
      const ir::Instruction& passed = function.instructions[id];
      const bool names_line = passed.kind == ir::InstructionKind::location &&
                              !function.operands.view(passed.operands).front().is(ir::OperandKind::text);
      if (names_line) location = &passed;
      found = id == instruction;
      if (found) break;
    }
    if (found) break;
  }
  if (!found || !location) return;
  std::span<const ir::Operand> operands = function.operands.view(location->operands);
  if (operands.size() < 2) return;
  failure.source_file = source_file_name(function.module(), operands[0].immediate);
  failure.source_line = static_cast<uint32_t>(operands[1].immediate);
}

namespace {

std::string place(const Dimensions& at) {
  return fmt::format("({}, {}, {})", at.x, at.y, at.z);
}

std::string cuda_line(const Failure& failure) {
  return fmt::format("{}:{}", failure.source_file.empty() ? "CUDA line" : failure.source_file, failure.source_line);
}

} // namespace

Diagnostic Failure::to_diagnostic() const {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::error;
  diagnostic.range = range;
  diagnostic.message = message;
  if (kernel.empty()) return diagnostic; // a failure on a GPU has no location
  std::string where = fmt::format("in kernel '{}', block {}", kernel, place(block));
  if (has_thread) where += ", thread " + place(thread);
  if (function != kernel) where += fmt::format(", function '{}'", function);
  diagnostic.notes.push_back(std::move(where));
  if (source_line) diagnostic.notes.push_back("from " + cuda_line(*this));
  return diagnostic;
}

Diagnostic Finding::to_diagnostic(const SourceFile& source) const {
  Diagnostic diagnostic = where.to_diagnostic();
  if (other) {
    std::string text = fmt::format("the other one: line {}, ", source.locate(other->range.begin).line);
    if (other->block != where.block) text += fmt::format("block {}, ", place(other->block));
    text += "thread " + place(other->thread);
    if (other->source_line) text += ", from " + cuda_line(*other);
    diagnostic.notes.push_back(std::move(text));
  }
  if (times > 1) diagnostic.notes.push_back(fmt::format("found {} times", times));
  return diagnostic;
}

} // namespace ptxrewrite::emulator
