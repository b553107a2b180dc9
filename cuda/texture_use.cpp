#include "cuda/texture_use.h"

#include <algorithm>

namespace ptxrewrite::cuda {
namespace {

// Traces the sources of the handles of texture instructions, or of surface instructions.
class HandleSources {
public:
  explicit HandleSources(const ir::Function& kernel) : kernel_(kernel), reached_(kernel.values.size()) {}

  // The handle of a texture or surface instruction: the base of its address.
  void add_handle(ir::InstructionId instruction) {
    const std::span<const ir::Operand> operands = kernel_.operands_of(instruction);
    for (size_t i = 0; i + 1 < operands.size(); i = ir::next_sibling(operands, i))
      if (operands[i].is(ir::OperandKind::address)) add(operands[i + 1]);
  }

  // Traces backwards through copies and loads of parameters, to a fixed point.
  void follow() {
    for (bool grows = true; grows;) {
      grows = false;
      for (ir::BlockId block : kernel_.layout)
        for (ir::InstructionId id : kernel_.instructions_in(block)) {
          bool writes_handle = false;
          ir::for_each_definition(kernel_, id, [&](ir::ValueId value) { writes_handle |= reached_[value.index()]; });
          if (!writes_handle || kernel_.instructions[id].kind != ir::InstructionKind::real) continue;
          for (const ir::Operand& operand : kernel_.operands_of(id))
            if (!operand.is_definition()) grows |= add(operand);
        }
    }
  }

  std::vector<bool> parameters() const {
    std::vector<bool> reached;
    for (ir::VariableId parameter : kernel_.variable_lists.view(kernel_.signature.parameters))
      reached.push_back(std::ranges::find(symbols_, ir::SymbolRef::local_variable(parameter)) != symbols_.end());
    return reached;
  }
  std::set<std::string> references() const {
    std::set<std::string> names;
    for (ir::SymbolRef symbol : symbols_)
      if (symbol.kind() == ir::SymbolRef::Kind::module_variable)
        names.emplace(kernel_.module().text(kernel_.module().variables[symbol.variable()].name));
    return names;
  }

private:
  bool add(const ir::Operand& operand) {
    if (operand.is(ir::OperandKind::value)) {
      const bool is_new = !reached_[operand.as_value().index()];
      reached_[operand.as_value().index()] = true;
      return is_new;
    }
    if (!operand.is(ir::OperandKind::symbol)) return false;
    const bool is_new = std::ranges::find(symbols_, operand.as_symbol()) == symbols_.end();
    if (is_new) symbols_.push_back(operand.as_symbol());
    return is_new;
  }

  const ir::Function& kernel_;
  std::vector<bool> reached_; // by register: it may hold a handle
  std::vector<ir::SymbolRef> symbols_;
};

void collect_textures(const launch::Argument& argument, std::vector<bool>& found) {
  if (argument.kind == launch::Argument::Kind::texture) found[argument.index] = true;
  for (const launch::Argument& member : argument.members)
    collect_textures(member, found);
}

} // namespace

TextureUse texture_use_of(const ir::Function& kernel) {
  TextureUse use;
  HandleSources textures(kernel), surfaces(kernel);
  for (ir::BlockId block : kernel.layout)
    for (ir::InstructionId id : kernel.instructions_in(block)) {
      if (kernel.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = kernel.form_of(id);
      if (form.kind == ir::InstructionClass::texture) textures.add_handle(id);
      if (form.kind == ir::InstructionClass::surface) surfaces.add_handle(id);
      if (form.opcode != ir::Opcode::tex || !form.has(ir::Modifier::_1d)) continue;
      (ir::is_float(form.types.back()) ? use.samples_numbers_1d : use.samples_elements_1d) = true;
    }
  textures.follow();
  surfaces.follow();
  use.textures = textures.parameters();
  use.surfaces = surfaces.parameters();
  use.surface_references = surfaces.references();
  return use;
}

Result<std::vector<bool>> surface_arguments(const launch::LaunchPlan& plan, const launch::Launch& launch,
                                            const TextureUse& use) {
  std::vector<bool> as_surface(plan.textures.size()), as_texture(plan.textures.size());
  for (size_t i = 0; i < launch.arguments.size() && i < use.surfaces.size(); ++i) {
    std::vector<bool> given(plan.textures.size());
    collect_textures(launch.arguments[i], given);
    for (size_t texture = 0; texture < given.size(); ++texture) {
      if (given[texture] && use.surfaces[i]) as_surface[texture] = true;
      if (given[texture] && use.textures[i]) as_texture[texture] = true;
      if (as_surface[texture] && as_texture[texture])
        return Error{"kernel '" + launch.kernel + "' takes '" + plan.textures[texture].name +
                         "' as a texture and as a surface at once; give it two textures",
                     launch.arguments_range};
    }
  }
  return as_surface;
}

} // namespace ptxrewrite::cuda
