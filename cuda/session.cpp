#include "cuda/session.h"

#include "cuda/texture_use.h"
#include "launch/persistent_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::cuda {
namespace {

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

} // namespace

Status check_memory(const launch::LaunchPlan& plan, unsigned copies) {
  uint64_t bytes = 0; // cannot wrap, because the plan limits sizes
  for (const launch::Buffer& buffer : plan.buffers)
    bytes += buffer.bytes();
  const uint64_t limit = emulator_limits().memory_bytes();
  if (bytes * copies <= limit) return {};
  return Error{fmt::format("the buffers take {} bytes, which are needed {}; {} may be taken (--memory)", bytes,
                           copies == 1 ? "once" : fmt::format("{} times", copies), limit),
               {}};
}

Result<std::unique_ptr<PlanOnDevice>> PlanOnDevice::make(const launch::LaunchPlan& plan, Device& device,
                                                         const SessionOptions& options) {
  std::unique_ptr<PlanOnDevice> made(new PlanOnDevice(plan, device, options));
  if (Status status = made->allocate(); !status) return status.error();
  return made;
}

PlanOnDevice::~PlanOnDevice() {
  for (uint64_t address : addresses_.buffers)
    (void)device_.release(address);
}

Status PlanOnDevice::allocate() {
  if (plan_.heap_bytes)
    if (Status status = device_.set_heap_bytes(*plan_.heap_bytes); !status) return status;
  if (Status status = place(); !status) return status;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const launch::Buffer& buffer = plan_.buffers[i];
    Result<uint64_t> address =
        buffer.address ? buffer.address : device_.allocate(std::max<uint64_t>(buffer.bytes(), 1), buffer.name);
    if (!address) return Error{address.error().message, buffer.range};
    addresses_.buffers.push_back(*address);
    if (!options_.contents && buffer.contents.is_zero()) continue;
    if (Status status = restore(i); !status) return status;
  }
  return {};
}

// Allocates buffers with given addresses first, in ascending order.
Status PlanOnDevice::place() {
  std::vector<const launch::Buffer*> placed;
  for (const launch::Buffer& buffer : plan_.buffers)
    if (buffer.address) placed.push_back(&buffer);
  std::ranges::sort(placed, {}, &launch::Buffer::address);
  for (const launch::Buffer* buffer : placed)
    if (Status status = device_.allocate_at(buffer->address, buffer->bytes(), buffer->name); !status)
      return Error{status.error().message, buffer->range};
  for (const launch::ModuleVariable& variable : plan_.variables)
    if (variable.data.address)
      if (Status status = device_.place_variable(variable.data.name, variable.data.address); !status)
        return Error{status.error().message, variable.data.range};
  return {};
}

Status PlanOnDevice::restore(size_t index) {
  const launch::Buffer& buffer = plan_.buffers[index];
  const uint64_t address = addresses_.buffers[index];
  if (options_.contents) return device_.write(address, (*options_.contents)[index]);
  if (buffer.contents.is_zero()) return device_.fill(address, std::byte(0), buffer.bytes());
  if (std::span<std::byte> mapped = device_.mapped(address, buffer.bytes()); !mapped.empty())
    return buffer.initialise(mapped);
  std::vector<std::byte> bytes(buffer.bytes());
  if (Status status = buffer.initialise(bytes); !status) return status;
  return device_.write(address, bytes);
}

Status PlanOnDevice::fill_variables(const ir::Module& module) {
  addresses_.address_bytes = module.address_size == 32 ? 4 : 8;
  textures_.clear();
  addresses_.textures.clear();
  for (const launch::Texture& texture : plan_.textures) {
    Result<TextureHandles> handles =
        device_.bind_texture(texture, plan_.buffers[texture.buffer].type, addresses_.buffers[texture.buffer]);
    if (!handles) return handles.error();
    textures_.push_back(*handles);
    addresses_.textures.push_back(handles->texture);
  }
  if (Status status = encode_tensor_maps(); !status) return status;
  for (const launch::ModuleVariable& variable : plan_.variables) {
    Result<std::vector<std::byte>> bytes = contents_of(variable, addresses_);
    if (!bytes) return bytes.error();
    if (Status status = device_.write_variable(variable.data.name, *bytes); !status)
      return Error{status.error().message, variable.data.range};
  }
  return {};
}

Status PlanOnDevice::encode_tensor_maps() {
  if (addresses_.tensor_maps.size() == plan_.tensor_maps.size()) return {};
  for (const launch::PlannedTensorMap& planned : plan_.tensor_maps) {
    ir::TensorMap map = planned.map;
    map.address += addresses_.buffers[planned.buffer];
    if (std::string wrong = ir::find_fault(map); !wrong.empty())
      return Error{fmt::format("tensor map of buffer '{}': {}", plan_.buffers[planned.buffer].name, wrong),
                   planned.range};
    auto bytes = device_.encode_tensor_map(map);
    if (!bytes) return Error{bytes.error().message, planned.range};
    addresses_.tensor_maps.push_back(*bytes);
  }
  return {};
}

// Selects the handles for this launch's arguments: those of textures or of surfaces.
Status PlanOnDevice::choose_textures(const launch::Launch& launch, const ir::Function& kernel,
                                     KernelLaunch& kernel_launch) {
  if (textures_.empty()) return {};
  const TextureUse use = texture_use_of(kernel);
  Result<std::vector<bool>> as_surface = surface_arguments(plan_, launch, use);
  if (!as_surface) return as_surface.error();
  for (size_t i = 0; i < textures_.size(); ++i) {
    addresses_.textures[i] = (*as_surface)[i] ? textures_[i].surface : textures_[i].texture;
    if ((*as_surface)[i] || use.surface_references.contains(plan_.textures[i].name))
      kernel_launch.surfaces.push_back(plan_.textures[i].name);
  }
  return {};
}

Result<SessionRun> PlanOnDevice::launch(size_t index, const ir::Module& module, const launch::Variants* variants) {
  const launch::Launch& planned = plan_.launches[index];
  const ir::Function* kernel = launch::find_kernel(module, planned.kernel);
  if (!kernel)
    return Error{fmt::format("no kernel '{}' in {}", planned.kernel, module.source.name()), planned.kernel_range};
  SessionRun run;
  run.launch = index;
  run.entry = planned.kernel;
  KernelLaunch kernel_launch{
      planned.kernel, planned.grid, planned.block, planned.dynamic_shared, planned.cooperative, {}, {},
      planned.cluster};
  if (Status status = choose_textures(planned, *kernel, kernel_launch); !status) return status.error();
  auto parameters = launch::pack_parameters(planned, launch::signature_of(*kernel), addresses_);
  if (!parameters) return parameters.error();
  kernel_launch.parameters = std::move(*parameters);
  if (variants) {
    auto objection = [&](const ir::Function& original, const ir::Function& variant) -> std::string {
      const std::optional<RegisterVerdict> verdict = device_.registers_for(&original, variant, kernel_launch);
      if (!verdict) return {};
      run.registers = verdict->suffice ? verdict->text : "";
      return verdict->suffice ? "" : "not enough registers: " + verdict->text;
    };
    auto choice = variants->choose(planned.kernel, kernel_launch.parameters, planned.grid, planned.block, objection);
    if (!choice) return Error{choice.error().message, planned.kernel_range};
    run.entry = module.text(choice->entry->name);
    run.reasons = std::move(choice->reasons);
    kernel_launch.kernel = run.entry;
    kernel_launch.parameters = std::move(choice->parameter_block);
    kernel_launch.block = choice->block;
    run.is_persistent = choice->grid == launch::GridMode::persistent;
    if (choice->is_original)
      if (auto verdict = device_.registers_for(nullptr, *choice->entry, kernel_launch))
        run.registers = verdict->text + (verdict->suffice ? "" : ": not enough, but it has no original to run instead");
  }
  auto module_error = [&](const Error& error) {
    if (options_.error_place) *options_.error_place = ErrorPlace::module;
    return error;
  };
  if (run.is_persistent) {
    Result<uint64_t> resident = device_.resident_blocks(kernel_launch);
    if (!resident) return module_error(resident.error());
    kernel_launch.grid = launch::persistent_grid(planned.grid, *resident);
    kernel_launch.cluster.reset(); // its code does not use clusters: transforms/r2d2/persistent_check.cpp
  }
  Result<KernelRun> kernel_run = device_.launch(kernel_launch);
  if (!kernel_run) return module_error(kernel_run.error());
  static_cast<KernelRun&>(run) = std::move(*kernel_run);
  return run;
}

Status PlanOnDevice::fetch(SessionResult& result) {
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const bool wanted = options_.fetch_all || plan_.buffers[i].output || !plan_.buffers[i].expected.empty();
    std::vector<std::byte> bytes(wanted ? plan_.buffers[i].bytes() : 0);
    if (wanted)
      if (Status status = device_.read(addresses_.buffers[i], bytes); !status) return status;
    result.buffers.push_back(std::move(bytes));
  }
  for (const launch::ModuleVariable& variable : plan_.variables) {
    Result<std::vector<std::byte>> bytes = device_.read_variable(variable.data.name);
    if (!bytes) return bytes.error();
    result.variables.push_back(std::move(*bytes));
  }
  return {};
}

Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options) {
  if (options.error_place) *options.error_place = ErrorPlace::launch_file;
  auto memory = PlanOnDevice::make(plan, device, options);
  if (!memory) return memory.error();
  if (Status status = device.load(module); !status) {
    if (options.error_place) *options.error_place = ErrorPlace::module;
    return status.error();
  }
  if (Status status = (*memory)->fill_variables(module); !status) return status.error();
  SessionResult result;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    if (options.before_launch && !options.before_launch(i, plan.launches[i])) break;
    Result<SessionRun> run = (*memory)->launch(i, module, options.variants);
    if (!run) return run.error();
    const bool failed = run->failure.has_value();
    if (!options.keep_runs) result.runs.clear();
    result.runs.push_back(std::move(*run));
    if (!failed) continue;
    result.failed_launch = i;
    break;
  }
  if (Status status = (*memory)->fetch(result); !status) {
    // A fault may destroy a GPU's context with all its memory.
    if (!result.failed_launch) return status.error();
    result.buffers.assign(plan.buffers.size(), {});
    result.variables.assign(plan.variables.size(), {});
  }
  return result;
}

} // namespace ptxrewrite::cuda
