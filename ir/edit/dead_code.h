// Dead code in SSA-form functions: finding instructions whose results are not needed, and removing them.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

// True if the instruction may be removed when its results are not read: pure instructions that write something, and
// loads of a kernel's own parameters; never instructions that set or read the carry flag.
bool removable_when_unused(const Function& function, InstructionId instruction);

// Finds the instructions and block parameters on which instructions with effects depend. The tables are computed once,
// so that a pass can query repeatedly what would be dead if certain operands were not read.
class Liveliness {
public:
  // `definitions`: of def_use.h; they and the others must outlive this object.
  Liveliness(const Function& function, const ControlFlow& flow, std::span<const DefinitionSite> definitions);

  // Returns true for operands to be treated as not read: (instruction, index in its operand list).
  using Ignored = std::function<bool(InstructionId, size_t)>;

  struct Result {
    std::vector<bool> instructions; // by InstructionId: the instruction is needed
    std::vector<bool> values;       // by ValueId: a needed instruction or edge reads it
    bool needed(InstructionId id) const { return instructions[id.index()]; }
    bool read(ValueId id) const { return values[id.index()]; }
  };
  // `read`: values that count as read in any case.
  Result compute(const Ignored& ignored = {}, std::span<const ValueId> read = {}) const;

private:
  const Function* function_;
  const ControlFlow* flow_;
  std::span<const DefinitionSite> definitions_;
  std::vector<InstructionId> roots_;
};

// Reader counts per value, for queries about which instructions would die with certain uses. Block parameters are
// assumed to stay alive.
class ReaderCounts {
public:
  // Counts only readers that `live` marks as needed, without operands that `ignored` accepts.
  ReaderCounts(const Function& function, const DefUse& def_use, const Liveliness::Result& live,
               const Liveliness::Ignored& ignored = {});

  uint32_t readers(ValueId value) const { return counts_[value.index()]; }
  // Adds or removes one reader. Must not be called between release() and undo().
  void add_reader(ValueId value) { ++counts_[value.index()]; }
  void drop_reader(ValueId value) { --counts_[value.index()]; }

  using Weight = std::function<double(InstructionId)>;
  // Removes one reader of each of `values`. Returns the total weight of the instructions that die as a result.
  double release(std::span<const ValueId> values, const Weight& weight);
  // Undoes the last release.
  void undo();

private:
  const Function* function_;
  const DefUse* def_use_;
  std::vector<uint32_t> counts_; // by ValueId
  std::vector<ValueId> released_;
};

// Removes dead instructions and block parameters, transitively. Returns the number of instructions and block parameters
// removed.
size_t remove_dead_code(Function& function);

} // namespace ptxrewrite::ir
