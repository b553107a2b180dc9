// Creates the hooks that the settings of `exec` request. This file is linked into the library that programs load.
#include "emulator/core/engine.h"
#include "evaluate/exec/capturing.h"
#include "evaluate/exec/comparing.h"
#include "evaluate/exec/rewriting.h"
#include "evaluate/exec/specialising.h"
#include "evaluate/exec/studying.h"

namespace ptxrewrite::evaluate {
namespace {

// Hooks that only observe a launch come before those that change it.
cuda::LaunchHooks make_hooks(const cuda::Settings& settings) {
  if (settings.fuel) cuda::emulator_limits().fuel = settings.fuel;
  cuda::emulator_limits().memory = settings.memory;
  if (const auto engine = emulator::engine_of(settings.engine)) emulator::default_engine() = *engine;
  if (const auto sums = emulator::matrix_sums_of(settings.matrix_sums)) emulator::default_matrix_sums() = *sums;
  cuda::LaunchHooks hooks;
  const auto images = std::make_shared<LaunchImages>();
  if (!settings.capture.empty())
    hooks.push_back(std::make_unique<CapturingHook>(
        CaptureSettings{settings.capture, settings.captures, settings.captures == 0}, images));
  if (settings.study || settings.score)
    hooks.push_back(std::make_unique<StudyingHook>(
        StudyingSettings{settings.study, settings.machine, settings.score, settings.passes, settings.html}, images));
  if (!settings.verify.empty()) hooks.push_back(std::make_unique<ComparingHook>(settings.verify, images));
  if (settings.specialise) hooks.push_back(std::make_unique<SpecialisingHook>(settings.specialise, settings.passes));
  if (!settings.passes.empty()) hooks.push_back(std::make_unique<RewritingHook>(settings.passes));
  return hooks;
}

[[maybe_unused]] const bool is_set = (cuda::set_launch_hook_factory(make_hooks), true);

} // namespace
} // namespace ptxrewrite::evaluate
