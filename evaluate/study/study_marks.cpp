#include "evaluate/study/study_marks.h"

#include "ir/forms/darsie_mark.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <numeric>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;
using emulator::RedundancyKind;
using Counts = std::array<uint64_t, emulator::redundancy_kinds>;

constexpr std::array kinds = {RedundancyKind::uniform, RedundancyKind::affine, RedundancyKind::unstructured};

uint64_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t(0));
}
std::optional<double> share_if_any(uint64_t part, uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return ratio(part, whole);
}
json rounded(std::optional<double> share) {
  return share ? json(std::round(*share * 1e6) / 1e6) : json(nullptr);
}

// One kind of redundancy, or all.
struct Row {
  std::string name;
  uint64_t measured, marked;
  std::optional<double> recall, precision;
};
std::array<Row, kinds.size() + 1> rows_of(const MarkAgreement& marks) {
  std::array<Row, kinds.size() + 1> rows;
  for (size_t i = 0; i < kinds.size(); ++i)
    rows[i] = {std::string(ir::spelling(static_cast<ir::MarkKind>(i))), marks.measured[i], marks.marked[i],
               mark_recall(marks, kinds[i]), mark_precision(marks, kinds[i])};
  rows.back() = {"all", sum(marks.measured), sum(marks.marked), mark_recall(marks), mark_precision(marks)};
  return rows;
}

} // namespace

std::optional<double> mark_recall(const MarkAgreement& marks, RedundancyKind kind) {
  const auto at = static_cast<size_t>(kind);
  return share_if_any(marks.measured_marked[at], marks.measured[at]);
}
std::optional<double> mark_precision(const MarkAgreement& marks, RedundancyKind kind) {
  const auto at = static_cast<size_t>(kind);
  return share_if_any(marks.marked_measured[at], marks.marked[at]);
}
std::optional<double> mark_recall(const MarkAgreement& marks) {
  return share_if_any(sum(marks.measured_marked), sum(marks.measured));
}
std::optional<double> mark_precision(const MarkAgreement& marks) {
  return share_if_any(sum(marks.marked_measured), sum(marks.marked));
}

std::string marks_text(const MarkAgreement& marks, uint64_t baseline) {
  TextTable table{{{"DARSIE's marks", false},
                   {"redundant in the block %", true},
                   {"of that marked %", true},
                   {"marked %", true},
                   {"of that redundant %", true}},
                  {}};
  for (const Row& row : rows_of(marks))
    table.rows.push_back({row.name, percent(ratio(row.measured, baseline)), percent(row.recall),
                          percent(ratio(row.marked, baseline)), percent(row.precision)});
  return table.text();
}

json marks_json(const MarkAgreement& marks, uint64_t baseline) {
  json document;
  for (const Row& row : rows_of(marks))
    document[row.name] = {{"redundant", rounded(ratio(row.measured, baseline))},
                          {"recall", rounded(row.recall)},
                          {"marked", rounded(ratio(row.marked, baseline))},
                          {"precision", rounded(row.precision)}};
  return document;
}

} // namespace ptxrewrite::evaluate
