// How the program talks to the person who started it: colours, and where diagnostics go.
#pragma once

#include "support/diagnostic.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite {

enum class ColourMode { automatic, always, never };

// A diagnostic kept for the JSON document, because --json shares its stream with no text.
struct CollectedDiagnostic {
  std::string file;
  Diagnostic diagnostic;
  std::optional<LineColumn> place;
};

struct Console {
  ColourMode colour = ColourMode::automatic;
  // Where diagnostics go instead of standard error; nullptr: there.
  std::vector<CollectedDiagnostic>* collected = nullptr;
};

} // namespace ptxrewrite
