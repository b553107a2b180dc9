#include "cli/device_options.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace ptxrewrite::cli {

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "emulator (default) or cuda")
      ->check(CLI::IsMember({"emulator", "cuda"}))
      ->type_name("DEVICE");
  command.add_option("--host-threads", options.host_threads, "threads for the emulator; all of the machine's if 0")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
}

bool is_available(const DeviceOptions& options, const std::string& command) {
  if (options.device == "emulator") return true;
  std::fprintf(stderr, "ptxrewrite %s: no GPU here: this program is built without a CUDA driver interface\n",
               command.c_str());
  return false;
}

} // namespace ptxrewrite::cli
