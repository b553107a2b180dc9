// Renders a difference: unified, side by side, as JSON, or as one HTML page.
#pragma once

#include "evaluate/common/align.h"
#include "support/text/terminal.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One function of the difference, or the items outside functions.
struct Difference {
  std::string name; // "" for items outside functions; "a -> b" if a pass renamed it
  std::vector<ListingLine> left, right;
  std::vector<AlignedLine> rows;
  DifferenceCounts counts;

  bool identical() const;
};

struct DifferenceReport {
  std::string left_name, right_name;
  std::vector<Difference> parts;
};

// Number of context lines around a change; `whole_context` shows everything.
constexpr unsigned whole_context = UINT32_MAX;

std::string unified_text(const DifferenceReport& report, unsigned context, const Palette& palette);
std::string side_by_side_text(const DifferenceReport& report, unsigned context, unsigned width, const Palette& palette);
// One line per function: instructions before and after, kept, changed, removed, inserted, moved, and, for a hardware
// form, in sections.
std::string summary_text(const DifferenceReport& report, const Palette& palette);
nlohmann::ordered_json difference_json(const DifferenceReport& report);
// A self-contained page, without external scripts or styles.
std::string difference_html(const DifferenceReport& report);

// Half-open ranges of rows to show: every change with its context; adjacent ranges are joined.
std::vector<std::pair<size_t, size_t>> hunks(std::span<const AlignedLine> rows, unsigned context);

} // namespace ptxrewrite::evaluate
