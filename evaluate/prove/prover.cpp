// Pairs the instructions of two kernels and proves that their operands are equal.
#include "evaluate/prove/prover.h"

#include "evaluate/prove/counterexample.h"
#include "evaluate/prove/divisions.h"
#include "evaluate/prove/exact_forms.h"
#include "evaluate/prove/float_rules.h"
#include "evaluate/prove/joined_accesses.h"
#include "evaluate/prove/lanes.h"
#include "evaluate/prove/ledger.h"
#include "evaluate/prove/reductions.h"
#include "evaluate/prove/relations.h"
#include "evaluate/prove/symbolic.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "transforms/manager/variant_terms.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <chrono>
#include <set>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::ValueId;

std::vector<unsigned> bytes_of_parameters(const ir::Function& function) {
  std::vector<unsigned> bytes;
  for (ir::VariableId id : function.variable_lists.view(function.signature.parameters)) {
    const ir::Variable& variable = function.variables[id];
    bytes.push_back(variable.is_array ? 0 : ir::byte_width(variable.type));
  }
  return bytes;
}

// Limits of the launch from the kernel's directives.
LaunchSize launch_size(const ir::Function& function) {
  LaunchSize size;
  for (const ir::FunctionDirective& directive : function.directives) {
    const std::string_view name = function.module().text(directive.name);
    std::array<uint64_t, 3> extents{1, 1, 1};
    for (unsigned i = 0; i < directive.count && i < 3; ++i)
      extents[i] = directive.numbers[i];
    for (unsigned i = 0; i < 3; ++i) {
      if (name == ".reqntid") size.block[i] = extents[i];
      size.is_exact |= name == ".reqntid";
      // This directive bounds only the number of threads, not their shape.
      if (name == ".maxntid") size.block[i] = std::min(size.block[i], extents[0] * extents[1] * extents[2]);
    }
  }
  return size;
}

class Prover {
public:
  Prover(const ir::Function& original, const ir::Function& rewritten, const std::vector<transforms::Obligation>& ledger,
         unsigned effort, KernelProof& proof)
      : original_(original), rewritten_(rewritten), proof_(proof), parameter_bytes_(bytes_of_parameters(original)),
        size_(launch_size(original)), solver_(terms_, effort), floats_(terms_), bounds_(terms_, size_),
        exact_(terms_, bounds_,
               [this](AtomKind kind, unsigned from, unsigned to, const ir::Interval& range) {
                 return solver_.extension_is_exact(kind, from, to, range);
               }),
        before_(original, terms_, bounds_, exact_, {}),
        after_(rewritten, terms_, bounds_, exact_, [this](unsigned index) { return added_parameter(index); }) {
    read_only_ = read_only_pointers(terms_, original, before_, ledger);
    relations_.emplace(terms_, exact_, original, before_, rewritten, after_, read_only_);
    is_tested_in_kernel_ = std::ranges::any_of(ledger, [](const transforms::Obligation& entry) {
      return entry.discharge == transforms::Discharge::in_kernel;
    });
    read_facts(ledger);
    read_terms();
    std::ranges::move(lane_facts(terms_, warp_shape(original, ledger)), std::back_inserter(required_));
  }

  // `joined`: accesses of the rewritten kernel that were split.
  void run(const std::vector<JoinedAccess>& joined);

private:
  void compare_alignment(const std::vector<JoinedAccess>& joined);
  void pair_observations();
  void compare(const Observation& before, const Observation& after);
  void compare_order();
  bool is_read_only(const Observation& before, const Observation& after) const;
  bool same_order(const std::vector<const Observation*>& before, const std::vector<const Observation*>& after);
  void compare_paths();
  // Facts at a position that do not depend on the ledger.
  struct Place {
    std::vector<Assumption> known;
    std::vector<Assumption> conditions; // only used if the proof fails without them
  };
  Place place_in(BlockId block);
  void judge(TermId before, TermId after, SourceRange range, const Place& place);
  Judgement judgement_of(TermId before, TermId after, const Place& place);
  void search_counterexample();
  // The launch predicates of the variant; nothing if its launches differ from the original's in other ways.
  std::optional<std::vector<launch::LaunchExpression>> requirements() const;
  // Is the result computed only from values that the prover models? Otherwise a counterexample proves nothing.
  bool is_followed(TermId after);
  std::vector<Assumption> relevant(TermId before, TermId after, const std::set<size_t>& used,
                                   const std::vector<Assumption>& known) const;
  std::optional<TermId> ledger_name(const std::string& name);
  void read_facts(const std::vector<transforms::Obligation>& ledger);
  void problem(SourceRange range, std::string text) {
    proof_.problems.push_back({range, Outcome::unknown, std::move(text), {}});
  }
  void read_terms();
  Judgement with_divisions(TermId before, TermId after, const std::set<size_t>& used,
                           const std::vector<Assumption>& known);
  bool adds_control(InstructionId id) const;
  std::optional<TermId> added_parameter(unsigned index);

  const ir::Function& original_;
  const ir::Function& rewritten_;
  KernelProof& proof_;
  std::vector<unsigned> parameter_bytes_; // of the original
  LaunchSize size_;
  Terms terms_;
  Solver solver_;
  FloatRules floats_;
  Bounds bounds_;
  ExactForms exact_;
  SymbolicKernel before_;
  SymbolicKernel after_;
  std::vector<LedgerFact> facts_;
  std::vector<Assumption> required_;  // the variant's predicates, and facts on lanes
  std::vector<Assumption> multiples_; // the predicates with a remainder: alignments, row lengths
  std::optional<Divisions> divisions_;
  std::optional<Relations> relations_;
  std::vector<size_t> admitted_; // facts that may be used, numbered as in exact_
  std::set<std::string> used_;
  std::optional<std::set<AtomId>> atoms_of_original_;
  std::vector<ObservedPair> pairs_; // instructions with the same form
  std::vector<std::map<std::string, UInt128>> models_;
  bool is_tested_in_kernel_ = false; // the ledger has conditions that neither this prover nor the launcher tests
  std::set<unsigned> read_only_;     // parameters
};

// Unknowns that occur only in the result, such as an operand from a hardware queue or one element of a vector load,
// have no counterpart in the original to compare with. Parameters and special registers are the same in both.
bool Prover::is_followed(TermId after) {
  if (!atoms_of_original_) {
    atoms_of_original_.emplace();
    for (const Observation& seen : before_.observations())
      for (TermId term : seen.terms)
        terms_.collect_atoms(term, *atoms_of_original_);
    for (uint32_t i = 0; i < original_.values.size(); ++i)
      if (const TermId term = before_.value(ValueId(i))) terms_.collect_atoms(term, *atoms_of_original_);
    atoms_of_original_->insert(relations_->unknowns().begin(), relations_->unknowns().end());
  }
  std::set<AtomId> inside;
  terms_.collect_atoms(after, inside);
  return std::ranges::all_of(inside, [&](AtomId id) {
    const Atom& atom = terms_.atom(id);
    const bool is_launch_or_trip =
        atom.name.starts_with('%') || atom.name.starts_with("trip") ||
        (atom.name.size() > 1 && atom.name[0] == 'P' && std::isdigit(static_cast<unsigned char>(atom.name[1])));
    return atom.kind != AtomKind::leaf || is_launch_or_trip || atoms_of_original_->contains(id);
  });
}

// The assumption that a bit is 1.
Assumption is_set(Terms& terms, TermId bit) {
  return {terms.zero_extend(bit, 128), {1, 1}};
}

Prover::Place Prover::place_in(BlockId block) {
  Place place{before_.known_in(block), {}};
  for (Assumption& fact : place.known)
    fact.value = relations_->apply(fact.value);
  for (TermId bit : before_.conditions_of(block))
    if (!terms_.literal_value(bit)) place.conditions.push_back(is_set(terms_, relations_->apply(bit)));
  return place;
}

void Prover::judge(TermId before, TermId after, SourceRange range, const Place& place) {
  if (terms_.width(before) != terms_.width(after)) {
    problem(range, "an operand has " + std::to_string(terms_.width(before)) + " bits in the original and " +
                       std::to_string(terms_.width(after)) + " in the result");
    return;
  }
  before = relations_->apply(before);
  after = relations_->apply(after);
  if (before == after) {
    ++proof_.identical;
    return;
  }
  const std::string text = terms_.print(before) + " =?= " + terms_.print(after);
  if (!is_followed(after)) {
    proof_.problems.push_back(
        {range, Outcome::unknown, text, "the result has it from an instruction that the prover does not follow"});
    return;
  }
  Judgement judgement = judgement_of(floats_.rewritten(before), floats_.rewritten(after), place);
  if (judgement.outcome == Outcome::identical) {
    ++proof_.identical;
  } else if (judgement.outcome == Outcome::proved) {
    ++proof_.proved;
  } else {
    std::string detail = std::move(judgement.detail);
    if (judgement.outcome == Outcome::refuted)
      detail = "equal only if " + detail + " cannot be, which is not shown"; // the unknowns may have values that occur
                                                                             // in no launch
    if (!judgement.model.empty()) models_.push_back(std::move(judgement.model));
    proof_.problems.push_back({range, Outcome::unknown, text, std::move(detail)});
  }
}

Judgement Prover::judgement_of(TermId before, TermId after, const Place& place) {
  if (before == after) return {Outcome::proved, {}};
  std::set<size_t> used;
  const TermId exact_before = exact_.rewrite(before, used), exact_after = exact_.rewrite(after, used);
  for (size_t number : used)
    used_.insert(facts_[admitted_[number]].statement);
  if (exact_before == exact_after) return {Outcome::proved, {}};
  auto is_open = [](const Judgement& one) {
    return one.outcome == Outcome::refuted || one.outcome == Outcome::unknown;
  };
  std::vector<Assumption> facts = relevant(before, after, used, place.known);
  Judgement judgement = solver_.prove_equal(exact_before, exact_after, facts);
  if (is_open(judgement)) judgement = solver_.prove_equal(before, after, facts);
  const size_t without = facts.size();
  std::vector<Assumption> more = place.known;
  more.insert(more.end(), place.conditions.begin(), place.conditions.end());
  if (is_open(judgement)) facts = relevant(before, after, used, more);
  if (facts.size() > without) judgement = solver_.prove_equal(before, after, facts);
  return is_open(judgement) ? with_divisions(before, after, used, more) : judgement;
}

// Both with their divisions in one form.
Judgement Prover::with_divisions(TermId before, TermId after, const std::set<size_t>& used,
                                 const std::vector<Assumption>& known) {
  const auto holds = [&](TermId bit) {
    const TermId one = terms_.literal(1, 1);
    return bit == one || solver_.prove_equal(bit, one, relevant(bit, bit, used, known)).outcome == Outcome::proved;
  };
  const TermId old = divisions_->rewritten(before, holds), made = divisions_->rewritten(after, holds);
  if (old == made) return {Outcome::proved, {}};
  if (old == before && made == after) return {Outcome::unknown, "the solver has no proof"};
  return solver_.prove_equal(old, made, relevant(old, made, used, known));
}

// Returns the ledger's facts that may concern two terms: those whose unknowns all occur in the terms.
std::vector<Assumption> Prover::relevant(TermId before, TermId after, const std::set<size_t>& used,
                                         const std::vector<Assumption>& known) const {
  std::set<AtomId> atoms;
  terms_.collect_atoms(before, atoms);
  terms_.collect_atoms(after, atoms);
  auto is_near = [&](const Assumption& fact) {
    std::set<AtomId> inside;
    terms_.collect_atoms(fact.value, inside);
    return std::ranges::all_of(
        inside, [&](AtomId atom) { return terms_.atom(atom).kind != AtomKind::leaf || atoms.contains(atom); });
  };
  std::vector<Assumption> list;
  for (size_t i = 0; i < admitted_.size(); ++i)
    if (used.contains(i) || is_near(facts_[admitted_[i]].assumption)) list.push_back(facts_[admitted_[i]].assumption);
  std::ranges::copy_if(known, std::back_inserter(list), is_near);
  std::ranges::copy_if(required_, std::back_inserter(list), is_near);
  return list;
}

// Resolves a name in the ledger's statements.
std::optional<TermId> Prover::ledger_name(const std::string& name) {
  constexpr unsigned exact = 128;
  unsigned number = 0;
  const bool is_numbered = name.size() > 1 && std::from_chars(name.data() + 1, name.data() + name.size(), number).ptr ==
                                                  name.data() + name.size();
  if (name.starts_with('P')) {
    if (is_numbered && number >= parameter_bytes_.size()) {
      auto added = added_parameter(number);
      return added ? std::optional(terms_.zero_extend(*added, exact)) : std::nullopt;
    }
    auto parameter = launch::LaunchExpression::parse(name);
    return parameter ? std::optional(launch_value(terms_, *parameter, parameter_bytes_)) : std::nullopt;
  }
  if (is_numbered && name.starts_with('k')) return terms_.zero_extend(trip_number(terms_, BlockId(number)), exact);
  if (is_numbered && name.starts_with('v')) {
    if (number >= original_.values.size()) return std::nullopt;
    const TermId value = before_.value(ValueId(number));
    return value ? std::optional(terms_.sign_extend(value, exact)) : std::nullopt;
  }
  if (name.starts_with("symbol")) return terms_.zero_extend(terms_.leaf("&" + name.substr(6), 64), exact);
  if (name.starts_with("window.")) return terms_.zero_extend(terms_.leaf(name, 64), exact);
  if (name.find('.') == name.npos) return std::nullopt;
  return terms_.zero_extend(terms_.leaf("%" + name, 32, true), exact);
}

void Prover::read_facts(const std::vector<transforms::Obligation>& ledger) {
  facts_ = read_ledger(terms_, ledger, [this](const std::string& name) { return ledger_name(name); });
  for (size_t i = 0; i < facts_.size(); ++i) {
    LedgerFact& fact = facts_[i];
    fact.assumption.value = relations_->apply(fact.assumption.value);
    // Facts proved by the analysis are proved again here, or not used.
    if (fact.discharge == transforms::Discharge::proved) {
      const auto bounds = bounds_.of(fact.assumption.value);
      if (!bounds || !within(*bounds, fact.assumption.range)) continue;
    }
    admitted_.push_back(i);
    exact_.assume(fact.assumption);
  }
}

// The variant's predicates hold wherever it runs; its added parameters have the values of their expressions.
void Prover::read_terms() {
  const auto value_of = [this](const std::string& text) -> std::optional<TermId> {
    Result<launch::LaunchExpression> expression = launch::LaunchExpression::parse(text);
    return expression ? std::optional(launch_value(terms_, *expression, parameter_bytes_)) : std::nullopt;
  };
  std::vector<AddedParameter> added;
  transforms::for_each_term(rewritten_, [&](std::string_view keyword, std::string_view rest) {
    const size_t blank = rest.find(' ');
    if (keyword == "parameter" && blank != rest.npos) {
      const auto index = static_cast<unsigned>(parameter_bytes_.size() + added.size());
      const std::optional<TermId> value = added_parameter(index);
      added.push_back({std::string(rest.substr(blank + 1)), value.value_or(TermId())});
    }
    if (keyword == "requires")
      if (const std::optional<TermId> value = value_of(std::string(rest))) {
        required_.push_back(is_set(terms_, terms_.negation(terms_.is_zero(*value))));
        if (rest.find(" % ") != rest.npos) multiples_.push_back(required_.back());
      }
  });
  divisions_.emplace(terms_, added, value_of);
}

void Prover::compare(const Observation& before, const Observation& after) {
  const SourceRange range = original_.instructions[before.instruction].range;
  if (is_barrier_of_one_warp(original_, before.instruction, rewritten_, after.instruction)) {
    ++proof_.identical;
    return;
  }
  const bool same_form =
      original_.instructions[before.instruction].form == rewritten_.instructions[after.instruction].form ||
      is_read_only(before, after);
  if (!same_form || before.terms.size() != after.terms.size()) {
    problem(range, "another instruction stands in its place");
    return;
  }
  pairs_.push_back({&before, &after});
  Place place = place_in(original_.instructions[before.instruction].block);
  for (size_t i = 0; i < before.terms.size(); ++i) {
    judge(before.terms[i], after.terms[i], range, place);
    // The other operands matter only if the guard is true.
    if (i == 0 && original_.instructions[before.instruction].guard && !terms_.literal_value(before.terms[0]))
      place.conditions.push_back(is_set(terms_, relations_->apply(before.terms[0])));
  }
}

// The branches between complete bodies that a kernel guard needs have no counterpart in the original.
bool Prover::adds_control(InstructionId id) const {
  return !rewritten_.instructions[id].provenance && rewritten_.form_of(id).effects.branch;
}

// Parameters after the original's are computed by the launcher; the variant's annotations give the expressions.
std::optional<TermId> Prover::added_parameter(unsigned index) {
  if (index < parameter_bytes_.size()) return std::nullopt;
  auto number = static_cast<unsigned>(parameter_bytes_.size());
  for (InstructionId id : rewritten_.instructions_in(rewritten_.entry())) {
    if (rewritten_.instructions[id].kind != ir::InstructionKind::annotation) continue;
    const std::string_view text = rewritten_.module().text(Symbol(rewritten_.operands_of(id)[0].id));
    constexpr std::string_view keyword = " parameter ";
    const size_t place = text.find(keyword);
    if (place == text.npos || number++ != index) continue;
    const size_t value = text.find(' ', place + keyword.size());
    if (value == text.npos) return std::nullopt;
    Result<launch::LaunchExpression> expression = launch::LaunchExpression::parse(text.substr(value + 1));
    if (!expression) return std::nullopt;
    const TermId exact = launch_value(terms_, *expression, parameter_bytes_);
    const unsigned width = ir::bit_width(
        rewritten_.variables[rewritten_.variable_lists.view(rewritten_.signature.parameters)[index]].type);
    return terms_.truncate(exact, width);
  }
  return std::nullopt;
}

void Prover::pair_observations() {
  std::map<ir::ProvenanceId, const Observation*> originals;
  std::set<ir::ProvenanceId> met;
  for (const Observation& seen : before_.observations()) {
    const ir::ProvenanceId provenance = original_.instructions[seen.instruction].provenance;
    if (!provenance || !originals.emplace(provenance, &seen).second)
      problem(original_.instructions[seen.instruction].range, "two instructions of the original come from this one");
  }
  for (const Observation& seen : after_.observations()) {
    const ir::Instruction& instruction = rewritten_.instructions[seen.instruction];
    auto found = originals.find(instruction.provenance);
    if (found == originals.end()) {
      if (!adds_control(seen.instruction)) problem(instruction.range, "the original has no such instruction");
      continue;
    }
    met.insert(instruction.provenance);
    compare(*found->second, seen);
  }
  for (const auto& [provenance, seen] : originals)
    if (!met.contains(provenance) && !relations_->is_left_out(seen->instruction))
      problem(original_.instructions[seen->instruction].range, "the result lacks this instruction");
}

// Does `ld.global.nc` replace `ld.global`, with a disjointness check in the ledger?
bool Prover::is_read_only(const Observation& before, const Observation& after) const {
  const size_t address = original_.instructions[before.instruction].guard ? 1 : 0;
  return is_read_only_form_of(original_.form_of(before.instruction), rewritten_.form_of(after.instruction)) &&
         before.terms.size() > address && is_by_pointer(terms_, before.terms[address], read_only_);
}

// Are the instructions the same, in the same order except for accesses that may be exchanged?
bool Prover::same_order(const std::vector<const Observation*>& before, const std::vector<const Observation*>& after) {
  if (before.size() != after.size()) return false;
  std::map<ir::ProvenanceId, size_t> place;
  for (size_t i = 0; i < before.size(); ++i)
    place[original_.instructions[before[i]->instruction].provenance] = i;
  std::vector<size_t> order;
  for (const Observation* seen : after) {
    auto found = place.find(rewritten_.instructions[seen->instruction].provenance);
    if (found == place.end()) return false;
    order.push_back(found->second);
  }
  if (std::ranges::is_sorted(order) && std::ranges::adjacent_find(order) == order.end()) return true;
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (order[i] == order[j]) return false;
      if (order[i] < order[j]) continue;
      const Observation &earlier = *before[order[j]], &later = *before[order[i]];
      const bool read_only = is_read_only(earlier, *after[j]) || is_read_only(later, *after[i]);
      if (!may_change_places(terms_, original_, earlier, later, read_only)) return false;
    }
  return true;
}

// Compares control flow: the same blocks with the same successors, and in each the same instructions with effects.
void Prover::compare_order() {
  auto sequences = [&](const ir::Function& function, const SymbolicKernel& kernel) {
    std::map<BlockId, std::vector<const Observation*>> by_block;
    for (const Observation& seen : kernel.observations())
      if (&kernel == &after_ || !relations_->is_left_out(seen.instruction))
        by_block[function.instructions[seen.instruction].block].push_back(&seen);
    return by_block;
  };
  auto ways_out = [](const ir::Function& function, BlockId block) {
    std::vector<BlockId> targets;
    for (ir::EdgeId edge : function.successors(block))
      targets.push_back(function.edges[edge].to);
    return targets;
  };
  auto before = sequences(original_, before_), after = sequences(rewritten_, after_);
  for (BlockId block : original_.layout) {
    const bool same = block.index() < rewritten_.blocks.size() && rewritten_.blocks[block].in_layout &&
                      ways_out(original_, block) == ways_out(rewritten_, block) &&
                      same_order(before[block], after[block]);
    if (!same) {
      problem(original_.header_range,
              "block " + std::to_string(block.index()) + " has other ways out, or its instructions have another order");
      return;
    }
  }
}

// Compares path-dependent registers: every edge must pass equal values in both kernels.
void Prover::compare_paths() {
  for (const PathUnknown& unknown : after_.path_unknowns()) {
    const ValueId value = rewritten_.parameters(unknown.block)[unknown.parameter];
    if (unknown.block.index() >= original_.blocks.size()) continue;
    auto before = original_.parameters(unknown.block);
    auto place = std::ranges::find(before, value);
    // A new register is assumed equal to nothing, or its relation was shown.
    if (place == before.end() || relations_->is_related(unknown)) continue;
    const auto index = static_cast<size_t>(place - before.begin());
    for (uint32_t e = 0; e < rewritten_.edges.size(); ++e) {
      const ir::EdgeId edge(e);
      if (rewritten_.edges[edge].to != unknown.block || !rewritten_.blocks[rewritten_.edges[edge].from].in_layout)
        continue;
      const TermId after = after_.value(rewritten_.arguments(edge)[unknown.parameter]);
      TermId old;
      if (e < original_.edges.size() && original_.edges[edge].to == unknown.block &&
          original_.edges[edge].from == rewritten_.edges[edge].from)
        old = before_.value(original_.arguments(edge)[index]);
      const SourceRange range = original_.header_range;
      if (!old || !after) {
        problem(range, "a register that depends on the path comes in by an edge that the original does not have");
        continue;
      }
      judge(old, after, range, place_in(original_.edges[edge].from));
    }
  }
}

// A joined access faults if its address is no multiple of its size, where the original's accesses did not.
void Prover::compare_alignment(const std::vector<JoinedAccess>& joined) {
  for (const JoinedAccess& access : joined) {
    const auto seen = std::ranges::find(after_.observations(), access.first_part, &Observation::instruction);
    const SourceRange range = rewritten_.instructions[access.first_part].range;
    if (seen == after_.observations().end() || seen->terms.empty()) {
      problem(range, "the address of an access of " + std::to_string(access.bytes) + " bytes is not followed");
      continue;
    }
    const auto bits = static_cast<unsigned>(std::countr_zero(access.bytes));
    const TermId low = terms_.truncate(relations_->apply(seen->terms.front()), bits), zero = terms_.literal(bits, 0);
    const BlockId block = rewritten_.instructions[access.first_part].block;
    const Place place = block.index() < original_.blocks.size() ? place_in(block) : Place{};
    // First with the remainders alone: products in the other predicates are expensive for the solver.
    Outcome outcome = low == zero ? Outcome::identical : solver_.prove_equal(zero, low, multiples_).outcome;
    if (outcome != Outcome::identical && outcome != Outcome::proved) outcome = judgement_of(zero, low, place).outcome;
    if (outcome == Outcome::identical)
      ++proof_.identical;
    else if (outcome == Outcome::proved)
      ++proof_.proved;
    else
      problem(range,
              "the address of an access of " + std::to_string(access.bytes) + " bytes is not shown to be aligned");
  }
}

void Prover::run(const std::vector<JoinedAccess>& joined) {
  pair_observations();
  compare_alignment(joined);
  compare_order();
  compare_paths();
  proof_.assumptions = used_.size();
  if (!proof_.holds()) search_counterexample();
}

std::optional<std::vector<launch::LaunchExpression>> Prover::requirements() const {
  std::vector<launch::LaunchExpression> all;
  for (BlockId block : rewritten_.layout)
    for (InstructionId id : rewritten_.instructions_in(block)) {
      if (rewritten_.instructions[id].kind != ir::InstructionKind::annotation) continue;
      const std::string_view text = rewritten_.module().text(Symbol(rewritten_.operands_of(id)[0].id));
      if (text.find(" grid ") != text.npos || text.find(" block ") != text.npos) return std::nullopt;
      constexpr std::string_view keyword = " requires ";
      const size_t place = text.find(keyword);
      if (place == text.npos) continue;
      Result<launch::LaunchExpression> one = launch::LaunchExpression::parse(text.substr(place + keyword.size()));
      if (!one) return std::nullopt;
      all.push_back(*std::move(one));
    }
  return all;
}

// Tests unproved problems by evaluation; only a difference in an actual launch is reported as "not equal".
void Prover::search_counterexample() {
  std::optional<std::vector<launch::LaunchExpression>> required = requirements();
  if (is_tested_in_kernel_ || !required) return;
  std::vector<Assumption> assumed;
  for (size_t number : admitted_) {
    const LedgerFact& fact = facts_[number];
    const bool is_left_to_others = fact.discharge == transforms::Discharge::launch_checked && required->empty();
    if (fact.discharge == transforms::Discharge::assumed || is_left_to_others) assumed.push_back(fact.assumption);
  }
  CounterexampleSearch search(terms_, {original_, before_}, {rewritten_, after_}, size_, *std::move(required),
                              std::move(assumed));
  std::optional<Counterexample> found = search.find(pairs_, models_);
  if (!found) return;
  const SourceRange range = original_.instructions[found->instruction].range;
  auto same = std::ranges::find_if(proof_.problems, [&](const Problem& one) { return one.range.begin == range.begin; });
  if (same == proof_.problems.end()) same = proof_.problems.insert(same, {range, Outcome::unknown, "not equal", {}});
  same->outcome = Outcome::refuted;
  same->detail = std::move(found->text);
}

// One of the forms that the passes give a kernel: the one in its place, further variants, the kept original.
struct KernelForm {
  ir::Function* function = nullptr;
  std::unique_ptr<ir::Function> owned; // if the module does not have it
  std::string name;
  std::vector<transforms::Obligation> ledger;
  size_t next = 0; // step
  bool changed = false;
};

class FormsOfKernel {
public:
  FormsOfKernel(ir::Function& original, const transforms::Pipeline& pipeline, const ProofSettings& settings)
      : original_(original), name_(original.module().text(original.name)), pipeline_(pipeline), settings_(settings) {}

  std::vector<KernelProof> prove(ir::Function& rewritten);

private:
  void run(KernelForm& form);
  void add(KernelForm before, std::unique_ptr<ir::Function> addition, transforms::PassContext& context, size_t next);

  ir::Function& original_;
  std::string name_;
  const transforms::Pipeline& pipeline_;
  const ProofSettings& settings_;
  std::vector<KernelForm> waiting_;
};

// A further variant rests on the conditions under its own name, the kept original on none of the launch.
void FormsOfKernel::add(KernelForm before, std::unique_ptr<ir::Function> addition, transforms::PassContext& context,
                        size_t next) {
  const bool is_variant = transforms::original_of(*addition).has_value();
  KernelForm form = std::move(before);
  form.name = is_variant ? std::string(addition->module().text(addition->name)) : name_ + " without a variant";
  for (const transforms::Obligation& entry : context.ledger)
    if (is_variant ? entry.function == form.name : entry.discharge != transforms::Discharge::launch_checked)
      form.ledger.push_back(entry);
  const auto text_of = [](const ir::Function& function) {
    std::string text;
    ir::print(function, text);
    return text;
  };
  form.changed = form.changed || is_variant || text_of(*addition) != text_of(original_);
  form.function = addition.get();
  form.owned = std::move(addition);
  form.next = next;
  waiting_.push_back(std::move(form));
}

void FormsOfKernel::run(KernelForm& form) {
  for (size_t i = form.next; i < pipeline_.steps.size(); ++i) {
    transforms::PassContext context;
    context.form = settings_.run.form;
    context.assumptions = settings_.run.assumptions;
    context.options = pipeline_.steps[i].options;
    context.may_run_ptxas = settings_.run.run_ptxas;
    const bool changed = pipeline_.steps[i].pass.run(*form.function, context) == transforms::Change::changed;
    std::set<std::string> others; // variants of their own
    for (std::unique_ptr<ir::Function>& addition : context.additions) {
      if (transforms::original_of(*addition)) others.insert(std::string(addition->module().text(addition->name)));
      add({nullptr, nullptr, {}, form.ledger, 0, form.changed}, std::move(addition), context, i + 1);
    }
    form.changed |= changed;
    for (const transforms::Obligation& entry : context.ledger)
      if (!others.contains(entry.function)) form.ledger.push_back(entry);
  }
}

std::vector<KernelProof> FormsOfKernel::prove(ir::Function& rewritten) {
  std::vector<KernelProof> proofs;
  waiting_.push_back({&rewritten, nullptr, name_, {}, 0, false});
  while (!waiting_.empty()) {
    const auto start = std::chrono::steady_clock::now();
    KernelForm form = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    KernelProof proof;
    proof.kernel = form.name;
    run(form);
    proof.changed = form.changed;
    if (!form.changed && !proofs.empty()) continue;
    if (form.changed) {
      const std::vector<JoinedAccess> joined = take_joined_accesses_apart(original_, *form.function);
      take_reductions_apart(original_, *form.function, form.ledger);
      Prover(original_, *form.function, form.ledger, settings_.effort, proof).run(joined);
    }
    proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    proofs.push_back(std::move(proof));
  }
  return proofs;
}

} // namespace

KernelProof prove_pair(ir::Function& original, ir::Function& rewritten,
                       const std::vector<transforms::Obligation>& ledger, unsigned effort) {
  KernelProof proof;
  proof.kernel = original.module().text(original.name);
  if (!ir::construct_ssa(original) || !ir::construct_ssa(rewritten)) return proof;
  proof.changed = true;
  const std::vector<JoinedAccess> joined = take_joined_accesses_apart(original, rewritten);
  take_reductions_apart(original, rewritten, ledger);
  Prover(original, rewritten, ledger, effort, proof).run(joined);
  return proof;
}

Outcome KernelProof::outcome() const {
  if (problems.empty()) return Outcome::proved;
  const bool refuted =
      std::ranges::any_of(problems, [](const Problem& one) { return one.outcome == Outcome::refuted; });
  return refuted ? Outcome::refuted : Outcome::unknown;
}

Result<std::vector<KernelProof>> prove_module(const SourceFile& source, const transforms::Pipeline& pipeline,
                                              const ProofSettings& settings) {
  Diagnostics ignored; // the caller has already parsed the text
  std::unique_ptr<ir::Module> original = grammar::read_module(source, ignored);
  std::unique_ptr<ir::Module> rewritten = grammar::read_module(source, ignored);
  if (!original || !rewritten) return Error{"the module cannot be read", {}};
  std::vector<KernelProof> proofs;
  for (size_t i = 0; i < original->functions.size(); ++i) {
    ir::Function& function = *original->functions[i];
    if (!function.has_body || !transforms::matches_glob(settings.run.functions, original->text(function.name)))
      continue;
    if (!ir::construct_ssa(function) || !ir::construct_ssa(*rewritten->functions[i])) {
      proofs.push_back({std::string(original->text(function.name))});
      continue;
    }
    std::vector<KernelProof> forms = FormsOfKernel(function, pipeline, settings).prove(*rewritten->functions[i]);
    std::ranges::move(forms, std::back_inserter(proofs));
  }
  return proofs;
}

} // namespace ptxrewrite::prove
