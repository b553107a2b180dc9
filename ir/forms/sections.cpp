#include "ir/forms/sections.h"

#include "ir/flow/cfg.h"

#include <optional>

namespace ptxrewrite::ir {

std::vector<FormFinding> check_sections(const Function& kernel) {
  std::vector<FormFinding> findings;
  std::optional<ControlFlow> flow; // computed only for kernels with sections
  InstructionId opening;
  bool opening_is_reached = false;
  for (BlockId block : kernel.layout)
    for (InstructionId id : kernel.instructions_in(block)) {
      const InstructionKind kind = kernel.instructions[id].kind;
      if (kind != InstructionKind::section_begin && kind != InstructionKind::section_end) continue;
      if (!flow) flow.emplace(kernel);
      const bool is_reached = flow->reachable(block);
      if (kind == InstructionKind::section_begin) {
        opening = id;
        opening_is_reached = is_reached;
      } else if (opening && opening_is_reached != is_reached) {
        findings.push_back({false, opening,
                            opening_is_reached ? "the section's end is never reached"
                                               : "the section is entered behind its beginning alone"});
      }
    }
  return findings;
}

} // namespace ptxrewrite::ir
