// A launch as files for `run`, `verify`, `study`, `score` and `bench`: launch file, PTX, buffers before and after.
#pragma once

#include "evaluate/exec/launch_image.h"
#include "evaluate/exec/touched_memory.h"

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct CapturedFile {
  std::string name;
  std::string bytes;
};

struct CapturedFiles {
  std::vector<CapturedFile> files; // launch.toml is the last
  uint64_t buffers = 0;
  uint64_t bytes = 0; // buffers and variables before the launch, uncompressed
  // Memory contains pointers, so buffers need fixed addresses, which a GPU does not support.
  bool has_addresses = false;
};

// `input` is the launch before its execution; the program's memory must be in the state after it. Fails if there is too
// little memory to compress the files.
Result<CapturedFiles> captured_files(const cuda::LaunchCall& call, const LaunchInput& input,
                                     const TouchedMemory& touched);

} // namespace ptxrewrite::evaluate
