// Matches the rows of composite_rules.def against a kernel and applies them.
#pragma once

#include "transforms/composite/composite_editor.h"
#include "transforms/composite/composite_rules.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

// What the few names of a rule stand for, in the order of the names, whose text is the rule's.
template <class Value> class Bindings {
public:
  // Returns the value of the name and whether it is new.
  std::pair<Value*, bool> try_emplace(std::string_view name, const Value& value) {
    const auto place = std::ranges::lower_bound(list_, name, {}, &Binding::first);
    if (place != list_.end() && place->first == name) return {&place->second, false};
    return {&list_.insert(place, {name, value})->second, true};
  }
  void insert_or_assign(std::string_view name, const Value& value) { *try_emplace(name, value).first = value; }
  const Value& at(std::string_view name) const {
    const auto place = std::ranges::lower_bound(list_, name, {}, &Binding::first);
    assert(place != list_.end() && place->first == name);
    return place->second;
  }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

private:
  using Binding = std::pair<std::string_view, Value>;
  std::vector<Binding> list_;
};

struct Match {
  Bindings<ir::Operand> variables;
  Bindings<uint32_t> literals;
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
