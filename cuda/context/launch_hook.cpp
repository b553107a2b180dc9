#include "cuda/context/launch_hook.h"

namespace ptxrewrite::cuda {
namespace {

LaunchHookFactory& factory() {
  static LaunchHookFactory set = nullptr;
  return set;
}

} // namespace

void set_launch_hook_factory(LaunchHookFactory made) {
  factory() = made;
}

LaunchHooks make_launch_hooks(const Settings& settings) {
  return factory() ? factory()(settings) : LaunchHooks();
}

} // namespace ptxrewrite::cuda
