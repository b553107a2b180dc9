// Matrix pipelines of all kinds are right, also in check mode, and planted faults are found.
#include "tests/fuzz/pipelines/matrix/matrix_pipeline.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <utility>

namespace ptxrewrite::fuzz::pipelines {
namespace {

using Fits = std::function<bool(const MatrixPipeline&)>;

// The first seeds whose pipelines can have the fault.
std::vector<MatrixPipeline> with_fault(MatrixFault fault, size_t count, const Fits& fits) {
  std::vector<MatrixPipeline> found;
  for (uint64_t seed = 1; found.size() < count; ++seed) {
    MatrixPipeline pipeline = generate_matrix(seed);
    if (!fits(pipeline)) continue;
    pipeline.fault = fault;
    found.push_back(pipeline);
  }
  return found;
}

// By a finding of check mode or by a fault, not only by wrong results.
bool is_found(const MatrixPipeline& pipeline) {
  const Case launched = case_of(pipeline);
  for (const bool late : {false, true})
    if (!run(launched, launched.text, {late, true}).failed.empty()) return true;
  return false;
}

bool any(const MatrixPipeline&) {
  return true;
}
bool is_asynchronous(const MatrixPipeline& p) {
  return p.multiplier != Multiplier::warp;
}
bool is_warp_group(const MatrixPipeline& p) {
  return p.is_warp_group();
}
bool fills_again(const MatrixPipeline& p) {
  return p.tiles * p.works > p.stages;
}

TEST_CASE("faults planted in matrix pipelines are found by --check") {
  const std::pair<MatrixFault, Fits> faults[] = {
      {MatrixFault::early_consumer, any},
      {MatrixFault::early_producer, fills_again},
      {MatrixFault::short_count, any},
      {MatrixFault::long_count, any},
      {MatrixFault::missing_proxy_fence,
       [](const MatrixPipeline& p) {
         return p.result != ResultPath::stores ||
                (p.a_fill == TileFill::stores && p.multiplier == Multiplier::warp_group);
       }},
      {MatrixFault::missing_fence, is_warp_group},
      {MatrixFault::missing_tensor_fence, [](const MatrixPipeline& p) { return p.relaxes(); }},
      {MatrixFault::early_release, fills_again},
      {MatrixFault::early_sums, is_asynchronous},
      {MatrixFault::leak, [](const MatrixPipeline& p) { return p.has_tensor_memory(); }},
      {MatrixFault::outside, is_asynchronous},
  };
  for (const auto& [fault, fits] : faults)
    for (const MatrixPipeline& pipeline : with_fault(fault, 8, fits)) {
      CAPTURE(name_of(fault));
      CAPTURE(pipeline.seed);
      CAPTURE(static_cast<int>(pipeline.multiplier));
      CHECK(is_found(pipeline));
    }
}

TEST_CASE("matrix pipelines of all kinds occur, and are right") {
  std::set<std::pair<Multiplier, size_t>> types;
  std::set<std::pair<TileFill, TileFill>> fills;
  std::set<std::pair<bool, uint32_t>> layouts;
  std::set<ResultPath> results;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    const MatrixPipeline pipeline = generate_matrix(seed);
    types.insert({pipeline.multiplier, pipeline.element});
    fills.insert({pipeline.a_fill, pipeline.b_fill});
    layouts.insert({pipeline.b.k_major, pipeline.b.swizzle_bits});
    results.insert(pipeline.result);
    CAPTURE(seed);
    const Case launched = case_of(pipeline);
    CHECK(wrong_in(launched, run(launched, launched.text, {seed % 2 == 0, true})) == "");
  }
  CHECK(types.size() >= 20); // of 28
  CHECK(fills.size() >= 5);
  CHECK(layouts.size() >= 7);
  CHECK(results.size() == 3);
}

} // namespace
} // namespace ptxrewrite::fuzz::pipelines
