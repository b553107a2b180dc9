// Determined by assembling increasing numbers of comparisons whose results are read in several places.
#include "ir/machine/select/predicate_registers.h"

#include "ir/flow/liveness.h"
#include "ir/machine/figures/heuristics.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// Predicates with readers in several places. A comparison with a single place of use is computed there.
std::vector<bool> waiting_predicates(const LoweringContext& context) {
  const Function& function = context.function;
  std::vector<bool> waits(function.values.size());
  context.for_each_needed([&](InstructionId id) {
    const ValueId result = context.result(id);
    if (!result || function.values[result].type != ScalarType::pred || context.absorbed[id.index()]) return;
    BlockId first;
    for (InstructionId reader : context.values.readers(result)) {
      const BlockId block = function.instructions[reader].block;
      if (context.needed[reader.index()] && first && block != first) waits[result.index()] = true;
      if (context.needed[reader.index()]) first = block;
    }
  });
  return waits;
}

class MovedPredicates {
public:
  MovedPredicates(LoweringContext& context, std::vector<bool> waits)
      : context_(context), registers_(heuristic(context.capability, Heuristic::predicate_registers)),
        waits_(std::move(waits)), moved_(waits_.size()) {}

  void run() {
    const Liveness liveness(context_.function, context_.flow, &waits_);
    for (BlockId block : context_.flow.reverse_postorder())
      visit(block, liveness);
  }

private:
  void visit(BlockId block, const Liveness& liveness) {
    const Function& function = context_.function;
    std::vector<ValueId> live = liveness.live_out(block);
    std::vector<InstructionId> backwards;
    for (InstructionId id : function.instructions_in(block))
      backwards.push_back(id);
    make_room(live, registers_);
    for (size_t i = backwards.size(); i-- > 0;) {
      for_each_definition(function, backwards[i], [&](ValueId value) { std::erase(live, value); });
      bool reads = false;
      size_t passing = 0; // predicates computed where they are read
      for_each_use(function, backwards[i], [&](ValueId value) {
        if (function.values[value].type != ScalarType::pred) return;
        reads = true;
        if (!waits_[value.index()])
          passing = 1;
        else if (std::ranges::find(live, value) == live.end())
          live.push_back(value);
      });
      if (reads) make_room(live, registers_ - passing);
    }
  }

  // Moves the predicates that were defined first.
  void make_room(const std::vector<ValueId>& live, size_t registers) {
    std::vector<ValueId> kept;
    for (ValueId value : live)
      if (!moved_[value.index()]) kept.push_back(value);
    std::ranges::sort(kept, [&](ValueId a, ValueId b) { return order(a) < order(b); });
    for (size_t i = 0; i + registers < kept.size(); ++i)
      move(kept[i]);
  }

  std::pair<uint32_t, uint32_t> order(ValueId value) const {
    const InstructionId id = context_.values.definition(value);
    return {context_.flow.position(context_.function.instructions[id].block), id.index()};
  }

  void move(ValueId value) {
    moved_[value.index()] = true;
    const InstructionId definition = context_.values.definition(value);
    ++context_.costs[definition.index()].weight;
    bool first = true; // the first read precedes the move
    for (InstructionId reader : context_.values.readers(value)) {
      if (!context_.needed[reader.index()]) continue;
      if (!first) ++context_.costs[reader.index()].weight;
      first = false;
    }
  }

  LoweringContext& context_;
  size_t registers_;
  std::vector<bool> waits_, moved_; // by ValueId
};

} // namespace

void weigh_moved_predicates(LoweringContext& context) {
  const uint32_t registers = heuristic(context.capability, Heuristic::predicate_registers);
  if (!context.function.is_ssa || context.facts.contents.predicates < registers) return;
  std::vector<bool> waits = waiting_predicates(context);
  if (static_cast<size_t>(std::ranges::count(waits, true)) < registers) return;
  MovedPredicates(context, std::move(waits)).run();
}

} // namespace ptxrewrite::ir
