// The agreement of each estimator with silicon, from rows on standard input: those of the half that may be used
// to tune the model, those of the unseen half, and all. If the rows of a group are variants of one kernel,
// also the quality of each estimator's ranking.
//
// usage: agreement_figures ESTIMATOR... < ROWS     a row: half <tab> group <tab> name <tab> silicon <tab> estimates ...
//        agreement_figures --rank ESTIMATOR...     groups are variants of one kernel
//
// Silicon and estimates are positive and in the same unit. Exit status 2: a row is malformed.
#include "evaluate/common/agreement.h"
#include "evaluate/common/statistics.h"
#include "support/text/table.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using ptxrewrite::TextTable;
using ptxrewrite::evaluate::MeasuredPoint;

struct Row {
  std::string half;
  MeasuredPoint point; // its suite is the group
};

// Returns nullopt if the line is not a row.
std::optional<Row> row_of(const std::string& line, size_t estimators) {
  std::istringstream cells(line);
  Row row;
  const auto number = [&](double& value) {
    std::string cell;
    if (!std::getline(cells, cell, '\t')) return false;
    char* end = nullptr;
    value = std::strtod(cell.c_str(), &end);
    return end != cell.c_str() && *end == 0 && value > 0;
  };
  if (!std::getline(cells, row.half, '\t') || !std::getline(cells, row.point.suite, '\t') ||
      !std::getline(cells, row.point.name, '\t') || !number(row.point.seconds))
    return std::nullopt;
  row.point.estimates.resize(estimators);
  for (double& estimate : row.point.estimates)
    if (!number(estimate)) return std::nullopt;
  return row;
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}

// For groups with several variants: means over groups.
struct Ranking {
  double kendall = 0, spearman = 0, regret = 0, median_regret = 0;
};
Ranking ranking(const std::vector<MeasuredPoint>& points, size_t which) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> groups;
  for (const MeasuredPoint& point : points) {
    groups[point.suite].first.push_back(point.seconds);
    groups[point.suite].second.push_back(point.estimates[which]);
  }
  Ranking mean;
  std::vector<double> regrets;
  for (const auto& [name, pair] : groups) {
    const auto& [measured, estimated] = pair;
    mean.kendall += ptxrewrite::evaluate::kendall_tau(measured, estimated);
    mean.spearman += ptxrewrite::evaluate::spearman(measured, estimated);
    regrets.push_back(ptxrewrite::evaluate::regret_of_choice(measured, estimated));
    mean.regret += regrets.back();
  }
  const auto count = static_cast<double>(std::max<size_t>(groups.size(), 1));
  return {mean.kendall / count, mean.spearman / count, mean.regret / count, ptxrewrite::evaluate::median(regrets)};
}

std::string table_of(const std::string& title, const std::vector<MeasuredPoint>& points,
                     const std::vector<std::string>& estimators, bool rank) {
  TextTable table{{{title}, {"MAPE %", true}, {"p90 %", true}, {"Spearman", true}, {"Kendall", true}}, {}};
  if (rank) table.columns.push_back({"regret of the pick %", true});
  for (size_t which = 0; which < estimators.size(); ++which) {
    const ptxrewrite::evaluate::Agreement all = ptxrewrite::evaluate::agreement(points, which);
    const Ranking ranks = ranking(points, which);
    table.rows.push_back({estimators[which], percent(all.mape), percent(all.p90),
                          fmt::format("{:.3f}", rank ? ranks.spearman : all.spearman),
                          fmt::format("{:.3f}", rank ? ranks.kendall : all.kendall)});
    if (rank) table.rows.back().push_back(percent(ranks.regret));
  }
  return table.text();
}

} // namespace

int main(int count, char** words) {
  std::vector<std::string> estimators(words + 1, words + count);
  const bool rank = !estimators.empty() && estimators.front() == "--rank";
  if (rank) estimators.erase(estimators.begin());
  std::map<std::string, std::vector<MeasuredPoint>> halves;
  std::vector<MeasuredPoint> all;
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::optional<Row> row = row_of(line, estimators.size());
    if (!row) {
      fmt::print(stderr, "agreement_figures: row {} is wrong: {}\n", number, line);
      return 2;
    }
    halves[row->half].push_back(row->point);
    all.push_back(row->point);
  }
  for (const auto& [half, points] : halves)
    fmt::print("{}\n", table_of(fmt::format("{}: {} rows", half, points.size()), points, estimators, rank));
  if (halves.size() > 1) fmt::print("{}", table_of(fmt::format("all: {} rows", all.size()), all, estimators, rank));
}
