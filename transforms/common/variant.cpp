// Variants of kernels and the annotations that describe them.
#include "transforms/common/variant.h"

#include "ir/core/insertion.h"

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::InstructionKind;

void annotate(ir::Builder& builder, ir::Module& module, const std::string& text) {
  ir::Operand operand;
  operand.kind = ir::OperandKind::text;
  operand.id = module.intern(text).index();
  builder.emit_marker(InstructionKind::annotation, {operand});
}

std::string variant_name(const std::string& kernel, std::string_view pass) {
  return kernel + "__" + std::string(pass);
}

} // namespace

std::optional<std::string> original_of(const ir::Function& function) {
  for (InstructionId id : function.instructions_in(function.entry())) {
    if (function.instructions[id].kind != InstructionKind::annotation) continue;
    auto operands = function.operands_of(id);
    if (operands.empty() || !operands[0].is(ir::OperandKind::text)) continue;
    std::string_view text = function.module().text(Symbol(operands[0].id));
    constexpr std::string_view keyword = " original ";
    const size_t place = text.find(keyword);
    if (!text.starts_with("@ ") || place == text.npos || text.find(' ', 2) != place) continue;
    return std::string(text.substr(place + keyword.size()));
  }
  return std::nullopt;
}

std::string why_no_variant(const ir::Function& function, std::string_view pass, PassContext& context) {
  const ir::Module& module = function.module();
  const std::string name(module.text(function.name));
  if (!function.is_entry) return "only kernels have variants";
  if (original_of(function)) return "it is a variant already";
  if (module.strings.find(variant_name(name, pass))) return "the module has a variant of it already";
  if (context.is_referenced(function)) return "the module launches it itself and would not choose a variant";
  return {};
}

ir::VariableId add_parameter(ir::Function& function, ir::ScalarType type) {
  ir::Module& module = function.module();
  std::vector<ir::VariableId> list;
  for (ir::VariableId id : function.variable_lists.view(function.signature.parameters))
    list.push_back(id);
  ir::Variable variable;
  // No text of the module has the name, so nothing it declares has it.
  const std::string prefix = std::string(module.text(function.name)) + "_launch_param_";
  size_t number = list.size();
  while (module.strings.find(prefix + std::to_string(number)))
    ++number;
  variable.name = module.intern(prefix + std::to_string(number));
  variable.space = ir::StateSpace::param;
  variable.type = type;
  list.push_back(function.variables.add(variable));
  function.signature.parameters = function.variable_lists.add(list);
  function.signature.has_parameter_list = true;
  function.changed();
  return list.back();
}

void make_variant(ir::Function& function, std::unique_ptr<ir::Function> original, const VariantTerms& terms,
                  PassContext& context) {
  ir::Module& module = function.module();
  const std::string name(module.text(function.name));
  function.name = module.intern(variant_name(name, terms.pass));
  ir::Builder builder = ir::builder_at_code_start(function);
  const std::string prefix = "@ " + std::string(terms.pass) + ' ';
  annotate(builder, module, prefix + "original " + name);
  for (const std::string& predicate : terms.requirements)
    annotate(builder, module, prefix + "requires " + predicate);
  for (const LaunchParameter& parameter : terms.parameters)
    annotate(builder, module, prefix + "parameter " + std::string(spelling(parameter.type)) + ' ' + parameter.value);
  if (terms.persistent) annotate(builder, module, prefix + "grid persistent");
  if (terms.producer) annotate(builder, module, prefix + "block producer");
  context.additions.push_back(std::move(original));
  std::string conditions = terms.requirements.empty()
                               ? std::string("in any launch")
                               : "when the launch meets " + std::to_string(terms.requirements.size()) +
                                     " condition(s), else as the original";
  if (!terms.parameters.empty())
    conditions += "; the launcher computes " + std::to_string(terms.parameters.size()) + " further parameter(s)";
  context.remarks.emplace_back("runs as " + std::string(module.text(function.name)) + ' ' + conditions,
                               function.header_range);
}

} // namespace ptxrewrite::transforms
