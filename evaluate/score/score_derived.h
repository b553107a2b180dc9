// Versions that the recording of another one times as well: machines that execute the same instructions in another way.
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
  // Of one launch of the plan, in the order of names(). `input`: of the version whose recording it is.
  virtual std::vector<timing::Technique> techniques(size_t launch, const ir::Function& kernel,
                                                    const timing::ModelInput& input) = 0;
};

} // namespace ptxrewrite::evaluate
