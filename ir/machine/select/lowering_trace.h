// The effect of each step of the lowering on each instruction, for listings. lower() fills it on request.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/figures/pipe.h"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct LoweringContext;

struct LoweringRemark {
  enum class Kind : uint8_t {
    removed,   // not in any block after preparation
    rewritten, // replaced by another form
    dead,      // no instruction with an effect depends on it
    absorbed,  // by `others`
    changed,   // the cost changed by `instructions` and `uniform`
  };
  InstructionId id;
  Kind kind = Kind::changed;
  std::string_view step; // preparation step, name of a fusion rule, or name of the weighing step
  int instructions = 0, uniform = 0;
  std::vector<InstructionId> others;
};

struct LoweringTrace {
  std::optional<Function> lowered;                  // the prepared function: instructions keep their ids
  std::vector<LoweringRemark> remarks;              // in the order of the steps
  std::map<InstructionId, uint16_t> constant_moves; // part of the cost: moves of constants before the instruction
};

// Records a trace while a function is lowered: compares costs before and after each step. Private to ir/machine.
class LoweringTracer {
public:
  // `trace`: receives the remarks and is cleared of those of an earlier lowering; may be nullptr.
  LoweringTracer(const LoweringContext& context, LoweringTrace* trace) : context_(context), trace_(trace) {}

  // To be called when dead instructions are known and costs are 0.
  void start();
  // To be called when costs are those of each instruction by itself.
  void alone();
  // The rule has absorbed the instruction. `by_source`: into the definitions of its operands, not into its readers.
  void absorbed(InstructionId id, std::string_view rule, bool by_source);
  // To be called after each step.
  void changes(std::string_view step);
  void finish();

private:
  void note_change(InstructionId id, std::string_view step);

  const LoweringContext& context_;
  LoweringTrace* trace_;
  std::vector<InstructionCost> before_;
};

// Records the effect of a preparation step on instructions. `trace` may be nullptr.
void note_preparation(LoweringTrace* trace, std::string_view step, const Function& before, const Function& after);

} // namespace ptxrewrite::ir
