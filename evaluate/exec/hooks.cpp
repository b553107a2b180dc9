// Which hooks the settings of `exec` ask for. This file is linked into the library that programs load.
#include "evaluate/exec/rewriting.h"

namespace ptxrewrite::cli {
namespace {

cuda::LaunchHooks make_hooks(const cuda::Settings& settings) {
  cuda::LaunchHooks hooks;
  if (!settings.passes.empty()) hooks.push_back(std::make_unique<RewritingHook>(settings.passes));
  return hooks;
}

[[maybe_unused]] const bool is_set = (cuda::set_launch_hook_factory(make_hooks), true);

} // namespace
} // namespace ptxrewrite::cli
