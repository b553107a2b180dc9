#include "evaluate/common/specialised_kernel.h"

#include "evaluate/common/program_rewrite.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "launch/signature.h"
#include "support/text/json_text.h"
#include "support/text/table.h"
#include "transforms/common/choice.h"
#include "transforms/manager/assemblies.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {
namespace {

// Variables of a module that its functions use.
struct Uses {
  std::set<uint32_t> variables; // VariableIds of the module
  std::string problem;          // why the kernel cannot be in a module of its own; "" if it can
};

bool is_shared_by_launches(ir::StateSpace space) {
  return space != ir::StateSpace::shared && space != ir::StateSpace::local;
}

void add_use(const ir::Module& module, const ir::Operand& operand, Uses& uses) {
  if (operand.is(ir::OperandKind::prototype)) uses.problem = "it calls through a pointer";
  if (!operand.is(ir::OperandKind::symbol)) return;
  const ir::SymbolRef symbol = operand.as_symbol();
  if (symbol.kind() == ir::SymbolRef::Kind::module_variable) {
    const ir::Variable& variable = module.variables[symbol.variable()];
    uses.variables.insert(static_cast<uint32_t>(symbol.variable().index()));
    if (is_shared_by_launches(variable.space))
      uses.problem = fmt::format("it uses the variable '{}' of its module", module.text(variable.name));
  } else if (symbol.kind() == ir::SymbolRef::Kind::function && !module.function(symbol.function()).has_body) {
    uses.problem = fmt::format("it calls '{}'", module.text(module.function(symbol.function()).name));
  }
}

Uses uses_of(const ir::Module& module) {
  Uses uses;
  for (const auto& function : module.functions)
    for (ir::BlockId block : function->layout)
      for (ir::InstructionId id : function->instructions_in(block))
        for (const ir::Operand& operand : function->operands_of(id))
          add_use(module, operand, uses);
  return uses;
}

// The kernel alone, without variables that it does not use: their memory would exist twice.
Result<std::unique_ptr<ir::Module>> module_of_kernel(const ir::Module& original, const std::string& kernel) {
  Diagnostics diagnostics; // the same text was parsed before
  const std::string name = original.source.name() + ": " + kernel;
  const std::unique_ptr<ir::Module> copy = grammar::read_module(original.source, diagnostics);
  const ir::Function* function = copy ? launch::find_kernel(*copy, kernel) : nullptr;
  if (!function) return Error{"its module cannot be read again", {}};
  std::unique_ptr<ir::Module> alone =
      grammar::read_module(SourceFile(name, transforms::text_of_kernel_alone(*function)), diagnostics);
  if (!alone) return Error{"it cannot be read alone", {}};
  const Uses uses = uses_of(*alone);
  if (!uses.problem.empty()) return Error{uses.problem, {}};
  std::erase_if(alone->items, [&](const ir::Item& item) {
    return item.kind == ir::ItemKind::variable && !uses.variables.contains(item.id);
  });
  alone = grammar::read_module(SourceFile(name, ir::print(*alone)), diagnostics);
  if (!alone) return Error{"it cannot be read without the module's variables", {}};
  return alone;
}

double weighted_instructions(const ir::Function& kernel) {
  ir::Function copy(kernel);
  (void)ir::construct_ssa(copy).ok(); // if it fails, the model weighs the function as read
  return static_cast<double>(transforms::legal::model_cost_of(copy).weighted);
}

bool saves_instructions(const ir::Module& module, const std::string& kernel, const launch::Variants& variants) {
  const std::span<const launch::Variant> made = variants.of_kernel(kernel);
  const ir::Function* before = launch::find_kernel(module, kernel);
  const ir::Function* after = made.empty() ? nullptr : launch::find_kernel(module, made.front().entry);
  return before && after && weighted_instructions(*after) < weighted_instructions(*before);
}

} // namespace

Result<SpecialisedKernel> specialised_kernel(const ir::Module& original, const std::string& kernel,
                                             const std::string& key, const std::string& passes) {
  Result<std::unique_ptr<ir::Module>> alone = module_of_kernel(original, kernel);
  if (!alone) return alone.error();
  const std::string pipeline = "darsie(specialise=\"" + key + "\")" + (passes.empty() ? "" : "," + passes);
  Result<RewrittenModule> made = rewrite_for_program(**alone, pipeline);
  if (!made) return made.error();
  if (!made->module) return Error{"the passes change nothing", {}};
  Result<launch::Variants> variants = launch::Variants::of(*made->module, nullptr);
  if (!variants) return variants.error();
  if (!saves_instructions(*made->module, kernel, *variants))
    return Error{"the kernel for this launch would have as many instructions", {}};
  return SpecialisedKernel{std::move(made->module), std::move(made->text), *std::move(variants)};
}

std::string specialised_counts_text(uint64_t times, const std::vector<SpecialisedCounts>& all) {
  TextTable table{{{"kernel"}, {"launches", true}, {"specialised", true}, {"made", true}, {"why not"}}, {}};
  for (const SpecialisedCounts& counts : all) {
    std::string why;
    for (const std::string& reason : counts.reasons)
      why += (why.empty() ? "" : "; ") + reason;
    table.rows.push_back({counts.kernel, std::to_string(counts.launches), std::to_string(counts.specialised),
                          std::to_string(counts.made), beginning(why)});
  }
  return fmt::format("kernels for launches that are repeated {} times\n{}", times, table.text());
}

std::string specialised_counts_json(uint64_t times, const std::vector<SpecialisedCounts>& all) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const SpecialisedCounts& counts : all)
    kernels.push_back({{"kernel", counts.kernel},
                       {"launches", counts.launches},
                       {"specialised_launches", counts.specialised},
                       {"made", counts.made},
                       {"reasons", counts.reasons}});
  return json_text(nlohmann::ordered_json{{"after", times}, {"kernels", std::move(kernels)}});
}

} // namespace ptxrewrite::evaluate
