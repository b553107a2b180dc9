#include "evaluate/common/report.h"

#include "support/diagnostic.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace ptxrewrite::evaluate {

namespace {

const char* discharge_word(transforms::Discharge discharge) {
  switch (discharge) {
  case transforms::Discharge::proved:
    return "proved";
  case transforms::Discharge::launch_checked:
    return "checked at launch";
  case transforms::Discharge::in_kernel:
    return "checked in the kernel";
  case transforms::Discharge::assumed:
    return "assumed";
  }
  return "assumed";
}

Diagnostic note(SourceRange range, std::string message) {
  return {Severity::note, range, std::move(message), {}};
}

void append_remarks(std::string& out, const transforms::PipelineReport& report, const SourceFile& source, bool colour) {
  for (const transforms::Remark& remark : report.remarks)
    out += render(note(remark.range, remark.function + ": " + remark.pass + ": " + remark.text), source, colour);
}

void append_ledger(std::string& out, const transforms::PipelineReport& report, const SourceFile& source, bool colour) {
  std::map<std::string, size_t> totals;
  for (const transforms::Obligation& obligation : report.ledger) {
    Diagnostic diagnostic = note(obligation.range, obligation.function + ": " + discharge_word(obligation.discharge) +
                                                       ": " + obligation.statement);
    if (!obligation.raised_by.empty()) diagnostic.notes.push_back("needed by " + obligation.raised_by);
    if (!obligation.reason.empty()) diagnostic.notes.push_back(obligation.reason);
    out += render(diagnostic, source, colour);
    ++totals[discharge_word(obligation.discharge)];
  }
  if (report.ledger.empty()) return;
  out += source.name() + ": " + std::to_string(report.ledger.size()) +
         (report.ledger.size() == 1 ? " condition:" : " conditions:");
  const char* separator = " ";
  for (const auto& [word, count] : totals) {
    out += separator + std::to_string(count) + " " + word;
    separator = ", ";
  }
  out += '\n';
}

void append_statistics(std::string& out, const transforms::PipelineReport& report, const SourceFile& source) {
  out += source.name() + (report.statistics.empty() ? ": no statistics\n" : ": statistics\n");
  for (const auto& [name, value] : report.statistics) {
    char line[160];
    std::snprintf(line, sizeof line, "%12lld  %s\n", static_cast<long long>(value), name.c_str());
    out += line;
  }
}

void append_times(std::string& out, const transforms::PipelineReport& report, const SourceFile& source) {
  double total = 0;
  for (const transforms::StageTime& time : report.times)
    total += time.seconds;
  out += source.name() + ": times\n     seconds      %    runs  changed  stage\n";
  for (const transforms::StageTime& time : report.times) {
    char line[160];
    std::snprintf(line, sizeof line, "%12.6f  %5.1f  %6llu  %7llu  %s\n", time.seconds,
                  total > 0 ? 100 * time.seconds / total : 0.0, static_cast<unsigned long long>(time.runs),
                  static_cast<unsigned long long>(time.changes), time.stage.c_str());
    out += line;
  }
}

void add_position(nlohmann::ordered_json& row, SourceRange range, const SourceFile& source) {
  if (range.empty() || range.begin > source.text().size()) return;
  LineColumn at = source.locate(range.begin);
  row["line"] = at.line;
  row["column"] = at.column;
}

} // namespace

std::string report_text(const transforms::PipelineReport& report, const SourceFile& source,
                        const ReportSelection& selection, bool colour) {
  std::string out;
  if (selection.explain) {
    append_remarks(out, report, source, colour);
    append_ledger(out, report, source, colour);
  }
  if (selection.statistics) append_statistics(out, report, source);
  if (selection.times) append_times(out, report, source);
  return out;
}

nlohmann::ordered_json report_json(const transforms::PipelineReport& report, const SourceFile& source,
                                   const ReportSelection& selection) {
  using Json = nlohmann::ordered_json;
  Json document = {{"file", source.name()}, {"functions", report.functions}};
  if (selection.explain) {
    document["remarks"] = Json::array();
    for (const transforms::Remark& remark : report.remarks) {
      Json row = {{"function", remark.function}, {"pass", remark.pass}, {"text", remark.text}};
      add_position(row, remark.range, source);
      document["remarks"].push_back(std::move(row));
    }
    document["ledger"] = Json::array();
    for (const transforms::Obligation& obligation : report.ledger) {
      Json row = {{"function", obligation.function},
                  {"statement", obligation.statement},
                  {"raised_by", obligation.raised_by},
                  {"discharge", discharge_word(obligation.discharge)},
                  {"reason", obligation.reason}};
      add_position(row, obligation.range, source);
      document["ledger"].push_back(std::move(row));
    }
  }
  if (selection.statistics) {
    document["statistics"] = Json::object();
    for (const auto& [name, value] : report.statistics)
      document["statistics"][name] = value;
  }
  if (selection.times) {
    document["times"] = Json::array();
    for (const transforms::StageTime& time : report.times)
      document["times"].push_back(
          {{"stage", time.stage}, {"runs", time.runs}, {"changed", time.changes}, {"seconds", time.seconds}});
  }
  return document;
}

nlohmann::ordered_json diagnostics_json(const std::vector<CollectedDiagnostic>& diagnostics) {
  using Json = nlohmann::ordered_json;
  Json document = Json::array();
  for (const CollectedDiagnostic& collected : diagnostics) {
    const Diagnostic& diagnostic = collected.diagnostic;
    Json row = {{"severity", diagnostic.severity == Severity::error     ? "error"
                             : diagnostic.severity == Severity::warning ? "warning"
                                                                        : "note"}};
    if (!collected.file.empty()) row["file"] = collected.file;
    if (collected.place) {
      row["line"] = collected.place->line;
      row["column"] = collected.place->column;
    }
    row["message"] = diagnostic.message;
    if (!diagnostic.notes.empty()) row["notes"] = diagnostic.notes;
    document.push_back(std::move(row));
  }
  return document;
}

} // namespace ptxrewrite::evaluate
