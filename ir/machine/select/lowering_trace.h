// What each step of the lowering did to each instruction, for listings. lower() fills it where it is given one.
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
    removed,   // in no block any more once prepared
    rewritten, // another form does its work
    dead,      // serves nothing that has an effect
    absorbed,  // `others` do its work
    changed,   // the cost changed by `instructions` and `uniform`
  };
  InstructionId id;
  Kind kind = Kind::changed;
  std::string_view step; // of preparation, a fusion rule's name, or what was weighed
  int instructions = 0, uniform = 0;
  std::vector<InstructionId> others;
};

struct LoweringTrace {
  std::optional<Function> lowered;                  // the function as prepared: instructions keep their numbers
  std::vector<LoweringRemark> remarks;              // in the order of the steps
  std::map<InstructionId, uint16_t> constant_moves; // of the cost: moves in front of the instruction
};

// Fills a trace while a function is lowered: compares costs before and after each step. Private to ir/machine.
class LoweringTracer {
public:
  // `trace`: nullptr, or what is filled; what an earlier lowering of the same function left there goes.
  LoweringTracer(const LoweringContext& context, LoweringTrace* trace) : context_(context), trace_(trace) {}

  // Dead instructions are known, costs are 0.
  void start();
  // Costs are those of each instruction alone.
  void alone();
  // The rule has absorbed the instruction. `by_source`: who makes its operands does its work, not its readers.
  void absorbed(InstructionId id, std::string_view rule, bool by_source);
  // The step is done.
  void changes(std::string_view step);
  void finish();

private:
  void note_change(InstructionId id, std::string_view step);

  const LoweringContext& context_;
  LoweringTrace* trace_;
  std::vector<InstructionCost> before_;
};

// What has become of instructions in a preparing step. `trace` may be nullptr.
void note_preparation(LoweringTrace* trace, std::string_view step, const Function& before, const Function& after);

} // namespace ptxrewrite::ir
