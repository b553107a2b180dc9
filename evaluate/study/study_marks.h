// Report section on DARSIE's marks: the share of the block-level redundancy that marks cover, and the share of marked
// instructions that is redundant.
#pragma once

#include "evaluate/study/study_averages.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

// Recall: the marked fraction of the instructions whose values are redundant, by the kind of their sources. Precision:
// the redundant fraction of the marked instructions, by the kind of the mark. Empty if there are no such instructions.
std::optional<double> mark_recall(const MarkAgreement& marks, emulator::RedundancyKind kind);
std::optional<double> mark_precision(const MarkAgreement& marks, emulator::RedundancyKind kind);
std::optional<double> mark_recall(const MarkAgreement& marks);
std::optional<double> mark_precision(const MarkAgreement& marks);

// `baseline`: machine instructions by warps.
std::string marks_text(const MarkAgreement& marks, uint64_t baseline);
nlohmann::ordered_json marks_json(const MarkAgreement& marks, uint64_t baseline);

} // namespace ptxrewrite::evaluate
