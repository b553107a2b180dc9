// Functions that nvcc's code in the program calls before main: they register fat binaries, kernels and variables by the
// addresses of their host counterparts. Their contents are read on first use.
#include "cuda/context/image.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include <cstring>
#include <map>
#include <unordered_map>

namespace ptxrewrite::cuda::runtime {
namespace {

struct RegisteredKernel {
  Module* module = nullptr;
  std::string name;
  Kernel* kernel = nullptr; // set on first use
};

struct RegisteredVariable {
  Module* module = nullptr;
  std::string name;
  uint64_t bytes = 0;
  bool normalised_floats = false; // of a texture reference
};

struct ManagedVariable {
  Module* module = nullptr;
  void** host_pointer = nullptr; // the pointer by which host code accesses it
  std::string name;
};

struct Registry {
  std::map<const void*, RegisteredKernel> kernels;
  std::unordered_map<const void*, const void*> handles; // kernels that were looked up, and their host functions
  std::map<const void*, RegisteredVariable> variables;
  std::vector<ManagedVariable> managed;
  uint64_t fat_binaries = 0;
};

Registry& registry() {
  static auto* made = new Registry;
  return *made;
}

Module* module_of(void** handle) {
  return handle ? static_cast<Module*>(*handle) : nullptr;
}

void place_managed(Module& module) {
  for (const ManagedVariable& variable : registry().managed)
    if (variable.module == &module && variable.host_pointer)
      if (const Symbol symbol = module.find_symbol(variable.name); symbol.address)
        *variable.host_pointer = symbol.bytes.data();
}

// A handle returned by cudaGetKernel is the kernel itself.
bool is_kernel_handle(const void* function) {
  return registry().handles.contains(function);
}

} // namespace

Kernel* kernel_of(const void* function, Code& code) {
  auto found = registry().kernels.find(function);
  if (found == registry().kernels.end()) {
    code = Code::invalid_device_function;
    return function && is_kernel_handle(function) ? static_cast<Kernel*>(const_cast<void*>(function)) : nullptr;
  }
  RegisteredKernel& registered = found->second;
  if (!registered.kernel) {
    code = registered.module->load();
    if (code != Code::success) return nullptr;
    registered.kernel = registered.module->find_kernel(registered.name);
    registry().handles.emplace(registered.kernel, function);
    code = Code::invalid_device_function;
  }
  return registered.kernel;
}

void* host_function_of(const Kernel& kernel) {
  const auto found = registry().handles.find(&kernel);
  return found == registry().handles.end() ? nullptr : const_cast<void*>(found->second);
}

bool is_known_kernel(const void* function) {
  const auto found = registry().kernels.find(function);
  return found == registry().kernels.end() ? is_kernel_handle(function) : found->second.kernel != nullptr;
}

Code symbol_of(const void* symbol, Symbol& found) {
  auto known = registry().variables.find(symbol);
  if (known == registry().variables.end()) return Code::invalid_symbol;
  if (const Code code = known->second.module->load(); code != Code::success) return code;
  found = known->second.module->find_symbol(known->second.name);
  return found.address ? Code::success : Code::invalid_symbol;
}

#if PTXREWRITE_CUDART_MAJOR < 12
bool reads_normalised_floats(const void* reference) {
  auto known = registry().variables.find(reference);
  return known != registry().variables.end() && known->second.normalised_floats;
}
#endif

std::vector<std::byte> pack_arguments(const Kernel& kernel, void** arguments) {
  std::vector<std::byte> bytes(kernel.signature.bytes);
  for (size_t i = 0; arguments && i < kernel.signature.parameters.size(); ++i) {
    const launch::Parameter& parameter = kernel.signature.parameters[i];
    std::memcpy(bytes.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  return bytes;
}

RUNTIME_API void** __cudaRegisterFatBinary(const void* wrapper) {
  Context& context = Context::get();
  const Context::Lock lock = context.lock();
  const std::string label = fmt::format("module {}", ++registry().fat_binaries);
  std::span<const std::byte> bytes;
  if (Result<std::span<const std::byte>> found = image_at(wrapper)) bytes = *found;
  return reinterpret_cast<void**>(new void*(&context.add_module(label, bytes)));
}

RUNTIME_API void __cudaRegisterFatBinaryEnd(void**) {}

RUNTIME_API void __cudaUnregisterFatBinary(void** handle) {
  delete handle; // its registrations are kept for the report at exit
}

RUNTIME_API char __cudaInitModule(void** handle) {
  Context& context = Context::get();
  const Context::Lock lock = context.lock_idle();
  Module* module = module_of(handle);
  if (!module || module->load() != Code::success) return 0;
  place_managed(*module);
  return 1;
}

RUNTIME_API void __cudaRegisterFunction(void** handle, const void* host, char*, const char* name, int, void*, void*,
                                        void*, void*, int*) {
  const Context::Lock lock = Context::get().lock();
  registry().kernels[host] = {module_of(handle), name, nullptr};
}

RUNTIME_API void __cudaRegisterVar(void** handle, const void* host, char*, const char* name, int, size_t bytes, int,
                                   int) {
  const Context::Lock lock = Context::get().lock();
  registry().variables[host] = {module_of(handle), name, bytes};
}

RUNTIME_API void __cudaRegisterManagedVar(void** handle, void** host_pointer, char* host, const char* name, int,
                                          size_t bytes, int, int) {
  const Context::Lock lock = Context::get().lock();
  registry().variables[host] = {module_of(handle), name, bytes};
  registry().variables[static_cast<const void*>(host_pointer)] = {module_of(handle), name, bytes};
  registry().managed.push_back({module_of(handle), host_pointer, name});
}

#if PTXREWRITE_CUDART_MAJOR < 12
// `symbol` is the variable's name in PTX, and the parameter after it that in C++ ("::n::name"): nvcc 11.8's
// crt/host_runtime.h declares the former as the device's address.
RUNTIME_API void __cudaRegisterTexture(void** handle, const void* host, const char* symbol, const char*, int,
                                       int normalised_floats, int) {
  const Context::Lock lock = Context::get().lock();
  registry().variables[host] = {module_of(handle), symbol, 0, normalised_floats != 0};
}

RUNTIME_API void __cudaRegisterSurface(void** handle, const void* host, const char* symbol, const char*, int, int) {
  const Context::Lock lock = Context::get().lock();
  registry().variables[host] = {module_of(handle), symbol};
}
#endif

} // namespace ptxrewrite::cuda::runtime
