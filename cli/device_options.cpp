#include "cli/device_options.h"

#include <CLI/CLI.hpp>

namespace ptxrewrite::cli {

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "emulator (default) or cuda")
      ->check(CLI::IsMember({"emulator", "cuda"}))
      ->type_name("DEVICE");
  command.add_option("--host-threads", options.host_threads, "threads for the emulator; all of the machine's if 0")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
}

Result<std::unique_ptr<Device>> open_gpu(const DeviceOptions& options) {
  if (options.device != "cuda") return std::unique_ptr<Device>();
  return make_cuda_device();
}

} // namespace ptxrewrite::cli
