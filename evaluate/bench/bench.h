// Measures original and rewritten kernels on a GPU; the reports are separate.
//
// Correctness comes first: the memory contents after a candidate are compared with those after the original on the same
// GPU, and only if they agree are both timed. In each round every version runs the whole launch file once, on the same
// buffers with the same contents, in an order that changes from round to round.
#pragma once

#include "cuda/compare.h"
#include "cuda/session.h"
#include "evaluate/common/statistics.h"
#include "evaluate/launches/launch_input.h"
#include "transforms/manager/pipeline.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// warm: the L2 cache holds data of the preceding launches. cold: before each launch, memory of twice the cache's size
// is written.
enum class CacheState : uint8_t { warm, cold };
inline constexpr std::array cache_states = {CacheState::warm, CacheState::cold};
const char* to_string(CacheState state);

struct BenchSettings {
  transforms::RunOptions run;
  unsigned rounds = 30;
  unsigned warm_up = 3; // number of rounds whose times are discarded
  size_t resamples = 2000;
  size_t most_differences = 10;
};

// Launches of one kernel with the same shape; their times within a round are summed.
struct BenchShape {
  std::string kernel;
  launch::Dim3 grid, block;
  uint32_t dynamic_shared = 0;
  size_t launches = 0;
};

enum class CandidateState : uint8_t {
  timed,
  unchanged, // the passes changed nothing
  differs,   // the results differ from the original's, or there is a fault
  refused,   // the passes or the driver could not produce a module
};

struct BenchCandidate {
  std::string name; // its passes; "variants" for the file's own variants
  CandidateState state = CandidateState::timed;
  std::string reason; // if refused, or if a fault is the difference
  std::vector<cuda::BufferComparison> differences;
  std::vector<size_t> rewritten_launches; // by shape: the number of launches that ran a variant
  std::vector<std::string> reasons;       // why originals were launched
  std::unique_ptr<ir::Module> module;     // nullptr: the input's module
  std::unique_ptr<launch::Variants> variants;
  size_t module_number = 0; // on the device
};

// Seconds by cache state, version (0: the original; k + 1: candidate k), shape and round.
using BenchTimes = std::array<std::vector<std::vector<std::vector<double>>>, 2>;

struct Speedup {
  double original = 0, candidate = 0; // medians, seconds
  double ratio = 1;                   // of the medians; above 1 if the candidate is faster
  ConfidenceInterval interval;        // 95 %
  std::vector<double> resampled;
};

class Bench {
public:
  Bench(const LaunchInput& input, cuda::Device& device, BenchSettings settings);

  // Runs the original. Fails like run_plan; `place` tells which text the error's range refers to.
  Status prepare(cuda::ErrorPlace& place);
  const std::optional<emulator::Failure>& original_failure() const { return original_failure_; }
  // Rewrites, runs and compares. Fails if the GPU can no longer be used.
  Status add_candidate(const std::string& passes);
  // Adds the file's own variants, from the side file or annotations, compared with the kernels it launches.
  Status add_own_variants();
  bool has_own_variants() const;
  // Fails if a launch fails, or if results change while the versions are timed; after a fault of a kernel, `faulted` is
  // true.
  Status measure(const std::function<void(unsigned done, unsigned total)>& progress);

  bool faulted() const { return faulted_; }

  const std::vector<BenchShape>& shapes() const { return shapes_; }
  const std::vector<BenchCandidate>& candidates() const { return candidates_; }
  const BenchTimes& times() const { return times_; }
  Speedup speedup(CacheState state, size_t candidate, size_t shape) const;
  // SM clock in Hz before and after the measurements; 0 if unknown.
  std::array<double, 2> clocks() const { return clocks_; }

private:
  Status check(BenchCandidate& candidate);
  Status check_again(const std::vector<size_t>& order, const std::vector<const BenchCandidate*>& versions);
  Status run_again(const BenchCandidate* candidate, cuda::SessionResult* result, std::vector<double>* seconds,
                   CacheState state);
  Result<bool> run_plan_once(const BenchCandidate* candidate, cuda::SessionResult* result, std::vector<double>* seconds,
                             CacheState state);
  Status restore();
  Status flush_cache();

  const LaunchInput& input_;
  cuda::Device& device_;
  BenchSettings settings_;
  cuda::SessionOptions session_;
  cuda::ErrorPlace place_ = cuda::ErrorPlace::launch_file;
  std::vector<std::vector<std::byte>> contents_;
  std::unique_ptr<cuda::PlanOnDevice> plan_;
  std::vector<size_t> shape_of_launch_;
  std::vector<BenchShape> shapes_;
  std::vector<size_t> changed_buffers_; // buffers that the original changes
  cuda::SessionResult truth_;
  std::optional<emulator::Failure> original_failure_;
  emulator::Failure last_failure_;
  bool faulted_ = false; // during the measurement
  std::vector<BenchCandidate> candidates_;
  BenchTimes times_;
  std::array<double, 2> clocks_{};
  // Memory that replaces the contents of the L2 cache when it is written.
  struct Flusher;
  std::shared_ptr<Flusher> flusher_;
};

// The product of independent ratios: the geometric mean and its interval, from the resamples of each.
Speedup geometric_mean(const std::vector<Speedup>& speedups);

} // namespace ptxrewrite::evaluate
