// Colours bundles in dominance order, see allocation.h.
#include "ir/machine/registers/allocation.h"

#include "ir/core/module.h"
#include "ir/flow/dominators.h"
#include "ir/machine/registers/allocation_bundles.h"

#include <algorithm>
#include <array>
#include <optional>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t bank_count = 8; // of an operand staging unit: (warp + register) & 7

// The program points at which each register is in use.
class RegisterFile {
public:
  explicit RegisterFile(uint32_t limit) : taken_(limit) {}

  uint32_t size() const { return static_cast<uint32_t>(taken_.size()); }
  bool is_free(const Bundle& bundle, uint32_t base) const {
    if (base + bundle.lanes.size() > taken_.size() || (base + bundle.phase) % bundle.alignment != 0) return false;
    for (size_t lane = 0; lane < bundle.lanes.size(); ++lane)
      if (overlap(taken_[base + lane], bundle.lanes[lane])) return false;
    return true;
  }
  void take(const Bundle& bundle, uint32_t base) {
    used_ = std::max(used_, base + static_cast<uint32_t>(bundle.lanes.size()));
    for (size_t lane = 0; lane < bundle.lanes.size(); ++lane)
      merge_ranges(taken_[base + lane], bundle.lanes[lane]);
  }
  // Number of registers of the bank, below `end`, that are in use at the point.
  uint32_t taken_in_bank(uint32_t bank, uint32_t end, uint32_t point) const {
    LiveRange here{point, point + 1};
    uint32_t count = 0;
    for (uint32_t i = bank; i < std::min(end, size()); i += bank_count)
      count += overlap(std::span(&here, 1), taken_[i]) ? 1 : 0;
    return count;
  }

  // The highest number of a register that was ever taken, plus one.
  uint32_t used() const { return used_; }

private:
  std::vector<std::vector<LiveRange>> taken_;
  uint32_t used_ = 0;
};

enum class Choice : uint8_t {
  lowest,   // the free register with the lowest number
  fitting,  // single values are placed in free halves of pairs first
  balanced, // a register of the bank with the fewest registers in use at the definition
};

struct Colouring {
  std::vector<uint32_t> base; // by bundle; UINT32_MAX: none
  uint32_t used = 0;
  std::vector<uint32_t> failed;
};

class Colourer {
public:
  Colourer(const Function& function, const MachineValues& values, const std::vector<Bundle>& bundles)
      : bundles_(bundles), first_place_(bundles.size()) {
    ControlFlow flow(function);
    DominatorTree dominators(function, flow);
    std::vector<uint32_t> preorder_at(values.index_count()); // of the block that contains an index
    for (BlockId block : function.layout)
      for (uint32_t i = values.start_of(block); i <= values.end_of(block); ++i)
        preorder_at[i] = dominators.preorder(block);
    for (size_t i = 0; i < bundles.size(); ++i) {
      std::pair<uint32_t, uint32_t> first{UINT32_MAX, UINT32_MAX};
      for (const std::vector<LiveRange>& lane : bundles[i].lanes)
        for (const LiveRange& range : lane)
          first = std::min(first, std::pair(preorder_at[range.begin / 2], range.begin));
      first_place_[i] = first;
    }
  }

  // Bundles of general registers or of predicates in dominance order; with `wide_first`, wide bundles first.
  std::vector<uint32_t> order(bool predicates, bool wide_first) const {
    std::vector<uint32_t> result;
    for (uint32_t i = 0; i < bundles_.size(); ++i)
      if (!bundles_[i].members.empty() && bundles_[i].predicates == predicates) result.push_back(i);
    std::stable_sort(result.begin(), result.end(), [&](uint32_t a, uint32_t b) {
      if (wide_first && bundles_[a].lanes.size() != bundles_[b].lanes.size())
        return bundles_[a].lanes.size() > bundles_[b].lanes.size();
      return first_place_[a] < first_place_[b];
    });
    return result;
  }

  Colouring colour(const std::vector<uint32_t>& order, uint32_t limit, Choice choice) const {
    RegisterFile file(limit);
    Colouring result;
    result.base.assign(bundles_.size(), UINT32_MAX);
    for (uint32_t i : order) {
      std::optional<uint32_t> base = choose(file, i, choice);
      if (!base) {
        result.failed.push_back(i);
        continue;
      }
      file.take(bundles_[i], *base);
      result.base[i] = *base;
      result.used = std::max(result.used, *base + static_cast<uint32_t>(bundles_[i].lanes.size()));
    }
    return result;
  }

private:
  std::optional<uint32_t> choose(const RegisterFile& file, uint32_t i, Choice choice) const {
    const Bundle& bundle = bundles_[i];
    uint32_t point = first_place_[i].second;
    std::optional<uint32_t> best;
    uint32_t best_cost = UINT32_MAX;
    for (uint32_t base = 0; base + bundle.lanes.size() <= file.size(); ++base) {
      // Behind the registers in use both halves of each pair are free.
      if (choice == Choice::fitting && best && base > file.used()) break;
      if (!file.is_free(bundle, base)) continue;
      if (choice == Choice::lowest) return base;
      uint32_t cost = 0;
      if (choice == Choice::fitting) {
        if (bundle.lanes.size() > 1) return base;
        Bundle partner;
        partner.lanes.push_back(bundle.lanes[0]);
        cost = file.is_free(partner, base ^ 1) ? 1 : 0;
      } else {
        for (uint32_t lane = 0; lane < bundle.lanes.size(); ++lane)
          cost = std::max(cost, file.taken_in_bank((base + lane) % bank_count, file.size(), point));
      }
      if (cost < best_cost) {
        best = base;
        best_cost = cost;
      }
    }
    return best;
  }

  const std::vector<Bundle>& bundles_;
  std::vector<std::pair<uint32_t, uint32_t>> first_place_; // dominator preorder, program point
};

bool better(const Colouring& a, const Colouring& b) {
  if (a.failed.size() != b.failed.size()) return a.failed.size() < b.failed.size();
  return a.used < b.used;
}

Colouring best_colouring(const Colourer& colourer, bool predicates, uint32_t limit) {
  Colouring best;
  bool first = true;
  for (bool wide_first : {false, true})
    for (Choice choice : {Choice::lowest, Choice::fitting}) {
      Colouring next = colourer.colour(colourer.order(predicates, wide_first), limit, choice);
      if (first || better(next, best)) best = std::move(next);
      first = false;
    }
  // Try to balance the banks with the same number of registers.
  if (!predicates && best.failed.empty())
    for (bool wide_first : {false, true}) {
      Colouring balanced = colourer.colour(colourer.order(predicates, wide_first), best.used, Choice::balanced);
      if (balanced.failed.empty()) return balanced;
    }
  return best;
}

void count_live(const Function& function, const MachineValues& values, Allocation& allocation) {
  std::vector<int32_t> change(2 * values.index_count() + 2), predicate_change(change);
  for (ValueId value : function.values.ids())
    for (const LiveRange& range : values.ranges(value)) {
      auto& counts = values.is_predicate(value) ? predicate_change : change;
      int32_t units = static_cast<int32_t>(values.units(value));
      counts[range.begin] += units;
      counts[range.end] -= units;
    }
  auto highest = [](const std::vector<int32_t>& changes) {
    int32_t now = 0, most = 0;
    for (int32_t step : changes)
      most = std::max(most, now += step);
    return static_cast<uint32_t>(most);
  };
  allocation.live_registers = highest(change);
  allocation.live_predicates = highest(predicate_change);
}

bool stands_together(const Allocation& allocation, const VectorOperand& vector) {
  std::optional<uint32_t> first;
  for (const VectorOperand::Element& element : vector.elements) {
    uint16_t number = element.value ? allocation.first_register(element.value) : Allocation::no_register;
    if (number == Allocation::no_register) return false; // assembled from other registers
    if (number < element.offset) return false;
    if (first && *first != number - element.offset) return false;
    first = number - element.offset;
  }
  return first && *first % vector.alignment == 0;
}

// Among the values in registers at `here`, the one with the shortest live range: it interferes with few others.
ValueId shortest_value_at(const Function& function, const MachineValues& values, const Allocation& allocation,
                          LiveRange here) {
  ValueId shortest;
  uint32_t shortest_length = UINT32_MAX;
  for (ValueId value : function.values.ids()) {
    if (allocation.first_register(value) == Allocation::no_register || values.is_predicate(value)) continue;
    if (!overlap(std::span(&here, 1), values.ranges(value))) continue;
    uint32_t length = 0;
    for (const LiveRange& range : values.ranges(value))
      length += range.end - range.begin;
    if (length >= shortest_length) continue;
    shortest = value;
    shortest_length = length;
  }
  return shortest;
}

// Assigns registers that are free at the instruction to vector operands that are not in consecutive registers.
void place_temporaries(const Function& function, const MachineValues& values, const AllocationOptions& options,
                       Allocation& allocation) {
  std::vector<std::vector<LiveRange>> taken(options.register_limit);
  bool filled = false;
  auto fill = [&] {
    for (ValueId value : function.values.ids()) {
      uint16_t number = allocation.first_register(value);
      if (number == Allocation::no_register || values.is_predicate(value)) continue;
      for (unsigned unit = 0; unit < values.units(value); ++unit)
        merge_ranges(taken[number + unit], values.ranges(value));
    }
    filled = true;
  };
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      for (const VectorOperand& vector : vector_operands(function, values, id)) {
        if (stands_together(allocation, vector)) continue;
        if (!filled) fill();
        uint32_t index = values.index_of(id);
        LiveRange here =
            vector.definition ? LiveRange{2 * index + 1, 2 * index + 2} : LiveRange{2 * index, 2 * index + 1};
        uint32_t base = 0;
        auto is_free = [&](uint32_t at) {
          for (uint32_t i = at; i < at + vector.registers; ++i)
            if (overlap(std::span(&here, 1), taken[i])) return false;
          return true;
        };
        while (base + vector.registers <= options.register_limit && !is_free(base))
          base += vector.alignment;
        if (base + vector.registers > options.register_limit) {
          const size_t before = allocation.unplaced.size();
          for (const VectorOperand::Element& element : vector.elements)
            if (element.value) allocation.unplaced.push_back(element.value);
          // A vector of literals: give up a value that occupies registers there.
          if (allocation.unplaced.size() == before)
            if (ValueId value = shortest_value_at(function, values, allocation, here))
              allocation.unplaced.push_back(value);
          continue;
        }
        for (uint32_t i = base; i < base + vector.registers; ++i)
          merge_ranges(taken[i], std::span(&here, 1));
        allocation.temporaries.push_back(
            {id, vector.operand, static_cast<uint16_t>(base), static_cast<uint16_t>(vector.registers)});
        allocation.registers = std::max(allocation.registers, base + vector.registers);
      }
}

void list_moves(const Function& function, const MachineValues& values, Allocation& allocation) {
  auto moves = [&](ValueId from, ValueId to) {
    if (function.values[from].is_undefined || !values.in_register(to)) return false;
    std::span<const ValueId> parts = values.stands_for(from);
    return parts.size() != 1 || values.units(parts[0]) != values.units(to) ||
           allocation.first_register(parts[0]) != allocation.first_register(to);
  };
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      if (!function.keeps_old_values(id)) continue;
      std::vector<ValueId> definitions;
      for_each_definition(function, id, [&](ValueId value) { definitions.push_back(value); });
      size_t next = 0;
      for (const Operand& operand : function.operands_of(id))
        if (operand.is(OperandKind::value) && operand.has(OperandFlag::old_value) && next < definitions.size()) {
          if (moves(operand.as_value(), definitions[next]))
            allocation.moves.push_back({{}, id, operand.as_value(), definitions[next]});
          ++next;
        }
    }
    for (EdgeId edge : function.successors(block)) {
      std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
      for (size_t i = 0; i < parameters.size(); ++i)
        if (moves(function.arguments(edge)[i], parameters[i]))
          allocation.moves.push_back({edge, {}, function.arguments(edge)[i], parameters[i]});
    }
  }
}

Allocation colour_bundles(const Function& function, const MachineValues& values, const AllocationOptions& options,
                          const Bundles& bundles) {
  Allocation allocation;
  Colourer colourer(function, values, bundles.bundles());
  for (bool predicates : {false, true}) {
    uint32_t limit = predicates ? options.predicate_limit : options.register_limit;
    Colouring colouring = best_colouring(colourer, predicates, limit);
    (predicates ? allocation.predicates : allocation.registers) = colouring.used;
    for (size_t i = 0; i < bundles.bundles().size(); ++i)
      if (colouring.base[i] != UINT32_MAX)
        for (const Bundle::Member& member : bundles.bundles()[i].members)
          allocation.place(member.value, static_cast<uint16_t>(colouring.base[i] + member.offset));
    for (uint32_t i : colouring.failed)
      for (const Bundle::Member& member : bundles.bundles()[i].members)
        allocation.unplaced.push_back(member.value);
  }
  count_live(function, values, allocation);
  place_temporaries(function, values, options, allocation);
  list_moves(function, values, allocation);
  return allocation;
}

} // namespace

Allocation colour_registers(const Function& function, const MachineValues& values, const AllocationOptions& options) {
  return colour_bundles(function, values, options, Bundles(function, values, options));
}

namespace {

// Keeps apart the values whose readers read one of the two clashing values in their place.
void keep_apart(const Function& function, const MachineValues& values, std::pair<ValueId, ValueId> clash,
                std::set<ValueId>& apart) {
  for (ValueId value : function.values.ids()) {
    if (values.in_register(value)) continue;
    for (ValueId part : values.stands_for(value))
      if (part == clash.first || part == clash.second) apart.insert(value);
  }
}

void keep_apart(const Function& function, const MachineValues& values, const Bundles& bundles,
                std::set<ValueId>& apart) {
  for (std::pair<ValueId, ValueId> clash : bundles.clashes())
    keep_apart(function, values, clash, apart);
}

// A copy without a register would be read under its source's name, which may hold another value by then.
void keep_copies_of_predicates(const Function& function, std::set<ValueId>& apart) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, Opcode::mov))
        for_each_definition(function, id, [&](ValueId copy) {
          if (function.values[copy].type == ScalarType::pred) apart.insert(copy);
        });
}

} // namespace

std::set<ValueId> apart_by_names(const Function& function, const ControlFlow& flow, uint32_t compute_capability,
                                 std::set<ValueId> apart) {
  keep_copies_of_predicates(function, apart);
  const AllocationOptions options{.compute_capability = compute_capability, .keep_names = true};
  for (size_t before = SIZE_MAX; apart.size() != before;) {
    before = apart.size();
    const MachineValues values(function, flow, compute_capability, apart);
    keep_apart(function, values, Bundles(function, values, options), apart);
  }
  return apart;
}

Result<Allocation> allocate_registers(const Function& function, const AllocationOptions& options) {
  ControlFlow flow(function);
  std::set<ValueId> apart = options.apart;
  if (options.keep_names) keep_copies_of_predicates(function, apart);
  while (true) {
    MachineValues values(function, flow, options.compute_capability, apart);
    Bundles bundles(function, values, options);
    const size_t before = apart.size();
    keep_apart(function, values, bundles, apart);
    if (apart.size() > before) continue;
    if (!bundles.clashes().empty())
      return Error{"values of " + function.value_name(bundles.clashes().front().first) +
                       " are live at the same time and cannot share a register",
                   function.header_range};
    Allocation allocation = colour_bundles(function, values, options, bundles);
    // With names kept, values that the text copies to a register must have one.
    if (options.keep_names)
      for (const RegisterMove& move : allocation.moves)
        apart.insert(move.from);
    if (apart.size() > before) continue;
    allocation.apart = std::move(apart);
    if (allocation.unplaced.empty()) return allocation;
    return Error{"no register below " + std::to_string(options.register_limit) + " is free for " +
                     function.value_name(allocation.unplaced.front()),
                 function.header_range};
  }
}

uint32_t register_limit_of(const Function& function, uint32_t maximum) {
  constexpr uint32_t most = 255;
  uint32_t limit = maximum == 0 ? most : std::min(maximum, most);
  for (const FunctionDirective& directive : function.directives)
    if (function.module().text(directive.name) == ".maxnreg" && directive.count > 0)
      limit = std::min(limit, directive.numbers[0]);
  return limit;
}

} // namespace ptxrewrite::ir
