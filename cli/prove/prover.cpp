// Pairs the instructions of two kernels and has their operands judged.
#include "cli/prove/prover.h"

#include "cli/prove/symbolic.h"
#include "grammar/reader.h"
#include "ir/print.h"
#include "ir/ssa.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::ValueId;

class Prover {
public:
  Prover(const ir::Function& original, const ir::Function& rewritten, const std::set<std::string>& ledger,
         unsigned timeout, KernelProof& proof)
      : original_(original), rewritten_(rewritten), ledger_(ledger), proof_(proof), solver_(terms_, timeout),
        before_(original, terms_, {}),
        after_(rewritten, terms_, [this](unsigned index) { return added_parameter(index); }), original_forms_(original),
        rewritten_forms_(rewritten) {}

  void run();

private:
  void pair_observations();
  void compare(const Observation& before, const Observation& after);
  void compare_paths();
  void judge(TermId before, TermId after, const std::vector<Assumption>& assumptions, SourceRange range);
  void problem(SourceRange range, std::string text) {
    proof_.problems.push_back({range, Outcome::unknown, std::move(text), {}});
  }
  // One of the two kernels with what the analysis says of it.
  struct Side {
    const ir::Function& function;
    const SymbolicKernel& kernel;
    ir::LinearForms& forms; // asked for statements of ranges, too
  };
  void assume_for(const Side& side, ValueId value, std::vector<Assumption>& assumptions);
  void assume_for_one(const Side& side, ValueId value, std::vector<Assumption>& assumptions);
  bool adds_control(InstructionId id) const;
  std::optional<TermId> added_parameter(unsigned index);

  const ir::Function& original_;
  const ir::Function& rewritten_;
  const std::set<std::string>& ledger_;
  KernelProof& proof_;
  Terms terms_;
  Solver solver_;
  SymbolicKernel before_;
  SymbolicKernel after_;
  ir::LinearForms original_forms_;
  ir::LinearForms rewritten_forms_;
  Side original_side_{original_, before_, original_forms_};
  Side rewritten_side_{rewritten_, after_, rewritten_forms_};
  std::set<std::string> used_;
};

void Prover::judge(TermId before, TermId after, const std::vector<Assumption>& assumptions, SourceRange range) {
  if (terms_.width(before) != terms_.width(after)) {
    problem(range, "an operand has " + std::to_string(terms_.width(before)) + " bits in the original and " +
                       std::to_string(terms_.width(after)) + " in the result");
    return;
  }
  Judgement judgement = solver_.prove_equal(before, after, assumptions);
  if (judgement.outcome == Outcome::identical)
    ++proof_.identical;
  else if (judgement.outcome == Outcome::proved)
    ++proof_.proved;
  else
    proof_.problems.push_back(
        {range, judgement.outcome, terms_.print(before) + " =?= " + terms_.print(after), std::move(judgement.detail)});
}

// What the analysis needed for the forms of a value and of all that it is computed from, as far as the pass put it into
// the ledger.
void Prover::assume_for(const Side& side, ValueId value, std::vector<Assumption>& assumptions) {
  std::vector<ValueId> waiting{value};
  std::set<ValueId> met{value};
  while (!waiting.empty()) {
    const ValueId next = waiting.back();
    waiting.pop_back();
    assume_for_one(side, next, assumptions);
    const InstructionId definition = side.forms.def_use().definition(next).instruction;
    if (!definition || !side.function.instructions[definition].form ||
        !side.function.form_of(definition).effects.pure())
      continue;
    ir::for_each_use(side.function, definition, [&](ValueId source) {
      if (met.insert(source).second) waiting.push_back(source);
    });
  }
  std::ranges::sort(assumptions);
  assumptions.erase(std::unique(assumptions.begin(), assumptions.end()), assumptions.end());
}

void Prover::assume_for_one(const Side& side, ValueId value, std::vector<Assumption>& assumptions) {
  auto assume = [&](ir::ObligationId id) {
    const ir::Obligation& obligation = side.forms.obligation(id);
    if (!ledger_.contains(obligation.statement)) return;
    std::optional<TermId> exact = side.kernel.exact_value(side.forms, obligation);
    if (!exact) return;
    used_.insert(obligation.statement);
    assumptions.push_back({*exact, obligation.range});
  };
  for (ir::ObligationId id : side.forms.obligations(value))
    assume(id);
  // A pass may ask for a range that the analysis itself does not need: worded alike, it is in the ledger.
  const ir::LinearForm form = side.forms.form(value);
  const ir::DefinitionSite& site = side.forms.def_use().definition(value);
  InstructionId definition = site.instruction;
  if (!definition && site.block) definition = side.function.blocks[site.block].first;
  if (!definition || !form.has_coefficients() || form.width != 32 || form.kind < ir::ValueClass::block_uniform) return;
  for (const ir::Interval& range : {ir::signed_range(32), ir::unsigned_range(32)})
    if (ir::ObligationId id = side.forms.require_range(form, range, definition)) assume(id);
}

void Prover::compare(const Observation& before, const Observation& after) {
  const SourceRange range = original_.instructions[before.instruction].range;
  if (original_.instructions[before.instruction].form != rewritten_.instructions[after.instruction].form ||
      before.terms.size() != after.terms.size()) {
    problem(range, "another instruction stands in its place");
    return;
  }
  std::vector<Assumption> assumptions;
  ir::for_each_use(original_, before.instruction,
                   [&](ValueId value) { assume_for(original_side_, value, assumptions); });
  ir::for_each_use(rewritten_, after.instruction,
                   [&](ValueId value) { assume_for(rewritten_side_, value, assumptions); });
  for (size_t i = 0; i < before.terms.size(); ++i)
    judge(before.terms[i], after.terms[i], assumptions, range);
}

// Branches between whole bodies, which a guard inside the kernel needs, have no original.
bool Prover::adds_control(InstructionId id) const {
  return !rewritten_.instructions[id].provenance && rewritten_.form_of(id).effects.branch;
}

// Parameters behind the original's are what the launcher computes: the variant's annotations say from what.
std::optional<TermId> Prover::added_parameter(unsigned index) {
  auto parameters = original_.variable_lists.view(original_.signature.parameters);
  if (index < parameters.size()) return std::nullopt;
  std::vector<unsigned> bytes;
  for (ir::VariableId id : parameters) {
    const ir::Variable& variable = original_.variables[id];
    bytes.push_back(variable.is_array ? 0 : ir::byte_width(variable.type));
  }
  unsigned number = static_cast<unsigned>(parameters.size());
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
    std::optional<TermId> exact = launch_value(terms_, *expression, bytes);
    if (!exact) return std::nullopt;
    const unsigned width = ir::bit_width(
        rewritten_.variables[rewritten_.variable_lists.view(rewritten_.signature.parameters)[index]].type);
    return terms_.truncate(*exact, width);
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
    if (!met.contains(provenance))
      problem(original_.instructions[seen->instruction].range, "the result lacks this instruction");
}

// Registers that depend on the path: every edge brings the same to both.
void Prover::compare_paths() {
  for (const PathUnknown& unknown : after_.path_unknowns()) {
    const ValueId value = rewritten_.parameters(unknown.block)[unknown.parameter];
    if (unknown.block.index() >= original_.blocks.size()) continue;
    auto before = original_.parameters(unknown.block);
    auto place = std::ranges::find(before, value);
    if (place == before.end()) continue; // new: nothing is taken to be equal to it
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
      std::vector<Assumption> assumptions;
      assume_for(original_side_, original_.arguments(edge)[index], assumptions);
      assume_for(rewritten_side_, rewritten_.arguments(edge)[unknown.parameter], assumptions);
      judge(old, after, assumptions, range);
    }
  }
}

void Prover::run() {
  pair_observations();
  compare_paths();
  proof_.assumptions = used_.size();
}

struct Selected {
  ir::Function* original;
  ir::Function* rewritten;
};

Result<KernelProof> prove_kernel(const Selected& kernel, const transforms::Pipeline& pipeline,
                                 const ProofSettings& settings) {
  const auto start = std::chrono::steady_clock::now();
  KernelProof proof;
  proof.kernel = kernel.original->module().text(kernel.original->name);
  if (!ir::construct_ssa(*kernel.original) || !ir::construct_ssa(*kernel.rewritten)) return proof;
  std::set<std::string> ledger;
  for (const transforms::PipelineStep& step : pipeline.steps) {
    transforms::PassContext context;
    context.form = settings.run.form;
    context.assumptions = settings.run.assumptions;
    context.options = step.options;
    context.may_run_ptxas = settings.run.run_ptxas;
    proof.changed |= step.pass.run(*kernel.rewritten, context) == transforms::Change::changed;
    for (const transforms::Obligation& entry : context.ledger)
      ledger.insert(entry.statement);
  }
  if (proof.changed) Prover(*kernel.original, *kernel.rewritten, ledger, settings.timeout_milliseconds, proof).run();
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return proof;
}

} // namespace

Result<std::vector<KernelProof>> prove_module(const SourceFile& source, const transforms::Pipeline& pipeline,
                                              const ProofSettings& settings) {
  Diagnostics ignored; // the caller has read the same text
  std::unique_ptr<ir::Module> original = grammar::read_module(source, ignored);
  std::unique_ptr<ir::Module> rewritten = grammar::read_module(source, ignored);
  if (!original || !rewritten) return Error{"the module cannot be read", {}};
  std::vector<KernelProof> proofs;
  for (size_t i = 0; i < original->functions.size(); ++i) {
    ir::Function& function = *original->functions[i];
    if (!function.has_body || !transforms::matches_glob(settings.run.functions, original->text(function.name)))
      continue;
    Result<KernelProof> proof = prove_kernel({&function, rewritten->functions[i].get()}, pipeline, settings);
    if (!proof) return proof.error();
    proofs.push_back(*std::move(proof));
  }
  return proofs;
}

} // namespace ptxrewrite::prove
