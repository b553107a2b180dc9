// A module of the program: registered with its fat binary, or loaded by the driver API. Its PTX is parsed when one of
// its kernels or variables is first used.
#pragma once

#include "cuda/context/codes.h"
#include "emulator/core/emulator.h"
#include "ir/core/module.h"
#include "launch/signature.h"

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::cuda {

class Context;
class Module;

// Sums over all launches of a kernel.
struct KernelStatistics {
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  uint64_t findings = 0;
  double seconds = 0;
};

struct Kernel {
  Module* module = nullptr;
  std::string name;
  const ir::Function* function = nullptr;
  launch::Signature signature;
  uint64_t static_shared = 0;
  uint64_t dynamic_shared_limit = 0; // the largest size that a launch may request
  uint32_t most_threads = 0;         // per block
  uint64_t local_bytes = 0;          // per thread
  uint32_t ptx_target = 0;           // 80 for PTX of compute_80: programs use it to choose tuning parameters
  bool declares_clusters = false;    // has a directive about clusters
  KernelStatistics statistics;

  // Registers per thread, estimated for the context's machine when they are first asked for: most launches do not need
  // them, and the estimate takes longer than a short launch.
  uint32_t registers() const;

private:
  mutable std::once_flag has_registers_;
  mutable uint32_t registers_ = 0;
};

struct Symbol {
  uint64_t address = 0; // device address
  std::span<std::byte> bytes;
};

class Module {
public:
  // `image`: any kind that image.h supports; it must stay valid until the module is loaded.
  Module(Context& context, std::string label, std::span<const std::byte> image)
      : context_(context), label_(std::move(label)), image_(image) {}
  Module(Context& context, std::string label, std::string ptx)
      : context_(context), label_(std::move(label)), ptx_(std::move(ptx)) {}

  // Parses the PTX and allocates its variables. Runs once per module; later calls return the first result, and errors
  // are logged by the first call only.
  Code load();
  // Returns nullptr if the module has no such kernel, or cannot be loaded (`load` then returns why).
  Kernel* find_kernel(std::string_view name);
  Symbol find_symbol(std::string_view name);
  // The kernels that were looked up.
  std::vector<Kernel*> all_kernels();
  // All kernels of the text; empty if it cannot be loaded.
  std::vector<Kernel*> every_kernel();
  const std::string& label() const { return label_; }
  // The problem of the image, and the reader's warnings, one per line.
  const std::string& complaints() const { return complaints_; }
  // Valid after loading: the module that runs, and the program's original.
  const ir::Module& ir() const { return replacement_ ? *replacement_ : *original_; }
  const ir::Module& original() const { return *original_; }
  emulator::Program& program() { return *program_; }
  const Context& context() const { return context_; }

private:
  Code read();
  Code choose_ptx();
  Code place();
  void complain(const std::string& text);
  Kernel* describe(const ir::Function& function);

  Context& context_;
  std::string label_;
  std::span<const std::byte> image_;
  std::string ptx_;
  std::string complaints_;
  bool loaded_ = false;
  Code code_ = Code::success; // result of loading
  std::unique_ptr<ir::Module> original_, replacement_;
  std::unique_ptr<emulator::Program> program_;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
};

} // namespace ptxrewrite::cuda
