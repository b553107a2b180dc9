// Studies as text and as JSON: a table per file, averages over files, compared with the papers' averages.
#pragma once

#include "evaluate/study/study_averages.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct StudyReportOptions {
  std::vector<Technique> only; // in table order; empty: all
  std::string paper;           // the paper whose averages to show; empty: none
  bool cost = false;
};

std::string study_text(const StudiedFile& file, const ir::Machine& machine, const StudyReportOptions& options);
nlohmann::ordered_json study_json(const StudiedFile& file, const ir::Machine& machine,
                                  const StudyReportOptions& options);

// Averages over all files, and over those with one-dimensional and with multi-dimensional blocks.
std::string averages_text(const std::vector<StudiedFile>& files, const StudyReportOptions& options);
nlohmann::ordered_json averages_json(const std::vector<StudiedFile>& files, const StudyReportOptions& options);

// Notes below the last table.
std::string study_notes();

// The papers with figures here: "darsie", "r2d2", "composite".
const std::vector<std::string>& papers_of_study();

} // namespace ptxrewrite::evaluate
