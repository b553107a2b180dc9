// Decodes an entry and every function that it can call into one image.
#include "emulator/core/decode.h"
#include "emulator/core/machine.h"
#include "emulator/core/program.h"
#include "support/sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

void place_parameters(const ir::Function& entry, KernelImage& image) {
  uint64_t offset = 0;
  for (ir::VariableId id : entry.variable_lists.view(entry.signature.parameters)) {
    const ir::Variable& variable = entry.variables[id];
    offset = align_up(offset, variable_alignment(variable));
    image.parameter_offsets[id.index()] = offset;
    offset = saturating_add(offset, variable_bytes(variable, entry.dimensions.view(variable.dimensions)));
  }
  image.parameter_bytes = offset;
}

// Places the shared variables of the module that are named by a function of the image.
void place_module_shared(const ir::Module& module, const std::vector<ir::FunctionId>& functions, KernelImage& image) {
  std::vector<bool> named(module.variables.size(), false);
  auto note_names = [&](const ir::Function& function) {
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block))
        for (const ir::Operand& operand : function.operands_of(id))
          if (operand.is(ir::OperandKind::symbol) && operand.as_symbol().kind() == ir::SymbolRef::Kind::module_variable)
            named[operand.as_symbol().variable().index()] = true;
  };
  for (ir::FunctionId function : functions) {
    note_names(module.function(function));
    for (const MachineModel* machine : machines())
      if (const ir::Function* stream = machine->stream_of(module.function(function))) note_names(*stream);
  }
  for (ir::VariableId id : module.variables.ids()) {
    const ir::Variable& variable = module.variables[id];
    if (!named[id.index()] || !ir::is_shared(variable.space) || variable.linkage == ir::Linkage::external ||
        variable.unsized)
      continue;
    image.shared_static = align_up(image.shared_static, variable_alignment(variable));
    image.shared_offsets[{nullptr, id.index()}] = image.shared_static;
    image.shared_static =
        saturating_add(image.shared_static, variable_bytes(variable, module.dimensions.view(variable.dimensions)));
  }
}

// `.extern .shared x[]`: all of these start after the static variables, so they are placed after all functions.
bool is_dynamic_shared(const ir::Variable& variable) {
  return ir::is_shared(variable.space) && (variable.linkage == ir::Linkage::external || variable.unsized);
}

// Places the function's shared variables before any code is generated, because their addresses become constants.
void place_function_shared(const ir::Function& function, KernelImage& image) {
  for (ir::VariableId id : function.variables.ids()) {
    const ir::Variable& variable = function.variables[id];
    if (!ir::is_shared(variable.space) || is_dynamic_shared(variable)) continue;
    image.shared_static = align_up(image.shared_static, variable_alignment(variable));
    image.shared_offsets[{&function, id.index()}] = image.shared_static;
    image.shared_static =
        saturating_add(image.shared_static, variable_bytes(variable, function.dimensions.view(variable.dimensions)));
  }
}

std::vector<ir::FunctionId> reachable_functions(const ir::Module& module, ir::FunctionId entry) {
  std::vector<ir::FunctionId> order{entry};
  auto add = [&](ir::FunctionId declared) {
    const ir::FunctionId id = definition_of(module, declared);
    if (module.function(id).has_body && !module.function(id).is_entry &&
        std::find(order.begin(), order.end(), id) == order.end())
      order.push_back(id);
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const ir::Function& function = module.function(order[i]);
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block)) {
        std::span<const ir::Operand> operands = function.operands_of(id);
        for (const ir::Operand& operand : operands)
          if (operand.is(ir::OperandKind::symbol) && operand.as_symbol().kind() == ir::SymbolRef::Kind::function)
            add(operand.as_symbol().function());
        // An indirect call may reach any function.
        if (!function.is_opcode(id, ir::Opcode::call)) continue;
        const size_t target = operands[0].is(ir::OperandKind::list) ? ir::next_sibling(operands, 0) : 0;
        if (!operands[target].is(ir::OperandKind::symbol))
          for (uint32_t f = 0; f < module.functions.size(); ++f)
            add(ir::FunctionId(f));
      }
  }
  return order;
}

// All dynamic shared variables start at one offset, aligned for the strictest of them.
void place_dynamic_shared(const ir::Module& module, const std::vector<ir::FunctionId>& functions, KernelImage& image) {
  uint64_t alignment = 1;
  const auto align = [&](const ir::Variable& variable) {
    if (is_dynamic_shared(variable)) alignment = std::max<uint64_t>(alignment, variable_alignment(variable));
  };
  for (ir::VariableId id : module.variables.ids())
    align(module.variables[id]);
  for (ir::FunctionId function : functions)
    for (ir::VariableId id : module.function(function).variables.ids())
      align(module.function(function).variables[id]);
  image.shared_static = align_up(image.shared_static, alignment);
  const uint64_t start = image.static_shared();
  for (ir::VariableId id : module.variables.ids())
    if (is_dynamic_shared(module.variables[id])) image.shared_offsets[{nullptr, id.index()}] = start;
  for (ir::FunctionId function : functions)
    for (ir::VariableId id : module.function(function).variables.ids())
      if (is_dynamic_shared(module.function(function).variables[id]))
        image.shared_offsets[{&module.function(function), id.index()}] = start;
}

// A machine's stream is an extra function after all others; it uses the kernel's variables by the kernel's handles.
void add_stream(const ir::Function& kernel, const ir::Function* stream, KernelImage& image) {
  for (ir::VariableId id : kernel.variables.ids())
    if (auto place = image.shared_offsets.find({&kernel, id.index()}); place != image.shared_offsets.end())
      image.shared_offsets[{stream, id.index()}] = place->second;
  auto decoded = std::make_unique<DecodedFunction>();
  decoded->id = image.functions.front()->id;
  decoded->source = stream;
  decoded->stream_of = &kernel;
  image.functions.push_back(std::move(decoded));
}

} // namespace

ClusterDirectives cluster_directives(const ir::Module& module, const ir::Function& kernel) {
  ClusterDirectives result;
  for (const ir::FunctionDirective& directive : kernel.directives) {
    const std::string_view name = module.text(directive.name);
    const auto extent = [&](unsigned i) { return i < directive.count ? directive.numbers[i] : 1u; };
    if (name == ".reqnctapercluster") result.required = Dimensions{extent(0), extent(1), extent(2)};
    if (name == ".explicitcluster") result.is_explicit = true;
    if (name == ".maxclusterrank") result.largest = extent(0);
    if (name == ".blocksareclusters") result.blocks_are_clusters = true;
  }
  return result;
}

ir::FunctionId definition_of(const ir::Module& module, ir::FunctionId function) {
  if (module.function(function).has_body) return function;
  for (uint32_t i = 0; i < module.functions.size(); ++i)
    if (module.functions[i]->has_body && module.functions[i]->name == module.function(function).name)
      return ir::FunctionId(i);
  return function;
}

std::vector<uint64_t> code_addresses(const ir::Module& module) {
  std::vector<uint64_t> addresses(module.functions.size());
  uint64_t next = code_window;
  for (const bool kernels : {false, true})
    for (uint32_t i = 0; i < module.functions.size(); ++i)
      if (module.functions[i]->has_body && module.functions[i]->is_entry == kernels) addresses[i] = next += 16;
  for (uint32_t i = 0; i < module.functions.size(); ++i)
    if (!addresses[i]) addresses[i] = addresses[definition_of(module, ir::FunctionId(i)).index()];
  // Functions without a definition, which no call can reach, have addresses of their own.
  for (uint64_t& address : addresses)
    if (!address) address = next += 16;
  return addresses;
}

Result<std::unique_ptr<KernelImage>> decode_kernel(const ir::Module& module, ir::FunctionId entry,
                                                   const ModulePlaces& places, DeviceMemory& memory,
                                                   std::span<std::byte> constant_bank, bool clustered) {
  auto image = std::make_unique<KernelImage>();
  image->module = &module;
  image->memory = &memory;
  image->constant_bank = constant_bank;
  image->cluster = cluster_directives(module, module.function(entry));
  image->clustered = clustered;
  place_parameters(module.function(entry), *image);
  const std::vector<ir::FunctionId> functions = reachable_functions(module, entry);
  place_module_shared(module, functions, *image);
  for (ir::FunctionId id : functions)
    place_function_shared(module.function(id), *image);
  place_dynamic_shared(module, functions, *image);
  for (ir::FunctionId id : functions) {
    auto decoded = std::make_unique<DecodedFunction>();
    decoded->id = id;
    decoded->address = places.functions[id.index()];
    decoded->source = &module.function(id);
    image->by_id[id.index()] = decoded.get();
    image->functions.push_back(std::move(decoded));
  }
  const ir::Function& kernel = module.function(entry);
  for (const MachineModel* machine : machines())
    if (const ir::Function* stream = machine->stream_of(kernel)) add_stream(kernel, stream, *image);
  for (auto& function : image->functions)
    if (Status status = Decoder(*image, *function, places).run(); !status) return status.error();
  if (image->constants.is_full())
    return Error{"more constants than the emulator can hold", module.function(entry).header_range};
  for (auto& function : image->functions)
    for (CallSite& site : function->calls)
      if (site.callee_id) site.callee = image->by_id.at(site.callee_id.index());
  for (const MachineModel* machine : machines())
    if (Status status = machine->prepare(*image); !status) return status.error();
  return image;
}

} // namespace ptxrewrite::emulator
