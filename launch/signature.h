// A kernel's parameters as they lie in memory, and whether a plan's launches fit the kernels of a module.
#pragma once

#include "ir/core/module.h"
#include "launch/launch_plan.h"
#include "support/diagnostic.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace ptxrewrite::launch {

// One parameter of a kernel. Offsets count from the start of the parameter block; parameters lie in the order of the
// signature, each at its alignment (as declared, else that of its type).
struct Parameter {
  std::string_view name;
  ir::ScalarType type = ir::ScalarType::none; // of the elements
  bool is_array = false;
  uint64_t offset = 0; // bytes
  uint64_t bytes = 0;
  uint64_t alignment = 1;
};

struct Signature {
  std::vector<Parameter> parameters;
  uint64_t bytes = 0; // of the whole block
};

// The parameters of a kernel take at most so many bytes.
constexpr uint64_t max_parameter_bytes = 32764;

// Sizes beyond all bounds become UINT64_MAX.
Signature signature_of(const ir::Function& kernel);

// The bytes of a module or function variable; 0 where its size is not stated.
uint64_t bytes_of(const ir::Variable& variable, std::span<const uint64_t> dimensions);

// nullptr: the module has no kernel of this name with a body.
const ir::Function* find_kernel(const ir::Module& module, std::string_view name);

// Checks what a plan says about a module: kernels exist, arguments fit parameters, blocks fit .maxntid and .reqntid,
// variables exist and are large enough. Errors point into the launch file.
bool check_arguments(const ir::Module& module, const LaunchPlan& plan, Diagnostics& diagnostics);

// Launches that say no cluster size get the one that their kernel requires (.reqnctapercluster).
void take_required_clusters(const ir::Module& module, LaunchPlan& plan);

// The parameter block of a launch. Errors: another number of arguments than of parameters, or other sizes.
Result<std::vector<std::byte>> pack_parameters(const Launch& launch, const Signature& signature,
                                               const DeviceAddresses& addresses);

} // namespace ptxrewrite::launch
