// Path-dependent parts of a kernel: inductions, trip limits, joins.
#include "evaluate/prove/symbolic.h"

#include <algorithm>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::ValueId;

// Loops with literal limits are simulated up to this trip.
constexpr uint64_t most_trips_walked = 1024;

} // namespace

// --- inductions ---

// The unknowns that change from trip to trip in an unknown way, and the trip numbers of this loop and of inner ones.
// Results without a term of their own occur extended, selected by a guard, or as parts of a register in other terms.
std::set<AtomId> SymbolicKernel::changing_in(const ir::Loop& loop) {
  std::set<AtomId> changing, inside;
  std::set<std::string, std::less<>> makers; // an unknown's name up to the first dot
  auto make = [&](ValueId value) {
    for (const char* kind : {"register", "above", "undefined"})
      makers.insert(kind + std::to_string(value.index()));
    if (const TermId term = values_[value.index()]) terms_.collect_atoms(term, inside);
  };
  for (BlockId block : loop.blocks) {
    changing.insert(*terms_.as_atom(trip_number(terms_, block)));
    auto parameters = function_.parameters(block);
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      make(parameters[i]);
      // An inner loop's induction that was found just now has a closed form from the next round on.
      const TermId term = values_[parameters[i].index()];
      if (term && term == terms_.leaf(path_name(block, parameters[i]), terms_.width(term)))
        changing.insert(*terms_.as_atom(term));
    }
    for (InstructionId id : function_.instructions_in(block)) {
      makers.insert(provenance(id));
      ir::for_each_definition(function_, id, make);
    }
  }
  for (const AtomId id : inside) {
    const Atom& atom = terms_.atom(id);
    if (atom.kind == AtomKind::leaf && makers.contains(std::string_view(atom.name).substr(0, atom.name.find('.'))))
      changing.insert(id);
  }
  return changing;
}

bool SymbolicKernel::changes(TermId step, const std::set<AtomId>& changing) {
  std::set<AtomId> inside;
  terms_.collect_atoms(step, inside);
  return std::ranges::any_of(inside, [&](AtomId atom) { return changing.contains(atom); });
}

// Finds registers that every back edge increases by the same loop-invariant amount.
bool SymbolicKernel::find_inductions() {
  bool found = false;
  for (const ir::Loop& loop : loops_.loops()) {
    auto parameters = function_.parameters(loop.header);
    const std::set<AtomId> changing = changing_in(loop);
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      if (inductions_.contains({loop.header.index(), i})) continue;
      const TermId own = values_[parameters[i].index()];
      if (!own) continue;
      TermId first, step;
      bool same = true;
      for (EdgeId edge : flow_.predecessors(loop.header)) {
        const TermId brought = values_[function_.arguments(edge)[i].index()];
        const bool back = std::ranges::find(loop.back_edges, edge) != loop.back_edges.end();
        if (!brought) {
          same = false;
          break;
        }
        const TermId wanted = back ? terms_.subtract(brought, own) : brought;
        TermId& place = back ? step : first;
        same &= !place || place == wanted;
        place = wanted;
      }
      if (!same || !first || !step || changes(step, changing)) continue;
      const TermId trips = terms_.truncate(trip_number(terms_, loop.header), terms_.width(own));
      inductions_[{loop.header.index(), i}] = terms_.add(first, terms_.multiply(trips, step));
      closed_[*terms_.as_atom(own)] = inductions_[{loop.header.index(), i}];
      found = true;
    }
  }
  close_inductions();
  return found;
}

// An induction may start from the value of another one.
void SymbolicKernel::close_inductions() {
  for (auto& [place, term] : inductions_)
    for (TermId before; before != term;) {
      before = term;
      term = terms_.substitute(term, closed_);
    }
}

// The amount that the first trip adds, if it appears to be the same in all trips.
std::optional<TermId> SymbolicKernel::guessed_step(const ir::Loop& loop, uint32_t parameter,
                                                   const std::set<AtomId>& changing) {
  const TermId own = values_[function_.parameters(loop.header)[parameter].index()];
  const auto leaf = own ? terms_.as_atom(own) : std::nullopt;
  if (!leaf || terms_.atom(*leaf).kind != AtomKind::leaf) return std::nullopt;
  TermId first, step;
  for (bool back : {false, true})
    for (EdgeId edge : flow_.predecessors(loop.header)) {
      if ((std::ranges::find(loop.back_edges, edge) != loop.back_edges.end()) != back) continue;
      const TermId brought = values_[function_.arguments(edge)[parameter].index()];
      if (!brought) return std::nullopt;
      const TermId wanted = back ? terms_.subtract(terms_.substitute(brought, {{*leaf, first}}), first) : brought;
      TermId& place = back ? step : first;
      if (place && place != wanted) return std::nullopt;
      place = wanted;
    }
  if (!first || !step || changes(step, changing) || changes(first, changing)) return std::nullopt;
  const TermId trips = terms_.truncate(trip_number(terms_, loop.header), terms_.width(own));
  return terms_.add(first, terms_.multiply(trips, step));
}

// Does the closed form for trip k imply that for trip k + 1 on every back edge? By induction it then holds for all
// trips of the loop.
bool SymbolicKernel::next_trip_follows(const ir::Loop& loop, uint32_t parameter) {
  const TermId closed = inductions_.at({loop.header.index(), parameter});
  const TermId trip = trip_number(terms_, loop.header);
  const TermId next =
      terms_.substitute(closed, {{*terms_.as_atom(trip), terms_.add(trip, terms_.literal(terms_.width(trip), 1))}});
  return std::ranges::all_of(loop.back_edges, [&](EdgeId edge) {
    const TermId brought = values_[function_.arguments(edge)[parameter].index()];
    if (!brought) return false;
    std::set<size_t> used;
    return exact_.rewrite(brought, used) == exact_.rewrite(next, used) && used.empty();
  });
}

// All guesses for one loop are proved together: if all hold in trip k, they hold in trip k + 1.
bool SymbolicKernel::guess_inductions() {
  for (const ir::Loop& loop : loops_.loops()) {
    const std::set<AtomId> changing = changing_in(loop);
    std::vector<uint32_t> guessed;
    auto parameters = function_.parameters(loop.header);
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      const std::pair place{loop.header.index(), i};
      if (inductions_.contains(place) || not_inductions_.contains(place)) continue;
      std::optional<TermId> closed = guessed_step(loop, i, changing);
      if (!closed) continue;
      inductions_[place] = *closed;
      guessed.push_back(i);
    }
    if (guessed.empty()) continue;
    const auto limits = bounds_.limits(); // limits found from now on may depend on a wrong guess
    evaluate();
    find_trip_limits();
    const bool follows =
        std::ranges::all_of(guessed, [&](uint32_t parameter) { return next_trip_follows(loop, parameter); });
    if (follows) return true;
    for (uint32_t parameter : guessed) {
      inductions_.erase({loop.header.index(), parameter});
      not_inductions_.insert({loop.header.index(), parameter});
    }
    bounds_.set_limits(limits);
    exact_.forget();
    evaluate();
  }
  return false;
}

// --- trips ---

std::optional<TermId> SymbolicKernel::condition(BlockId block) {
  const InstructionId last = function_.terminator(block);
  if (!last || function_.successors(block).size() != 2) return std::nullopt;
  const ir::Instruction& branch = function_.instructions[last];
  const ir::Form& form = function_.form_of(last);
  if (!branch.guard || form.opaque || form.opcode != ir::Opcode::bra) return std::nullopt;
  const TermId guard = values_[branch.guard.index()];
  if (!guard || terms_.width(guard) != 1) return std::nullopt;
  return branch.guard_negated ? terms_.negation(guard) : guard;
}

std::optional<TermId> SymbolicKernel::goes_on(const ir::Loop& loop, BlockId block) {
  if (loops_.innermost(block) != loops_.innermost(loop.header)) return std::nullopt;
  const bool is_always_met = std::ranges::all_of(
      loop.back_edges, [&](EdgeId edge) { return dominators_.dominates(block, function_.edges[edge].from); });
  const std::optional<TermId> taken = is_always_met ? condition(block) : std::nullopt;
  if (!taken) return std::nullopt;
  auto ways = function_.successors(block);
  auto leaves = [&](EdgeId edge) { return std::ranges::find(loop.exits, edge) != loop.exits.end(); };
  if (leaves(ways[0]) == leaves(ways[1])) return std::nullopt;
  return leaves(ways[1]) ? *taken : terms_.negation(*taken);
}

// Simulates loops whose condition depends only on their trip number and literals. The trip number never exceeds that of
// the first trip that does not continue.
void SymbolicKernel::find_trip_limits() {
  for (const ir::Loop& loop : loops_.loops()) {
    const AtomId trip = *terms_.as_atom(trip_number(terms_, loop.header));
    for (BlockId block : loop.blocks) {
      const std::optional<TermId> stays = goes_on(loop, block);
      for (uint64_t k = 0; stays && k < most_trips_walked; ++k) {
        const auto value = terms_.literal_value(terms_.substitute(*stays, {{trip, terms_.literal(64, k)}}));
        if (!value) break;
        if (*value != 0) continue;
        bounds_.limit(trip, k);
        exact_.forget();
        break;
      }
    }
  }
}

std::vector<Assumption> SymbolicKernel::known_in(BlockId block) {
  std::vector<Assumption> known;
  for (const ir::Loop& loop : loops_.loops()) {
    if (loop.exits.size() != 1 || std::ranges::find(loop.blocks, block) != loop.blocks.end()) continue;
    const ir::Edge& exit = function_.edges[loop.exits[0]];
    const std::optional<TermId> stays = goes_on(loop, exit.from);
    const auto met = stays ? terms_.as_atom(terms_.negation(*stays)) : std::nullopt;
    if (!met || terms_.atom(*met).name != "zero") continue;
    // d = c + s * trip, in w bits; d is 0 for the first time, and its values repeat after 2^w / (powers of 2 in s).
    const TermId distance = terms_.atom(*met).operands[0];
    const unsigned width = terms_.width(distance);
    const AtomId trip = *terms_.as_atom(trip_number(terms_, loop.header));
    const TermId first = terms_.substitute(distance, {{trip, terms_.literal(64, 0)}});
    const TermId step = terms_.subtract(terms_.substitute(distance, {{trip, terms_.literal(64, 1)}}), first);
    const TermId trips = terms_.truncate(trip_number(terms_, loop.header), width);
    const bool is_linear = distance == terms_.add(first, terms_.multiply(step, trips));
    if (changes(first, changing_in(loop))) continue;
    // If the loop may not have run, its trip number is irrelevant, and may be assumed to be this value if it exists.
    const bool has_run = dominators_.dominates(exit.from, block);
    if (!has_run && terms_.trailing_zeros(first) < terms_.trailing_zeros(step)) continue;
    if (!is_linear || !terms_.literal_value(step) || terms_.literal_value(step) == UInt128(0) || width > 64) continue;
    const unsigned period = width - terms_.trailing_zeros(step);
    known.push_back({terms_.sign_extend(distance, 128), {0, 0}});
    known.push_back({terms_.zero_extend(trip_number(terms_, loop.header), 128), ir::unsigned_range(period)});
  }
  return known;
}

std::vector<TermId> SymbolicKernel::conditions_of(BlockId block) {
  std::vector<TermId> known;
  for (BlockId above = block; above.valid() && above != function_.entry();) {
    const BlockId start = above;
    above = dominators_.immediate_dominator(above);
    if (!above.valid()) break;
    const std::optional<TermId> taken = condition(above);
    if (!taken || flow_.predecessors(start).size() != 1) continue;
    auto ways = function_.successors(above);
    if (function_.edges[ways[0]].to == start) known.push_back(*taken);
    if (function_.edges[ways[1]].to == start) known.push_back(terms_.negation(*taken));
  }
  for (const ir::Loop& loop : loops_.loops()) {
    const bool is_inside = std::ranges::find(loop.blocks, block) != loop.blocks.end();
    const bool has_run = loop.exits.size() == 1 && dominators_.dominates(function_.edges[loop.exits[0]].from, block);
    if (!is_inside && !has_run) continue;
    const TermId trip = trip_number(terms_, loop.header);
    const AtomId number = *terms_.as_atom(trip);
    std::set<AtomId> changing = changing_in(loop);
    changing.erase(number);
    for (BlockId inside : loop.blocks) {
      const std::optional<TermId> stays = goes_on(loop, inside);
      if (!stays || changes(*stays, changing)) continue;
      const TermId before = terms_.subtract(trip, terms_.literal(64, 1));
      const TermId stayed = terms_.substitute(*stays, {{number, before}});
      known.push_back(terms_.select(terms_.is_zero(trip), terms_.literal(1, 1), stayed));
    }
  }
  return known;
}

// --- joins ---

// Through which side of the branch does the edge come? True for the first successor.
std::optional<bool> SymbolicKernel::side_of(BlockId branch, EdgeId edge) const {
  auto ways = function_.successors(branch);
  for (const bool first : {true, false}) {
    const EdgeId way = ways[first ? 0 : 1];
    if (way == edge) return first;
    const BlockId start = function_.edges[way].to;
    if (flow_.predecessors(start).size() == 1 && dominators_.dominates(start, function_.edges[edge].from)) return first;
  }
  return std::nullopt;
}

// The value that all edges pass, or a selection between the values that the two sides of one branch pass.
std::optional<TermId> SymbolicKernel::joined(BlockId block, uint32_t parameter) {
  const BlockId branch = dominators_.immediate_dominator(block);
  TermId all;
  TermId by_side[2];
  bool same = true, sided = branch.valid() && function_.successors(branch).size() == 2;
  for (EdgeId edge : flow_.predecessors(block)) {
    const BlockId from = function_.edges[edge].from;
    const TermId brought = values_[function_.arguments(edge)[parameter].index()];
    if (!brought || dominators_.dominates(block, from)) return std::nullopt; // a loop
    same &= !all || all == brought;
    all = brought;
    const std::optional<bool> side = sided ? side_of(branch, edge) : std::nullopt;
    if (!side) {
      sided = false;
      continue;
    }
    TermId& place = by_side[*side ? 0 : 1];
    sided &= !place || place == brought;
    place = brought;
  }
  if (all && same) return all;
  // Floating-point operations are uninterpreted functions: a selection between their results is better left unknown.
  if (ir::is_float(function_.values[function_.parameters(block)[parameter]].type)) return std::nullopt;
  if (!sided || !by_side[0] || !by_side[1]) return std::nullopt;
  const std::optional<TermId> taken = condition(branch);
  return taken ? std::optional(terms_.select(*taken, by_side[0], by_side[1])) : std::nullopt;
}

} // namespace ptxrewrite::prove
