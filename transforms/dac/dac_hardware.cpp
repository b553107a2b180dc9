// Classification, plan, two streams. A widened index is valid only if it does not wrap: unproved obligations become
// launch predicates of the variant, or are assumed. The variant is kept beside its original, which runs if a predicate
// is false and which check mode compares with.
#include "transforms/dac/dac_hardware.h"

#include "ir/analysis/linear/exact_range.h"
#include "ir/core/insertion.h"
#include "transforms/common/variant.h"
#include "transforms/dac/dac_plan.h"
#include "transforms/dac/dac_streams.h"

#include <algorithm>

namespace ptxrewrite::transforms::dac {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Operand;
using ir::ValueId;

constexpr std::string_view assume_word = "no-index-overflow";

class HardwareForm {
public:
  HardwareForm(ir::Function& function, PassContext& context)
      : function_(function), module_(function.module()), context_(context) {}

  Change run() {
    if (std::string why = why_not(); !why.empty()) return refuse(why, function_.header_range);
    ir::LinearForms forms(function_);
    if (!forms.control_flow().predecessors(function_.entry()).empty())
      return refuse("its first block is part of a loop", function_.header_range);
    ClassOptions options;
    options.assume_no_overflow = context_.assumes(assume_word);
    AffineClasses classes(forms, options);
    count_potential(classes);
    if (context_.options.flag("tuples")) report_tuples(forms, classes);
    Plan plan = make_plan(forms, classes);
    report_staying(plan);
    if (!plan.refusal.empty()) return refuse(plan.refusal, plan.refused_at);

    record_obligations(forms, classes, plan, options);
    auto original = std::make_unique<ir::Function>(function_);
    auto stream = make_affine_stream(forms, plan);
    const size_t before = count_real(function_);
    make_body(function_, plan);
    add_section();
    function_.affine_stream = ir::OwnedFunction(std::move(stream));
    make_variant(function_, std::move(original), {.pass = "dac", .requirements = launch_predicates_}, context_);
    module_.hardware_form = true;
    report(plan, before);
    return Change::changed;
  }

private:
  std::string why_not() {
    if (std::string why = why_no_variant(function_, "dac", context_); !why.empty()) return why;
    for (InstructionId id : function_.instructions_in(function_.entry()))
      if (function_.instructions[id].kind == InstructionKind::section_begin) return "it is in hardware form already";
    return {};
  }

  Change refuse(const std::string& why, SourceRange range) {
    context_.remarks.emplace_back("left as it is: " + why, range.empty() ? function_.header_range : range);
    return Change::unchanged;
  }

  static size_t count_real(const ir::Function& function) {
    size_t count = 0;
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        count += function.instructions[id].kind == InstructionKind::real;
    return count;
  }

  // Fig. 6: counts static instructions that compute on scalars and thread indices.
  void count_potential(const AffineClasses& classes) {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (function_.instructions[id].kind != InstructionKind::real) continue;
        ++context_.statistics["dac.instructions"];
        context_.statistics["dac.potentially-affine"] += classes.is_potentially_affine(id);
      }
  }

  void report_tuples(const ir::LinearForms& forms, const AffineClasses& classes) {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        ir::for_each_definition(function_, id, [&](ValueId value) {
          const AffineClass& row = classes.of(value);
          std::string text = function_.value_name(value) + ": " + std::string(spelling(row.kind));
          if (row.modulo) text += ", modulo";
          if (row.condition_count != 0) text += ", " + std::to_string(row.condition_count) + " divergent condition(s)";
          if (row.is_affine() && forms.form(value).kind != ir::ValueClass::any)
            text += " " + forms.print(forms.form(value));
          if (!row.is_affine()) text += ": " + std::string(row.reason);
          context_.remarks.emplace_back(std::move(text), function_.instructions[id].range);
        });
  }

  void report_staying(const Plan& plan) {
    std::set<std::pair<InstructionId, std::string>> said;
    for (const Plan::Staying& staying : plan.staying)
      if (said.insert({staying.instruction, staying.reason}).second)
        context_.remarks.emplace_back("stays in the body: " + staying.reason,
                                      function_.instructions[staying.instruction].range);
  }

  void record_obligations(const ir::LinearForms& forms, const AffineClasses& classes, const Plan& plan,
                          const ClassOptions& options) {
    const std::string name(module_.text(function_.name));
    for (ir::ObligationId id : plan.obligations) {
      const ir::RangeObligation& obligation = forms.obligation(id);
      Obligation entry{name,
                       forms.statement(id),
                       "dac: hardware form",
                       Discharge::proved,
                       std::string(obligation.reason),
                       obligation.source,
                       ir::print_exact_range(forms, id)};
      if (!classes.proved_for_all(id) && options.assume_no_overflow && forms.is_about_overflow(id)) {
        entry.discharge = Discharge::assumed;
        entry.reason = assume_word;
      } else if (!classes.proved_for_all(id)) {
        entry.discharge = Discharge::launch_checked;
        entry.reason = forms.launch_predicate(id);
        if (std::ranges::find(launch_predicates_, entry.reason) == launch_predicates_.end())
          launch_predicates_.push_back(entry.reason);
      }
      context_.ledger.push_back(std::move(entry));
    }
  }

  void add_section() {
    ir::Builder builder = ir::builder_at_code_start(function_);
    builder.emit_marker(InstructionKind::section_begin,
                        {Operand::integer(static_cast<int64_t>(ir::SectionKind::dac_affine))});
    builder.emit_marker(InstructionKind::section_end, {});
  }

  void report(const Plan& plan, size_t before) {
    size_t data = 0, addresses = 0, predicates = 0;
    for (const DacSite& site : plan.sites) {
      data += site.kind == SiteKind::data;
      addresses += site.kind == SiteKind::address;
      predicates += site.kind == SiteKind::predicate;
    }
    const size_t after = count_real(function_), affine = count_real(*function_.affine_stream);
    auto& statistics = context_.statistics;
    statistics["dac.data"] += static_cast<int64_t>(data);
    statistics["dac.addresses"] += static_cast<int64_t>(addresses);
    statistics["dac.predicates"] += static_cast<int64_t>(predicates);
    statistics["dac.given-predicates"] += static_cast<int64_t>(plan.given.size());
    statistics["dac.divergent-conditions"] += static_cast<int64_t>(plan.divergent_joins.size());
    statistics["dac.body-instructions-before"] += static_cast<int64_t>(before);
    statistics["dac.body-instructions-after"] += static_cast<int64_t>(after);
    statistics["dac.affine-instructions"] += static_cast<int64_t>(affine);
    auto count = [](size_t number, std::string_view what) { return std::to_string(number) + " " + std::string(what); };
    context_.remarks.emplace_back("cross over: " + count(data, "data, ") + count(addresses, "addresses, ") +
                                      count(predicates, "predicates; given back: ") +
                                      count(plan.given.size(), "predicates; ") + "body " + std::to_string(before) +
                                      " to " + std::to_string(after) + " instructions, affine stream " +
                                      std::to_string(affine),
                                  function_.header_range);
  }

  ir::Function& function_;
  ir::Module& module_;
  PassContext& context_;
  std::vector<std::string> launch_predicates_;
};

} // namespace

std::vector<PassOptionDescription> hardware_options() {
  return {{"tuples", "say of each value whether it is affine, and its tuple (hardware form)", PassOptionKind::flag}};
}

Change split_streams(ir::Function& function, PassContext& context) {
  return HardwareForm(function, context).run();
}

} // namespace ptxrewrite::transforms::dac
