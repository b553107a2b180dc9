#include "cli/launch_options.h"

namespace ptxrewrite::cli {

void add_launch_input_options(Options& command, LaunchInputOptions& options) {
  command
      .add_option("-s,--size", options.size,
                  "a size of the launch file ([size.NAME]); of several the first that it has")
      .type_name("NAME,...");
  command.add_option("--target", options.target, "which of the launch file's PTX files").type_name("sm_NN");
}

void add_direct_launch_options(Options& command, DirectLaunch& direct) {
  command.add_option("--grid", direct.grid, "blocks: 1024 or 64,16").type_name("X[,Y[,Z]]");
  command.add_option("--block", direct.block, "threads of a block").type_name("X[,Y[,Z]]");
  command.add_option("--cluster", direct.cluster, "blocks of a cluster (thread block clusters)").type_name("X[,Y[,Z]]");
  command.add_option("--shared", direct.shared, "bytes of dynamic shared memory").type_name("BYTES");
  command
      .add_option("--arg", direct.arguments,
                  "an argument (repeatable): s32=5, f32=0.5, ..., or buffer=TYPE:COUNT[:INIT][:out]")
      .type_name("ARG")
      .one_each();
}

} // namespace ptxrewrite::cli
