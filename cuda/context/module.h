// A module of the program: registered with its fat binary, or loaded by the driver API. Its PTX is read when something
// of it is first used.
#pragma once

#include "cuda/context/codes.h"
#include "emulator/core/emulator.h"
#include "ir/core/module.h"
#include "launch/signature.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::cuda {

class Context;
class Module;

// Over all launches of a kernel.
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
  uint64_t dynamic_shared_limit = 0; // what a launch may ask for
  uint32_t registers = 0;            // of a thread, estimated
  uint32_t most_threads = 0;         // of a block
  uint64_t local_bytes = 0;          // of a thread
  uint32_t ptx_target = 0;           // 80 for PTX of compute_80: programs choose their kernels' tuning by it
  KernelStatistics statistics;
};

struct Symbol {
  uint64_t address = 0; // on the device
  std::span<std::byte> bytes;
};

class Module {
public:
  // `image`: of any kind that image.h knows; it must stay where it is until the module is loaded.
  Module(Context& context, std::string label, std::span<const std::byte> image)
      : context_(context), label_(std::move(label)), image_(image) {}
  Module(Context& context, std::string label, std::string ptx)
      : context_(context), label_(std::move(label)), ptx_(std::move(ptx)) {}

  // Parses the PTX and allocates its variables. Runs once per module; later calls return the first result, and errors
  // are logged by the first call only.
  Code load();
  // Null: the module has no such kernel, or cannot be loaded (then `load` says why).
  Kernel* find_kernel(std::string_view name);
  Symbol find_symbol(std::string_view name);
  // Those that were asked for.
  std::vector<Kernel*> all_kernels();
  // All that the text has; empty if it cannot be loaded.
  std::vector<Kernel*> every_kernel();
  const std::string& label() const { return label_; }
  // What was wrong with the image, and what the reader warned of: a line each.
  const std::string& complaints() const { return complaints_; }
  // Once loaded: the module that runs, and the one that the program brought.
  const ir::Module& ir() const { return replacement_ ? *replacement_ : *original_; }
  const ir::Module& original() const { return *original_; }
  emulator::Program& program() { return *program_; }

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
  Code code_ = Code::success; // of loading
  std::unique_ptr<ir::Module> original_, replacement_;
  std::unique_ptr<emulator::Program> program_;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
};

} // namespace ptxrewrite::cuda
