// An entry and everything it can call, as one image.
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

// Shared variables of the module that a function of the image names.
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

// `.extern .shared x[]`: all of them start behind the static variables. Known only when all functions are.
bool is_dynamic_shared(const ir::Variable& variable) {
  return ir::is_shared(variable.space) && (variable.linkage == ir::Linkage::external || variable.unsized);
}

// Which functions can run, and where their shared variables lie, before any code is made: addresses are constants.
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

void place_dynamic_shared(const ir::Module& module, const std::vector<ir::FunctionId>& functions, KernelImage& image) {
  const uint64_t start = image.static_shared();
  for (ir::VariableId id : module.variables.ids())
    if (is_dynamic_shared(module.variables[id])) image.shared_offsets[{nullptr, id.index()}] = start;
  for (ir::FunctionId function : functions)
    for (ir::VariableId id : module.function(function).variables.ids())
      if (is_dynamic_shared(module.function(function).variables[id]))
        image.shared_offsets[{&module.function(function), id.index()}] = start;
}

bool reads_cluster(const ir::Operand& operand) {
  if (!operand.is(ir::OperandKind::special_register)) return false;
  switch (static_cast<ir::SpecialRegister>(operand.id)) {
  case ir::SpecialRegister::clusterid:
  case ir::SpecialRegister::nclusterid:
  case ir::SpecialRegister::cluster_ctaid:
  case ir::SpecialRegister::cluster_nctaid:
  case ir::SpecialRegister::cluster_ctarank:
  case ir::SpecialRegister::cluster_nctarank:
  case ir::SpecialRegister::is_explicit_cluster:
    return true;
  default:
    return false;
  }
}

// The first instruction that asks where in its cluster the thread is; an empty range when there is none.
SourceRange first_cluster_read(const ir::Module& module, const std::vector<ir::FunctionId>& functions) {
  for (ir::FunctionId id : functions) {
    const ir::Function& function = module.function(id);
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId instruction : function.instructions_in(block))
        if (function.instructions[instruction].kind == ir::InstructionKind::real &&
            std::ranges::any_of(function.operands_of(instruction), &reads_cluster))
          return function.instructions[instruction].range;
  }
  return {};
}

// Every block is run as a cluster of its own. A kernel that asks for more of them together is refused.
Status check_clusters(const ir::Module& module, const ir::Function& entry,
                      const std::vector<ir::FunctionId>& functions) {
  const ir::FunctionDirective *size = nullptr, *explicit_size = nullptr, *rank = nullptr;
  for (const ir::FunctionDirective& directive : entry.directives) {
    const std::string_view name = module.text(directive.name);
    if (name == ".reqnctapercluster") size = &directive;
    if (name == ".explicitcluster") explicit_size = &directive;
    if (name == ".maxclusterrank") rank = &directive;
  }
  const std::string_view kernel = module.text(entry.name);
  if (size) {
    auto extent = [&](unsigned i) { return i < size->count ? size->numbers[i] : 1u; };
    if (extent(0) == 1 && extent(1) == 1 && extent(2) == 1) return {};
    return Error{fmt::format("kernel '{}' runs in clusters of {} x {} x {} blocks (.reqnctapercluster), which are not "
                             "emulated",
                             kernel, extent(0), extent(1), extent(2)),
                 entry.header_range};
  }
  if (explicit_size)
    return Error{fmt::format("kernel '{}' takes the size of its clusters from its launch (.explicitcluster), which is "
                             "not emulated",
                             kernel),
                 entry.header_range};
  if (rank && rank->numbers[0] > 1)
    if (const SourceRange range = first_cluster_read(module, functions); !range.empty())
      return Error{fmt::format("kernel '{}' may run in clusters of up to {} blocks (.maxclusterrank) and looks at them "
                               "here; clusters are not emulated",
                               kernel, rank->numbers[0]),
                   range};
  return {};
}

// A machine's stream is a function behind all others; it names the kernel's variables by the kernel's handles.
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

ir::FunctionId definition_of(const ir::Module& module, ir::FunctionId function) {
  if (module.function(function).has_body) return function;
  for (uint32_t i = 0; i < module.functions.size(); ++i)
    if (module.functions[i]->has_body && module.functions[i]->name == module.function(function).name)
      return ir::FunctionId(i);
  return function;
}

Result<std::unique_ptr<KernelImage>> decode_kernel(const ir::Module& module, ir::FunctionId entry,
                                                   const ModulePlaces& places, DeviceMemory& memory,
                                                   std::span<std::byte> constant_bank) {
  auto image = std::make_unique<KernelImage>();
  image->module = &module;
  image->memory = &memory;
  image->constant_bank = constant_bank;
  place_parameters(module.function(entry), *image);
  const std::vector<ir::FunctionId> functions = reachable_functions(module, entry);
  if (Status status = check_clusters(module, module.function(entry), functions); !status) return status.error();
  place_module_shared(module, functions, *image);
  for (ir::FunctionId id : functions)
    place_function_shared(module.function(id), *image);
  place_dynamic_shared(module, functions, *image);
  for (ir::FunctionId id : functions) {
    auto decoded = std::make_unique<DecodedFunction>();
    decoded->id = id;
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
