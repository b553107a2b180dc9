// Reads a kernel, runs r2d2 on a copy, and compares the memory accesses of both.
#pragma once

#include "grammar/reader.h"
#include "ir/analysis/linear/linear.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "tests/unit/transforms/kernel_evaluator.h"
#include "transforms/manager/pass.h"

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <sstream>

namespace ptxrewrite::tests {

inline std::string file_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The number of occurrences of `part` in `text`.
inline size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

inline std::unique_ptr<ir::Module> read_text(const std::string& text) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.list())
    messages += diagnostic.message + "\n";
  REQUIRE_MESSAGE(module, messages << text);
  return module;
}

inline ir::Function& kernel(ir::Module& module, std::string_view name) {
  for (const auto& function : module.functions)
    if (function->has_body && module.text(function->name) == name) return *function;
  FAIL("no kernel " << name);
  throw 0;
}

struct Rewrite {
  std::unique_ptr<ir::Module> original, rewritten;
  ir::Function* before = nullptr; // both in SSA form
  ir::Function* after = nullptr;
  transforms::PassContext context;
  transforms::Change change = transforms::Change::unchanged;

  Rewrite(const std::string& text, const std::string& name, transforms::OutputForm form,
          std::vector<std::string> assumptions = {}, transforms::PassOptions options = {}) {
    original = read_text(text);
    rewritten = read_text(text);
    before = &kernel(*original, name);
    after = &kernel(*rewritten, name);
    REQUIRE(ir::construct_ssa(*before));
    REQUIRE(ir::construct_ssa(*after));
    context.form = form;
    context.assumptions = std::move(assumptions);
    context.options = std::move(options);
    std::string text_before = printed(*after);
    change = transforms::find_pass("r2d2")->run(*after, context);
    CHECK((printed(*after) == text_before) == (change == transforms::Change::unchanged));
    for (const ir::VerifierFinding& finding : ir::verify(*after))
      FAIL_CHECK(finding.rule << ": " << finding.message);
  }

  static std::string printed(const ir::Function& function) {
    std::string text;
    ir::print(function, text);
    return text;
  }
  bool changed() const { return change == transforms::Change::changed; }
  int64_t statistic(const std::string& name) const {
    auto found = context.statistics.find("r2d2." + name);
    return found == context.statistics.end() ? 0 : found->second;
  }
  size_t remarks_with(std::string_view part) const {
    size_t count = 0;
    for (const transforms::Remark& remark : context.remarks)
      count += remark.text.find(part) != std::string::npos;
    return count;
  }
  size_t obligations(transforms::Discharge discharge) const {
    size_t count = 0;
    for (const transforms::Obligation& entry : context.ledger)
      count += entry.discharge == discharge;
    return count;
  }
  // Whether the launch fulfils the conditions that the rewrite left to it, decided by the analysis of the original.
  bool launch_allowed(const ir::LinearForms& forms, const ir::LaunchValues& launch) const {
    for (const transforms::Obligation& entry : context.ledger) {
      if (entry.discharge == transforms::Discharge::proved) continue;
      bool found = false;
      for (ir::ObligationId id : forms.all_obligations().ids()) {
        if (forms.statement(id) != entry.statement) continue;
        found = true;
        if (!forms.evaluate(id, launch)) return false;
      }
      REQUIRE_MESSAGE(found, entry.statement);
    }
    return true;
  }
  bool same_traces(const ir::LaunchValues& launch) const {
    return KernelEvaluator(*before, launch).run() == KernelEvaluator(*after, launch).run();
  }
  // The hardware form as PTX text, after leaving SSA form.
  std::string file() {
    ir::destruct_ssa(*after);
    for (const auto& addition : context.additions)
      ir::destruct_ssa(*addition);
    return ir::print(*rewritten);
  }
};

} // namespace ptxrewrite::tests
