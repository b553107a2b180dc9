// Modules of a program on a GPU that were rewritten when they were loaded, and the code that a launch of their kernels
// runs: a variant whose launch predicate holds for the launch's arguments, block and grid, otherwise the original.
//
// A rewritten module replaces the program's own in the driver, so that the original and the variants of a kernel share
// the module's variables. The program's handles are those of the driver.
#pragma once

#include "cuda/interpose/rewriter.h"
#include "cuda/interpose/settings.h"
#include "cuda/interpose/tuning.h"
#include "launch/repeated_launches.h"
#include "launch/signature.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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
  bool keeps_shape = false; // cooperative launches and clusters: only variants with the same grid and block
};

// The parameters of a variant's launch.
struct VariantLaunch {
  std::string entry;
  void* function = nullptr;    // CUfunction, for libraries CUkernel
  LaunchShape shape;           // except for the stream
  bool is_specialised = false; // of a kernel for this launch alone
  std::vector<std::byte> parameters;
  mutable std::vector<void*> arguments; // pointers into `parameters`, read by the driver
};

// A kernel for one launch, in a module of its own.
struct SpecialisedKernel {
  SpecialisedProgram code;
  void* handle = nullptr;   // CUmodule or CUlibrary, as that of the original
  void* function = nullptr; // CUfunction or CUkernel
};

struct KernelVariant {
  void* function = nullptr; // the driver's handle; nullptr if it has no function with that name
  launch::Signature signature;
};

// A cached choice for one set of arguments, grid and block, because programs repeat launches.
struct RememberedChoice {
  std::vector<std::byte> parameters; // of the original
  launch::Dim3 grid, block;
  uint32_t dynamic_shared = 0;
  bool keeps_shape = false;
  std::string reason;                          // why the original is launched
  std::shared_ptr<const VariantLaunch> launch; // nullptr: the original is launched
  std::string key;                             // of launch::LaunchKeys, while a kernel for this launch may be made
};

// A launch between two timing events.
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

  std::mutex mutex; // guards the following members
  std::map<std::string, KernelVariant> variants;
  std::map<int, int> attributes; // set by the program
  std::array<RememberedChoice, 4> remembered;
  size_t next_remembered = 0;
  uint64_t rewritten = 0, original = 0;
  std::map<std::string, uint64_t, std::less<>> reasons; // why originals were launched, and how often
  std::map<std::string, Tuning> tunings;                // by variant, grid, block and shared memory
  std::vector<TimedLaunch> timed;                       // launches whose events are pending
  std::optional<launch::LaunchKeys> keys;
  launch::RepeatedLaunches repeated;
  std::map<std::string, SpecialisedKernel> specialised_kernels; // by the launch's key
  uint64_t specialised = 0, made = 0;                           // launches, kernels for one launch
  std::set<std::string> not_made;                               // why others were not made
};

struct Program {
  std::string label;
  RewrittenProgram code;
  const ir::Module& module() const { return code.module ? *code.module : *code.original; } // that runs
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
  // which stores the new module's handle in `*handle`. Loads `image` itself if the passes change nothing or the driver
  // rejects the rewritten text. Returns the driver's result code.
  int load(const void* image, void** handle, bool is_library, const std::function<int(const void*)>& start);
  void forget(void* handle);
  // Records the driver's handle of a kernel; ignored for modules that were not rewritten.
  void found_kernel(void* module, const char* name, void* function);
  // Records another handle of the same kernel.
  void alias(void* function, void* other);
  // Records the handle of a library's module.
  void alias_program(void* library, void* module);
  // Returns nullptr for a kernel that is launched unchanged.
  InterposedKernel* find_kernel(void* function);
  void set_attribute(void* function, int attribute, int value);

  // Returns the launch to execute instead, on the same stream; nullptr if the original is launched, which is then
  // counted. `arguments`, `extra`: as for cuLaunchKernel.
  std::shared_ptr<const VariantLaunch> variant_for(InterposedKernel& kernel, const LaunchShape& shape, void** arguments,
                                                   void** extra);
  // Counts a launch that was executed.
  void count(InterposedKernel& kernel, bool is_rewritten, std::string_view reason);
  void count_specialised(InterposedKernel& kernel);
  // Every module that was rewritten, including unloaded ones.
  std::vector<const Program*> all();

private:
  Programs() : settings_(gpu_settings_from_environment()) {}
  std::unique_ptr<Program> rewrite(const void* image);
  std::optional<KernelVariant> variant_of(InterposedKernel& kernel, const ir::Function& entry);
  RememberedChoice choose(InterposedKernel& kernel, const LaunchShape& shape, std::vector<std::byte> parameters);
  bool choose_specialised(InterposedKernel& kernel, const LaunchShape& shape, RememberedChoice& made);
  void specialise(InterposedKernel& kernel, const std::string& key);

  GpuSettings settings_;
  std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Program>> all_; // in load order, including unloaded ones
  std::unordered_map<void*, Program*> programs_;
  std::unordered_map<void*, InterposedKernel*> kernels_;
};

// The device of the calling thread's context, or the first one.
int current_device();

} // namespace ptxrewrite::cuda::interpose
