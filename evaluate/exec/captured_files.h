// A launch as files that `run`, `verify`, `study`, `score` and `bench` take: launch file, PTX, buffers before and
// after.
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
  uint64_t bytes = 0; // of buffers and variables before the launch, unpacked
  // Memory holds addresses: buffers say where they lie, which a GPU cannot do.
  bool has_addresses = false;
};

// `input` is the launch before it took place; the program's memory is as it is after it. Errors: too little memory to
// pack them.
Result<CapturedFiles> captured_files(const cuda::LaunchCall& call, const LaunchInput& input,
                                     const TouchedMemory& touched);

} // namespace ptxrewrite::evaluate
