// A launch of a program as a launch plan of its own: all memory of the device as it is before the launch, at the
// addresses that it has in the program, so that pointers in it mean what they mean there. The engines behind `verify`,
// `study` and `score` run such a plan on a device of their own; the program's memory stays as it is.
#pragma once

#include "cuda/context/launch_hook.h"
#include "evaluate/launches/launch_input.h"

#include <map>
#include <memory>

namespace ptxrewrite::evaluate {

class LaunchImages {
public:
  // With the module as the program brought it. Made once for a launch, whoever asks, and valid until the next. Errors:
  // what a plan cannot say (memory of the kernels' malloc), or too much memory.
  Result<LaunchInput*> of(const cuda::LaunchCall& call);

private:
  struct KnownModule {
    std::unique_ptr<LaunchInput> input;
    std::string objection; // why none of its launches can be a plan
  };
  KnownModule& module_of(const cuda::LaunchCall& call);

  std::map<const cuda::Module*, KnownModule> modules_;
  uint64_t number_ = 0; // of the launch whose plan there is
  Result<LaunchInput*> current_ = Error{};
};

// Bytes of a buffer or variable of such a plan as they are in the program now; empty: they are gone.
std::span<const std::byte> program_bytes(const cuda::LaunchCall& call, const launch::Buffer& buffer);
std::span<const std::byte> program_bytes(const cuda::LaunchCall& call, const launch::ModuleVariable& variable);

// Does the module call functions through registers? Code addresses, which may lie in memory, then belong to it alone.
bool calls_indirectly(const ir::Module& module);
// Does it have malloc or free? Where the heap gives memory depends on what it gave before.
bool uses_heap(const ir::Module& module);

} // namespace ptxrewrite::evaluate
