// What `exec` does around a program's modules and launches: rewriting them, comparing, studying, capturing. The context
// calls hooks; evaluate/exec has them, and says which ones the settings ask for.
#pragma once

#include "cuda/context/settings.h"
#include "emulator/core/emulator.h"
#include "ir/core/module.h"

#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

class Context;
class Module;
struct Kernel;

// One launch of the program on its way to the emulator.
struct LaunchCall {
  Context& context;
  Kernel& kernel;                  // that the program launches
  emulator::LaunchRequest request; // that is carried out
  bool cooperative = false;
  uint64_t number = 0;    // of the program's launches, from 1
  bool rewritten = false; // the request is for another code than the program's
  std::string reason;     // why it is not; "" if nothing speaks against it
};

// One hook's section of the report at program exit.
struct ReportPart {
  std::string text;        // for standard error
  std::string key;         // member of the JSON report; "": none
  std::string json;        // its value
  bool has_failed = false; // `exec` ends with 1 where the program ends with 0
};

// Hooks may throw: the launch then takes place as if the hook were not there.
class LaunchHook {
public:
  virtual ~LaunchHook() = default;
  // The module to be run in the place of one that the program loads; null: none. It has the same variables and kernels.
  virtual std::unique_ptr<ir::Module> replacement(const ir::Module& original) { return (void)original, nullptr; }
  // May change the request.
  virtual void before(LaunchCall& call) { (void)call; }
  // Memory is as the launch has left it. Not called where the emulator refuses the kernel.
  virtual void after(const LaunchCall& call, const emulator::LaunchResult& result) { (void)call, (void)result; }
  virtual ReportPart report() { return {}; }
};

using LaunchHooks = std::vector<std::unique_ptr<LaunchHook>>;
using LaunchHookFactory = LaunchHooks (*)(const Settings& settings);

// Before the context is made, at the latest when libraries are initialised.
void set_launch_hook_factory(LaunchHookFactory factory);
// None where no factory is set.
LaunchHooks make_launch_hooks(const Settings& settings);

} // namespace ptxrewrite::cuda
