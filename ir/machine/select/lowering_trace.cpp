// Without a trace to record, these functions do nothing; see lowering_trace.h.
#include "ir/machine/select/lowering_trace.h"

#include "ir/machine/prepare/lowering_context.h"

#include <algorithm>

namespace ptxrewrite::ir {

using Kind = LoweringRemark::Kind;

namespace {

// The difference of two costs.
int difference(uint16_t after, uint16_t before) {
  return static_cast<int>(after) - static_cast<int>(before);
}

} // namespace

void LoweringTracer::start() {
  if (!trace_) return;
  trace_->lowered = context_.function;
  for (BlockId block : context_.function.layout)
    for (InstructionId id : context_.function.instructions_in(block))
      if (context_.form(id) && !context_.needed[id.index()])
        trace_->remarks.push_back(
            {id, Kind::dead, context_.flow.reachable(block) ? "no effect" : "never reached", 0, 0, {}});
}

void LoweringTracer::alone() {
  if (trace_) before_ = context_.costs;
}

void LoweringTracer::note_change(InstructionId id, std::string_view step) {
  InstructionCost& before = before_[id.index()];
  const InstructionCost& after = context_.costs[id.index()];
  if (before.weight == after.weight && before.uniform == after.uniform) return;
  trace_->remarks.push_back({id,
                             Kind::changed,
                             step,
                             difference(after.weight, before.weight),
                             difference(after.uniform, before.uniform),
                             {}});
  before = after;
}

void LoweringTracer::absorbed(InstructionId id, std::string_view rule, bool by_source) {
  if (!trace_) return;
  before_[id.index()] = context_.costs[id.index()];
  LoweringRemark remark{id, Kind::absorbed, rule, 0, 0, {}};
  auto add = [&](InstructionId other) {
    if (!other || std::ranges::find(remark.others, other) != remark.others.end()) return;
    remark.others.push_back(other);
    note_change(other, rule);
  };
  if (by_source)
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i)
      add(context_.definition(operand));
  else if (const ValueId value = context_.result(id))
    std::ranges::for_each(context_.values.readers(value), add);
  trace_->remarks.push_back(std::move(remark));
}

void LoweringTracer::changes(std::string_view step) {
  if (!trace_) return;
  for (InstructionId id : context_.function.instructions.ids())
    note_change(id, step);
}

void LoweringTracer::finish() {
  if (!trace_) return;
  changes("copies of loops");
  trace_->constant_moves = context_.constant_moves;
}

void note_preparation(LoweringTrace* trace, std::string_view step, const Function& before, const Function& after) {
  if (!trace) return;
  for (BlockId block : before.layout)
    for (InstructionId id : before.instructions_in(block)) {
      if (before.instructions[id].kind != InstructionKind::real) continue;
      const Instruction& now = after.instructions[id];
      if (!now.block)
        trace->remarks.push_back({id, Kind::removed, step, 0, 0, {}});
      else if (now.form != before.instructions[id].form)
        trace->remarks.push_back({id, Kind::rewritten, step, 0, 0, {}});
    }
}

} // namespace ptxrewrite::ir
