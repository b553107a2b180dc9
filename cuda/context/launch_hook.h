// Actions of `exec` around a program's modules and launches: rewriting, comparing, studying, capturing. The context
// calls the hooks; evaluate/exec implements them and selects those that the settings request.
#pragma once

#include "cuda/context/settings.h"
#include "emulator/core/emulator.h"
#include "ir/core/module.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

class Context;
class Module; // NOLINT(bugprone-forward-declaration-namespace): not ir::Module
struct Kernel;

// One launch of the program before it is emulated.
struct LaunchCall {
  Context& context;
  Kernel& kernel;                  // the kernel that the program launches
  emulator::LaunchRequest request; // the request that is executed
  emulator::Program* program;      // that has its kernel: the kernel's module's, unless a hook has others
  const ir::Module* code;          // of that program
  bool cooperative = false;
  uint64_t number = 0;    // index among the program's launches, from 1
  bool rewritten = false; // the request executes other code than the program's
  std::string reason;     // why it does not; "" if there is no obstacle
};

// One hook's section of the report at program exit.
struct ReportPart {
  std::string text;        // for standard error
  std::string key;         // member of the JSON report; "" if none
  std::string json;        // its value
  bool has_failed = false; // `exec` exits with 1 if the program exits with 0
};

// Hooks may throw: the launch is then executed without the hook.
class LaunchHook {
public:
  virtual ~LaunchHook() = default;
  // Returns the module to run instead of one that the program loads; nullptr to keep it. It must have the same
  // variables and kernels.
  virtual std::unique_ptr<ir::Module> replacement(const ir::Module& original) { return (void)original, nullptr; }
  // May change the request.
  virtual void before(LaunchCall& call) { (void)call; }
  // Called with memory as the launch has left it. Not called if the emulator refuses the kernel.
  virtual void after(const LaunchCall& call, const emulator::LaunchResult& result) { (void)call, (void)result; }
  // Seconds of all launches so far on the machine that the hook models; nothing if it models none.
  virtual std::optional<double> modelled_seconds() const { return std::nullopt; }
  virtual ReportPart report() { return {}; }
};

using LaunchHooks = std::vector<std::unique_ptr<LaunchHook>>;
using LaunchHookFactory = LaunchHooks (*)(const Settings& settings);

// Must be called before the context is created, at the latest when libraries are initialised.
void set_launch_hook_factory(LaunchHookFactory factory);
// Empty if no factory is set.
LaunchHooks make_launch_hooks(const Settings& settings);

} // namespace ptxrewrite::cuda
