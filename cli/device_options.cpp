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

void add_machine_option(CLI::App& command, DeviceOptions& options, const std::string& default_text) {
  command
      .add_option("--gpu", options.gpu,
                  "the GPU that hardware forms are counted for, and that has registers for them or runs the "
                  "original: titanv, a100, sm_80 ... (default " +
                      default_text + ")")
      ->type_name("GPU");
}

Result<const ir::Machine*> machine_of(const DeviceOptions& options) {
  if (options.gpu.empty()) return nullptr;
  if (const uint32_t capability = ir::compute_capability_of(options.gpu)) return &ir::machine_for(capability);
  if (const ir::Machine* machine = ir::find_machine(options.gpu)) return machine;
  return Error{ir::unknown_machine(options.gpu), {}};
}

Result<std::unique_ptr<Device>> open_gpu(const DeviceOptions& options) {
  if (options.device != "cuda") return std::unique_ptr<Device>();
  return make_cuda_device();
}

} // namespace ptxrewrite::cli
