#include "cuda/interpose/settings.h"

#include <cstdlib>

namespace ptxrewrite::cuda::interpose {
namespace {

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

} // namespace

std::vector<std::string> environment_of(const GpuSettings& settings) {
  constexpr const char* levels[] = {"error", "warn", "info", "debug"};
  return {"PTXREWRITE_GPU_PASSES=" + settings.passes, "PTXREWRITE_GPU_REPORT=" + settings.report,
          "PTXREWRITE_GPU_SPECIALISE=" + std::to_string(settings.specialise),
          std::string("PTXREWRITE_AUTOTUNE=") + (settings.autotune ? "1" : ""),
          std::string("PTXREWRITE_GPU_LOG_LEVEL=") + levels[static_cast<size_t>(settings.log_level)]};
}

GpuSettings gpu_settings_from_environment() {
  GpuSettings settings;
  settings.log_level = log_level_of(text_of("PTXREWRITE_GPU_LOG_LEVEL"));
  if (text_of("PTXREWRITE_DISABLE") == "1") return settings;
  settings.passes = text_of("PTXREWRITE_GPU_PASSES");
  settings.report = text_of("PTXREWRITE_GPU_REPORT");
  settings.specialise = std::strtoull(text_of("PTXREWRITE_GPU_SPECIALISE").c_str(), nullptr, 10);
  settings.autotune = !text_of("PTXREWRITE_AUTOTUNE").empty();
  return settings;
}

} // namespace ptxrewrite::cuda::interpose
