#include "evaluate/exec/launch_image.h"

#include "cuda/context/context.h"
#include "cuda/context/virtual_memory.h"
#include "grammar/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <sys/uio.h>
#include <unistd.h>

namespace ptxrewrite::evaluate {
namespace {

constexpr int heap_limit = 2; // cudaLimitMallocHeapSize

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

// Copies memory that the program registered and may have unmapped: the system call fails where a plain read would
// fault.
Result<std::vector<std::byte>> copy_of_host_memory(std::span<const std::byte> bytes) {
  std::vector<std::byte> copy(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const iovec to{copy.data() + at, bytes.size() - at};
    const iovec from{const_cast<std::byte*>(bytes.data()) + at, bytes.size() - at};
    const ssize_t count = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
    if (count < 0 && (errno == EPERM || errno == ENOSYS)) return copy_of(bytes); // a sandbox may not allow this call
    if (count <= 0) return Error{fmt::format("host memory at {} is gone", fmt::ptr(bytes.data() + at)), {}};
    at += static_cast<size_t>(count);
  }
  return copy;
}

launch::Buffer buffer_of(std::string name, uint64_t address, std::vector<std::byte> bytes) {
  launch::Buffer buffer;
  buffer.name = std::move(name);
  buffer.type = ir::ScalarType::u8;
  buffer.count = bytes.size();
  buffer.contents.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  buffer.output = true;
  buffer.address = address;
  return buffer;
}

// A valid file name.
std::string plain_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '$') c = '_';
  return name.empty() ? "unnamed" : name;
}

ir::ScalarType element_of(const emulator::TextureBinding& binding) {
  using emulator::TexelKind;
  const auto by_width = [&](ir::ScalarType of8, ir::ScalarType of16, ir::ScalarType of32) {
    return binding.channel_bits == 8 ? of8 : binding.channel_bits == 16 ? of16 : of32;
  };
  switch (binding.kind) {
  case TexelKind::unsigned_integer:
    return by_width(ir::ScalarType::u8, ir::ScalarType::u16, ir::ScalarType::u32);
  case TexelKind::signed_integer:
    return by_width(ir::ScalarType::s8, ir::ScalarType::s16, ir::ScalarType::s32);
  case TexelKind::floating:
    break;
  }
  return binding.channel_bits == 16 ? ir::ScalarType::f16 : ir::ScalarType::f32;
}

launch::Texture texture_of(const emulator::TextureBinding& binding, uint64_t handle, size_t number) {
  launch::Texture texture;
  texture.name = "texture_" + std::to_string(number);
  texture.width = binding.width;
  texture.height = binding.height;
  texture.depth = binding.depth;
  texture.pitch = binding.pitch == binding.row_bytes() ? 0 : binding.pitch;
  texture.channels = binding.channels;
  texture.layered = binding.layered;
  texture.address = static_cast<launch::AddressMode>(binding.addressing);
  texture.filter = static_cast<launch::FilterMode>(binding.filter);
  texture.normalised_coordinates = binding.normalised_coordinates;
  texture.normalised_float = binding.normalised_float;
  texture.is_linear = binding.is_linear;
  if (const emulator::MipmapLevels& levels = binding.mipmap; levels.count > 1)
    texture.levels = {levels.count, static_cast<launch::FilterMode>(levels.filter), levels.bias, levels.least,
                      levels.most};
  texture.handle = handle;
  return texture;
}
static_assert(static_cast<int>(emulator::TextureAddressing::border) == static_cast<int>(launch::AddressMode::border) &&
              static_cast<int>(emulator::TextureFilter::linear) == static_cast<int>(launch::FilterMode::linear));

bool is_reference(ir::ScalarType type) {
  return type == ir::ScalarType::texref || type == ir::ScalarType::surfref || type == ir::ScalarType::samplerref;
}

class PlanMaker {
public:
  PlanMaker(const cuda::LaunchCall& call, launch::LaunchPlan& plan) : call_(call), plan_(plan) {}

  Status make() {
    plan_ = {};
    if (Status status = check_memory(); !status) return status;
    add_variables();
    if (Status status = add_buffers(); !status) return status;
    if (Status status = add_textures(); !status) return status;
    add_launch();
    if (uint64_t bytes = 0; call_.context.limit(heap_limit, bytes) == cuda::Code::success) plan_.heap_bytes = bytes;
    return {};
  }

private:
  // For the copy, a device that runs on a second copy, and the results of the run.
  Status check_memory() {
    constexpr uint64_t copies = 3;
    uint64_t bytes = 0;
    for (const emulator::DeviceMemory::Extent& extent : call_.context.memory().extents())
      bytes += extent.bytes.size();
    const uint64_t free = call_.context.free_bytes();
    if (bytes <= free / copies) return {};
    return Error{fmt::format("the program's {} bytes of device memory are needed {} times more; {} are left (--memory)",
                             bytes, copies, free),
                 {}};
  }

  // Adds the variables that the module declares; constant memory is accessible only through these.
  void add_variables() {
    const ir::Module& module = call_.kernel.module->original();
    emulator::Program& program = call_.kernel.module->program();
    for (const ir::Variable& variable : module.variables) {
      const bool is_constant = variable.space == ir::StateSpace::constant;
      if (!is_constant && variable.space != ir::StateSpace::global) continue;
      const std::string name(module.text(variable.name));
      const std::span<std::byte> bytes = program.variable(name);
      if (bytes.empty()) continue;
      const uint64_t address = program.variable_address(name);
      if (is_reference(variable.type)) {
        references_[address] = name;
        of_module_.insert(address);
        continue;
      }
      plan_.variables.push_back({variable.space, buffer_of(name, is_constant ? 0 : address, copy_of(bytes)), {}});
      of_module_.insert(address);
    }
  }

  Status add_buffers() {
    if (cuda::is_memory_shared()) return Error{"memory is mapped at several addresses", {}};
    const emulator::DeviceMemory& memory = call_.context.memory();
    std::set<std::string> names;
    for (const emulator::DeviceMemory::Extent& extent : memory.extents()) {
      if (extent.from_device) return Error{"there is memory that kernels have allocated (malloc)", {}};
      if (of_module_.contains(extent.address) || extent.bytes.empty()) continue;
      if (extent.address == call_.request.grid_workspace) continue;
      std::string name = plain_name(extent.name);
      while (!names.insert(name).second)
        name += '_';
      Result<std::vector<std::byte>> bytes =
          memory.is_host_memory(extent.address) ? copy_of_host_memory(extent.bytes) : copy_of(extent.bytes);
      if (!bytes) return bytes.error();
      plan_.buffers.push_back(buffer_of(std::move(name), extent.address, *std::move(bytes)));
    }
    return {};
  }

  // The texels of a texture have the element type of its buffer.
  Status add_textures() {
    std::map<size_t, ir::ScalarType> types;
    for (const auto& [handle, binding] : call_.context.textures()) {
      launch::Texture texture = texture_of(binding, handle, plan_.textures.size());
      if (const auto reference = references_.find(handle); reference != references_.end()) {
        texture.name = reference->second;
        texture.handle = 0; // it is found by its name
      }
      const auto buffer = std::ranges::find_if(
          plan_.buffers, [&](const launch::Buffer& one) { return binding.address - one.address < one.bytes(); });
      if (buffer == plan_.buffers.end()) continue; // its memory was freed
      const auto index = static_cast<size_t>(buffer - plan_.buffers.begin());
      const ir::ScalarType type = element_of(binding);
      if (types.try_emplace(index, type).first->second != type || buffer->contents.bytes->size() % byte_width(type))
        return Error{"textures of several types lie in one allocation", {}};
      buffer->type = type;
      buffer->count = buffer->contents.bytes->size() / byte_width(type);
      texture.buffer = static_cast<uint32_t>(index);
      texture.offset = binding.address - buffer->address;
      plan_.textures.push_back(std::move(texture));
    }
    return {};
  }

  void add_launch() {
    const emulator::LaunchRequest& request = call_.request;
    launch::Launch launch;
    launch.kernel = call_.kernel.name;
    launch.grid = {request.grid.x, request.grid.y, request.grid.z};
    launch.block = {request.block.x, request.block.y, request.block.z};
    launch.dynamic_shared = request.shared_bytes;
    launch.cooperative = call_.cooperative;
    if (request.cluster) launch.cluster = {request.cluster->x, request.cluster->y, request.cluster->z};
    for (const launch::Parameter& parameter : call_.kernel.signature.parameters) {
      launch::Argument argument;
      const auto begin = request.parameters.begin() + static_cast<std::ptrdiff_t>(parameter.offset);
      argument.bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(parameter.bytes));
      launch.arguments.push_back(std::move(argument));
    }
    plan_.launches.push_back(std::move(launch));
  }

  const cuda::LaunchCall& call_;
  launch::LaunchPlan& plan_;
  std::set<uint64_t> of_module_;               // addresses of the module's variables
  std::map<uint64_t, std::string> references_; // names of its .texref and .surfref variables
};

bool has_local_globals(const ir::Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& function) {
    return std::ranges::any_of(function->variables, [](const ir::Variable& variable) {
      return variable.space == ir::StateSpace::global || variable.space == ir::StateSpace::constant;
    });
  });
}

bool has_function(const ir::Module& module, std::string_view name) {
  return std::ranges::any_of(module.functions,
                             [&](const auto& function) { return module.text(function->name) == name; });
}

} // namespace

bool calls_indirectly(const ir::Module& module) {
  return module.source.text().find(".callprototype") != std::string_view::npos ||
         module.source.text().find(".calltargets") != std::string_view::npos;
}

bool uses_heap(const ir::Module& module) {
  return has_function(module, "malloc") || has_function(module, "free");
}

LaunchImages::KnownModule& LaunchImages::module_of(const cuda::LaunchCall& call) {
  KnownModule& known = modules_[call.kernel.module];
  if (known.input || !known.objection.empty()) return known;
  const cuda::Module& module = *call.kernel.module;
  const ir::Module& original = module.original();
  if (has_local_globals(original)) {
    known.objection = "its functions have variables of their own in global memory";
    return known;
  }
  if (&module.ir() != &original && calls_indirectly(original)) {
    known.objection = "addresses of functions are those of the rewritten module";
    return known;
  }
  Diagnostics diagnostics; // the same text was parsed before
  auto input = std::make_unique<LaunchInput>();
  input->module = grammar::read_module(original.source, diagnostics);
  if (input->module)
    known.input = std::move(input);
  else
    known.objection = "its module cannot be read again";
  return known;
}

Result<LaunchInput*> LaunchImages::of(const cuda::LaunchCall& call) {
  if (number_ == call.number) return current_;
  number_ = call.number;
  current_ = Error{"making a plan of it failed", {}}; // kept if an exception is thrown
  KnownModule& known = module_of(call);
  if (!known.input) return current_ = Error{known.objection, {}};
  if (Status status = PlanMaker(call, known.input->plan).make(); !status) return current_ = status.error();
  return current_ = known.input.get();
}

std::span<const std::byte> program_bytes(const cuda::LaunchCall& call, const launch::Buffer& buffer) {
  const emulator::MemoryRange range = call.context.memory().find(buffer.address);
  if (!range.contains(buffer.address, buffer.bytes())) return {};
  return {range.at(buffer.address), buffer.bytes()};
}

std::span<const std::byte> program_bytes(const cuda::LaunchCall& call, const launch::ModuleVariable& variable) {
  return call.kernel.module->program().variable(variable.data.name);
}

} // namespace ptxrewrite::evaluate
