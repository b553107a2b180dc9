// Variants of kernels and the annotations that describe them.
#include "transforms/common/variant.h"

#include "ir/core/insertion.h"

#include <algorithm>

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

// Inserts after the existing terms, because parameters are listed in the order of the signature.
ir::Builder builder_behind_terms(ir::Function& function) {
  InstructionId last;
  for (InstructionId id : function.instructions_in(function.entry()))
    if (!term_text(function, id).empty()) last = id;
  if (!last) return ir::builder_at_code_start(function);
  ir::Builder builder(function);
  builder.after(last);
  return builder;
}

std::string conditions_of(const VariantTerms& terms) {
  std::string conditions = terms.requirements.empty()
                               ? std::string("in any launch")
                               : "when the launch meets " + std::to_string(terms.requirements.size()) +
                                     " condition(s), else as the original";
  if (!terms.parameters.empty())
    conditions += "; the launcher computes " + std::to_string(terms.parameters.size()) + " further parameter(s)";
  return conditions;
}

void write_terms(ir::Builder& builder, ir::Module& module, const VariantTerms& terms) {
  const std::string prefix = "@ " + std::string(terms.pass) + ' ';
  for (const std::string& predicate : terms.requirements)
    annotate(builder, module, prefix + "requires " + predicate);
  for (const LaunchParameter& parameter : terms.parameters)
    annotate(builder, module, prefix + "parameter " + std::string(spelling(parameter.type)) + ' ' + parameter.value);
  if (terms.persistent) annotate(builder, module, prefix + "grid persistent");
  if (terms.producer) annotate(builder, module, prefix + "block producer");
}

std::string variant_name(const std::string& kernel, std::string_view pass) {
  return kernel + "__" + std::string(pass);
}

// Does the module have a symbol with this name? Names used only by discarded candidates are free.
bool has_name(const ir::Module& module, const std::string& name) {
  const Symbol symbol = module.strings.find(name);
  const auto has_it = [&](const auto& row) { return row.name == symbol; };
  return symbol && (std::ranges::any_of(module.variables, has_it) ||
                    std::ranges::any_of(module.functions, [&](const auto& other) { return other->name == symbol; }));
}

} // namespace

std::string why_no_variant(const ir::Function& function, std::string_view pass, PassContext& context) {
  const ir::Module& module = function.module();
  const std::string name(module.text(function.name));
  if (!function.is_entry) return "only kernels have variants";
  if (original_of(function)) return "it is a variant already";
  if (has_name(module, variant_name(name, pass))) return "the module has a variant of it already";
  if (context.is_referenced(function)) return "the module launches it itself and would not choose a variant";
  return {};
}

std::string why_no_launch_terms(const ir::Function& function, std::string_view pass, PassContext& context) {
  if (!original_of(function)) {
    std::string name = variant_name(std::string(function.module().text(function.name)), "");
    const size_t without_pass = name.size();
    for (const PassDescription& other : all_passes()) {
      name.replace(without_pass, std::string::npos, other.name);
      if (has_name(function.module(), name)) return "it has a variant already";
    }
    return why_no_variant(function, pass, context);
  }
  bool other_shape = false;
  for_each_term(function, [&](std::string_view keyword, std::string_view) {
    other_shape |= keyword == "grid" || keyword == "block";
  });
  return other_shape ? "its grid or block is not its original's" : "";
}

std::vector<LaunchParameter> added_parameters_of(const ir::Function& function) {
  std::vector<LaunchParameter> list;
  for_each_term(function, [&](std::string_view keyword, std::string_view rest) {
    if (keyword != "parameter") return;
    const size_t blank = std::min(rest.find(' '), rest.size());
    const std::optional<ir::ScalarType> type = ir::parse_type(rest.substr(0, blank));
    list.push_back({type.value_or(ir::ScalarType::none), std::string(rest.substr(std::min(blank + 1, rest.size())))});
  });
  return list;
}

// Is the name declared in the function or its module? Names used only by discarded candidates are free.
static bool is_declared(const ir::Function& function, const std::string& name) {
  const ir::Module& module = function.module();
  const Symbol symbol = module.strings.find(name);
  if (!symbol) return false;
  const auto has_it = [&](const auto& row) { return row.name == symbol; };
  return std::ranges::any_of(function.variables, has_it) || std::ranges::any_of(function.values, has_it) ||
         std::ranges::any_of(function.blocks, [&](const ir::Block& block) { return block.label == symbol; }) ||
         std::ranges::any_of(function.label_tables, [&](const auto& table) { return table.label == symbol; }) ||
         std::ranges::any_of(function.prototypes, [&](const auto& row) { return row.label == symbol; }) ||
         std::ranges::any_of(module.variables, has_it) ||
         std::ranges::any_of(module.functions, [&](const auto& other) { return other->name == symbol; });
}

ir::VariableId add_parameter(ir::Function& function, ir::ScalarType type) {
  ir::Module& module = function.module();
  std::vector<ir::VariableId> list;
  for (ir::VariableId id : function.variable_lists.view(function.signature.parameters))
    list.push_back(id);
  ir::Variable variable;
  const std::string prefix = std::string(module.text(function.name)) + "_launch_param_";
  size_t number = list.size();
  while (is_declared(function, prefix + std::to_string(number)))
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
  annotate(builder, module, "@ " + std::string(terms.pass) + " original " + name);
  write_terms(builder, module, terms);
  context.additions.push_back(std::move(original));
  context.remarks.emplace_back("runs as " + std::string(module.text(function.name)) + ' ' + conditions_of(terms),
                               function.header_range);
}

void add_further_variant(std::unique_ptr<ir::Function> variant, std::string_view suffix, const VariantTerms& terms,
                         PassContext& context) {
  ir::Module& module = variant->module();
  const std::string name(module.text(variant->name));
  variant->name = module.intern(variant_name(name, terms.pass) + '_' + std::string(suffix));
  ir::Builder builder = ir::builder_at_code_start(*variant);
  annotate(builder, module, "@ " + std::string(terms.pass) + " original " + name);
  write_terms(builder, module, terms);
  context.remarks.emplace_back("otherwise runs as " + std::string(module.text(variant->name)) + ' ' +
                                   conditions_of(terms),
                               variant->header_range);
  context.additions.push_back(std::move(variant));
}

void extend_variant(ir::Function& variant, const VariantTerms& terms, PassContext& context) {
  ir::Module& module = variant.module();
  ir::Builder builder = builder_behind_terms(variant);
  write_terms(builder, module, terms);
  context.remarks.emplace_back(std::string(module.text(variant.name)) + " now also runs only " + conditions_of(terms),
                               variant.header_range);
}

} // namespace ptxrewrite::transforms
