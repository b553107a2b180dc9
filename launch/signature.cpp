#include "launch/signature.h"

#include "support/text/near_names.h"

#include <algorithm>
#include <limits>
#include <set>

namespace ptxrewrite::launch {

namespace {
uint64_t saturated(UInt128 bytes) {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  return bytes > most ? most : static_cast<uint64_t>(bytes);
}
} // namespace

uint64_t bytes_of(const ir::Variable& variable, std::span<const uint64_t> dimensions) {
  UInt128 bytes = UInt128(byte_width(variable.type)) * variable.vector_width;
  if (variable.is_array)
    for (uint64_t dimension : dimensions)
      if (bytes <= std::numeric_limits<uint64_t>::max()) bytes *= dimension;
  if (variable.unsized) return 0;
  return saturated(bytes);
}

Signature signature_of(const ir::Function& kernel) {
  Signature signature;
  for (ir::VariableId id : kernel.variable_lists.view(kernel.signature.parameters)) {
    const ir::Variable& variable = kernel.variables[id];
    Parameter parameter;
    parameter.name = kernel.module().text(variable.name);
    parameter.type = variable.type;
    parameter.is_array = variable.is_array;
    parameter.bytes = bytes_of(variable, kernel.dimensions.view(variable.dimensions));
    parameter.alignment = std::max<uint64_t>(1, uint64_t{byte_width(variable.type)} * variable.vector_width);
    if (variable.alignment != 0) parameter.alignment = variable.alignment;
    const UInt128 offset =
        (UInt128(signature.bytes) + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    parameter.offset = saturated(offset);
    signature.bytes = saturated(offset + parameter.bytes);
    signature.parameters.push_back(parameter);
  }
  return signature;
}

const ir::Function* find_kernel(const ir::Module& module, std::string_view name) {
  for (const auto& function : module.functions)
    if (function->is_entry && function->has_body && module.text(function->name) == name) return function.get();
  return nullptr;
}

Result<std::vector<std::byte>> pack_parameters(const Launch& launch, const Signature& signature,
                                               const DeviceAddresses& addresses) {
  const size_t wanted = signature.parameters.size(), given = launch.arguments.size();
  if (given != wanted)
    return Error{"kernel '" + launch.kernel + "' has " + std::to_string(wanted) + " parameter" +
                     (wanted == 1 ? "" : "s") + "; args has " + std::to_string(given),
                 launch.arguments_range};
  if (signature.bytes > max_parameter_bytes)
    return Error{"the parameters of kernel '" + launch.kernel + "' take " + std::to_string(signature.bytes) +
                     " bytes; at most " + std::to_string(max_parameter_bytes) + " are possible",
                 launch.kernel_range};
  std::vector<std::byte> block(signature.bytes);
  for (size_t i = 0; i < wanted; ++i) {
    const Argument& argument = launch.arguments[i];
    const Parameter& parameter = signature.parameters[i];
    const uint64_t bytes = size_of(argument, addresses.address_bytes).bytes;
    const bool is_handle = type_kind(parameter.type) == ir::TypeKind::opaque_handle;
    if (bytes != parameter.bytes && !is_handle)
      return Error{"args[" + std::to_string(i) + "] has " + std::to_string(bytes) + " bytes; parameter " +
                       std::string(parameter.name) + " has " + std::to_string(parameter.bytes),
                   argument.range};
    pack(argument, addresses, std::span(block).subspan(parameter.offset, parameter.bytes));
  }
  return block;
}

namespace {

std::string type_text(const Parameter& parameter) {
  std::string text = "." + std::string(spelling(parameter.type));
  if (parameter.is_array) text += "[" + std::to_string(parameter.bytes / byte_width(parameter.type)) + "]";
  return text;
}

std::string signature_text(const Signature& signature) {
  std::string text;
  for (const Parameter& parameter : signature.parameters)
    text += (text.empty() ? "" : ", ") + type_text(parameter);
  return text.empty() ? "none" : text;
}

// The argument as in the file, for messages: "s32", "a buffer's address".
std::string argument_text(const Argument& argument, uint64_t bytes) {
  switch (argument.kind) {
  case Argument::Kind::buffer:
    return "the address of a buffer (" + std::to_string(bytes) + " bytes)";
  case Argument::Kind::texture:
    return "the handle of a texture (8 bytes)";
  case Argument::Kind::tensor_map:
    return "a tensor map (128 bytes)";
  case Argument::Kind::structure:
    return "a struct of " + std::to_string(bytes) + " bytes";
  case Argument::Kind::bytes:
    break;
  }
  if (argument.type == ir::ScalarType::none) return std::to_string(bytes) + " bytes";
  std::string text(spelling(argument.type));
  const uint64_t count = bytes / byte_width(argument.type);
  return count == 1 ? text : std::to_string(count) + " numbers of type " + text;
}

bool is_handle(ir::ScalarType type) {
  return type_kind(type) == ir::TypeKind::opaque_handle;
}

// True if an argument of `bytes` bytes fits the parameter. PTX does not distinguish integers and bit types of one size;
// floating-point parameters accept their own type, or bits.
bool fits(const Argument& argument, uint64_t bytes, const Parameter& parameter) {
  if (argument.kind == Argument::Kind::texture && is_handle(parameter.type)) return true;
  if (bytes != parameter.bytes) return false;
  if (parameter.is_array) return true;
  switch (argument.kind) {
  case Argument::Kind::buffer:
  case Argument::Kind::texture:
    return !is_float(parameter.type);
  case Argument::Kind::tensor_map:
  case Argument::Kind::structure:
    return true;
  case Argument::Kind::bytes:
    break;
  }
  if (argument.type == ir::ScalarType::none || is_bit_type(parameter.type) || is_bit_type(argument.type)) return true;
  return is_float(argument.type) ? argument.type == parameter.type : ir::is_integer(parameter.type);
}

class PlanChecker {
public:
  PlanChecker(const ir::Module& module, const LaunchPlan& plan, Diagnostics& diagnostics)
      : module_(module), plan_(plan), diagnostics_(diagnostics), address_bytes_(module.address_size == 32 ? 4 : 8) {}

  void check() {
    // Trips of a loop differ only in values.
    std::set<std::pair<uint32_t, std::string>> seen;
    for (const Launch& launch : plan_.launches)
      if (seen.emplace(launch.place, launch.kernel).second) check_launch(launch);
    for (const Launch& launch : plan_.launches)
      if (const ir::Function* kernel = find_kernel(module_, launch.kernel))
        if (!check_block(launch, *kernel)) break;
    for (const ModuleVariable& variable : plan_.variables)
      check_variable(variable);
  }

private:
  void error(SourceRange range, std::string message, std::vector<std::string> notes = {}) {
    diagnostics_.add({Severity::error, range, std::move(message), std::move(notes)});
  }

  void missing_kernel(const Launch& launch) {
    std::vector<std::string> kernels;
    for (const auto& function : module_.functions) {
      std::string name(module_.text(function->name));
      if (!function->is_entry && name == launch.kernel)
        return error(launch.kernel_range, "'" + name + "' is a device function; only kernels (.entry) are launched");
      if (function->is_entry && function->has_body) kernels.push_back(std::move(name));
    }
    error(launch.kernel_range, module_.source.name() + " has no kernel '" + launch.kernel + "'" +
                                   (kernels.empty() ? "; it has none" : near_names(launch.kernel, kernels)));
  }

  void check_launch(const Launch& launch) {
    const ir::Function* kernel = find_kernel(module_, launch.kernel);
    if (!kernel) return missing_kernel(launch);
    Signature signature = signature_of(*kernel);
    const size_t wanted = signature.parameters.size(), given = launch.arguments.size();
    if (given != wanted)
      return error(launch.arguments_range,
                   "kernel '" + launch.kernel + "' has " + std::to_string(wanted) + " parameter" +
                       (wanted == 1 ? "" : "s") + "; args has " + std::to_string(given),
                   {"its parameters: " + signature_text(signature)});
    for (size_t i = 0; i < given; ++i) {
      const Argument& argument = launch.arguments[i];
      const Parameter& parameter = signature.parameters[i];
      const uint64_t bytes = size_of(argument, address_bytes_).bytes;
      if (fits(argument, bytes, parameter)) continue;
      error(argument.range, "args[" + std::to_string(i) + "] is " + argument_text(argument, bytes) + "; parameter " +
                                std::string(parameter.name) + " is " + type_text(parameter) + " (" +
                                std::to_string(parameter.bytes) + " bytes)");
    }
  }

  bool check_block(const Launch& launch, const ir::Function& kernel) {
    for (const ir::FunctionDirective& directive : kernel.directives) {
      const std::string_view name = module_.text(directive.name);
      if ((name != ".maxntid" && name != ".reqntid") || directive.count == 0) continue;
      Dim3 stated;
      uint32_t* const parts[] = {&stated.x, &stated.y, &stated.z};
      for (unsigned i = 0; i < directive.count && i < 3; ++i)
        *parts[i] = directive.numbers[i];
      // .maxntid limits the number of threads, whatever their arrangement.
      const UInt128 most = UInt128(stated.x) * stated.y * stated.z;
      const bool right = name == ".reqntid" ? launch.block == stated : launch.block.count() <= most;
      if (right) continue;
      error(launch.block_range, "block is " + to_string(launch.block) + "; kernel '" + launch.kernel + "' states " +
                                    std::string(name) + " " + to_string(stated));
      return false;
    }
    return true;
  }

  void check_variable(const ModuleVariable& variable) {
    std::vector<std::string> known;
    const std::string section = variable.space == ir::StateSpace::constant ? "constant" : "global";
    for (ir::VariableId id : module_.variables.ids()) {
      const ir::Variable& candidate = module_.variables[id];
      if (candidate.space != variable.space) continue;
      std::string name(module_.text(candidate.name));
      if (name != variable.data.name) {
        known.push_back(std::move(name));
        continue;
      }
      const uint64_t room = bytes_of(candidate, module_.dimensions.view(candidate.dimensions));
      const uint64_t given = variable.value ? size_of(*variable.value, address_bytes_).bytes : variable.data.bytes();
      if (given > room)
        error(variable.data.range, section + "." + name + " has " + std::to_string(given) +
                                       " bytes; the variable has " + std::to_string(room));
      return;
    }
    error(variable.data.range, module_.source.name() + " has no ." + std::string(spelling(variable.space)) +
                                   " variable '" + variable.data.name + "'" + near_names(variable.data.name, known));
  }

  const ir::Module& module_;
  const LaunchPlan& plan_;
  Diagnostics& diagnostics_;
  unsigned address_bytes_;
};

} // namespace

bool check_arguments(const ir::Module& module, const LaunchPlan& plan, Diagnostics& diagnostics) {
  const size_t before = diagnostics.error_count();
  PlanChecker(module, plan, diagnostics).check();
  return diagnostics.error_count() == before;
}

void take_required_clusters(const ir::Module& module, LaunchPlan& plan) {
  for (Launch& launch : plan.launches) {
    const ir::Function* kernel = launch.cluster ? nullptr : find_kernel(module, launch.kernel);
    if (!kernel) continue;
    for (const ir::FunctionDirective& directive : kernel->directives) {
      // Its grid is given in clusters.
      if (module.text(directive.name) == ".blocksareclusters") {
        launch.cluster.reset();
        break;
      }
      const auto extent = [&](unsigned i) { return i < directive.count ? directive.numbers[i] : 1u; };
      if (module.text(directive.name) == ".reqnctapercluster") launch.cluster = Dim3{extent(0), extent(1), extent(2)};
    }
  }
}

} // namespace ptxrewrite::launch
