#include "cuda/device.h"

#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/dac/affine_program.h"
#include "emulator/machines/r2d2/register_budget.h"
#include "emulator/tensor_copies/tensor_map_object.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/registers/registers.h"
#include "launch/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace ptxrewrite::cuda {
namespace {

emulator::TextureFilter filter_of(launch::FilterMode filter) {
  return filter == launch::FilterMode::linear ? emulator::TextureFilter::linear : emulator::TextureFilter::nearest;
}

emulator::TextureBinding binding_of(const launch::Texture& texture, ir::ScalarType element, uint64_t address) {
  using emulator::TextureAddressing;
  emulator::TextureBinding binding;
  binding.address = address + texture.offset;
  binding.kind = ir::is_float(element)    ? emulator::TexelKind::floating
                 : ir::is_signed(element) ? emulator::TexelKind::signed_integer
                                          : emulator::TexelKind::unsigned_integer;
  binding.channel_bits = ir::bit_width(element);
  binding.channels = texture.channels;
  binding.width = texture.width;
  binding.height = texture.height;
  binding.depth = texture.depth;
  binding.pitch = texture.pitch;
  binding.layered = texture.layered;
  switch (texture.address) {
  case launch::AddressMode::wrap:
    binding.addressing = TextureAddressing::wrap;
    break;
  case launch::AddressMode::clamp:
    binding.addressing = TextureAddressing::clamp;
    break;
  case launch::AddressMode::mirror:
    binding.addressing = TextureAddressing::mirror;
    break;
  case launch::AddressMode::border:
    binding.addressing = TextureAddressing::border;
    break;
  }
  binding.filter = filter_of(texture.filter);
  binding.normalised_coordinates = texture.normalised_coordinates;
  binding.normalised_float = texture.normalised_float;
  binding.is_linear = texture.is_linear;
  binding.mipmap = {texture.levels.count, filter_of(texture.levels.filter), texture.levels.bias, texture.levels.least,
                    texture.levels.most};
  return binding;
}

class EmulatorDevice final : public Device {
public:
  explicit EmulatorDevice(const EmulatorOptions& options)
      : options_(options), memory_(emulator_limits().memory_bytes()) {}

  DeviceInfo info() const override { return {.name = "emulator"}; }
  Result<uint64_t> allocate(uint64_t bytes, std::string_view name) override { return memory_.allocate(bytes, name); }
  Status allocate_at(uint64_t address, uint64_t bytes, std::string_view name) override {
    return memory_.allocate_at(address, bytes, name);
  }
  Status place_variable(std::string_view name, uint64_t address) override {
    memory_.place(name, address);
    return {};
  }
  Status release(uint64_t address) override { return memory_.release(address); }
  Status write(uint64_t address, std::span<const std::byte> bytes) override { return memory_.write(address, bytes); }
  Status read(uint64_t address, std::span<std::byte> bytes) override { return memory_.read(address, bytes); }
  std::span<std::byte> mapped(uint64_t address, uint64_t bytes) override {
    const emulator::MemoryRange range = memory_.find(address);
    return range.contains(address, bytes) ? std::span(range.at(address), bytes) : std::span<std::byte>();
  }

  Status fill(uint64_t address, std::byte value, uint64_t bytes) override {
    if (std::span<std::byte> place = mapped(address, bytes); !place.empty()) {
      std::ranges::fill(place, value);
      return {};
    }
    return write(address, std::vector<std::byte>(bytes, value));
  }

  Status set_heap_bytes(uint64_t bytes) override {
    memory_.set_heap_bytes(bytes);
    return {};
  }

  Status load(const ir::Module& module) override {
    program_ = nullptr;
    module_ = nullptr;
    register_needs_.clear();
    programs_.clear();
    modules_.clear();
    Result<size_t> number = load_beside(module);
    return number ? Status() : Status(number.error());
  }
  Result<size_t> load_beside(const ir::Module& module) override {
    auto program = emulator::Program::load(module, memory_);
    if (!program) return program.error();
    programs_.push_back(std::move(*program));
    modules_.push_back(&module);
    use_module(programs_.size() - 1);
    return programs_.size() - 1;
  }
  void use_module(size_t number) override {
    program_ = programs_[number].get();
    module_ = modules_[number];
  }

  Status write_variable(std::string_view name, std::span<const std::byte> bytes) override {
    std::span<std::byte> variable = program_ ? program_->variable(name) : std::span<std::byte>();
    if (variable.empty()) return Error{fmt::format("the module has no variable '{}'", name), {}};
    if (bytes.size() > variable.size())
      return Error{fmt::format("{} bytes for variable '{}', which has {}", bytes.size(), name, variable.size()), {}};
    std::copy(bytes.begin(), bytes.end(), variable.begin());
    return {};
  }

  Result<std::vector<std::byte>> read_variable(std::string_view name) override {
    std::span<std::byte> variable = program_ ? program_->variable(name) : std::span<std::byte>();
    if (variable.empty()) return Error{fmt::format("the module has no variable '{}'", name), {}};
    return std::vector<std::byte>(variable.begin(), variable.end());
  }

  Result<TextureHandles> bind_texture(const launch::Texture& texture, ir::ScalarType element,
                                      uint64_t buffer_address) override {
    if (!program_) return Error{"no module is loaded", {}};
    if (element == ir::ScalarType::bf16)
      return Error{fmt::format("texture '{}': texels cannot be bf16", texture.name), texture.range};
    const emulator::TextureBinding binding = binding_of(texture, element, buffer_address);
    if (program_->variable_address(texture.name))
      if (auto bound = program_->bind_texture(binding, texture.name); !bound) return bound.error();
    Result<uint64_t> handle = program_->bind_texture(binding, {}, texture.handle);
    if (!handle) return handle.error();
    return TextureHandles{*handle, *handle};
  }

  Result<std::array<std::byte, ir::tensor_map_bytes>> encode_tensor_map(const ir::TensorMap& map) override {
    return emulator::encode_tensor_map(map);
  }

  Result<KernelRun> launch(const KernelLaunch& launch) override {
    if (!program_) return Error{"no module is loaded", {}};
    emulator::LaunchRequest request;
    request.kernel = launch.kernel;
    request.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
    request.block = {launch.block.x, launch.block.y, launch.block.z};
    request.shared_bytes = launch.dynamic_shared;
    if (launch.cluster) request.cluster = {launch.cluster->x, launch.cluster->y, launch.cluster->z};
    request.parameters = launch.parameters;
    request.host_threads = options_.host_threads;
    request.unordered = options_.unordered;
    request.reversed = options_.reversed;
    request.check = options_.check;
    request.count_memory = options_.count_memory;
    request.fuel = options_.fuel;
    if (options_.machine) request.multiprocessors = options_.machine->sms;
    if (options_.observer) request.observer = options_.observer(request);
    request.late_copies = options_.late_copies;
    request.clock_unit = options_.clock_unit;
    request.matrix_sums = options_.matrix_sums;
    request.machines = options_.machines;
    request.machines.set(affine_settings(launch));
    if (launch.cooperative)
      if (Status status = prepare_workspace(request.grid_workspace); !status) return status.error();
    const auto start = std::chrono::steady_clock::now();
    auto result = program_->launch(request);
    if (!result) return result.error();
    KernelRun run;
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    run.failure = std::move(result->failure);
    run.findings = std::move(result->findings);
    run.printed = std::move(result->printed);
    run.counters = std::move(result->counters);
    run.machines = std::move(result->machines);
    return run;
  }

  std::optional<RegisterVerdict> registers_for(const ir::Function* original, const ir::Function& kernel,
                                               const KernelLaunch& launch) override {
    if (!options_.machine) return std::nullopt;
    emulator::BudgetFacts facts;
    facts.linear = needs_of(kernel).linear;
    if (facts.linear == emulator::LinearRegisterUse{}) return std::nullopt;
    facts.body_registers = needs_of(kernel).registers;
    facts.original_registers = original ? needs_of(*original).registers : facts.body_registers;
    facts.threads_per_block = static_cast<uint32_t>(launch.block.count());
    facts.blocks = launch.grid.count();
    facts.shared_bytes = shared_of(launch);
    const emulator::RegisterBudget budget = emulator::register_budget(*options_.machine, facts);
    return RegisterVerdict{budget.fits(), emulator::describe(budget, *options_.machine)};
  }

  Result<uint64_t> resident_blocks(const KernelLaunch& launch) override {
    if (options_.resident_blocks || !options_.machine || !module_)
      return std::max<uint64_t>(options_.resident_blocks, 1);
    const ir::Function* kernel = launch::find_kernel(*module_, launch.kernel);
    if (!kernel) return Error{fmt::format("no kernel '{}'", launch.kernel), {}};
    const ir::Occupancy held = ir::occupancy(*options_.machine, {static_cast<uint32_t>(launch.block.count()),
                                                                 needs_of(*kernel).registers, shared_of(launch)});
    return uint64_t{options_.machine->sms} * std::max(held.blocks, 1u);
  }

private:
  // The workspace of a cooperative launch: its size and a barrier, in the layout of cooperative groups.
  Status prepare_workspace(uint64_t& address) {
    constexpr uint64_t workspace_bytes = 4096;
    if (!workspace_) {
      Result<uint64_t> made = memory_.allocate(workspace_bytes, "workspace of cooperative launches");
      if (!made) return made.error();
      workspace_ = *made;
    }
    address = workspace_;
    const uint32_t head[2] = {8, 0};
    return memory_.write(address, std::as_bytes(std::span(head)));
  }

  // Bytes per block, static and dynamic. Errors are ignored here, because the launch reports them.
  uint32_t shared_of(const KernelLaunch& launch) {
    Result<uint64_t> bytes = program_ ? program_->static_shared(launch.kernel) : uint64_t{0};
    return launch.dynamic_shared + (bytes ? static_cast<uint32_t>(*bytes) : 0);
  }

  emulator::AffineSettings affine_settings(const KernelLaunch& launch) {
    auto settings = options_.machines.get<emulator::AffineSettings>();
    const ir::Function* kernel = module_ ? launch::find_kernel(*module_, launch.kernel) : nullptr;
    if (!kernel || !kernel->affine_stream || settings.resident_blocks || !options_.machine) return settings;
    // As many warps as the original has (dac-isca17 4.1).
    const ir::Function* original = launch::find_kernel(*module_, emulator::original_kernel(*kernel));
    const uint32_t registers = needs_of(original ? *original : *kernel).registers;
    const ir::Occupancy held =
        ir::occupancy(*options_.machine, {static_cast<uint32_t>(launch.block.count()), registers, shared_of(launch)});
    settings.resident_blocks = std::max(held.blocks, 1u);
    return settings;
  }

  // A kernel's use of the register file, computed once.
  struct RegisterNeeds {
    uint32_t registers = 0; // per thread
    emulator::LinearRegisterUse linear;
  };
  const RegisterNeeds& needs_of(const ir::Function& kernel) {
    auto [place, is_new] = register_needs_.try_emplace(&kernel);
    if (is_new)
      place->second = {ir::register_need(kernel, options_.machine->compute_capability).registers,
                       emulator::linear_register_use(kernel)};
    return place->second;
  }

  EmulatorOptions options_;
  emulator::DeviceMemory memory_; // declared before the programs, whose variables it holds
  std::vector<std::unique_ptr<emulator::Program>> programs_;
  std::vector<const ir::Module*> modules_;
  emulator::Program* program_ = nullptr; // in use
  const ir::Module* module_ = nullptr;   // likewise
  std::map<const ir::Function*, RegisterNeeds> register_needs_;
  uint64_t workspace_ = 0; // of cooperative launches
};

} // namespace

EmulatorLimits& emulator_limits() {
  static EmulatorLimits limits;
  return limits;
}

Result<std::array<std::byte, ir::tensor_map_bytes>> Device::encode_tensor_map(const ir::TensorMap&) {
  return Error{"the device has no tensor maps that launch files describe", {}};
}

Status Device::allocate_at(uint64_t, uint64_t, std::string_view name) {
  return Error{fmt::format("'{}' is to lie at an address of its own, which only the emulator can do", name), {}};
}

Status Device::place_variable(std::string_view name, uint64_t address) {
  return allocate_at(address, 0, name);
}

std::unique_ptr<Device> make_emulator_device(const EmulatorOptions& options) {
  return std::make_unique<EmulatorDevice>(options);
}

} // namespace ptxrewrite::cuda
