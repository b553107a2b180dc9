// Faults that are planted in pipelines are found, in check mode, by late copies or by what comes out.
#include "tests/fuzz/pipelines/pipeline.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

namespace ptxrewrite::fuzz::pipelines {
namespace {

// The first seeds whose pipelines can have the fault.
std::vector<Pipeline> with_fault(Fault fault, const std::function<bool(const Pipeline&)>& fits) {
  std::vector<Pipeline> found;
  for (uint64_t seed = 1; found.size() < 12; ++seed) {
    Pipeline pipeline = generate(seed);
    if (!fits(pipeline)) continue;
    pipeline.fault = fault;
    found.push_back(pipeline);
  }
  return found;
}

bool is_found(const Pipeline& pipeline, bool by_check_alone) {
  const Case launched = case_of(pipeline);
  for (const bool late : {false, true}) {
    const Run once = run(launched, launched.text, {late, true});
    if (by_check_alone ? !once.failed.empty() : !wrong_in(launched, once).empty()) return true;
  }
  return false;
}

TEST_CASE("planted faults are found by --check") {
  const auto many_tiles = [](const Pipeline& p) { return p.tiles > p.stages; };
  const auto bulk = [](const Pipeline& p) { return p.fill == Fill::bulk; };
  for (const Pipeline& pipeline : with_fault(Fault::early_consumer, [](const Pipeline&) { return true; })) {
    CAPTURE(pipeline.seed);
    CHECK(is_found(pipeline, true));
  }
  for (const Pipeline& pipeline : with_fault(Fault::early_producer, many_tiles)) {
    CAPTURE(pipeline.seed);
    CHECK(is_found(pipeline, true));
  }
  for (const Fault fault : {Fault::short_count, Fault::long_count})
    for (const Pipeline& pipeline : with_fault(fault, bulk)) {
      CAPTURE(pipeline.seed);
      CAPTURE(name_of(fault));
      CHECK(is_found(pipeline, true));
    }
  for (const Pipeline& pipeline : with_fault(Fault::missing_fence, [](const Pipeline& p) { return p.bulk_result; })) {
    CAPTURE(pipeline.seed);
    CHECK(is_found(pipeline, true));
  }
}

TEST_CASE("pipelines of all kinds occur, and are right") {
  std::set<int> fills, stages;
  unsigned divided = 0, results = 0, tested = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Pipeline pipeline = generate(seed);
    fills.insert(static_cast<int>(pipeline.fill));
    stages.insert(static_cast<int>(pipeline.stages));
    divided += pipeline.counts_by_division;
    results += pipeline.bulk_result;
    tested += pipeline.tests;
    CAPTURE(seed);
    const Case launched = case_of(pipeline);
    CHECK(wrong_in(launched, run(launched, launched.text, {seed % 2 == 0, true})) == "");
  }
  CHECK(fills.size() == 3);
  CHECK(stages.size() == 3);
  CHECK(divided > 5);
  CHECK(results > 5);
  CHECK(tested > 5);
}

} // namespace
} // namespace ptxrewrite::fuzz::pipelines
