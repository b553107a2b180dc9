// The pass manager: runs a pipeline over the functions of a module and records statistics, times and remarks.
#include "transforms/manager/pipeline.h"

#include "ir/core/print.h"
#include "ir/machine/select/lowering_store.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "transforms/manager/variant_terms.h"

#include <algorithm>
#include <chrono>
#include <fnmatch.h>

namespace ptxrewrite::transforms {

namespace {

constexpr std::string_view construct_stage = "construct-ssa";
constexpr std::string_view destruct_stage = "destruct-ssa";

std::string snapshot(const ir::Function& function) {
  std::string text;
  ir::print(function, text, {.provenance = true});
  return text;
}

class PassManager {
public:
  PassManager(ir::Module& module, const Pipeline& pipeline, const RunOptions& options)
      : module_(module), pipeline_(pipeline), options_(options), assemblies_(options.effort) {
    context_.form = options.form;
    context_.assumptions = options.assumptions;
    context_.may_run_ptxas = options.run_ptxas && options.effort.assemblies > 0;
    context_.assemblies = &assemblies_;
  }

  Result<PipelineReport> run() {
    // Passes may add functions during this loop; place_additions() handles those.
    for (size_t index = 0, count = module_.functions.size(); index < count; ++index) {
      ir::Function& function = *module_.functions[index];
      if (!function.has_body) continue;
      std::string name(module_.text(function.name));
      if (!matches_glob(options_.functions, name) ||
          std::ranges::find(options_.excluded, name) != options_.excluded.end())
        continue;
      report_.functions.push_back(name);
      context_.analyses.lowerings().clear();
      assemblies_.begin(module_, ir::FunctionId(static_cast<uint32_t>(index)));
      Status status = run_on(function, name);
      for (const std::string& text : printed_)
        options_.print(text);
      printed_.clear();
      if (!status) return status.error();
      report_.assemblies += assemblies_.runs();
      report_.most_assemblies = std::max<uint64_t>(report_.most_assemblies, assemblies_.runs());
      report_.assembled_kernels += assemblies_.assembled_kernels();
      report_.ptxas_refused |= assemblies_.has_refused();
      place_additions(ir::FunctionId(static_cast<uint32_t>(index)));
    }
    report_.ledger = std::move(context_.ledger);
    report_.statistics = std::move(context_.statistics);
    if (report_.assemblies > 0) {
      report_.statistics["ptxas.assemblies"] = static_cast<int64_t>(report_.assemblies);
      report_.statistics["ptxas.most-of-a-kernel"] = static_cast<int64_t>(report_.most_assemblies);
    }
    return std::move(report_);
  }

private:
  Status run_on(ir::Function& function, const std::string& name) {
    ir::Function as_read = function;
    Status constructed;
    Status status = stage(function, name, construct_stage, [&] {
      constructed = ir::construct_ssa(function);
      return constructed ? Change::changed : Change::unchanged;
    });
    if (!status) return status;
    if (!constructed) {
      Remark remark("left as it is: " + constructed.error().message, constructed.error().range);
      attribute(remark, construct_stage, name);
      report_.remarks.push_back(std::move(remark));
      return {};
    }
    before_.emplace(
        Before{&function, std::move(as_read), function.version(), context_.analyses.lowerings().content_of(function)});
    return run_until_weighed(function, name);
  }

  // The function that the passes run on, before SSA form, and the state in SSA form with which it is compared to find
  // whether a pass has changed it.
  struct Before {
    const ir::Function* function = nullptr;
    ir::Function as_read;
    uint64_t version = 0;      // in SSA form, before the first pass
    ir::ContentHash content{}; // the same
  };

  // A function, or the original that a variant stands beside, that no pass has changed is kept as it was read. A
  // pipeline without passes converts.
  void leave_ssa(ir::Function& function, bool changed) {
    const bool kept = !changed && !pipeline_.steps.empty() && function.version() == before_->version &&
                      ir::content_hash(function) == before_->content;
    // The function of the module comes last, after those that passes have added beside it.
    const bool is_last = &function == before_->function && !assemblies_.has_questions();
    if (!kept)
      ir::destruct_ssa(function);
    else if (is_last)
      function = std::move(before_->as_read);
    else
      function = before_->as_read;
  }

  // The state of the passes over one function of the module, before step `next`.
  struct Checkpoint {
    size_t next = 0;
    bool changed = false; // by the steps before
    ir::Function function;
    std::map<std::string, int64_t> statistics;
    std::vector<StageTime> times;
    uint64_t executions = 0;
    size_t remarks = 0, ledger = 0, additions = 0, printed = 0;
  };

  // Runs the steps again from the first one that had to use an estimate, until none does.
  Status run_until_weighed(ir::Function& function, const std::string& name) {
    std::optional<Checkpoint> again;
    const auto before_step = [&](size_t next, bool changed) {
      if (!context_.may_run_ptxas || assemblies_.has_questions()) return;
      again.emplace(Checkpoint{next, changed, function, context_.statistics, report_.times, report_.executions,
                               report_.remarks.size(), context_.ledger.size(), additions_.size(), printed_.size()});
    };
    Status status = run_passes(function, name, 0, false, before_step);
    while (status && assemblies_.has_questions()) {
      assemblies_.answer();
      go_back(*again, function);
      status = run_passes(function, name, again->next, again->changed, before_step);
    }
    return status;
  }

  void go_back(const Checkpoint& to, ir::Function& function) {
    const std::vector<StageTime> times = std::move(report_.times);
    function = to.function;
    context_.statistics = to.statistics;
    context_.analyses.clear();
    report_.times = to.times;
    for (const StageTime& spent : times)
      time_of(spent.stage).seconds = spent.seconds;
    report_.executions = to.executions;
    const auto truncate = [](auto& list, size_t size) { list.erase(list.begin() + ptrdiff_t(size), list.end()); };
    truncate(report_.remarks, to.remarks);
    truncate(context_.ledger, to.ledger);
    truncate(additions_, to.additions);
    truncate(printed_, to.printed);
  }

  Status run_passes(ir::Function& function, const std::string& name, size_t first) {
    return run_passes(function, name, first, false, [](size_t, bool) {});
  }

  // Runs the steps from `first` on over a function in SSA form, and converts it out of SSA form. Functions that a step
  // adds go through the following steps. `changed`: by the steps before. Calls before_step(number, changed) before each
  // step.
  template <class BeforeStep>
  Status run_passes(ir::Function& function, const std::string& name, size_t first, bool changed,
                    BeforeStep&& before_step) {
    for (size_t i = first; i < pipeline_.steps.size() && report_.executions < options_.stop_after; ++i) {
      before_step(i, changed);
      const PipelineStep& step = pipeline_.steps[i];
      ++report_.executions;
      context_.options = step.options;
      Status status = stage(function, name, step.pass.name, [&] {
        const Change change = step.pass.run(function, context_);
        changed |= change == Change::changed;
        return change;
      });
      for (Remark& remark : context_.remarks) {
        attribute(remark, step.pass.name, name);
        report_.remarks.push_back(std::move(remark));
      }
      context_.remarks.clear();
      if (!status) return status;
      std::vector<std::unique_ptr<ir::Function>> additions = std::move(context_.additions);
      context_.additions.clear();
      for (std::unique_ptr<ir::Function>& addition : additions) {
        status = run_passes(*addition, std::string(module_.text(addition->name)), i + 1);
        if (!status) return status;
        additions_.push_back(std::move(addition));
      }
    }
    return stage(function, name, destruct_stage, [&] {
      leave_ssa(function, changed);
      return Change::changed;
    });
  }

  // Inserts the functions that passes have added to the module. Device functions go before `origin`, the function on
  // which the passes ran; variants of kernels go after it, because a launcher tries them in the order of the text.
  void place_additions(ir::FunctionId origin) {
    for (std::unique_ptr<ir::Function>& addition : additions_) {
      const bool is_variant = original_of(*addition).has_value();
      ir::Item item{ir::ItemKind::function, static_cast<uint32_t>(module_.functions.size())};
      item.range = addition->range;
      module_.functions.push_back(std::move(addition));
      auto place = std::find_if(module_.items.begin(), module_.items.end(), [&](const ir::Item& other) {
        return other.kind == ir::ItemKind::function && other.id == origin.index();
      });
      if (is_variant) ++place;
      module_.items.insert(place, item);
    }
    additions_.clear();
  }

  // Runs one stage with its clock, prints and checks.
  template <class Action>
  Status stage(ir::Function& function, const std::string& name, std::string_view stage_name, Action&& action) {
    if (options_.print_before.matches(stage_name)) show("before", stage_name, name, snapshot(function));
    std::string before;
    bool compare = options_.print_changed || options_.verify_each;
    if (compare) before = snapshot(function);

    auto start = std::chrono::steady_clock::now();
    Change change = action();
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    StageTime& time = time_of(stage_name);
    if (change == Change::changed) context_.analyses.clear();
    ++time.runs;
    time.changes += change == Change::changed;
    time.seconds += elapsed.count();

    bool print_after = options_.print_after.matches(stage_name);
    if (!compare && !print_after) return {};
    std::string after = snapshot(function);
    if (print_after || (options_.print_changed && after != before)) show("after", stage_name, name, after);
    return options_.verify_each ? check(function, name, stage_name, change, before == after) : Status();
  }

  Status check(const ir::Function& function, const std::string& name, std::string_view stage_name, Change change,
               bool same_text) const {
    std::string where = "internal error: after " + std::string(stage_name) + " in '" + name + "': ";
    if (change == Change::unchanged && !same_text)
      return Error{where + "the pass reported no change, but the function's text differs", function.header_range};
    std::vector<ir::VerifierFinding> findings = ir::verify(function);
    if (findings.empty()) return {};
    const ir::VerifierFinding& first = findings.front();
    std::string message = where + "rule '" + first.rule + "' does not hold: " + first.message;
    if (findings.size() > 1) message += " (and " + std::to_string(findings.size() - 1) + " further findings)";
    SourceRange range = function.header_range;
    if (first.instruction && function.instructions.contains(first.instruction) &&
        !function.instructions[first.instruction].range.empty())
      range = function.instructions[first.instruction].range;
    return Error{std::move(message), range};
  }

  void show(std::string_view when, std::string_view stage_name, const std::string& name, std::string_view text) {
    if (!options_.print) return;
    std::string out = "// ---- ";
    out.append(when).append(" ").append(stage_name).append(" in ").append(name).append(" ----\n").append(text);
    if (out.back() != '\n') out += '\n';
    // Kept back because the passes may run over the function again.
    if (context_.may_run_ptxas)
      printed_.push_back(std::move(out));
    else
      options_.print(out);
  }

  static void attribute(Remark& remark, std::string_view pass, const std::string& function) {
    if (remark.pass.empty()) remark.pass = pass;
    if (remark.function.empty()) remark.function = function;
  }

  StageTime& time_of(std::string_view stage_name) {
    for (StageTime& time : report_.times)
      if (time.stage == stage_name) return time;
    return report_.times.emplace_back(StageTime{std::string(stage_name)});
  }

  ir::Module& module_;
  const Pipeline& pipeline_;
  const RunOptions& options_;
  PassContext context_;
  PipelineReport report_;
  Assemblies assemblies_;
  std::optional<Before> before_;
  std::vector<std::unique_ptr<ir::Function>> additions_; // out of SSA form, not yet in the module
  std::vector<std::string> printed_;                     // output for the current function
};

} // namespace

bool StageFilter::matches(std::string_view stage) const {
  return std::any_of(names.begin(), names.end(),
                     [stage](const std::string& name) { return name == "all" || name == stage; });
}

bool matches_glob(const std::string& glob, std::string_view name) {
  return fnmatch(glob.c_str(), std::string(name).c_str(), 0) == 0;
}

Result<PipelineReport> run_pipeline(ir::Module& module, const Pipeline& pipeline, const RunOptions& options) {
  return PassManager(module, pipeline, options).run();
}

} // namespace ptxrewrite::transforms
