// Pass `r2d2`: addresses that are linear in the thread and block indices are not computed by every thread.
//
// Hardware form (paper §3): coefficients once per launch, thread parts once per SM, block parts once per block, and at
// the use `[%lr + %cr + immediate]`, a sum modulo 2^64, or modulo 2^32 in the shared, constant and local spaces, whose
// addresses have no more bits. A 32-bit result reads the low half of the sum: `r2d2.mov.b32`. Legal form, for existing
// GPUs: see legal_form.h.
//
// Linear forms are true under obligations (no index wraps). Each obligation of a used form goes into the ledger:
// proved, assumed at the user's request, or checked at launch. The rewritten kernel is kept beside its original as a
// variant (transforms/common/variant.h): the original runs if a launch predicate is false, or if the machine has no
// registers to spare for linear ones (paper §4.4). Kernels that the module itself launches have no variant.
#include "transforms/manager/pass.h"

#include "ir/analysis/linear/exact_range.h"
#include "ir/core/builder.h"
#include "ir/edit/dead_code.h"
#include "transforms/common/variant.h"
#include "transforms/r2d2/legal_form.h"
#include "transforms/r2d2/r2d2_increments.h"
#include "transforms/r2d2/r2d2_joins.h"
#include "transforms/r2d2/r2d2_plan.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace ptxrewrite::transforms {

namespace {

using namespace r2d2;
using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Operand;

constexpr std::string_view assume_word = "no-index-overflow";
constexpr unsigned register_table_entries = 16; // 4-bit numbers in the paper's register table, §3.3

bool has_sections(const ir::Function& function) {
  for (InstructionId id : function.instructions_in(function.entry()))
    if (function.instructions[id].kind == InstructionKind::section_begin) return true;
  return false;
}

size_t count_real(const ir::Function& function) {
  size_t count = 0;
  bool inside_section = false;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      InstructionKind kind = function.instructions[id].kind;
      if (kind == InstructionKind::section_begin)
        inside_section = true;
      else if (kind == InstructionKind::section_end)
        inside_section = false;
      else if (kind == InstructionKind::real && !inside_section)
        ++count;
    }
  return count;
}

void replace_address(ir::Function& function, const LinearSite& site, const SiteOperands& use) {
  std::span<const Operand> old = function.operands_of(site.instruction);
  std::vector<Operand> operands(old.begin(), old.begin() + site.address);
  bool coefficient = use.coefficient.is(ir::OperandKind::value);
  operands.push_back(Operand::group(ir::OperandKind::address, coefficient ? 2 : 1, use.immediate));
  operands.push_back(Operand::value(use.linear));
  if (coefficient) operands.push_back(use.coefficient);
  operands.insert(operands.end(), old.begin() + site.address + 2, old.end());
  function.set_operands(site.instruction, operands);
}

void replace_result(ir::Function& function, const LinearSite& site, const SiteOperands& use) {
  const ir::Instruction old = function.instructions[site.instruction];
  ir::Builder builder(function);
  builder.before(site.instruction).standing_for(site.instruction);
  if (old.guard) builder.guarded_by(old.guard, old.guard_negated);
  std::span<const Operand> before = function.operands_of(site.instruction);
  std::vector<Operand> operands{before[0]};
  append_sum(operands, use);
  if (before.back().has(ir::OperandFlag::old_value)) operands.push_back(before.back());
  builder.emit(move_mnemonic(site.width), operands);
  function.remove(site.instruction);
}

class HardwareForm {
public:
  HardwareForm(ir::Function& function, PassContext& context) : function_(function), context_(context) {}

  Change run();

private:
  Change refuse(std::string why) {
    context_.remarks.emplace_back("left as it is: " + std::move(why), function_.header_range);
    return Change::unchanged;
  }
  // Compares the saving with the work of the sections, for a launch of moderate size.
  bool pays(const Plan& plan, ir::ExpressionPool& pool) const;
  void record_obligations(const ir::LinearForms& forms, const Plan& plan, bool assumed);
  void report(const Plan& plan, const SectionSizes& sizes, size_t before);

  ir::Function& function_;
  PassContext& context_;
  std::vector<std::string> launch_predicates_;
  std::unique_ptr<ir::Function> original_;
};

bool HardwareForm::pays(const Plan& plan, ir::ExpressionPool& pool) const {
  constexpr double warps = 8, blocks = 4; // warps of a block; blocks that an SM executes one after the other
  ir::Function scratch(function_);
  const SectionSizes sizes = emit_sections(scratch, plan, pool).sizes;
  const double work = double(sizes.coefficient_instructions) + warps * double(sizes.thread_instructions) +
                      blocks * double(sizes.block_warp_instructions);
  return warps * blocks * plan.removed_weight > work;
}

void HardwareForm::record_obligations(const ir::LinearForms& forms, const Plan& plan, bool assumed) {
  std::string name(function_.module().text(function_.name));
  std::set<ir::ObligationId> used;
  for (const LinearSite& site : plan.sites)
    used.insert(site.obligations.begin(), site.obligations.end());
  for (ir::ObligationId id : used) {
    const ir::RangeObligation& obligation = forms.obligation(id);
    Obligation entry{name,
                     forms.statement(id),
                     "r2d2: hardware form",
                     Discharge::proved,
                     std::string(obligation.reason),
                     obligation.source,
                     ir::print_exact_range(forms, id)};
    if (!obligation.proved && assumed && forms.is_about_overflow(id)) {
      entry.discharge = Discharge::assumed;
      entry.reason = assume_word;
    } else if (!obligation.proved) {
      entry.discharge = Discharge::launch_checked;
      entry.reason = forms.launch_predicate(id);
      if (std::ranges::find(launch_predicates_, entry.reason) == launch_predicates_.end())
        launch_predicates_.push_back(entry.reason);
    }
    context_.ledger.push_back(std::move(entry));
  }
}

void HardwareForm::report(const Plan& plan, const SectionSizes& sizes, size_t before) {
  size_t after = count_real(function_);
  auto& statistics = context_.statistics;
  statistics["r2d2.linear-registers"] += static_cast<int64_t>(plan.groups.size());
  statistics["r2d2.thread-registers"] += static_cast<int64_t>(sizes.thread_registers);
  statistics["r2d2.block-registers"] += static_cast<int64_t>(sizes.block_registers);
  statistics["r2d2.coefficient-registers"] += static_cast<int64_t>(sizes.coefficient_registers);
  statistics["r2d2.coefficient-instructions"] += static_cast<int64_t>(sizes.coefficient_instructions);
  statistics["r2d2.thread-instructions"] += static_cast<int64_t>(sizes.thread_instructions);
  statistics["r2d2.block-instructions"] += static_cast<int64_t>(sizes.block_instructions);
  statistics["r2d2.block-warp-instructions"] += static_cast<int64_t>(sizes.block_warp_instructions);
  statistics["r2d2.body-instructions-before"] += static_cast<int64_t>(before);
  statistics["r2d2.body-instructions-after"] += static_cast<int64_t>(after);
  statistics["r2d2.joins"] += static_cast<int64_t>(plan.joins.size());
  statistics["r2d2.increments"] += static_cast<int64_t>(plan.increments.size());
  statistics["r2d2.dropped-forms"] += static_cast<int64_t>(plan.dropped_by_limit);
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f", 100.0 * (double(before) - double(after)) / double(before));
  context_.remarks.emplace_back(
      std::to_string(plan.groups.size()) + " linear registers serve " + std::to_string(plan.sites.size()) +
      " uses; body " + std::to_string(before) + " to " + std::to_string(after) + " instructions (" + percent +
      " % removed); coefficients " + std::to_string(sizes.coefficient_instructions) + ", thread parts " +
      std::to_string(sizes.thread_instructions) + ", block parts " + std::to_string(sizes.block_instructions) +
      " instructions, the last as " + std::to_string(sizes.block_warp_instructions) + " warp instructions");
}

Change HardwareForm::run() {
  if (!function_.is_entry) return refuse("only kernels have launch-uniform parameters");
  if (has_sections(function_)) return refuse("it is in hardware form already");
  ir::Module& module = function_.module();
  if (original_of(function_)) return refuse("it is a variant already");
  if (module.strings.find(std::string(module.text(function_.name)) + "__r2d2"))
    return refuse("the module has a variant of it already");
  ir::LinearForms forms(function_);
  if (!forms.control_flow().predecessors(function_.entry()).empty()) return refuse("its first block is part of a loop");

  PlanOptions options;
  options.limit = static_cast<unsigned>(
      std::clamp<int64_t>(context_.options.number("limit", register_table_entries), 0, register_table_entries));
  options.assume_no_overflow = context_.assumes(assume_word);
  // A launch from device code cannot choose a variant.
  options.launch_checks = !context_.is_referenced(function_);
  Plan plan = make_plan(forms, options, context_);
  if (plan.groups.empty() || plan.removed_weight <= 0) return refuse("no instruction would be saved");
  if (!pays(plan, forms.expressions())) return refuse("its linear registers would take as much work as they save");

  record_obligations(forms, plan, options.assume_no_overflow);
  // Even without launch predicates: the original runs if the machine has no registers to spare (paper §4.4).
  if (options.launch_checks) original_ = std::make_unique<ir::Function>(function_);
  size_t before = count_real(function_);
  EmittedSections sections = emit_sections(function_, plan, forms.expressions());
  if (original_)
    make_variant(function_, std::move(original_), {.pass = "r2d2", .requirements = launch_predicates_}, context_);
  std::vector<ir::ValueId> increments = emit_increments(function_, forms, plan, sections.steps);
  std::vector<ir::ValueId> joins = emit_joins(function_, forms, plan, sections.sites);
  for (size_t i = 0; i < plan.sites.size(); ++i) {
    const LinearSite& site = plan.sites[i];
    if (site.moved_for != none) continue;
    if (site.join != none) sections.sites[i].linear = joins[site.join];
    if (site.moves())
      sections.sites[i].coefficient = Operand::value(site.counter ? site.counter : increments[site.increment]);
    if (site.address == LinearSite::whole_result)
      replace_result(function_, site, sections.sites[i]);
    else
      replace_address(function_, site, sections.sites[i]);
  }
  ir::remove_dead_code(function_);
  module.hardware_form = true;
  report(plan, sections.sizes, before);
  return Change::changed;
}

Change run(ir::Function& function, PassContext& context) {
  if (context.form == OutputForm::hardware) return HardwareForm(function, context).run();
  if (context.form == OutputForm::annotated) {
    context.remarks.emplace_back("left as it is: R2D2 has no annotated form");
    return Change::unchanged;
  }
  return legal::make_legal_form(function, context);
}

std::vector<PassOptionDescription> options() {
  std::vector<PassOptionDescription> list = legal::legal_options();
  list.push_back(
      {"limit", "at most this many linear registers (hardware form; default and maximum 16)", PassOptionKind::number});
  return list;
}

const RegisterPass registration(
    {"r2d2", "linear addresses are computed once per launch, block shape and block instead of by every thread (R2D2)",
     run, options()});

} // namespace

} // namespace ptxrewrite::transforms
