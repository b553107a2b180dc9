// Versions that are timed with the recording of another version: machines that execute the same instructions in a
// different way.
#pragma once

#include "emulator/timing/model.h"
#include "evaluate/launches/launch_input.h"

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

class DerivedVersions {
public:
  virtual ~DerivedVersions() = default;
  virtual std::vector<std::string> names() const = 0;
  // The techniques for one launch of the plan, in the order of names(). `input`: of the version that was recorded.
  virtual std::vector<timing::Technique> techniques(size_t launch, const ir::Function& kernel,
                                                    const timing::ModelInput& input) = 0;
};

} // namespace ptxrewrite::evaluate
