#include "tests/fuzz/text_checks.h"

#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "support/diagnostic.h"

#include <memory>

namespace ptxrewrite::fuzz {

namespace {

std::unique_ptr<ir::Module> read(const std::string& text, Diagnostics& diagnostics) {
  return grammar::read_module(SourceFile("mutation.ptx", text), diagnostics);
}

// Every diagnostic must render: its range is in the text, and there is a caret.
bool diagnostics_render(const Diagnostics& diagnostics, const std::string& text) {
  const SourceFile source("mutation.ptx", text);
  for (const Diagnostic& diagnostic : diagnostics.list())
    if (diagnostic.range.end > text.size() || diagnostic.range.begin > diagnostic.range.end ||
        render(diagnostic, source).find("mutation.ptx") == std::string::npos)
      return false;
  return true;
}

} // namespace

std::string check_text(const std::string& text, TextTally& tally) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = read(text, diagnostics);
  if (!diagnostics_render(diagnostics, text)) return "a diagnostic does not render";
  if (!module) {
    ++tally.diagnostics;
    return diagnostics.has_errors() ? "" : "neither a module nor an error";
  }
  if (diagnostics.has_errors()) return "a module in spite of errors";
  ++tally.modules;
  if (const auto findings = ir::verify(*module); !findings.empty()) return "verifier: " + findings.front().rule;

  const std::string printed = ir::print(*module);
  Diagnostics again_diagnostics;
  const std::unique_ptr<ir::Module> again = read(printed, again_diagnostics);
  if (!again)
    return "printed text is refused: " +
           (again_diagnostics.list().empty() ? "" : again_diagnostics.list().front().message);
  if (ir::print(*again) != printed) return "printing is not a fixed point";

  for (const auto& function : again->functions) {
    if (!ir::construct_ssa(*function).ok()) continue;
    ++tally.ssa_functions;
    if (const auto findings = ir::verify(*function); !findings.empty())
      return "verifier after SSA construction: " + findings.front().rule;
    ir::destruct_ssa(*function);
    if (const auto findings = ir::verify(*function); !findings.empty())
      return "verifier after SSA destruction: " + findings.front().rule;
  }
  Diagnostics final_diagnostics;
  if (!read(ir::print(*again), final_diagnostics))
    return "text after SSA is refused: " +
           (final_diagnostics.list().empty() ? "" : final_diagnostics.list().front().message);
  return "";
}

} // namespace ptxrewrite::fuzz
