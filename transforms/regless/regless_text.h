// Inserts RegLess's annotations into PTX text. ir/machine/registers/regless_mark.h defines and reads their content;
// darsie_text.h removes them byte for byte.
#pragma once

#include "ir/machine/registers/regless_mark.h"
#include "transforms/manager/pass.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms {

struct RegLessOptions {
  uint32_t compute_capability = 80;
  uint32_t register_limit = 255;
  ir::RegionLimits regions;
};

// Regions of a function as read. Instruction IDs are those of the plan's own copy in SSA form.
struct RegLessPlan {
  struct Registers {
    uint16_t first = 0, count = 0;
  };
  uint32_t compute_capability = 80;
  std::vector<std::pair<ir::ValueId, Registers>> registers; // of the registers of the text, in their order
  std::vector<SourceRange> ranges;                          // by InstructionId of the program
  ir::RegisterProgram program;
  std::vector<ir::Region> regions;
};
// Does not modify the function. Fails if its registers do not suffice, or if it has no SSA form.
Result<RegLessPlan> plan_regless(const ir::Function& function, const RegLessOptions& options);

std::vector<TextInsertion> regless_insertions(const ir::Function& function, const RegLessPlan& plan);

} // namespace ptxrewrite::transforms
