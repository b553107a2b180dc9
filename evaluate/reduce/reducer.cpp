#include "evaluate/reduce/reducer.h"

#include "evaluate/reduce/reduce_edits.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "support/diagnostic.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ptxrewrite::evaluate {

namespace {

// Counts reads of values that no path has written. Leaves the module in SSA form.
uint64_t count_undefined_reads(ir::Module& module) {
  uint64_t reads = 0;
  for (const auto& pointer : module.functions) {
    ir::Function& function = *pointer;
    if (!function.has_body || !ir::construct_ssa(function).ok()) continue;
    const auto undefined = [&](ir::ValueId value) { return function.values[value].is_undefined; };
    for (ir::BlockId block : function.layout) {
      for (ir::InstructionId id : function.instructions_in(block)) {
        for (const ir::Operand& operand : function.operands_of(id))
          if (operand.is(ir::OperandKind::value) && !operand.is_definition() &&
              !operand.has(ir::OperandFlag::old_value) && undefined(operand.as_value()))
            ++reads;
        if (ir::ValueId guard = function.instructions[id].guard; guard && undefined(guard)) ++reads;
      }
      for (ir::EdgeId edge : function.successors(block))
        for (ir::ValueId argument : function.arguments(edge))
          if (undefined(argument)) ++reads;
    }
  }
  return reads;
}

class Reducer {
public:
  Reducer(std::string text, std::string name, const ReducerOptions& options)
      : text_(std::move(text)), name_(std::move(name)), options_(options), bytes_before_(text_.size()) {}

  Result<Reduction> run() {
    Diagnostics diagnostics;
    const SourceFile source(name_, text_);
    const std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
    if (!module) {
      std::string message;
      for (const Diagnostic& diagnostic : diagnostics.list())
        message += render(diagnostic, source);
      return Error{message.empty() ? name_ + " cannot be read" : message};
    }
    undefined_allowed_ = count_undefined_reads(*module) != 0;
    kind_ = "the input";
    if (!test(text_)) return Error{name_ + ": the command does not fail on it; there is nothing to reduce"};
    // One statement per line and no comments: more readable, and the edits expect this format.
    tidy();
    while (!stopped() && run_round()) {
    }
    return Reduction{text_, tests_, stopped()};
  }

private:
  bool stopped() const { return tests_ >= options_.test_limit; }

  bool test(const std::string& candidate) {
    if (options_.progress) options_.progress({tests_, bytes_before_, text_.size(), kind_});
    ++tests_;
    return options_.is_interesting(candidate);
  }

  std::unique_ptr<ir::Module> read(const std::string& text) const {
    Diagnostics diagnostics;
    return grammar::read_module(SourceFile(name_, text), diagnostics);
  }

  bool is_valid(const std::string& candidate) const {
    const std::unique_ptr<ir::Module> module = read(candidate);
    if (!module || !ir::verify(*module).empty()) return false;
    return undefined_allowed_ || count_undefined_reads(*module) == 0;
  }

  bool accept_if_interesting(const std::string& candidate) {
    if (stopped() || candidate == text_ || !tried_.insert(std::hash<std::string>()(candidate)).second) return false;
    if (!is_valid(candidate) || !test(candidate)) return false;
    text_ = candidate;
    return true;
  }

  void tidy() {
    kind_ = "blanks and comments";
    if (const std::unique_ptr<ir::Module> module = read(text_)) accept_if_interesting(ir::print(*module));
  }

  // Tries every kind once; returns true if the text has changed.
  bool run_round() {
    const std::string before = text_;
    for (const ReductionKind& kind : reduction_kinds())
      run_kind(kind);
    tidy();
    return text_ != before;
  }

  // Tries chunks from the end to the front, because uses follow definitions.
  void run_kind(const ReductionKind& kind) {
    kind_ = kind.name;
    std::vector<Opportunity> opportunities = find(kind);
    for (size_t size = opportunities.size(); size >= 1; size /= 2) {
      size_t end = opportunities.size();
      while (end > 0 && !stopped()) {
        const size_t begin = end > size ? end - size : 0;
        const bool accepted =
            accept_if_interesting(apply_edits(text_, std::span(opportunities).subspan(begin, end - begin)));
        if (accepted) opportunities = find(kind);
        end = std::min(begin, opportunities.size());
      }
      size = std::min(size, std::max<size_t>(opportunities.size(), 1));
    }
  }

  std::vector<Opportunity> find(const ReductionKind& kind) const {
    const std::unique_ptr<ir::Module> module = read(text_);
    return module ? kind.find(*module) : std::vector<Opportunity>();
  }

  std::string text_;
  std::string name_;
  const ReducerOptions& options_;
  size_t bytes_before_;
  std::string_view kind_;
  bool undefined_allowed_ = false;
  uint64_t tests_ = 0;
  std::unordered_set<size_t> tried_; // only hashes, because the texts may be large and numerous
};

} // namespace

Result<Reduction> reduce(const std::string& text, const std::string& name, const ReducerOptions& options) {
  return Reducer(text, name, options).run();
}

} // namespace ptxrewrite::evaluate
