#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::cli {
namespace {

// Gives the buffers back when a session ends, however it ends.
class DeviceBuffers {
public:
  explicit DeviceBuffers(Device& device) : device_(device) {}
  ~DeviceBuffers() {
    for (uint64_t address : addresses)
      (void)device_.release(address);
  }
  std::vector<uint64_t> addresses;

private:
  Device& device_;
};

const ir::Function* find_kernel(const ir::Module& module, std::string_view name) {
  for (const auto& function : module.functions)
    if (function->is_entry && module.text(function->name) == name) return function.get();
  return nullptr;
}

Result<std::vector<std::byte>> contents_of(const launch::ModuleVariable& variable,
                                           const launch::DeviceAddresses& addresses) {
  std::vector<std::byte> bytes;
  if (variable.value) {
    bytes.resize(launch::size_of(*variable.value, addresses.address_bytes).bytes);
    launch::pack(*variable.value, addresses, bytes);
  } else {
    bytes.resize(variable.data.bytes());
    if (Status status = variable.data.initialise(bytes); !status) return status.error();
  }
  return bytes;
}

Status make_buffers(const launch::LaunchPlan& plan, Device& device, DeviceBuffers& buffers) {
  for (const launch::Buffer& buffer : plan.buffers) {
    Result<uint64_t> address = device.allocate(std::max<uint64_t>(buffer.bytes(), 1), buffer.name);
    if (!address) return Error{address.error().message, buffer.range};
    buffers.addresses.push_back(*address);
    if (std::span<std::byte> mapped = device.mapped(*address, buffer.bytes()); !mapped.empty()) {
      if (Status status = buffer.initialise(mapped); !status) return status;
      continue;
    }
    std::vector<std::byte> bytes(buffer.bytes());
    if (Status status = buffer.initialise(bytes); !status) return status;
    if (Status status = device.write(*address, bytes); !status) return status;
  }
  return {};
}

} // namespace

Result<std::vector<std::byte>> pack_parameters(const launch::Launch& launch, const ir::Module& module,
                                               std::string_view kernel, const launch::DeviceAddresses& addresses) {
  const ir::Function* function = find_kernel(module, kernel);
  if (!function) return Error{fmt::format("no kernel '{}' in {}", kernel, module.source.name()), launch.kernel_range};
  std::span<const ir::VariableId> parameters = function->variable_lists.view(function->signature.parameters);
  if (parameters.size() != launch.arguments.size())
    return Error{fmt::format("kernel '{}' has {} parameters; {} arguments are given", kernel, parameters.size(),
                             launch.arguments.size()),
                 launch.arguments_range};
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ir::Variable& parameter = function->variables[parameters[i]];
    uint64_t size = uint64_t(ir::byte_width(parameter.type)) * std::max<unsigned>(parameter.vector_width, 1);
    uint64_t alignment = std::max<uint64_t>(parameter.alignment, size);
    if (parameter.is_array) {
      alignment = std::max<uint64_t>(parameter.alignment, ir::byte_width(parameter.type));
      for (uint64_t dimension : function->dimensions.view(parameter.dimensions))
        size *= dimension;
    }
    const uint64_t offset = (bytes.size() + alignment - 1) / alignment * alignment;
    const launch::ArgumentSize given = launch::size_of(launch.arguments[i], addresses.address_bytes);
    if (given.bytes != size)
      return Error{
          fmt::format("argument {} of kernel '{}' has {} bytes; the parameter has {}", i, kernel, given.bytes, size),
          launch.arguments[i].range};
    bytes.resize(offset + size);
    launch::pack(launch.arguments[i], addresses, std::span(bytes).subspan(offset, size));
  }
  return bytes;
}

Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options) {
  DeviceBuffers buffers(device);
  if (Status status = make_buffers(plan, device, buffers); !status) return status.error();
  if (Status status = device.load(module); !status) return status.error();
  launch::DeviceAddresses addresses;
  addresses.address_bytes = module.address_size == 32 ? 4 : 8;
  addresses.buffers = buffers.addresses;
  for (const launch::Texture& texture : plan.textures) {
    Result<uint64_t> handle = device.bind_texture(texture, buffers.addresses[texture.buffer]);
    if (!handle) return handle.error();
    addresses.textures.push_back(*handle);
  }
  for (const launch::ModuleVariable& variable : plan.variables) {
    Result<std::vector<std::byte>> bytes = contents_of(variable, addresses);
    if (!bytes) return bytes.error();
    if (Status status = device.write_variable(variable.data.name, *bytes); !status)
      return Error{status.error().message, variable.data.range};
  }
  SessionResult result;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const launch::Launch& planned = plan.launches[i];
    if (options.before_launch && !options.before_launch(i, planned)) break;
    KernelLaunch kernel_launch{options.choose_kernel ? options.choose_kernel(planned) : planned.kernel,
                               planned.grid,
                               planned.block,
                               planned.dynamic_shared,
                               {}};
    auto parameters = pack_parameters(planned, module, kernel_launch.kernel, addresses);
    if (!parameters) return parameters.error();
    kernel_launch.parameters = std::move(*parameters);
    Result<KernelRun> run = device.launch(kernel_launch);
    if (!run) return run.error();
    const bool failed = run->failure.has_value();
    if (!options.keep_runs) result.runs.clear();
    result.runs.push_back(std::move(*run));
    if (!failed) continue;
    result.failed_launch = i;
    break;
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const bool wanted = options.fetch_all || plan.buffers[i].output;
    std::vector<std::byte> bytes(wanted ? plan.buffers[i].bytes() : 0);
    if (Status status = device.read(buffers.addresses[i], bytes); !status) return status.error();
    result.buffers.push_back(std::move(bytes));
  }
  for (const launch::ModuleVariable& variable : plan.variables) {
    Result<std::vector<std::byte>> bytes = device.read_variable(variable.data.name);
    if (!bytes) return bytes.error();
    result.variables.push_back(std::move(*bytes));
  }
  return result;
}

} // namespace ptxrewrite::cli
