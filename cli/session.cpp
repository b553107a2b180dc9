#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <unistd.h>

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

Status make_buffers(const launch::LaunchPlan& plan, Device& device, DeviceBuffers& buffers,
                    const std::vector<std::vector<std::byte>>* contents) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const launch::Buffer& buffer = plan.buffers[i];
    Result<uint64_t> address = device.allocate(std::max<uint64_t>(buffer.bytes(), 1), buffer.name);
    if (!address) return Error{address.error().message, buffer.range};
    buffers.addresses.push_back(*address);
    if (contents) {
      if (Status status = device.write(*address, (*contents)[i]); !status) return status;
      continue;
    }
    if (buffer.contents.is_zero()) continue;
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

// Bytes of memory that this process may fill: the machine's, or what its control group allows.
uint64_t memory_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  uint64_t limit = pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size) : UINT64_MAX;
  std::ifstream group("/sys/fs/cgroup/memory.max");
  if (uint64_t allowed = 0; group >> allowed) limit = std::min(limit, allowed);
  return limit;
}

// The launches of a plan, once memory and module are in place.
class LaunchRunner {
public:
  LaunchRunner(const launch::LaunchPlan& plan, const ir::Module& module, Device& device, const SessionOptions& options,
               launch::DeviceAddresses addresses)
      : plan_(plan), module_(module), device_(device), options_(options), addresses_(std::move(addresses)) {}

  Status run(SessionResult& result) {
    for (size_t i = 0; i < plan_.launches.size(); ++i) {
      if (options_.before_launch && !options_.before_launch(i, plan_.launches[i])) break;
      Result<SessionRun> run = run_one(i);
      if (!run) return run.error();
      const bool failed = run->failure.has_value();
      if (!options_.keep_runs) result.runs.clear();
      result.runs.push_back(std::move(*run));
      if (!failed) continue;
      result.failed_launch = i;
      break;
    }
    return {};
  }

private:
  Result<SessionRun> run_one(size_t index) {
    const launch::Launch& planned = plan_.launches[index];
    const ir::Function* kernel = launch::find_kernel(module_, planned.kernel);
    if (!kernel)
      return Error{fmt::format("no kernel '{}' in {}", planned.kernel, module_.source.name()), planned.kernel_range};
    SessionRun run;
    run.launch = index;
    run.entry = planned.kernel;
    KernelLaunch kernel_launch{planned.kernel, planned.grid, planned.block, planned.dynamic_shared, {}};
    auto parameters = launch::pack_parameters(planned, launch::signature_of(*kernel), addresses_);
    if (!parameters) return parameters.error();
    kernel_launch.parameters = std::move(*parameters);
    if (options_.variants) {
      auto choice = options_.variants->choose(planned.kernel, kernel_launch.parameters, planned.grid, planned.block);
      if (!choice) return Error{choice.error().message, planned.kernel_range};
      run.entry = module_.text(choice->entry->name);
      run.reasons = std::move(choice->reasons);
      kernel_launch.kernel = run.entry;
      kernel_launch.parameters = std::move(choice->parameter_block);
    }
    Result<KernelRun> kernel_run = device_.launch(kernel_launch);
    if (!kernel_run) {
      if (options_.error_place) *options_.error_place = ErrorPlace::module;
      return kernel_run.error();
    }
    static_cast<KernelRun&>(run) = std::move(*kernel_run);
    return run;
  }

  const launch::LaunchPlan& plan_;
  const ir::Module& module_;
  Device& device_;
  const SessionOptions& options_;
  launch::DeviceAddresses addresses_;
};

Status fill_variables(const launch::LaunchPlan& plan, Device& device, const launch::DeviceAddresses& addresses) {
  for (const launch::ModuleVariable& variable : plan.variables) {
    Result<std::vector<std::byte>> bytes = contents_of(variable, addresses);
    if (!bytes) return bytes.error();
    if (Status status = device.write_variable(variable.data.name, *bytes); !status)
      return Error{status.error().message, variable.data.range};
  }
  return {};
}

Status fetch(const launch::LaunchPlan& plan, Device& device, const std::vector<uint64_t>& addresses, bool fetch_all,
             SessionResult& result) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const bool wanted = fetch_all || plan.buffers[i].output;
    std::vector<std::byte> bytes(wanted ? plan.buffers[i].bytes() : 0);
    if (wanted)
      if (Status status = device.read(addresses[i], bytes); !status) return status;
    result.buffers.push_back(std::move(bytes));
  }
  for (const launch::ModuleVariable& variable : plan.variables) {
    Result<std::vector<std::byte>> bytes = device.read_variable(variable.data.name);
    if (!bytes) return bytes.error();
    result.variables.push_back(std::move(*bytes));
  }
  return {};
}

} // namespace

Status check_memory(const launch::LaunchPlan& plan, unsigned copies) {
  uint64_t bytes = 0; // the plan's own limit keeps this from wrapping
  for (const launch::Buffer& buffer : plan.buffers)
    bytes += buffer.bytes();
  const uint64_t limit = memory_limit();
  if (bytes * copies <= limit) return {};
  return Error{fmt::format("the buffers take {} bytes, which are needed {}; this machine has {}", bytes,
                           copies == 1 ? "once" : fmt::format("{} times", copies), limit),
               {}};
}

Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options) {
  if (options.error_place) *options.error_place = ErrorPlace::launch_file;
  DeviceBuffers buffers(device);
  if (Status status = make_buffers(plan, device, buffers, options.contents); !status) return status.error();
  if (Status status = device.load(module); !status) {
    if (options.error_place) *options.error_place = ErrorPlace::module;
    return status.error();
  }
  launch::DeviceAddresses addresses;
  addresses.address_bytes = module.address_size == 32 ? 4 : 8;
  addresses.buffers = buffers.addresses;
  for (const launch::Texture& texture : plan.textures) {
    Result<uint64_t> handle =
        device.bind_texture(texture, plan.buffers[texture.buffer].type, buffers.addresses[texture.buffer]);
    if (!handle) return handle.error();
    addresses.textures.push_back(*handle);
  }
  if (Status status = fill_variables(plan, device, addresses); !status) return status.error();
  SessionResult result;
  if (Status status = LaunchRunner(plan, module, device, options, std::move(addresses)).run(result); !status)
    return status.error();
  if (Status status = fetch(plan, device, buffers.addresses, options.fetch_all, result); !status) {
    // A fault may take a GPU's context and all memory with it.
    if (!result.failed_launch) return status.error();
    result.buffers.assign(plan.buffers.size(), {});
    result.variables.assign(plan.variables.size(), {});
  }
  return result;
}

} // namespace ptxrewrite::cli
