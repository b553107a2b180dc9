// Finds the rows of composite_rules.def in a kernel and carries them out.
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
  std::vector<ir::InstructionId> inside; // what the pattern names, the root first
};

// Does the term stand for what `root` computes, under the conditions? `bound`: what its variables stand for already.
std::optional<Match> match(const Editor& editor, const RuleTerm& pattern, std::span<const RuleExpression> conditions,
                           ir::InstructionId root, const Match& bound = {});

// Puts the replacement into the root's place.
void replace(Editor& editor, const Rule& rule, const Match& match);

// Machine instructions that the rule saves here: less than it says where something stays because others read it.
int benefit(const Editor& editor, const Rule& rule, const Match& match);

// Does the module's version and target have the replacement's instructions?
bool is_available(const ir::Module& module, unsigned version, unsigned target);

// A literal as people read it: masks and tables in base 16.
ir::Operand literal_operand(std::string_view mnemonic, uint32_t number);

} // namespace ptxrewrite::transforms::legal::composite
