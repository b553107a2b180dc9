// libgpuocelot.so: gpuocelot's C entry point (ocelot/src/api/interfaces/emulated.cpp), for programs that launch PTX by
// it. A kernel's pointers are the process's own addresses. Failures end the process, as gpuocelot's exceptions do.
#include "cuda/context/context.h"
#include "cuda/context/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace ptxrewrite::cuda {
namespace {

// Makes all writable memory of the process accessible to kernels while it lives: the entry point names no sizes of
// arguments.
class WritableMemory {
public:
  explicit WritableMemory(Context& context) : context_(context) {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    if (!maps) return;
    char line[8192];
    while (std::fgets(line, sizeof line, maps))
      add(line);
    std::fclose(maps);
    attach();
  }
  ~WritableMemory() {
    for (std::byte* begin : attached_)
      (void)context_.unregister_host(begin);
  }
  WritableMemory(const WritableMemory&) = delete;
  WritableMemory& operator=(const WritableMemory&) = delete;

private:
  // A line of /proc/self/maps: "begin-end rw-p ...". Neighbours are one range: an object may lie in both.
  void add(const char* line) {
    uint64_t begin = 0, end = 0;
    char access[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3 || access[0] != 'r' || access[1] != 'w') return;
    if (begin != end_) {
      attach();
      begin_ = begin;
    }
    end_ = end;
  }

  // Ranges that have a meaning on the device are not attached.
  void attach() {
    auto* bytes = reinterpret_cast<std::byte*>(begin_);
    if (context_.register_host(bytes, end_ - begin_, 0) == Code::success) attached_.push_back(bytes);
  }

  Context& context_;
  uint64_t begin_ = 0, end_ = 0; // the range that is being read
  std::vector<std::byte*> attached_;
};

[[noreturn]] void fail(std::string_view reason) {
  log_text(LogLevel::error, fmt::format("ptx_run: {}", reason));
  std::abort();
}

// The first kernel of a text, which is read once.
Kernel& kernel_of(Context& context, const char* source) {
  static std::map<std::string, Kernel*, std::less<>> known;
  if (auto found = known.find(std::string_view(source)); found != known.end()) return *found->second;
  Module& module = context.add_module("ptx_run", std::string(source));
  const std::vector<Kernel*> kernels = module.every_kernel();
  if (kernels.empty()) fail("no kernel in the PTX");
  return *known.emplace(source, kernels.front()).first->second;
}

// `values`: arguments, each in the size of a pointer.
std::vector<std::byte> pack_values(const Kernel& kernel, void* const* values, size_t count) {
  const auto& parameters = kernel.signature.parameters;
  if (parameters.size() != count)
    fail(fmt::format("{} has {} parameters, not {}", kernel.name, parameters.size(), count));
  std::vector<std::byte> bytes(kernel.signature.bytes);
  for (size_t i = 0; i < count; ++i) {
    if (parameters[i].bytes > sizeof values[i])
      fail(
          fmt::format("parameter {} of {} has {} bytes: more than a pointer", i + 1, kernel.name, parameters[i].bytes));
    std::memcpy(bytes.data() + parameters[i].offset, static_cast<const void*>(&values[i]), parameters[i].bytes);
  }
  return bytes;
}

emulator::Dimensions dimensions(int x, int y, int z) {
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
}

} // namespace
} // namespace ptxrewrite::cuda

extern "C" __attribute__((visibility("default"))) void ptx_run(const char* source, int count, void* values[],
                                                               int block_x, int block_y, int block_z, int grid_x,
                                                               int grid_y, int grid_z, int dynamic_shared) {
  using namespace ptxrewrite::cuda;
  Context& context = Context::get();
  const Context::Lock lock = context.lock_idle();
  context.initialise();
  Kernel& kernel = kernel_of(context, source);
  if (dynamic_shared > 0 && context.allow_dynamic_shared(kernel, dynamic_shared) != Code::success)
    fail(fmt::format("{} bytes of dynamic shared memory", dynamic_shared));
  const LaunchShape shape{dimensions(grid_x, grid_y, grid_z), dimensions(block_x, block_y, block_z),
                          static_cast<uint64_t>(std::max(dynamic_shared, 0))};
  std::vector<std::byte> bytes = pack_values(kernel, values, static_cast<size_t>(std::max(count, 0)));
  const WritableMemory memory(context);
  const Code code = context.launch(kernel, shape, std::move(bytes));
  context.flush_printed();
  if (code != Code::success || context.see_errors() != Code::success) fail(fmt::format("{} failed", kernel.name));
}
