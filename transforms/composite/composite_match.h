// Matches the rows of composite_rules.def against a kernel and applies them.
#pragma once

#include "transforms/composite/composite_editor.h"
#include "transforms/composite/composite_rules.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

struct Match {
  std::map<std::string, ir::Operand> variables;
  std::map<std::string, uint32_t> literals;
  std::vector<ir::InstructionId> inside; // the instructions that the pattern matched, the root first
};

// Does the term match the computation of `root`, under the conditions? `bound`: existing bindings of variables.
std::optional<Match> match(const Editor& editor, const RuleTerm& pattern, std::span<const RuleExpression> conditions,
                           ir::InstructionId root, const Match& bound = {});

// Replaces the root by the rule's replacement.
void replace(Editor& editor, const Rule& rule, const Match& match);

// The number of machine instructions that the rule saves here: less than the rule's `saves` if instructions stay
// because they have other readers.
int benefit(const Editor& editor, const Rule& rule, const Match& match);

// Do the module's PTX version and target support the replacement's instructions?
bool is_available(const ir::Module& module, unsigned version, unsigned target);

// A literal in readable notation: masks and tables in base 16.
ir::Operand literal_operand(std::string_view mnemonic, uint32_t number);

} // namespace ptxrewrite::transforms::legal::composite
