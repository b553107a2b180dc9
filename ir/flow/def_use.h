// Definition site and uses of each value of an SSA-form function. Linear in operands.
#pragma once

#include "ir/core/function.h"

#include <span>
#include <vector>

namespace ptxrewrite::ir {

struct DefinitionSite {
  InstructionId instruction;       // valid: defined by an instruction
  BlockId block;                   // block that contains the definition; for a block parameter, its block
  uint32_t parameter = UINT32_MAX; // index among the block's parameters; UINT32_MAX: not a parameter
  bool is_parameter() const { return parameter != UINT32_MAX; }
};

struct Use {
  InstructionId instruction; // valid: an operand or the guard of this instruction
  EdgeId edge;               // valid: an argument of this edge
  uint32_t index = 0;        // operand index, guard_index, or argument index
  static constexpr uint32_t guard_index = UINT32_MAX;
};

// By ValueId. A register that no path has written yet counts as defined in the entry block, so that every value that is
// read has a block, and this block dominates the uses.
std::vector<DefinitionSite> definition_sites(const Function& function);

class DefUse {
public:
  explicit DefUse(const Function& function);
  const DefinitionSite& definition(ValueId value) const { return definitions_[value.index()]; }
  std::span<const DefinitionSite> definitions() const { return definitions_; }
  std::span<const Use> uses(ValueId value) const {
    uint32_t begin = use_start_[value.index()];
    return std::span(uses_).subspan(begin, use_start_[value.index() + 1] - begin);
  }

private:
  std::vector<DefinitionSite> definitions_;
  std::vector<uint32_t> use_start_;
  std::vector<Use> uses_;
};

} // namespace ptxrewrite::ir
