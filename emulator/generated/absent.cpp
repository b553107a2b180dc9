// Replaces the generator if the build found no LLVM.
#include "emulator/core/engine.h"

#include "support/log.h"

#include <mutex>

namespace ptxrewrite::emulator {

std::unique_ptr<GeneratedLaunch> generated_launch(KernelImage&, const LaunchRequest& request) {
  static std::once_flag said;
  if (request.machines.get<EngineSetting>().engine.value_or(default_engine()) != Engine::interpreter)
    std::call_once(said, [] { log(LogLevel::info, "kernels are interpreted: " + why_no_generator()); });
  return nullptr;
}

std::string why_no_generator() {
  return "this program was built without LLVM 19 (Debian: llvm-19-dev)";
}

std::optional<CompileCost> compile_cost(KernelImage&, CodeTier, bool) {
  return std::nullopt;
}

bool has_own_encoder() {
  return false;
}

std::vector<std::string> unknown_generator_rows() {
  return {};
}

} // namespace ptxrewrite::emulator
