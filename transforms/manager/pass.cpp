// The registry of passes, and the queries of PassOptions and PassContext.
#include "transforms/manager/pass.h"

#include <algorithm>
#include <charconv>

namespace ptxrewrite::transforms {

namespace {

// Inside a function because passes register themselves before main, in any order.
std::vector<PassDescription>& registry() {
  static std::vector<PassDescription> passes;
  return passes;
}

std::vector<PassDescription>::iterator position_of(std::string_view name) {
  return std::lower_bound(registry().begin(), registry().end(), name,
                          [](const PassDescription& pass, std::string_view wanted) { return pass.name < wanted; });
}

} // namespace

bool PassOptions::flag(std::string_view name) const {
  auto found = values_.find(name);
  if (found == values_.end()) return false;
  const std::string& value = found->second;
  return value.empty() || value == "1" || value == "true" || value == "on" || value == "yes";
}

std::string_view PassOptions::text(std::string_view name, std::string_view fallback) const {
  auto found = values_.find(name);
  return found == values_.end() ? fallback : std::string_view(found->second);
}

int64_t PassOptions::number(std::string_view name, int64_t fallback) const {
  auto found = values_.find(name);
  if (found == values_.end()) return fallback;
  const std::string& value = found->second;
  int64_t result = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  return error == std::errc() && end == value.data() + value.size() ? result : fallback;
}

bool PassContext::assumes(std::string_view word) const {
  return std::find(assumptions.begin(), assumptions.end(), word) != assumptions.end();
}

bool PassContext::is_referenced(const ir::Function& function) {
  const ir::Module& module = function.module();
  if (references_->module != &module) {
    *references_ = {&module, {}};
    auto note = [&](const ir::Operand& operand) {
      if (!operand.is(ir::OperandKind::symbol)) return;
      ir::SymbolRef ref = operand.as_symbol();
      if (ref.kind() == ir::SymbolRef::Kind::function) references_->functions.insert(&module.function(ref.function()));
    };
    for (const auto& other : module.functions) {
      for (ir::BlockId block : other->layout)
        for (ir::InstructionId id : other->instructions_in(block))
          std::ranges::for_each(other->operands_of(id), note);
    }
    for (const ir::Variable& variable : module.variables)
      std::ranges::for_each(module.initialisers.view(variable.initialiser), note);
  }
  return references_->functions.contains(&function);
}

PassContext PassContext::beside() {
  PassContext other;
  other.form = form;
  other.options = options;
  other.assumptions = assumptions;
  other.may_run_ptxas = may_run_ptxas;
  other.assemblies = assemblies;
  other.analyses = AnalysisCache::beside(analyses);
  other.references_ = references_;
  return other;
}

const std::vector<PassDescription>& all_passes() {
  return registry();
}

const PassDescription* find_pass(std::string_view name) {
  auto position = position_of(name);
  return position != registry().end() && position->name == name ? &*position : nullptr;
}

template <> RegisterPass::RegisterPassOf(PassDescription description) {
  auto position = position_of(description.name);
  if (position != registry().end() && position->name == description.name) return;
  registry().insert(position, std::move(description));
}

} // namespace ptxrewrite::transforms
