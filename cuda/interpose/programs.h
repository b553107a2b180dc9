// Modules of a program on a GPU that were rewritten when they were loaded, and what a launch of their kernels runs: a
// variant whose launch predicate holds for the launch's arguments, block and grid, else the original.
//
// A rewritten module takes the place of the program's own in the driver, so that both codes of a kernel share the
// module's variables. Handles that the program sees are the driver's.
#pragma once

#include "cuda/interpose/rewriter.h"
#include "cuda/interpose/settings.h"
#include "cuda/interpose/tuning.h"
#include "launch/signature.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::cuda::interpose {

struct Program;

struct LaunchShape {
  launch::Dim3 grid, block;
  uint32_t dynamic_shared = 0; // bytes
  void* stream = nullptr;
  bool keeps_shape = false; // cooperative launches and clusters: only variants of the same grid and block
};

// A launch as a variant wants it.
struct VariantLaunch {
  std::string entry;
  void* function = nullptr; // CUfunction, of a library CUkernel
  LaunchShape shape;        // but for the stream
  std::vector<std::byte> parameters;
  mutable std::vector<void*> arguments; // into parameters; the driver reads them
};

struct KernelVariant {
  void* function = nullptr; // of the driver; nullptr: it has none of that name
  launch::Signature signature;
};

// What was chosen for one set of arguments, grid and block: programs repeat their launches.
struct RememberedChoice {
  std::vector<std::byte> parameters; // of the original
  launch::Dim3 grid, block;
  uint32_t dynamic_shared = 0;
  bool keeps_shape = false;
  std::string reason;                          // why the original runs
  std::shared_ptr<const VariantLaunch> launch; // nullptr: it does
};

// A launch between two events.
struct TimedLaunch {
  Tuning* tuning = nullptr;
  Tuning::Code code = Tuning::Code::original;
  void* begin = nullptr; // CUevent
  void* end = nullptr;
};

struct InterposedKernel {
  Program* program = nullptr;
  std::string name;
  launch::Signature signature;
  bool has_variants = false;

  std::mutex mutex; // of what follows
  std::map<std::string, KernelVariant> variants;
  std::map<int, int> attributes; // that the program has set
  std::array<RememberedChoice, 4> remembered;
  size_t next_remembered = 0;
  uint64_t rewritten = 0, original = 0;
  std::map<std::string, uint64_t, std::less<>> reasons; // why the original ran, and how often
  std::map<std::string, Tuning> tunings;                // by variant, grid, block and shared memory
  std::vector<TimedLaunch> timed;                       // whose events have not come yet
};

struct Program {
  std::string label;
  RewrittenProgram code;
  launch::Variants variants;
  void* handle = nullptr; // CUmodule or CUlibrary
  bool is_library = false;
  std::map<std::string, std::unique_ptr<InterposedKernel>, std::less<>> kernels;
};

class Programs {
public:
  static Programs& get();

  const GpuSettings& settings() const { return settings_; }
  // Loads a rewritten module in place of `image`. `start` passes an image (PTX text, fat binary, cubin) to the driver,
  // which stores the new module's handle in `*handle`. Loads `image` itself where the passes change nothing or the
  // driver rejects the rewritten text. Returns the driver's result code.
  int load(const void* image, void** handle, bool is_library, const std::function<int(const void*)>& start);
  void forget(void* handle);
  // The driver's handle of a kernel of such a module; nothing happens for others.
  void found_kernel(void* module, const char* name, void* function);
  // Another handle of the same kernel.
  void alias(void* function, void* other);
  // The handle of a library's module.
  void alias_program(void* library, void* module);
  // nullptr: launched as it is.
  InterposedKernel* find_kernel(void* function);
  void set_attribute(void* function, int attribute, int value);

  // What runs in place of the launch, on its stream; nullptr: the original does, and is counted. `arguments`, `extra`:
  // as cuLaunchKernel has them.
  std::shared_ptr<const VariantLaunch> variant_for(InterposedKernel& kernel, const LaunchShape& shape, void** arguments,
                                                   void** extra);
  // A launch that took place.
  void count(InterposedKernel& kernel, bool is_rewritten, std::string_view reason);
  // Every module that was rewritten, the unloaded ones too.
  std::vector<const Program*> all();

private:
  Programs() : settings_(gpu_settings_from_environment()) {}
  std::unique_ptr<Program> rewrite(const void* image);
  std::optional<KernelVariant> variant_of(InterposedKernel& kernel, const ir::Function& entry);
  RememberedChoice choose(InterposedKernel& kernel, const LaunchShape& shape, std::vector<std::byte> parameters);

  GpuSettings settings_;
  std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Program>> all_; // in the order of loading, the unloaded ones too
  std::unordered_map<void*, Program*> programs_;
  std::unordered_map<void*, InterposedKernel*> kernels_;
};

// The device of the calling thread's context, else the first one.
int current_device();

} // namespace ptxrewrite::cuda::interpose
