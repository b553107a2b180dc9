#include "evaluate/study/study_launches.h"

#include <ctime>
#include <memory>

namespace ptxrewrite::evaluate {
namespace {

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

} // namespace

Result<LaunchPass> run_launches(const LaunchInput& input, const ir::Module& module,
                                const cuda::EmulatorOptions& options, cuda::ErrorPlace& place,
                                const std::function<void(const cuda::SessionRun&)>& finished,
                                const launch::Variants* variants) {
  place = cuda::ErrorPlace::launch_file;
  cuda::SessionOptions session;
  session.error_place = &place;
  std::unique_ptr<cuda::Device> device = cuda::make_emulator_device(options);
  auto memory = cuda::PlanOnDevice::make(input.plan, *device, session);
  if (!memory) return memory.error();
  if (Status status = device->load(module); !status) {
    place = cuda::ErrorPlace::module;
    return status.error();
  }
  if (Status status = (*memory)->fill_variables(module); !status) return status.error();
  LaunchPass pass;
  for (size_t i = 0; i < input.plan.launches.size() && !pass.failure; ++i) {
    const double start = processor_seconds();
    Result<cuda::SessionRun> run = (*memory)->launch(i, module, variants);
    if (!run) return run.error();
    if (!run->failure) finished(*run);
    pass.seconds += processor_seconds() - start;
    pass.failure = std::move(run->failure);
  }
  return pass;
}

} // namespace ptxrewrite::evaluate
