#include "transforms/registers/machine_spill.h"

#include "ir/core/module.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/registers/registers.h"
#include "transforms/registers/spill.h"

#include <algorithm>

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;

// Maps the instructions of the spilled copy to positions in the text: before an instruction, or after the last one of a
// block. Instructions of the text keep their IDs.
class Places {
public:
  Places(const ir::Function& text, const ir::Function& spilled, MachineSpill& result)
      : text_(text), spilled_(spilled), result_(result) {}

  void collect() {
    for (ir::BlockId block : spilled_.layout) {
      SpillPlace waiting;
      InstructionId last;
      for (InstructionId id : spilled_.instructions_in(block)) {
        if (spilled_.instructions[id].kind != ir::InstructionKind::real) continue;
        if (id.index() < text_.instructions.size()) {
          add(id, waiting);
          waiting = {};
          last = id;
        } else {
          count(id, waiting);
        }
      }
      add(last, waiting);
    }
  }

private:
  void count(InstructionId id, SpillPlace& place) {
    const ir::Form& form = spilled_.form_of(id);
    const bool local = form.space == ir::StateSpace::local;
    if (local && form.kind == ir::InstructionClass::store)
      ++place.stores;
    else if (local && form.kind == ir::InstructionClass::load)
      ++place.loads;
    else if (form.opcode != ir::Opcode::mov)
      ++place.recomputed;
  }

  void add(InstructionId id, const SpillPlace& place) {
    result_.stores += place.stores;
    result_.loads += place.loads;
    if (!id || !(place.stores || place.loads || place.recomputed)) return;
    SpillPlace& at = result_.places[id];
    at.stores += place.stores;
    at.loads += place.loads;
    at.recomputed += place.recomputed;
  }

  const ir::Function& text_;
  const ir::Function& spilled_;
  MachineSpill& result_;
};

} // namespace

MachineSpill machine_spill(const ir::Function& function, uint32_t compute_capability) {
  // The estimate reserves registers that the allocator does not know about; the first attempt leaves that many.
  constexpr uint32_t fewest = 16;
  constexpr int tries = 4;
  MachineSpill result;
  ir::RegisterNeed need = ir::register_need(function, compute_capability);
  uint32_t limit =
      ir::most_registers(compute_capability) - ir::heuristic(compute_capability, ir::Heuristic::spill_margin);
  if (function.module().hardware_form) limit = 0; // sections do not share local memory with the body
  for (int attempt = 0; attempt < tries && need.beyond > 0 && limit >= fewest; ++attempt) {
    ir::Function copy(function);
    SpillStatistics statistics;
    const ir::AllocationOptions options{.compute_capability = compute_capability, .register_limit = limit};
    const bool fits = spill_to_limit(copy, options, statistics).ok(); // if false, as many values as possible are
                                                                      // spilled
    need = ir::register_need(copy, compute_capability);
    result = {};
    Places(function, copy, result).collect();
    if (!fits) break;
    limit -= std::min(limit, need.beyond + 1);
  }
  result.registers = need.registers;
  result.predicates = need.predicates;
  result.beyond = need.beyond;
  return result;
}

void add_spill(ir::Lowering& lowering, const MachineSpill& spill) {
  for (const auto& [id, place] : spill.places)
    lowering.add_beside(id, static_cast<uint16_t>(place.stores + place.loads + place.recomputed));
}

} // namespace ptxrewrite::transforms
