// Output to the user's terminal: colours, and the destination of diagnostics.
#pragma once

#include "support/diagnostic.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite {

enum class ColourMode { automatic, always, never };

// A diagnostic kept for the JSON document, because the stream of --json must not contain other text.
struct CollectedDiagnostic {
  std::string file;
  Diagnostic diagnostic;
  std::optional<LineColumn> place;
};

struct Console {
  ColourMode colour = ColourMode::automatic;
  // Receives diagnostics; nullptr: they go to standard error.
  std::vector<CollectedDiagnostic>* collected = nullptr;
};

} // namespace ptxrewrite
