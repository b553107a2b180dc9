#include "evaluate/verify/verify_report.h"

#include "evaluate/common/rewrite.h"

#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {

namespace {

using json = nlohmann::ordered_json;

json difference_json(const ShapeDifference& difference) {
  json buffers = json::array();
  for (const cuda::BufferComparison& buffer : difference.buffers) {
    json first = json::array();
    for (const cuda::ElementDifference& element : buffer.first)
      first.push_back({{"index", element.index}, {"original", element.original}, {"rewritten", element.rewritten}});
    buffers.push_back({{"buffer", buffer.buffer},
                       {"elements", buffer.elements},
                       {"differing", buffer.differing},
                       {"first", std::move(first)}});
  }
  json one = {{"shape", difference.shape}, {"buffers", std::move(buffers)}};
  if (difference.failure) one["failure"] = difference.failure->message;
  for (const emulator::Finding& finding : difference.findings)
    one["findings"].push_back(finding.where.message);
  return one;
}

} // namespace

const char* verdict_word(Verdict verdict) {
  switch (verdict) {
  case Verdict::identical:
    return "identical";
  case Verdict::unchanged:
    return "unchanged";
  case Verdict::not_run:
    return "not run";
  case Verdict::differs:
    break;
  }
  return "differs";
}

json cases_json(const std::vector<CaseResult>& cases) {
  json list = json::array();
  for (const CaseResult& result : cases) {
    json one = {
        {"passes", result.what.passes}, {"form", form_word(result.what.form)}, {"result", verdict_word(result.verdict)},
        {"shapes", result.shapes},      {"launches", result.launches},         {"fallbacks", result.fallbacks}};
    if (result.executed > 0)
      one["darsie"] = {{"executed", result.executed},
                       {"skipped", result.skipped},
                       {"shapes_ordered_by_warps", result.ordered_shapes}};
    if (result.regions > 0) one["regless"] = {{"least_entries", result.least_entries}, {"regions", result.regions}};
    if (result.affine.baseline > 0)
      for (const emulator::NamedAffineCount& row : emulator::named_counts(result.affine))
        one["dac"][row.name] = row.count;
    if (!result.reason.empty()) one["reason"] = result.reason;
    if (!result.reasons.empty()) one["original_ran"] = result.reasons;
    for (const ShapeDifference& difference : result.differences)
      one["differences"].push_back(difference_json(difference));
    list.push_back(std::move(one));
  }
  return list;
}

json original_json(const Verifier& verifier) {
  uint64_t warp_instructions = 0, thread_instructions = 0;
  if (const cuda::SessionResult* original = verifier.original())
    for (const cuda::SessionRun& run : original->runs) {
      warp_instructions += run.counters.warp_instructions;
      thread_instructions += run.counters.thread_instructions;
    }
  return {{"warp_instructions", warp_instructions}, {"thread_instructions", thread_instructions}};
}

json skipped_json(const std::vector<SkippedShape>& shapes) {
  json skipped = json::array();
  for (const SkippedShape& shape : shapes)
    skipped.push_back({{"shape", shape.shape}, {"reason", shape.reason}});
  return skipped;
}

} // namespace ptxrewrite::evaluate
