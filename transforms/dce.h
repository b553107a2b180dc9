// Dead code: which instructions of an SSA-form function nobody needs, and their removal.
#pragma once

#include "ir/analysis/cfg.h"
#include "ir/analysis/def_use.h"
#include "ir/function.h"

#include <functional>
#include <vector>

namespace ptxrewrite::transforms {

// May this instruction go when nobody reads what it writes? Only pure ones that write something, and loads of a kernel's
// own parameters; never one that sets or reads the carry flag.
bool removable_when_unused(const ir::Function& function, ir::InstructionId instruction);

// Finds the instructions and block parameters that something with an effect depends on. The tables are computed once, so
// that a pass can ask what would be dead if certain operands were no longer read.
class Liveliness {
public:
  Liveliness(const ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use);

  // True for operands that are to be treated as not read: (instruction, index in its operand list).
  using Ignored = std::function<bool(ir::InstructionId, size_t)>;

  struct Result {
    std::vector<bool> instructions; // by InstructionId: needed
    std::vector<bool> values;       // by ValueId: read by something needed
    bool needed(ir::InstructionId id) const { return instructions[id.index()]; }
    bool read(ir::ValueId id) const { return values[id.index()]; }
  };
  Result compute(const Ignored& ignored = {}) const;

private:
  const ir::Function* function_;
  const ir::ControlFlow* flow_;
  const ir::DefUse* def_use_;
  std::vector<ir::InstructionId> roots_;
};

// Removes what nobody needs, transitively and through block parameters. Returns how many instructions and block
// parameters went.
size_t remove_dead_code(ir::Function& function);

} // namespace ptxrewrite::transforms
