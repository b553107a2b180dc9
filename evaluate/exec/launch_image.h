// Converts a launch of a program to a separate launch plan: all memory of the device before the launch, at the same
// addresses as in the program, so that pointers stay valid. The engines of `verify`, `study` and `score` run such a
// plan on a separate device; the program's memory is not modified.
#pragma once

#include "cuda/context/launch_hook.h"
#include "evaluate/launches/launch_input.h"

#include <map>
#include <memory>

namespace ptxrewrite::evaluate {

class LaunchImages {
public:
  // With the program's original module. Created once per launch for all callers, and valid until the next launch. Fails
  // if a plan cannot represent the launch (memory from the kernels' malloc), or if memory is too large.
  Result<LaunchInput*> of(const cuda::LaunchCall& call);

private:
  struct KnownModule {
    std::unique_ptr<LaunchInput> input;
    std::string objection; // why none of its launches can be converted
  };
  KnownModule& module_of(const cuda::LaunchCall& call);

  std::map<const cuda::Module*, KnownModule> modules_;
  uint64_t number_ = 0; // the launch for which the plan was created
  Result<LaunchInput*> current_ = Error{};
};

// Bytes of a buffer or variable of such a plan in their current state in the program; empty if it no longer exists.
std::span<const std::byte> program_bytes(const cuda::LaunchCall& call, const launch::Buffer& buffer);
std::span<const std::byte> program_bytes(const cuda::LaunchCall& call, const launch::ModuleVariable& variable);

// Does the module call functions through registers? Code addresses, which may be in memory, are then valid only for
// this module.
bool calls_indirectly(const ir::Module& module);
// Does it use malloc or free? Heap addresses depend on earlier allocations.
bool uses_heap(const ir::Module& module);

} // namespace ptxrewrite::evaluate
