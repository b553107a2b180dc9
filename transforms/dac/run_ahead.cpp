// Chooses for each loop whether its loads run ahead, in which form, and by how many trips.
//
// The target and the loop determine the possible forms. The static model (run_ahead_cost.h) chooses among them, and
// rejects those without a clear gain. `force` takes the first possible form: a ring, registers, prefetches.
#include "transforms/dac/run_ahead.h"

#include "ir/core/module.h"
#include "ir/edit/dead_code.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/select/lowering.h"
#include "transforms/common/attempt.h"
#include "transforms/common/choice.h"
#include "transforms/common/uniform_branches.h"
#include "transforms/dac/run_ahead_cost.h"
#include "transforms/dac/run_ahead_memory.h"
#include "transforms/dac/run_ahead_plan.h"
#include "transforms/dac/run_ahead_producer.h"
#include "transforms/dac/run_ahead_rewrite.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;

constexpr std::array all_forms{RunAheadForm::ring, RunAheadForm::registers, RunAheadForm::prefetch,
                               RunAheadForm::producer};
constexpr unsigned default_threads = 256;
constexpr unsigned most_trips = 16;
// The shared memory of a block that every target supports without an opt-in, in bytes.
constexpr uint64_t static_shared_limit = 48 * 1024;
constexpr uint64_t slack = 128; // for alignment
constexpr uint32_t first_prefetch_target = 20;
// Trips ahead if the distance is not known (`force` without `distance`).
constexpr unsigned forced_distance = 3;
// Resident warps of an SM that are tried for a variant for small grids, most first.
constexpr std::array few_warps{32u, 24u, 16u, 12u, 8u, 4u};
// Placeholder reason for a form when each load was rejected individually.
constexpr std::string_view all_stay = "each load stays";

// One form for one loop.
struct Candidate {
  RunAheadPlan plan;
  RunAheadChoice choice;
  std::vector<MemoryClaim> claims;
  std::optional<RunAheadEstimate> estimate;
  std::optional<ProducerPlan> producer;

  uint64_t shared_bytes() const {
    if (producer) return producer_bytes(*producer);
    return choice.form == RunAheadForm::ring ? ring_bytes(plan, choice) : 0;
  }
};

class RunAhead {
public:
  RunAhead(ir::Function& function, PassContext& context) : function_(function), context_(context) {}

  Change run();

private:
  bool read_options();
  void look_at_kernel();
  void treat(const RunAheadPlan& plan, const RunAheadPlanner& planner, ir::LinearForms& forms);
  // Returns why the form is impossible; empty if it can be used for at least one load.
  std::string make(Candidate& candidate, const RunAheadPlanner& planner, ir::LinearForms& forms,
                   const MemoryOrder& order, std::vector<StayingLoad>& staying) const;
  std::string why_no_ring(const Candidate& candidate) const;
  std::string add_producer(Candidate& candidate, const RunAheadPlanner& planner, ir::LinearForms& forms) const;
  std::vector<unsigned> distances(RunAheadForm form) const;
  void take(Candidate candidate, const ir::LinearForms& forms);
  // Rewrites all loops for launches with at most this number of warps on an SM; 0: the SM's occupancy limit.
  void treat_all(const RunAheadPlanner& planner, ir::LinearForms& forms, unsigned warps);
  void treat_for_few_warps(const RunAheadPlanner& planner, ir::LinearForms& forms);
  void choose_uniform_branches(const ir::LinearForms& forms);
  Change commit(ir::LinearForms& forms);

  ir::Function& function_;
  PassContext& context_;
  bool force_ = false;
  unsigned distance_ = 0; // 0: chosen by the model
  std::vector<RunAheadForm> forms_allowed_;
  unsigned threads_ = default_threads;
  bool threads_are_stated_ = false; // by .reqntid or .maxntid
  bool copies_asynchronously_ = false, dynamic_shared_ = false;
  uint64_t shared_bytes_ = 0; // static allocation
  uint64_t ring_bytes_taken_ = 0;
  uint32_t capability_ = 80;
  std::optional<Attempt> attempt_;
  std::optional<RunAheadCost> cost_; // made for the first loop with a load
  unsigned most_warps_ = 0;          // RunAheadCost::limit_warps
  std::vector<Candidate> taken_;
  std::vector<InstructionId> writers_; // of memory, and calls
  std::vector<InstructionId> uniform_; // branches
  unsigned few_warps_ = 0;             // most warps on an SM in launches of the variant; 0: no limit
};

bool RunAhead::read_options() {
  const PassOptions& options = context_.options;
  force_ = options.flag("force");
  distance_ = static_cast<unsigned>(std::clamp<int64_t>(options.number("distance", 0), 0, most_trips));
  threads_ = static_cast<unsigned>(std::clamp<int64_t>(options.number("threads", default_threads), 1, 1024));
  const std::string_view form = options.text("form", "");
  for (RunAheadForm one : all_forms)
    if (form.empty() || form == spelling(one)) forms_allowed_.push_back(one);
  return !forms_allowed_.empty();
}

void RunAhead::look_at_kernel() {
  writers_ = writers_of(function_);
  const ir::Module& module = function_.module();
  capability_ = ir::target_capability(module);
  for (const ir::FunctionDirective& directive : function_.directives) {
    const std::string_view name = module.text(directive.name);
    if (name != ".reqntid" && name != ".maxntid") continue;
    uint64_t product = 1;
    for (unsigned i = 0; i < directive.count; ++i)
      product *= directive.numbers[i];
    if (product < 1 || product > 1024) continue;
    threads_ = threads_are_stated_ ? std::min(threads_, unsigned(product)) : unsigned(product);
    threads_are_stated_ = true;
  }
  const auto add_variable = [&](const ir::Variable& variable, std::span<const uint64_t> dimensions) {
    if (!ir::is_shared(variable.space)) return;
    if (variable.unsized || variable.linkage == ir::Linkage::external) {
      dynamic_shared_ = true;
      return;
    }
    uint64_t bytes = (ir::bit_width(variable.type) + 7) / 8 * variable.vector_width;
    for (uint64_t dimension : dimensions)
      bytes *= dimension;
    shared_bytes_ = (shared_bytes_ + 15) / 16 * 16 + bytes;
  };
  for (const ir::Variable& variable : function_.variables)
    add_variable(variable, function_.dimensions.view(variable.dimensions));
  for (const ir::Variable& variable : module.variables)
    add_variable(variable, module.dimensions.view(variable.dimensions));
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real) continue;
      const ir::Form& form = function_.form_of(id);
      copies_asynchronously_ |= form.kind == ir::InstructionClass::async_copy || form.effects.call;
    }
}

std::string RunAhead::why_no_ring(const Candidate& candidate) const {
  const ir::Module& module = function_.module();
  if (capability_ < 80 || module.version_major < 7) return "cp.async needs sm_80 and PTX 7.0";
  if (copies_asynchronously_) return "the kernel has asynchronous copies of its own, or calls functions";
  if (dynamic_shared_) return "the kernel has dynamic shared memory, of which nobody knows how much";
  if (!threads_are_stated_ && !attempt_->policy().launch) return "how many threads a block has is not known";
  if (shared_bytes_ + ring_bytes_taken_ + candidate.shared_bytes() + slack > static_shared_limit)
    return "the ring takes more shared memory than there is";
  return {};
}

std::string RunAhead::make(Candidate& candidate, const RunAheadPlanner& planner, ir::LinearForms& forms,
                           const MemoryOrder& order, std::vector<StayingLoad>& staying) const {
  RunAheadPlan& plan = candidate.plan;
  std::vector<RunAheadLoad> loads;
  for (const RunAheadLoad& load : plan.loads) {
    std::vector<MemoryClaim> claims;
    std::string why;
    if (candidate.choice.form != RunAheadForm::prefetch) why = order.check(load, candidate.choice.distance, claims);
    if (why.empty() && candidate.choice.form == RunAheadForm::ring && load.bytes != 4 && load.bytes != 8 &&
        load.bytes != 16)
      why = "cp.async copies 4, 8 or 16 bytes";
    if (!why.empty()) {
      staying.push_back({load.instruction, std::move(why)});
      continue;
    }
    loads.push_back(load);
    candidate.claims.insert(candidate.claims.end(), claims.begin(), claims.end());
  }
  if (loads.empty()) return std::string(all_stay);
  if (loads.size() < plan.loads.size()) plan.slice = planner.slice_of(plan, loads);
  plan.loads = std::move(loads);
  if (candidate.choice.form == RunAheadForm::ring) return why_no_ring(candidate);
  if (candidate.choice.form == RunAheadForm::prefetch &&
      (capability_ < first_prefetch_target || function_.module().version_major < 2))
    return "prefetch needs sm_20 and PTX 2.0";
  return candidate.choice.form == RunAheadForm::producer ? add_producer(candidate, planner, forms) : std::string();
}

// The block gets an additional warp, so no other loop may be rewritten.
std::string RunAhead::add_producer(Candidate& candidate, const RunAheadPlanner& planner, ir::LinearForms& forms) const {
  if (capability_ < 90 || function_.module().version_major < 8) return "bulk copies need sm_90 and PTX 8.0";
  if (!attempt_->policy().launch) return "no launcher adds a warp to the block";
  if (!taken_.empty()) return "another loop's loads run ahead already";
  constexpr unsigned warp = 32;
  const unsigned threads = std::min(threads_, most_consumers) / warp * warp;
  if (threads == 0 || (threads_are_stated_ && threads_ != threads)) return "blocks are no whole warps, or too large";
  candidate.producer.emplace(ProducerPlan{candidate.plan, {}, {}, candidate.choice.distance, threads, false, {}});
  if (std::string why = check_producer(forms, planner, *candidate.producer); !why.empty()) return why;
  for (const MemoryClaim& claim : candidate.producer->claims)
    if (!attempt_->can_rest_on(forms, claim.obligations)) return "no launch could tell whether the addresses wrap";
  candidate.claims.insert(candidate.claims.end(), candidate.producer->claims.begin(), candidate.producer->claims.end());
  return why_no_ring(candidate);
}

std::vector<unsigned> RunAhead::distances(RunAheadForm form) const {
  if (distance_ != 0) return {distance_};
  if (form == RunAheadForm::registers) return force_ ? std::vector{1u} : std::vector{1u, 2u};
  if (force_) return {forced_distance};
  return {1, 2, 3, 4, 6, 8};
}

void RunAhead::take(Candidate candidate, const ir::LinearForms& forms) {
  const RunAheadChoice& choice = candidate.choice;
  for (const RunAheadLoad& load : candidate.plan.loads) {
    std::string text = "runs " + std::to_string(choice.distance) + (choice.distance == 1 ? " trip" : " trips") +
                       " ahead (" + std::string(spelling(choice.form)) + "), address " +
                       forms.print(forms.address_form(load.instruction, load.address));
    attempt_->remark(std::move(text), function_.instructions[load.instruction].range);
  }
  ring_bytes_taken_ += (candidate.shared_bytes() + 15) / 16 * 16;
  const std::string name(spelling(choice.form));
  attempt_->statistics["dac.loads-ahead"] += int64_t(candidate.plan.loads.size());
  attempt_->statistics["dac.loops-by-" + name] += 1;
  taken_.push_back(std::move(candidate));
}

// "a trip of 64 warps takes 837 clocks; ring 844 (1 ahead), 850 (2 ahead); registers 844 (1 ahead)"
void say_estimate(std::string& text, const Candidate& candidate) {
  const RunAheadEstimate& estimate = *candidate.estimate;
  char number[64];
  if (text.find("clocks") == std::string::npos) {
    std::snprintf(number, sizeof number, "a trip of %u warps takes %.0f clocks", estimate.warps_before,
                  estimate.before);
    text += (text.empty() ? "" : "; ") + std::string(number);
  }
  const std::string form(spelling(candidate.choice.form));
  text += text.find(form + " ") == std::string::npos ? "; " + form + " " : ", ";
  std::snprintf(number, sizeof number, "%.0f (%u ahead)", estimate.after, candidate.choice.distance);
  text += number;
}

void RunAhead::treat(const RunAheadPlan& plan, const RunAheadPlanner& planner, ir::LinearForms& forms) {
  if (!taken_.empty() && taken_.front().producer) return; // the block's shape is then prepared for that loop alone
  for (const StayingLoad& load : plan.staying)
    context_.remarks.emplace_back("stays: " + load.reason, function_.instructions[load.instruction].range);
  if (plan.loads.empty()) return;
  if (!cost_) {
    const ir::Machine& machine = ir::machine_for(capability_);
    cost_.emplace(forms, machine, context_.analyses.lowerings().of(function_, machine.compute_capability), threads_,
                  shared_bytes_);
  }
  cost_->limit_warps(most_warps_);
  std::optional<Candidate> best;
  std::vector<StayingLoad> best_staying, last_staying;
  std::string weighed;
  bool only_refused = true; // no form was evaluated, and each load has its own reason
  const bool noalias = context_.assumes(noalias_parameters);
  const MemoryOrder own_order(forms, *attempt_, noalias, plan.loop, writers_, false);
  for (RunAheadForm form : forms_allowed_) {
    std::optional<MemoryOrder> producer_order;
    if (form == RunAheadForm::producer) producer_order.emplace(forms, *attempt_, noalias, plan.loop, writers_, true);
    const MemoryOrder& order = producer_order ? *producer_order : own_order;
    std::string refused;
    for (unsigned distance : distances(form)) {
      Candidate candidate{plan, {form, distance, threads_}, {}, {}, {}};
      std::vector<StayingLoad> staying;
      refused = make(candidate, planner, forms, order, staying);
      if (!refused.empty()) {
        last_staying = std::move(staying);
        break;
      }
      candidate.estimate = cost_->estimate(candidate.plan, candidate.choice, candidate.shared_bytes());
      if (force_) {
        best = std::move(candidate);
        best_staying = std::move(staying);
        break;
      }
      say_estimate(weighed, candidate);
      if (!candidate.estimate->wins() || (best && candidate.estimate->after >= best->estimate->after)) continue;
      best = std::move(candidate);
      best_staying = std::move(staying);
    }
    only_refused &= refused == all_stay;
    if (!refused.empty()) weighed += (weighed.empty() ? "" : "; ") + std::string(spelling(form)) + ": " + refused;
    if (force_ && best) break;
  }
  const SourceRange where = function_.instructions[plan.loads.front().instruction].range;
  for (const StayingLoad& load : best ? best_staying : last_staying)
    context_.remarks.emplace_back("stays: " + load.reason, function_.instructions[load.instruction].range);
  if (!best) {
    if (only_refused) return;
    context_.remarks.emplace_back("stays: nothing wins: " + weighed, where);
    const std::string line = std::to_string(function_.module().source.locate(where.begin).line);
    for (const RunAheadLoad& load : std::span(plan.loads).subspan(1))
      context_.remarks.emplace_back("stays: nothing wins, see the load in line " + line,
                                    function_.instructions[load.instruction].range);
    return;
  }
  if (!force_) attempt_->remark("weighed: " + weighed, where);
  take(*std::move(best), forms);
}

void RunAhead::treat_all(const RunAheadPlanner& planner, ir::LinearForms& forms, unsigned warps) {
  most_warps_ = warps;
  for (ir::LoopId loop : forms.loops().loops().ids())
    treat(planner.plan(loop), planner, forms);
}

// With many warps on an SM others run while one waits. A small grid does not fill the machine: then the launcher takes
// a variant that runs ahead.
void RunAhead::treat_for_few_warps(const RunAheadPlanner& planner, ir::LinearForms& forms) {
  const std::vector<Remark> said = context_.remarks;
  for (const unsigned warps : few_warps) {
    if (warps * 32 < threads_) break; // less than one block
    context_.remarks = said;
    treat_all(planner, forms, warps);
    if (taken_.empty()) continue;
    few_warps_ = warps;
    return;
  }
  context_.remarks = said;
}

// Marks branches as uniform if that pays: lanes known to be converged need no slow paths for exchanges, but elsewhere
// ptxas predicates less of the skipped code, and inserts reconvergence after the branches. Decided by ptxas, or, if the
// form is forced, by the number of machine instructions.
void RunAhead::choose_uniform_branches(const ir::LinearForms& forms) {
  const WarpsInRows rows = warps_in_rows(function_);
  const bool asks_launch = rows == WarpsInRows::by_launch;
  if (rows == WarpsInRows::never || (asks_launch && !attempt_->policy().launch)) return;
  std::vector<InstructionId> branches = warp_uniform_branches(forms);
  if (branches.empty()) return;
  ir::Function changed = function_;
  make_uniform(changed, branches);
  if (force_) {
    const auto size = [&](const ir::Function& function) {
      return ir::lower(function, capability_).static_instructions();
    };
    if (size(changed) >= size(function_)) return;
  } else {
    const std::vector<std::string> machines = architectures_to_ask(function_.module(), context_);
    if (machines.empty()) return;
    const Result<KernelCost> before = cost_of(function_, machines, context_),
                             after = cost_of(changed, machines, context_);
    if (!before || !after || !wins(*after, *before, asks_launch, 0)) return;
    attempt_->remark("branches by whole warps: " + comparison(*after, *before), function_.header_range);
  }
  uniform_ = std::move(branches);
}

Change RunAhead::commit(ir::LinearForms& forms) {
  bool rings = false;
  for (const Candidate& candidate : taken_) {
    rest_on_claims(*attempt_, forms, candidate.claims);
    rings |= candidate.choice.form == RunAheadForm::ring;
  }
  if (rings && !threads_are_stated_) {
    const std::string bound = "ntid.x*ntid.y*ntid.z <= " + std::to_string(threads_);
    attempt_->rest_on("a block has at most " + std::to_string(threads_) + " threads", "dac: slots of the ring", bound,
                      "", function_.header_range);
  }
  if (few_warps_ != 0) {
    const std::string per_block = "((ntid.x*ntid.y*ntid.z + 31) / 32)";
    const std::string most = std::to_string(few_warps_);
    attempt_->rest_on("an SM gets at most " + most + " warps, so that loads wait", "dac: pays with few warps",
                      "nctaid.x*nctaid.y*nctaid.z <= " + std::to_string(ir::machine_for(capability_).sms) + " * (" +
                          most + " / " + per_block + ")",
                      "", function_.header_range);
  }
  for (const Candidate& candidate : taken_) {
    if (candidate.producer)
      rewrite_with_producer(*attempt_, *candidate.producer);
    else
      rewrite_run_ahead(attempt_->function(), candidate.plan, candidate.choice);
  }
  make_uniform(attempt_->function(), uniform_);
  for (InstructionId branch : uniform_)
    attempt_->remark("whole warps take the branch alike", function_.instructions[branch].range);
  attempt_->statistics["dac.uniform-branches"] += int64_t(uniform_.size());
  if (!uniform_.empty() && warps_in_rows(function_) == WarpsInRows::by_launch)
    attempt_->rest_on("all threads of a warp have one tid.x / 32", "dac: uniform branches",
                      "ntid.x % 32 == 0 || ntid.y * ntid.z == 1", "", function_.header_range);
  ir::remove_dead_code(attempt_->function());
  std::move(*attempt_).commit(function_, context_);
  return Change::changed;
}

// Without an edge to the same block or to one before it in the layout there is no loop.
bool may_loop(const ir::Function& function) {
  std::vector<bool> before(function.blocks.size());
  for (BlockId block : function.layout) {
    before[block.index()] = true;
    for (ir::EdgeId edge : function.successors(block))
      if (before[function.edges[edge].to.index()]) return true;
  }
  return false;
}

Change RunAhead::run() {
  if (!read_options()) {
    context_.remarks.emplace_back("left as it is: form= takes ring, registers, prefetch or producer",
                                  function_.header_range);
    return Change::unchanged;
  }
  // Loads run ahead in loops, and without ptxas or `force` no branch is marked as uniform.
  if (!force_ && !may_loop(function_) && architectures_to_ask(function_.module(), context_).empty())
    return Change::unchanged;
  look_at_kernel();
  DischargePolicy policy;
  policy.assumed = context_.assumes(no_index_overflow);
  policy.launch = why_no_variant(function_, "dac", context_).empty();
  attempt_.emplace(function_, policy, "dac");
  auto& forms = context_.analyses.of<ir::LinearForms>(function_);
  const RunAheadPlanner planner(forms);
  const auto warps = static_cast<unsigned>(std::clamp<int64_t>(context_.options.number("warps", 0), 0, 64));
  treat_all(planner, forms, warps);
  if (taken_.empty() && warps == 0 && !force_ && policy.launch && context_.options.flag("few"))
    treat_for_few_warps(planner, forms);
  choose_uniform_branches(forms);
  if (taken_.empty() && uniform_.empty()) return Change::unchanged;
  return commit(forms);
}

} // namespace

std::vector<PassOptionDescription> run_ahead_options() {
  return {
      {"form", "legal form: ring, registers, prefetch or producer only (default: the cheapest)"},
      {"distance", "legal form: trips between a load and its use (default: by latency and trip time)",
       PassOptionKind::number},
      {"threads",
       "legal form: threads of a block if the kernel does not state them, for the size of rings (default 256)",
       PassOptionKind::number},
      {"warps", "legal form: warps of an SM in the launches to optimise for (default: all that fit)",
       PassOptionKind::number},
      {"few",
       "legal form: if nothing wins at full occupancy, a variant for launches whose grid gives an SM few "
       "warps",
       PassOptionKind::flag},
      cost_option(),
      architectures_option(),
      {"force", "legal form: loads run ahead wherever they can, whatever it costs", PassOptionKind::flag},
  };
}

Change run_ahead(ir::Function& function, PassContext& context) {
  // An instruction that reads a queue occurs once in each stream: neither it nor its loop can be duplicated.
  if (function.affine_stream) {
    context.remarks.emplace_back("left as it is: the kernel is in DAC's hardware form", function.header_range);
    return Change::unchanged;
  }
  return RunAhead(function, context).run();
}

} // namespace ptxrewrite::transforms::legal
