// Dead code: which instructions of an SSA-form function nobody needs, and their removal.
#pragma once

#include "ir/analysis/cfg.h"
#include "ir/analysis/def_use.h"
#include "ir/function.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::transforms {

// May this instruction go when nobody reads what it writes? Only pure ones that write something, and loads of a
// kernel's own parameters; never one that sets or reads the carry flag.
bool removable_when_unused(const ir::Function& function, ir::InstructionId instruction);

// Finds the instructions and block parameters that something with an effect depends on. The tables are computed once,
// so that a pass can ask what would be dead if certain operands were no longer read.
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
  // `read`: values that something needs whatever is ignored.
  Result compute(const Ignored& ignored = {}, std::span<const ir::ValueId> read = {}) const;

private:
  const ir::Function* function_;
  const ir::ControlFlow* flow_;
  const ir::DefUse* def_use_;
  std::vector<ir::InstructionId> roots_;
};

// Counts of readers, for asking what would die if something were no longer read. Block parameters are never taken to
// die.
class ReaderCounts {
public:
  // `live`: only readers that are needed count. Operands that `ignored` accepts do not count.
  ReaderCounts(const ir::Function& function, const ir::DefUse& def_use, const Liveliness::Result& live,
               const Liveliness::Ignored& ignored = {});

  uint32_t readers(ir::ValueId value) const { return counts_[value.index()]; }
  // One reader more, and one less again. Not between a release and its undo.
  void add_reader(ir::ValueId value) { ++counts_[value.index()]; }
  void drop_reader(ir::ValueId value) { --counts_[value.index()]; }

  using Weight = std::function<double(ir::InstructionId)>;
  // One reader less for each of `values`. Returns the weight of the instructions that nobody needs then.
  double release(std::span<const ir::ValueId> values, const Weight& weight);
  // Takes the last release back.
  void undo();

private:
  const ir::Function* function_;
  const ir::DefUse* def_use_;
  std::vector<uint32_t> counts_; // by ValueId
  std::vector<ir::ValueId> released_;
};

// Removes what nobody needs, transitively and through block parameters. Returns how many instructions and block
// parameters went.
size_t remove_dead_code(ir::Function& function);

} // namespace ptxrewrite::transforms
