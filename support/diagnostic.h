// Messages to the user about the input: severity, position, message, notes; rendered as `file:line:col: error: message`
// with the source line and a caret.
#pragma once

#include "support/source.h"

#include <string>
#include <vector>

namespace ptxrewrite {

enum class Severity { note, warning, error };

struct Diagnostic {
  Severity severity = Severity::error;
  SourceRange range; // empty: only the file is known, no position
  std::string message;
  std::vector<std::string> notes;
};

// One diagnostic as text, ending in a newline. `colour` adds ANSI colours. Long source lines are cut to a window around
// the caret, and unprintable bytes are shown as '?'.
std::string render(const Diagnostic& diagnostic, const SourceFile& source, bool colour = false);

// Collects diagnostics of one run.
class Diagnostics {
public:
  void add(Diagnostic diagnostic) {
    if (diagnostic.severity == Severity::error) ++errors_;
    list_.push_back(std::move(diagnostic));
  }
  void error(SourceRange range, std::string message) { add({Severity::error, range, std::move(message), {}}); }
  void warning(SourceRange range, std::string message) { add({Severity::warning, range, std::move(message), {}}); }
  bool has_errors() const { return errors_ != 0; }
  size_t error_count() const { return errors_; }
  const std::vector<Diagnostic>& list() const { return list_; }

private:
  std::vector<Diagnostic> list_;
  size_t errors_ = 0;
};

} // namespace ptxrewrite
