// Loads a module and launches its kernels: places variables, decodes kernels, distributes blocks over host threads.
#include "emulator/core/program.h"

#include "emulator/core/engine.h"
#include "emulator/core/grid.h"
#include "emulator/core/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t largest_grid_x = (uint64_t(1) << 31) - 1;
constexpr uint64_t largest_grid_yz = 65535;
constexpr uint64_t largest_shared_memory = 232448; // of one block (sm_90 and later; facts/machines.tsv)
// All banks: eleven of 64 KiB (PTX ISA 5.1.3), and more for modules that ptxas rejects.
constexpr uint64_t largest_constant_memory = uint64_t(16) << 20;

// A variable of the module or of a function's body, with its initialiser and dimensions from the tables of its owner.
struct ScopedVariable {
  const ir::Function* function = nullptr; // nullptr for a variable of the module
  ir::VariableId id;
  const ir::Variable* variable = nullptr;
  std::span<const ir::Operand> initialiser;
  std::span<const uint64_t> dimensions;
};

std::vector<ScopedVariable> variables_of(const ir::Module& module) {
  std::vector<ScopedVariable> all;
  for (ir::VariableId id : module.variables.ids()) {
    const ir::Variable& variable = module.variables[id];
    all.push_back({nullptr, id, &variable, module.initialisers.view(variable.initialiser),
                   module.dimensions.view(variable.dimensions)});
  }
  for (const auto& function : module.functions)
    for (ir::VariableId id : function->variables.ids()) {
      const ir::Variable& variable = function->variables[id];
      all.push_back({function.get(), id, &variable, function->initialisers.view(variable.initialiser),
                     function->dimensions.view(variable.dimensions)});
    }
  return all;
}

// Size of `x[] = {...}`, which declares none, from the number of its elements.
uint64_t initialised_bytes(const ScopedVariable& scoped) {
  uint64_t count = 0;
  for (size_t i = 0; i < scoped.initialiser.size(); ++i) {
    if (scoped.initialiser[i].is(ir::OperandKind::vector)) continue;
    ++count;
    i += scoped.initialiser[i].group_size();
  }
  return count * ir::byte_width(scoped.variable->type);
}

// Returns the machine that the launch requests, or nullptr if none; fails if two requests exclude each other.
Result<const MachineModel*> machine_for(const KernelImage& image, const LaunchRequest& request) {
  const MachineModel* chosen = nullptr;
  for (const MachineModel* machine : machines()) {
    if (!machine->takes(image, request)) continue;
    if (chosen) return Error{fmt::format("{} runs without other machines", chosen->title()), {}};
    chosen = machine;
  }
  if (chosen && request.observer && !chosen->allows_observer())
    return Error{fmt::format("{} runs without observers", chosen->title()), {}};
  return chosen;
}

class LoadedProgram final : public Program, LaunchHost {
public:
  LoadedProgram(const ir::Module& module, DeviceMemory& memory) : module_(module), memory_(memory) {}

  Status place_variables();
  Result<LaunchResult> launch(const LaunchRequest& request) override;
  Status check_supported(std::string_view kernel) override;
  Result<uint64_t> static_shared(std::string_view kernel) override;
  Result<KernelImage*> decoded(std::string_view kernel) override { return image_of(kernel); }
  std::span<std::byte> variable(std::string_view name) override;
  uint64_t variable_address(std::string_view name) const override;
  Result<uint64_t> bind_texture(const TextureBinding& binding, std::string_view reference, uint64_t handle) override;
  void set_textures(TextureTable textures) override { textures_ = std::move(textures); }

private:
  struct Decoded {
    std::unique_ptr<KernelImage> image;
    Error error; // set if there is no image
  };
  Result<KernelImage*> image_of(std::string_view kernel) override { return image_of(kernel, false); }
  Result<KernelImage*> image_of(std::string_view kernel, bool clustered);
  ir::FunctionId find_kernel(std::string_view name) const;
  Result<LaunchResult> run(KernelImage& image, const LaunchRequest& request, MachineRun* machine) override {
    return run_grid(image, request, memory_, machine);
  }
  DeviceMemory& memory() override { return memory_; }
  Status place_variable(const ScopedVariable& variable, uint64_t& constant_bytes);
  Status fill_variable(const ScopedVariable& variable);
  void initialise(const ScopedVariable& variable, std::span<std::byte> bytes);
  void initialise_elements(std::span<const ir::Operand> operands, std::span<const uint64_t> strides,
                           unsigned element_bytes, std::span<std::byte> bytes);
  uint64_t symbol_value(const ir::Operand& operand) const;
  const ir::Variable* find_variable(std::string_view name, uint32_t& id) const;

  const ir::Module& module_;
  DeviceMemory& memory_;
  ModulePlaces places_;
  TextureTable textures_;
  std::vector<std::byte> constant_bank_;
  std::mutex images_mutex_; // a kernel may be looked up while another one runs
  std::map<std::string, Decoded, std::less<>> images_;
  std::map<std::string, Decoded, std::less<>> clustered_images_; // of launches with a cluster size
};

Status LoadedProgram::place_variable(const ScopedVariable& scoped, uint64_t& constant_bytes) {
  const ir::Variable& variable = *scoped.variable;
  const uint64_t bytes = variable.unsized ? initialised_bytes(scoped) : variable_bytes(variable, scoped.dimensions);
  VariablePlace place{0, bytes};
  if (variable.space == ir::StateSpace::constant) {
    place.address = align_up(constant_bytes, variable_alignment(variable));
    constant_bytes = saturating_add(place.address, bytes);
    if (constant_bytes > largest_constant_memory)
      return Error{fmt::format("'{}' ends at byte {} of constant memory, which has {}", module_.text(variable.name),
                               constant_bytes, largest_constant_memory),
                   variable.range};
  } else if (variable.space == ir::StateSpace::global) {
    const bool managed = variable.attributes && module_.text(variable.attributes).find(".managed") != std::string::npos;
    const std::string_view name = module_.text(variable.name);
    const uint64_t wanted = std::max<uint64_t>(bytes, 1);
    Result<uint64_t> address = memory_.allocate_variable(wanted, name, managed);
    if (!address) return Error{address.error().message, variable.range};
    place.address = *address;
  } else {
    return {};
  }
  places_.variables[{scoped.function, scoped.id.index()}] = place;
  return {};
}

Status LoadedProgram::fill_variable(const ScopedVariable& scoped) {
  auto place = places_.variables.find({scoped.function, scoped.id.index()});
  if (place == places_.variables.end() || scoped.initialiser.empty()) return {};
  const auto [address, bytes] = place->second;
  if (scoped.variable->space == ir::StateSpace::constant)
    initialise(scoped, std::span(constant_bank_).subspan(address, bytes));
  else
    initialise(scoped, {memory_.find(address).host, bytes});
  return {};
}

Status LoadedProgram::place_variables() {
  places_.functions = code_addresses(module_);
  const std::vector<ScopedVariable> variables = variables_of(module_);
  uint64_t constant_bytes = 0;
  for (const ScopedVariable& variable : variables)
    if (Status status = place_variable(variable, constant_bytes); !status) return status;
  constant_bank_.assign(constant_bytes, std::byte(0));
  // Initialisers may name other variables, so all variables are placed before.
  for (const ScopedVariable& variable : variables)
    if (Status status = fill_variable(variable); !status) return status;
  return {};
}

uint64_t LoadedProgram::symbol_value(const ir::Operand& operand) const {
  const ir::SymbolRef symbol = operand.as_symbol();
  const auto offset = static_cast<uint64_t>(operand.immediate);
  if (symbol.kind() == ir::SymbolRef::Kind::function) return places_.functions[symbol.function().index()] + offset;
  if (symbol.kind() != ir::SymbolRef::Kind::module_variable) return offset;
  auto place = places_.variables.find({nullptr, symbol.variable().index()});
  if (place == places_.variables.end()) return offset;
  const bool constant = module_.variables[symbol.variable()].space == ir::StateSpace::constant;
  const bool generic = operand.has(ir::OperandFlag::generic_address);
  return place->second.address + offset + (constant && generic ? constant_window : 0);
}

// Nested braces fill whole rows, whose sizes are `strides`, outermost first; scalars fill consecutive elements.
// `mask(symbol)` is one byte of an address.
void LoadedProgram::initialise_elements(std::span<const ir::Operand> operands, std::span<const uint64_t> strides,
                                        unsigned element_bytes, std::span<std::byte> bytes) {
  size_t at = 0;
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    const ir::Operand& operand = operands[i];
    const size_t share = operand.is(ir::OperandKind::vector) && !strides.empty() ? strides.front() : element_bytes;
    if (at >= bytes.size()) return;
    std::span<std::byte> place = bytes.subspan(at, std::min<size_t>(share, bytes.size() - at));
    at += share;
    if (operand.is(ir::OperandKind::vector)) {
      initialise_elements(operands.subspan(i + 1, operand.group_size()), strides.empty() ? strides : strides.subspan(1),
                          element_bytes, place);
      continue;
    }
    uint64_t value = std::bit_cast<uint64_t>(operand.immediate);
    if (operand.is(ir::OperandKind::symbol)) {
      value = symbol_value(operand);
    } else if (operand.is(ir::OperandKind::pair)) {
      const auto mask = static_cast<uint64_t>(operands[i + 1].immediate);
      value = operands[i + 2].is(ir::OperandKind::symbol) ? symbol_value(operands[i + 2]) : 0;
      if (mask) value = (value & mask) >> std::countr_zero(mask);
    } else if (operand.is(ir::OperandKind::float64) && element_bytes == 4) {
      value = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
    }
    std::memcpy(place.data(), &value, std::min<size_t>(place.size(), sizeof value));
  }
}

void LoadedProgram::initialise(const ScopedVariable& scoped, std::span<std::byte> bytes) {
  std::span<const ir::Operand> operands = scoped.initialiser;
  const unsigned element_bytes = ir::byte_width(scoped.variable->type);
  std::vector<uint64_t> strides; // size of a row of each dimension but the last, and of a vector
  uint64_t row = bytes.size();
  for (uint64_t dimension : scoped.dimensions) {
    if (dimension) row /= dimension;
    strides.push_back(row);
  }
  if (operands.size() && operands[0].is(ir::OperandKind::vector))
    operands = operands.subspan(1, operands[0].group_size());
  initialise_elements(operands, strides, element_bytes, bytes);
}

const ir::Variable* LoadedProgram::find_variable(std::string_view name, uint32_t& id) const {
  for (ir::VariableId candidate : module_.variables.ids())
    if (places_.variables.contains({nullptr, candidate.index()}) &&
        module_.text(module_.variables[candidate].name) == name) {
      id = candidate.index();
      return &module_.variables[candidate];
    }
  return nullptr;
}

std::span<std::byte> LoadedProgram::variable(std::string_view name) {
  uint32_t id = 0;
  const ir::Variable* found = find_variable(name, id);
  if (!found) return {};
  const VariablePlace place = places_.variables.at({nullptr, id});
  if (found->space == ir::StateSpace::constant) return std::span(constant_bank_).subspan(place.address, place.bytes);
  const MemoryRange range = memory_.find(place.address);
  return range.host ? std::span(range.host, place.bytes) : std::span<std::byte>();
}

uint64_t LoadedProgram::variable_address(std::string_view name) const {
  uint32_t id = 0;
  const ir::Variable* found = find_variable(name, id);
  if (!found) return 0;
  return places_.variables.at({nullptr, id}).address + (found->space == ir::StateSpace::constant ? constant_window : 0);
}

Result<uint64_t> LoadedProgram::bind_texture(const TextureBinding& binding, std::string_view reference,
                                             uint64_t handle) {
  if (binding.width == 0 || (binding.channels != 1 && binding.channels != 2 && binding.channels != 4) ||
      (binding.channel_bits != 8 && binding.channel_bits != 16 && binding.channel_bits != 32))
    return Error{fmt::format("a texture of width {} with {} channels of {} bits", binding.width, binding.channels,
                             binding.channel_bits),
                 {}};
  if (textures_.contains(handle)) return Error{fmt::format("two textures have the handle {:#x}", handle), {}};
  if (!handle) {
    handle = texture_handle_window + 16;
    while (textures_.contains(handle))
      handle += 16;
  }
  if (!reference.empty()) {
    handle = variable_address(reference);
    if (!handle) return Error{fmt::format("no texture or surface reference '{}'", reference), {}};
  }
  textures_[handle] = binding;
  return handle;
}

ir::FunctionId LoadedProgram::find_kernel(std::string_view name) const {
  ir::FunctionId entry;
  for (uint32_t i = 0; i < module_.functions.size(); ++i) {
    const ir::Function& function = *module_.functions[i];
    if (function.is_entry && function.has_body && module_.text(function.name) == name) entry = ir::FunctionId(i);
  }
  return entry;
}

Result<KernelImage*> LoadedProgram::image_of(std::string_view kernel, bool clustered) {
  std::lock_guard lock(images_mutex_);
  auto& images = clustered ? clustered_images_ : images_;
  auto known = images.find(kernel);
  if (known == images.end()) {
    const ir::FunctionId entry = find_kernel(kernel);
    if (!entry) return Error{fmt::format("no kernel '{}' in {}", kernel, module_.source.name()), {}};
    Decoded decoded;
    Result<std::unique_ptr<KernelImage>> image =
        decode_kernel(module_, entry, places_, memory_, constant_bank_, clustered);
    if (image) {
      decoded.image = std::move(*image);
      decoded.image->textures = &textures_;
    } else
      decoded.error = image.error();
    known = images.emplace(std::string(kernel), std::move(decoded)).first;
  }
  if (!known->second.image) return known->second.error;
  return known->second.image.get();
}

Status LoadedProgram::check_supported(std::string_view kernel) {
  Result<KernelImage*> image = image_of(kernel);
  return image ? Status() : Status(image.error());
}

Result<uint64_t> LoadedProgram::static_shared(std::string_view kernel) {
  Result<KernelImage*> image = image_of(kernel);
  if (!image) return image.error();
  return (*image)->static_shared();
}

Result<LaunchResult> LoadedProgram::launch(const LaunchRequest& given) {
  if (Status status = check_dimensions(given.grid, given.block); !status) return status.error();
  const LaunchRequest* request = &given;
  LaunchRequest in_clusters;
  if (const ir::FunctionId entry = find_kernel(given.kernel)) {
    Result<ClusterShape> shape = cluster_shape(module_, module_.function(entry), given.grid, given.cluster);
    if (!shape) return shape.error();
    if (shape->cluster) {
      in_clusters = given;
      in_clusters.grid = shape->grid;
      in_clusters.cluster = shape->cluster;
      request = &in_clusters;
      if (Status status = check_dimensions(request->grid, request->block); !status) return status.error();
    }
  }
  Result<KernelImage*> image = image_of(request->kernel, request->cluster.has_value());
  if (!image) return image.error();
  const SourceRange header = (*image)->functions.front()->source->header_range;
  const uint64_t shared = saturating_add((*image)->static_shared(), request->shared_bytes);
  if (shared > largest_shared_memory)
    return Error{fmt::format("kernel '{}' with {} bytes of shared memory; a block can have {}", request->kernel, shared,
                             largest_shared_memory),
                 header};
  if (request->parameters.size() != (*image)->parameter_bytes)
    return Error{fmt::format("kernel '{}' has {} bytes of parameters, not {}", request->kernel,
                             (*image)->parameter_bytes, request->parameters.size()),
                 {}};
  Result<const MachineModel*> machine = machine_for(**image, *request);
  if (!machine) return machine.error();
  return *machine ? (*machine)->launch(*this, **image, *request) : run_grid(**image, *request, memory_);
}

} // namespace

Engine& default_engine() {
  static Engine engine = Engine::interpreter;
  return engine;
}

std::optional<CodeTier>& default_tier() {
  static std::optional<CodeTier> tier;
  return tier;
}

CodeWork& code_work(CodeTier tier) {
  static CodeWork work[2];
  return work[static_cast<size_t>(tier)];
}

std::atomic<uint64_t>& warp_instructions_by_code() {
  static std::atomic<uint64_t> executed = 0;
  return executed;
}

static constexpr std::string_view engine_words[] = {"auto", "interpreter", "generated"};

std::optional<Engine> engine_of(std::string_view word) {
  for (const Engine engine : {Engine::automatic, Engine::interpreter, Engine::generated})
    if (engine_words[static_cast<size_t>(engine)] == word) return engine;
  return std::nullopt;
}

std::string word_of(Engine engine) {
  return std::string(engine_words[static_cast<size_t>(engine)]);
}

MatrixSums& default_matrix_sums() {
  static MatrixSums sums = MatrixSums::sequential;
  return sums;
}

static constexpr std::string_view matrix_sums_words[] = {"sequential", "hopper"};

std::optional<MatrixSums> matrix_sums_of(std::string_view word) {
  for (const MatrixSums sums : {MatrixSums::sequential, MatrixSums::hopper})
    if (matrix_sums_words[static_cast<size_t>(sums)] == word) return sums;
  return std::nullopt;
}

std::string word_of(MatrixSums sums) {
  return std::string(matrix_sums_words[static_cast<size_t>(sums)]);
}

Status check_dimensions(const Dimensions& grid, const Dimensions& block) {
  if (grid.count() == 0 || block.count() == 0)
    return Error{fmt::format("a grid of {} x {} x {} blocks of {} x {} x {} threads: no size may be zero", grid.x,
                             grid.y, grid.z, block.x, block.y, block.z),
                 {}};
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > 1024)
    return Error{fmt::format("a block of {} x {} x {} threads; at most 1024 x 1024 x 64 and 1024 in all", block.x,
                             block.y, block.z),
                 {}};
  if (grid.x > largest_grid_x || grid.y > largest_grid_yz || grid.z > largest_grid_yz)
    return Error{fmt::format("a grid of {} x {} x {} blocks; at most {} x {} x {}", grid.x, grid.y, grid.z,
                             largest_grid_x, largest_grid_yz, largest_grid_yz),
                 {}};
  return {};
}

namespace {
std::string text_of(const Dimensions& size) {
  return fmt::format("{} x {} x {}", size.x, size.y, size.z);
}
} // namespace

Result<ClusterShape> cluster_shape(const ir::Module& module, const ir::Function& kernel, const Dimensions& grid,
                                   const std::optional<Dimensions>& asked) {
  const ClusterDirectives directives = cluster_directives(module, kernel);
  const std::string_view name = module.text(kernel.name);
  const auto refuse = [&](std::string text) { return Error{std::move(text), kernel.header_range}; };
  ClusterShape shape{grid, asked ? asked : directives.required};
  if (!shape.cluster) {
    if (directives.is_explicit)
      return refuse(fmt::format("kernel '{}' takes the size of its clusters from its launch (.explicitcluster), which "
                                "has none",
                                name));
    return shape;
  }
  const Dimensions& cluster = *shape.cluster;
  if (directives.required && !(cluster == *directives.required))
    return refuse(fmt::format("kernel '{}' runs in clusters of {} blocks (.reqnctapercluster), not of {}", name,
                              text_of(*directives.required), text_of(cluster)));
  const uint64_t most = directives.largest ? std::min<uint64_t>(directives.largest, largest_cluster) : largest_cluster;
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0 || cluster.x > most || cluster.y > most || cluster.z > most ||
      cluster.count() > most)
    return refuse(fmt::format("clusters of {} blocks: {} may have 1 to {}", text_of(cluster),
                              directives.largest ? fmt::format("those of kernel '{}' (.maxclusterrank)", name)
                                                 : std::string("a cluster"),
                              most));
  if (directives.blocks_are_clusters) {
    const auto times = [](uint32_t a, uint32_t b) {
      return static_cast<uint32_t>(std::min<uint64_t>(uint64_t(a) * b, UINT32_MAX));
    };
    shape.grid = {times(grid.x, cluster.x), times(grid.y, cluster.y), times(grid.z, cluster.z)};
  } else if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z) {
    return refuse(
        fmt::format("a grid of {} blocks, which is no multiple of clusters of {}", text_of(grid), text_of(cluster)));
  }
  return shape;
}

Result<std::unique_ptr<Program>> Program::load(const ir::Module& module, DeviceMemory& memory) {
  auto program = std::make_unique<LoadedProgram>(module, memory);
  if (Status status = program->place_variables(); !status) return status.error();
  return std::unique_ptr<Program>(std::move(program));
}

} // namespace ptxrewrite::emulator
