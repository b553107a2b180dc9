// The layout of a kernel's parameters in memory, and checks of a plan's launches against the kernels of a module.
#pragma once

#include "ir/core/module.h"
#include "launch/launch_plan.h"
#include "support/diagnostic.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace ptxrewrite::launch {

// One parameter of a kernel. Offsets are relative to the start of the parameter block; parameters are in the order of
// the signature, each with its alignment (as declared, else that of its type).
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
  uint64_t bytes = 0; // of the whole parameter block
};

// Maximum size of a kernel's parameters.
constexpr uint64_t max_parameter_bytes = 32764;

// Sizes that overflow become UINT64_MAX.
Signature signature_of(const ir::Function& kernel);

// The size of a module or function variable in bytes; 0 if it is not stated.
uint64_t bytes_of(const ir::Variable& variable, std::span<const uint64_t> dimensions);

// Returns nullptr if the module has no kernel of this name with a body.
const ir::Function* find_kernel(const ir::Module& module, std::string_view name);

// Checks a plan against a module: kernels exist, arguments fit parameters, blocks fit .maxntid and .reqntid, variables
// exist and are large enough. Errors refer to the launch file. Returns true if there are none.
bool check_arguments(const ir::Module& module, const LaunchPlan& plan, Diagnostics& diagnostics);

// Sets the cluster size of launches without one to the size that their kernel requires (.reqnctapercluster).
void take_required_clusters(const ir::Module& module, LaunchPlan& plan);

// The parameter block of a launch. Returns an error if number or sizes of arguments and parameters differ.
Result<std::vector<std::byte>> pack_parameters(const Launch& launch, const Signature& signature,
                                               const DeviceAddresses& addresses);

} // namespace ptxrewrite::launch
