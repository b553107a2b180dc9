#include "evaluate/prove/relations.h"

#include "evaluate/prove/joined_accesses.h"

#include <algorithm>

namespace ptxrewrite::prove {

using ir::BlockId;
using ir::InstructionId;
using ir::ValueId;

Relations::Relations(Terms& terms, ExactForms& exact, const ir::Function& original, const SymbolicKernel& before,
                     const ir::Function& rewritten, const SymbolicKernel& after, const std::set<unsigned>& read_only)
    : terms_(terms), exact_(exact), original_(original), before_(before), rewritten_(rewritten), after_(after),
      read_only_(read_only), flow_(original), dominators_(original, flow_) {
  find_left_out_loads();
  find_paths();
}

// --- registers carried along paths ---

TermId Relations::extended(TermId narrow, Kind kind, unsigned width) {
  return kind == Kind::same ? narrow : terms_.resize(narrow, width, kind == Kind::sign_extended);
}

// Path-dependent registers of the original on entry to the same block.
std::vector<Relations::Candidate> Relations::candidates_of(const PathUnknown& unknown) const {
  std::vector<Candidate> list;
  if (unknown.block.index() >= original_.blocks.size()) return list;
  const auto before = original_.parameters(unknown.block);
  const ValueId own = rewritten_.parameters(unknown.block)[unknown.parameter];
  const unsigned width = ir::bit_width(rewritten_.values[own].type);
  const bool has_counterpart =
      std::ranges::find(before, own) != before.end() && ir::bit_width(original_.values[own].type) == width;
  if (has_counterpart) return list; // compared as it is
  for (const PathUnknown& other : before_.path_unknowns()) {
    if (other.block != unknown.block) continue;
    const ValueId value = before[other.parameter];
    const unsigned theirs = ir::bit_width(original_.values[value].type);
    if (theirs == width) list.push_back({value, Kind::same});
    if (theirs > width) list.insert(list.end(), {{value, Kind::sign_extended}, {value, Kind::zero_extended}});
  }
  return list;
}

// Gives the registers of the original, and those of the result, by common unknowns.
void Relations::assume(const std::vector<Path>& paths) {
  for (const auto& [block, parameter] : related_)
    values_.erase(*terms_.as_atom(after_.value(rewritten_.parameters(block)[parameter])));
  for (const AtomId atom : unknowns_)
    std::erase_if(values_, [&](const auto& row) {
      std::set<AtomId> inside;
      terms_.collect_atoms(row.second, inside);
      return inside.contains(atom);
    });
  related_.clear();
  unknowns_.clear();
  for (const Path& path : paths) {
    const ValueId own = rewritten_.parameters(path.unknown.block)[path.unknown.parameter];
    const Candidate& candidate = path.candidates[path.chosen];
    const TermId mine = after_.value(own), theirs = before_.value(candidate.value);
    // Two registers of the result may be the same one of the original: the first names it.
    const TermId narrow = terms_.leaf("common" + path_name(path.unknown.block, candidate.value) + "." +
                                          std::to_string(terms_.width(mine)),
                                      terms_.width(mine));
    values_.try_emplace(*terms_.as_atom(theirs), extended(narrow, candidate.kind, terms_.width(theirs)));
    values_[*terms_.as_atom(mine)] = narrow;
    unknowns_.insert(*terms_.as_atom(narrow));
    related_.insert({path.unknown.block, path.unknown.parameter});
  }
}

// Does every edge pass values that are related, if those of the blocks before are?
bool Relations::holds(const Path& path) {
  const auto& [block, parameter] = path.unknown;
  const Candidate& candidate = path.candidates[path.chosen];
  const auto before = original_.parameters(block);
  const auto index = static_cast<size_t>(std::ranges::find(before, candidate.value) - before.begin());
  for (uint32_t e = 0; e < rewritten_.edges.size(); ++e) {
    const ir::EdgeId edge(e);
    const ir::Edge& taken = rewritten_.edges[edge];
    if (taken.to != block || !rewritten_.blocks[taken.from].in_layout) continue;
    if (e >= original_.edges.size() || original_.edges[edge].to != block || original_.edges[edge].from != taken.from)
      return false;
    const TermId mine = after_.value(rewritten_.arguments(edge)[parameter]);
    const TermId theirs = before_.value(original_.arguments(edge)[index]);
    if (!mine || !theirs) return false;
    std::set<size_t> none;
    const TermId old = apply(theirs), made = extended(apply(mine), candidate.kind, terms_.width(theirs));
    if (terms_.width(old) != terms_.width(made)) return false;
    if (old != made && (exact_.rewrite(old, none) != exact_.rewrite(made, none) || !none.empty())) return false;
  }
  return true;
}

// Candidates are tried together, and replaced by the next one where they do not hold: the rest is an invariant.
void Relations::find_paths() {
  std::vector<Path> paths;
  for (const PathUnknown& unknown : after_.path_unknowns())
    if (std::vector<Candidate> list = candidates_of(unknown); !list.empty())
      paths.push_back({unknown, std::move(list), 0});
  for (bool changed = true; changed;) {
    changed = false;
    assume(paths);
    for (Path& path : paths)
      if (!holds(path)) {
        ++path.chosen;
        changed = true;
      }
    std::erase_if(paths, [](const Path& path) { return path.chosen == path.candidates.size(); });
  }
}

// --- loads that the result does without ---

// Has the result a read-only load in place of this one, of data that is not written?
bool Relations::is_read_only(const Observation& load) const {
  const ir::Form& form = original_.form_of(load.instruction);
  const ir::ProvenanceId provenance = original_.instructions[load.instruction].provenance;
  return std::ranges::any_of(after_.observations(), [&](const Observation& seen) {
    if (!provenance || rewritten_.instructions[seen.instruction].provenance != provenance) return false;
    const ir::Form& made = rewritten_.form_of(seen.instruction);
    if (form.has(ir::Modifier::nc)) return made.mnemonic == form.mnemonic;
    return is_read_only_form_of(form, made) && is_by_pointer(terms_, load.terms[0], read_only_);
  });
}

// Is the address the same whenever the block is reached in one trip of the loops around it?
bool Relations::is_fixed(TermId address, BlockId block) {
  std::set<AtomId> inside;
  terms_.collect_atoms(address, inside);
  return std::ranges::all_of(inside, [&](AtomId id) {
    const Atom& atom = terms_.atom(id);
    if (atom.kind != AtomKind::leaf || atom.name.starts_with('P') || atom.name.starts_with('&')) return true;
    for (const std::string_view start : {"%tid.", "%ntid.", "%ctaid.", "%nctaid."})
      if (atom.name.starts_with(start)) return true;
    return std::ranges::any_of(before_.loops().loops(), [&](const ir::Loop& loop) {
      return atom.name == trip_name(loop.header) && std::ranges::find(loop.blocks, block) != loop.blocks.end();
    });
  });
}

// Between the two, no loop around the earlier one begins another trip.
bool Relations::reads_what_was_read(const Observation& earlier, const Observation& later) {
  const ir::Instruction &first = original_.instructions[earlier.instruction],
                        &second = original_.instructions[later.instruction];
  if (first.form != second.form || first.guard || earlier.terms.empty() || earlier.terms[0] != later.terms[0])
    return false;
  if (!dominators_.dominates(first.block, second.block)) return false;
  for (const ir::Loop& loop : before_.loops().loops()) {
    const auto contains = [&](BlockId block) { return std::ranges::find(loop.blocks, block) != loop.blocks.end(); };
    if (contains(first.block) && !contains(second.block)) return false;
  }
  return is_fixed(earlier.terms[0], first.block) && is_read_only(earlier);
}

void Relations::find_left_out_loads() {
  std::set<ir::ProvenanceId> kept;
  for (const Observation& seen : after_.observations())
    kept.insert(rewritten_.instructions[seen.instruction].provenance);
  const auto definitions = [&](InstructionId id) {
    std::vector<ValueId> list;
    ir::for_each_definition(original_, id, [&](ValueId value) { list.push_back(value); });
    return list;
  };
  // The unknown that a load's result is, before it is extended.
  const auto loaded = [&](ValueId value) {
    TermId term = before_.value(value);
    for (auto atom = term ? terms_.as_atom(term) : std::nullopt; atom;) {
      const Atom& row = terms_.atom(*atom);
      if (row.kind == AtomKind::leaf) return term;
      if (row.kind != AtomKind::sign_extend && row.kind != AtomKind::zero_extend) break;
      term = row.operands[0];
      atom = terms_.as_atom(term);
    }
    return TermId();
  };
  const std::vector<Observation>& all = before_.observations();
  for (size_t i = 0; i < all.size(); ++i) {
    const ir::Instruction& row = original_.instructions[all[i].instruction];
    const ir::Form& form = original_.form_of(all[i].instruction);
    const bool is_weak_load = !form.opaque && form.opcode == ir::Opcode::ld && form.space == ir::StateSpace::global &&
                              !form.effects.atomic && !form.effects.volatile_result && !row.guard;
    if (!is_weak_load || !row.provenance || kept.contains(row.provenance)) continue;
    for (size_t k = 0; k < i; ++k) {
      if (!reads_what_was_read(all[k], all[i])) continue;
      const auto old = definitions(all[k].instruction), own = definitions(all[i].instruction);
      std::map<AtomId, TermId> same;
      for (size_t n = 0; n < std::min(old.size(), own.size()); ++n)
        if (const TermId theirs = loaded(old[n]), mine = loaded(own[n]);
            theirs && mine && terms_.width(theirs) == terms_.width(mine))
          same[*terms_.as_atom(mine)] = theirs;
      if (old.size() != own.size() || same.size() != own.size()) continue;
      values_.merge(same);
      left_out_.insert(all[i].instruction);
      break;
    }
  }
}

} // namespace ptxrewrite::prove
