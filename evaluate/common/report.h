// Report of a pipeline run: remarks and the ledger of assumptions (--explain), statistics, times.
#pragma once

#include "support/source.h"
#include "support/text/console.h"
#include "transforms/manager/pipeline.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

struct ReportSelection {
  bool explain = false;
  bool statistics = false;
  bool times = false;
  bool any() const { return explain || statistics || times; }
};

// Text with source lines and carets; `colour` adds ANSI colours.
std::string report_text(const transforms::PipelineReport& report, const SourceFile& source,
                        const ReportSelection& selection, bool colour);
// {"file":..., "functions":[...], "remarks":[...], "ledger":[...], "statistics":{...}, "times":[...]}; lines and
// columns are 1-based, seconds wall clock.
nlohmann::ordered_json report_json(const transforms::PipelineReport& report, const SourceFile& source,
                                   const ReportSelection& selection);
// [{"severity", "file", "line", "column", "message", "notes"}]; fields without a value are omitted.
nlohmann::ordered_json diagnostics_json(const std::vector<CollectedDiagnostic>& diagnostics);

} // namespace ptxrewrite::evaluate
