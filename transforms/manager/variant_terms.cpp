#include "transforms/manager/variant_terms.h"

#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::transforms {

std::string_view term_text(const ir::Function& function, ir::InstructionId id) {
  if (function.instructions[id].kind != ir::InstructionKind::annotation) return {};
  const auto operands = function.operands_of(id);
  if (operands.empty() || !operands[0].is(ir::OperandKind::text)) return {};
  const std::string_view text = function.module().text(Symbol(operands[0].id));
  return text.starts_with("@ ") ? text : std::string_view{};
}

void for_each_term(const ir::Function& function,
                   const std::function<void(std::string_view keyword, std::string_view rest)>& visit) {
  for (ir::InstructionId id : function.instructions_in(function.entry())) {
    const std::string_view text = term_text(function, id);
    if (text.empty()) continue;
    const size_t keyword = std::min(text.find(' ', 2), text.size() - 1) + 1;
    const size_t end = text.find(' ', keyword);
    if (end != text.npos) visit(text.substr(keyword, end - keyword), text.substr(end + 1));
  }
}

std::optional<std::string> original_of(const ir::Function& function) {
  std::optional<std::string> name;
  for_each_term(function, [&](std::string_view keyword, std::string_view rest) {
    if (keyword == "original" && !name) name = std::string(rest);
  });
  return name;
}

} // namespace ptxrewrite::transforms
