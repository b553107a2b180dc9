#include "transforms/registers/machine_spill.h"

#include "ir/core/module.h"
#include "ir/flow/liveness.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/registers/registers.h"
#include "ir/machine/registers/sinking.h"
#include "transforms/registers/spill.h"

#include <algorithm>
#include <optional>
#include <set>

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
      loaded_.clear();
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
      place.loads += loaded_.insert(slot_of(id)).second ? 1 : 0;
    else if (form.opcode != ir::Opcode::mov)
      ++place.recomputed;
  }

  // Base and offset of the access.
  std::pair<uint32_t, int64_t> slot_of(InstructionId id) const {
    for (const ir::Operand& operand : spilled_.operands_of(id))
      if (operand.is(ir::OperandKind::address) && operand.group_size() == 1)
        return {(&operand)[1].id, operand.immediate};
    return {};
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
  std::set<std::pair<uint32_t, int64_t>> loaded_; // in the block: what has been loaded stays in its register
};

// Estimates the spills of a large function without rewriting it: of the values that are live where the pressure is
// highest, those that are read least often wait in local memory, until the rest fits.
class CountedSpill {
public:
  CountedSpill(const ir::Function& function, const ir::RegisterNeed& need, uint32_t compute_capability)
      : function_(function), lowering_(ir::lower_as_written(function, compute_capability)), flow_(function),
        liveness_(function, flow_), spilled_(function.values.size()), readers_(function.values.size()),
        definition_(function.values.size()) {
    for (ir::BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block)) {
        for_each_definition(function, id, [&](ir::ValueId value) { definition_[value.index()] = id; });
        for_each_use(function, id, [&](ir::ValueId value) { readers_[value.index()].push_back(id); });
      }
    result_.predicates = need.predicates;
    beyond_ = need.beyond;
  }

  // `thorough`: with more rounds, since most values are to be spilled.
  MachineSpill run(uint32_t most, bool thorough) {
    constexpr size_t steps = 1'000'000, few_rounds = 16, many_rounds = 256;
    const size_t most_rounds =
        thorough ? std::clamp(steps / function_.instructions.size(), few_rounds, many_rounds) : few_rounds;
    uint32_t peak = find_peak();
    const uint32_t limit = peak - std::min(peak, beyond_);
    for (size_t round = 0; round < most_rounds && peak > limit && spill(peak - limit); ++round)
      peak = find_peak();
    result_.registers = most;
    result_.beyond = peak > limit ? peak - limit : 0;
    return std::move(result_);
  }

private:
  uint32_t units(ir::ValueId value) const {
    const ir::Value& row = function_.values[value];
    if (row.is_undefined || row.type == ir::ScalarType::pred || spilled_[value.index()]) return 0;
    return lowering_.register_units(value);
  }

  // Words that are live at the point of highest pressure; keeps the values of that point.
  uint32_t find_peak() {
    uint32_t peak = 0;
    std::vector<bool> live(function_.values.size());
    for (ir::BlockId block : function_.layout) {
      const std::vector<ir::ValueId> behind = liveness_.live_out(block);
      std::vector<ir::ValueId> touched;
      uint32_t now = 0;
      const auto add = [&](ir::ValueId value) {
        if (live[value.index()]) return;
        live[value.index()] = true;
        touched.push_back(value);
        now += units(value);
      };
      std::vector<InstructionId> backwards;
      for (InstructionId id : function_.instructions_in(block))
        backwards.push_back(id);
      for (ir::ValueId value : behind)
        add(value);
      for (size_t i = backwards.size(); i-- > 0;) {
        for_each_definition(function_, backwards[i], [&](ir::ValueId value) {
          if (live[value.index()]) now -= units(value);
          live[value.index()] = false;
        });
        for_each_use(function_, backwards[i], add);
        if (now <= peak) continue;
        peak = now;
        peak_block_ = block;
        peak_position_ = i;
      }
      for (ir::ValueId value : touched)
        live[value.index()] = false;
    }
    return peak;
  }

  // Values with a definition that are live there.
  std::vector<ir::ValueId> live_at_peak() const {
    std::vector<InstructionId> backwards;
    for (InstructionId id : function_.instructions_in(peak_block_))
      backwards.push_back(id);
    std::set<ir::ValueId> live;
    for (ir::ValueId value : liveness_.live_out(peak_block_))
      live.insert(value);
    for (size_t i = backwards.size(); i-- > peak_position_;) {
      for_each_definition(function_, backwards[i], [&](ir::ValueId value) { live.erase(value); });
      for_each_use(function_, backwards[i], [&](ir::ValueId value) { live.insert(value); });
    }
    std::vector<ir::ValueId> values;
    for (ir::ValueId value : live)
      if (units(value) > 0 && definition_[value.index()]) values.push_back(value);
    return values;
  }

  // Returns false if there is none to spill.
  bool spill(uint32_t words) {
    std::vector<ir::ValueId> values = live_at_peak();
    std::ranges::stable_sort(values, {}, [&](ir::ValueId value) {
      return static_cast<double>(readers_[value.index()].size()) / units(value);
    });
    uint32_t freed = 0;
    for (ir::ValueId value : values) {
      if (freed >= words) break;
      freed += units(value);
      spilled_[value.index()] = true;
      ++result_.stores;
      ++result_.places[definition_[value.index()]].stores;
      for (InstructionId reader : readers_[value.index()]) {
        ++result_.loads;
        ++result_.places[reader].loads;
      }
    }
    return freed > 0;
  }

  const ir::Function& function_;
  const ir::Lowering lowering_;
  const ir::ControlFlow flow_;
  const ir::Liveness liveness_;
  std::vector<bool> spilled_;                       // by ValueId
  std::vector<std::vector<InstructionId>> readers_; // by ValueId
  std::vector<InstructionId> definition_;           // by ValueId
  ir::BlockId peak_block_;
  size_t peak_position_ = 0;
  uint32_t beyond_ = 0;
  MachineSpill result_;
};

} // namespace

MachineSpill machine_spill(const ir::Function& text, uint32_t compute_capability) {
  // The estimate reserves registers that the allocator does not know about; the first attempt leaves that many.
  constexpr uint32_t fewest = 16;
  constexpr int tries = 4;
  MachineSpill result;
  ir::RegisterNeed need = ir::register_need(text, compute_capability);
  std::optional<ir::Function> sunk;
  if (need.beyond > 0 && text.is_ssa && !text.module().hardware_form)
    if (!ir::sink_computations(sunk.emplace(text), true)) sunk.reset();
  const ir::Function& function = sunk ? *sunk : text;
  uint32_t limit = need.limit - std::min(need.limit, ir::heuristic(compute_capability, ir::Heuristic::spill_margin));
  if (function.module().hardware_form) limit = 0; // sections do not share local memory with the body
  // Rewriting takes time that grows with size and spills: beyond a size the spills are counted only.
  constexpr size_t most_rewritten = 4000;
  const bool most_are_spilled = need.beyond > need.limit;
  const bool counted = function.instructions.size() > most_rewritten || most_are_spilled || limit < fewest;
  if (need.beyond > 0 && limit > 0 && counted)
    return CountedSpill(function, need, compute_capability).run(need.limit, most_are_spilled);
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
