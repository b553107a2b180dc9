// Studies as text and as JSON: a table per file, averages over files, the papers' averages beside them.
#pragma once

#include "evaluate/study/study_averages.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct StudyReportOptions {
  std::vector<Technique> only; // in the order of the table; empty: all
  std::string paper;           // whose averages to show; empty: none
  bool cost = false;
};

std::string study_text(const StudiedFile& file, const ir::Machine& machine, const StudyReportOptions& options);
nlohmann::ordered_json study_json(const StudiedFile& file, const ir::Machine& machine,
                                  const StudyReportOptions& options);

// Averages over all files, and over those whose blocks have one dimension, and more.
std::string averages_text(const std::vector<StudiedFile>& files, const StudyReportOptions& options);
nlohmann::ordered_json averages_json(const std::vector<StudiedFile>& files, const StudyReportOptions& options);

// What the tables leave out, for below the last one.
std::string study_notes();

// The papers that have figures here: "darsie", "r2d2", "composite".
const std::vector<std::string>& papers_of_study();

} // namespace ptxrewrite::evaluate
