// Dead code: which instructions of an SSA-form function nobody needs, and their removal.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

// May this instruction go when nobody reads what it writes? Only pure ones that write something, and loads of a
// kernel's own parameters; never one that sets or reads the carry flag.
bool removable_when_unused(const Function& function, InstructionId instruction);

// Finds the instructions and block parameters that something with an effect depends on. The tables are computed once,
// so that a pass can ask what would be dead if certain operands were no longer read.
class Liveliness {
public:
  Liveliness(const Function& function, const ControlFlow& flow, const DefUse& def_use);

  // True for operands that are to be treated as not read: (instruction, index in its operand list).
  using Ignored = std::function<bool(InstructionId, size_t)>;

  struct Result {
    std::vector<bool> instructions; // by InstructionId: needed
    std::vector<bool> values;       // by ValueId: read by something needed
    bool needed(InstructionId id) const { return instructions[id.index()]; }
    bool read(ValueId id) const { return values[id.index()]; }
  };
  // `read`: values that something needs whatever is ignored.
  Result compute(const Ignored& ignored = {}, std::span<const ValueId> read = {}) const;

private:
  const Function* function_;
  const ControlFlow* flow_;
  const DefUse* def_use_;
  std::vector<InstructionId> roots_;
};

// Counts of readers, for asking what would die if something were no longer read. Block parameters are never taken to
// die.
class ReaderCounts {
public:
  // `live`: only readers that are needed count. Operands that `ignored` accepts do not count.
  ReaderCounts(const Function& function, const DefUse& def_use, const Liveliness::Result& live,
               const Liveliness::Ignored& ignored = {});

  uint32_t readers(ValueId value) const { return counts_[value.index()]; }
  // One reader more, and one less again. Not between a release and its undo.
  void add_reader(ValueId value) { ++counts_[value.index()]; }
  void drop_reader(ValueId value) { --counts_[value.index()]; }

  using Weight = std::function<double(InstructionId)>;
  // One reader less for each of `values`. Returns the weight of the instructions that nobody needs then.
  double release(std::span<const ValueId> values, const Weight& weight);
  // Takes the last release back.
  void undo();

private:
  const Function* function_;
  const DefUse* def_use_;
  std::vector<uint32_t> counts_; // by ValueId
  std::vector<ValueId> released_;
};

// Removes what nobody needs, transitively and through block parameters. Returns how many instructions and block
// parameters went.
size_t remove_dead_code(Function& function);

} // namespace ptxrewrite::ir
