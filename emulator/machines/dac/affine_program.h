// DAC's affine stream in the form that its machine executes: the instructions of Function::affine_stream in sequence,
// with the sources of their operands (dac-isca17 §4.1, §4.7).
//
// Instructions on tuples are executed on tuples. All others are executed by the emulator's micro-operations, on
// scalars: each instruction records its micro-operations.
#pragma once

#include "emulator/core/program.h"
#include "emulator/machines/dac/affine_queues.h"
#include "emulator/machines/dac/affine_stack.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::emulator {

struct AffineSource {
  enum class Kind : uint8_t {
    value, // a register; a predicate where it has one bit
    index, // a component of %tid or %ctaid
    other, // the same in all threads of the launch: in `lanes` after the operations before the own one have run
  };
  Kind kind = Kind::other;
  ir::ValueId value;
  unsigned component = 0;
  unsigned bits = 32;
  bool negated = false; // a predicate
  LaneRef lanes;
};

enum class AffineAction : uint8_t {
  compute,
  compare, // integers
  logic,   // of predicates
  select,
  extremum, // min, max, abs
  branch,
  exit,
  barrier,
  enqueue,
  take,
  condition,
  nothing,
};

struct AffineInstruction {
  AffineAction action = AffineAction::compute;
  ir::InstructionId id;
  const ir::Form* form = nullptr;
  uint32_t first_op = 0, own_op = 0, past_op = 0; // micro-operations in DecodedFunction::code
  ir::ValueId guard;
  bool guard_negated = false;
  std::optional<uint32_t> taken_guard; // set if the guard is @dac.take.pred(N)
  std::vector<AffineSource> sources;   // including those inside groups
  std::vector<ir::ValueId> results;
  unsigned result_bits = 0;    // of the first result's register
  uint32_t target = 0;         // branch: index of an instruction
  uint32_t meet = never_meets; // index of an instruction
  TupleKind tuple = TupleKind::data;
  uint32_t site = 0;         // enqueue, take
  unsigned bytes = 0;        // enqueue: accessed by a thread
  bool reads_memory = false; // enqueue: of global or local memory, requested at once
};

class AffineProgram {
public:
  // `function` is the decoded affine stream of `kernel`. Error: an instruction that the affine warp cannot execute.
  static Result<std::shared_ptr<const AffineProgram>> make(const ir::Function& kernel, const DecodedFunction& function);

  const DecodedFunction& function() const { return *function_; }
  const ir::Function& source() const { return *function_->source; }
  const std::vector<AffineInstruction>& instructions() const { return instructions_; }
  // The name of the original kernel in the text; "" if there is none.
  const std::string& original() const { return original_; }
  uint32_t sites() const { return sites_; } // all queue numbers are below

private:
  Status add(const ir::Function& kernel, ir::BlockId block, ir::InstructionId id);
  Status read_operands(AffineInstruction& instruction);
  Status describe(const ir::Function& kernel, AffineInstruction& instruction);
  void find_micro_operations();
  void resolve_branches(const std::vector<uint32_t>& block_starts);

  const DecodedFunction* function_ = nullptr;
  std::vector<AffineInstruction> instructions_;
  std::vector<ir::BlockId> block_of_; // by index of the instruction
  std::string original_;
  uint32_t sites_ = 0;
};

// The name after `//@ dac original`; "" if the kernel has no such line.
std::string original_kernel(const ir::Function& kernel);

} // namespace ptxrewrite::emulator
