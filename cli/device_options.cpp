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
                  "warp instructions of a block (of a launch: 64 times as many) after which a kernel counts as endless "
                  "(default 4000000000)")
      .type_name("N");
  command
      .add_option("--memory", cuda::emulator_limits().memory,
                  "host memory of a launch, buffers included: 512M, 8G ... (default: three quarters of the host's)")
      .type_name("SIZE")
      .size_with_suffix();
  command
      .add_option(
          "--engine",
          [](const std::string& word) {
            emulator::default_engine() = emulator::engine_of(word).value_or(emulator::Engine::automatic);
          },
          "engine of the emulator: interpreter (default), generated (native code by LLVM 19), or auto: native code for "
          "kernels that run long enough")
      .one_of({"auto", "interpreter", "generated"})
      .type_name("ENGINE");
  command
      .add_option(
          "--matrix-sums",
          [](const std::string& word) {
            emulator::default_matrix_sums() = emulator::matrix_sums_of(word).value_or(emulator::MatrixSums::sequential);
          },
          "how matrix products of floats are summed: sequential (default): along k, each step rounded to "
          "nearest; hopper: bit by bit as the tensor cores of an H100")
      .one_of({"sequential", "hopper"})
      .type_name("ORDER");
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
