#include "cli/device_options.h"

#include "emulator/core/engine.h"

namespace ptxrewrite::cli {

void add_device_options(Options& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "emulator (default) or cuda")
      .one_of({"emulator", "cuda"})
      .sets(options.device_given)
      .type_name("DEVICE");
  command.add_option("--host-threads", options.host_threads, "threads for the emulator; all of the machine's if 0")
      .type_name("N")
      .range(0, 1024);
}

void add_limit_options(Options& command) {
  command
      .add_option("--fuel", cuda::emulator_limits().fuel,
                  "warp instructions that a block may execute, and all blocks of a launch 64 times as many: who wants "
                  "more is taken for endless (default 4000000000)")
      .type_name("N");
  command
      .add_option("--memory", cuda::emulator_limits().memory,
                  "bytes of the host that a launch may take, buffers and all else: 512M, 8G ... (default: three "
                  "quarters of what there is)")
      .type_name("SIZE")
      .size_with_suffix();
  command
      .add_option(
          "--engine",
          [](const std::string& word) {
            emulator::default_engine() = emulator::engine_of(word).value_or(emulator::Engine::automatic);
          },
          "who executes kernels on the emulator: interpreter (default), generated (native code by LLVM 19, made at "
          "once), "
          "or auto: native code where a kernel runs long enough for it")
      .one_of({"auto", "interpreter", "generated"})
      .type_name("ENGINE");
}

void add_machine_option(Options& command, DeviceOptions& options, const std::string& default_text) {
  command
      .add_option("--gpu", options.gpu,
                  "the GPU that hardware forms are counted for, and that has registers for them or runs the "
                  "original: titanv, a100, sm_80, FILE.toml ... (default " +
                      default_text + ")")
      .type_name("GPU");
}

MachineChoice machine_of(const DeviceOptions& options, const std::string& command, const Session& session) {
  return find_machine(command, options.gpu, session);
}

Result<std::unique_ptr<cuda::Device>> open_gpu(const DeviceOptions& options) {
  if (options.device != "cuda") return std::unique_ptr<cuda::Device>();
  return cuda::make_cuda_device();
}

} // namespace ptxrewrite::cli
