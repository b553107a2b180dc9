#include "evaluate/bench/bench.h"

#include "cuda/sm_clock.h"
#include "evaluate/common/rewrite.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::evaluate {

const char* to_string(CacheState state) {
  return state == CacheState::warm ? "warm" : "cold";
}

struct Bench::Flusher {
  cuda::Device& device;
  uint64_t address = 0, bytes = 0;
  std::byte value{};
  ~Flusher() { (void)device.release(address); }
};

Bench::Bench(const LaunchInput& input, cuda::Device& device, BenchSettings settings)
    : input_(input), device_(device), settings_(std::move(settings)) {
  session_.contents = &contents_;
  session_.fetch_all = true;
  session_.error_place = &place_;
  for (const launch::Launch& launch : input_.plan.launches) {
    size_t shape = 0;
    while (shape < shapes_.size() &&
           !(shapes_[shape].kernel == launch.kernel && shapes_[shape].grid == launch.grid &&
             shapes_[shape].block == launch.block && shapes_[shape].dynamic_shared == launch.dynamic_shared))
      ++shape;
    if (shape == shapes_.size())
      shapes_.push_back({launch.kernel, launch.grid, launch.block, launch.dynamic_shared, 0});
    ++shapes_[shape].launches;
    shape_of_launch_.push_back(shape);
  }
}

Status Bench::prepare(cuda::ErrorPlace& place) {
  place = cuda::ErrorPlace::launch_file;
  constexpr unsigned copies = 4; // initial contents, results of the original and of a candidate, and device memory in
                                 // tests
  if (Status status = cuda::check_memory(input_.plan, copies); !status) return status;
  for (const launch::Buffer& buffer : input_.plan.buffers) {
    std::vector<std::byte> bytes(buffer.bytes());
    if (Status status = buffer.initialise(bytes); !status) return status;
    contents_.push_back(std::move(bytes));
  }
  auto plan = cuda::PlanOnDevice::make(input_.plan, device_, session_);
  if (!plan) return plan.error();
  plan_ = std::move(*plan);
  if (Status status = device_.load(*input_.module); !status) {
    place = cuda::ErrorPlace::module;
    return status;
  }
  Result<bool> ran = run_plan_once(nullptr, &truth_, nullptr, CacheState::warm);
  place = place_;
  if (!ran) return ran.error();
  for (size_t i = 0; i < truth_.buffers.size(); ++i)
    if (truth_.buffers[i] != contents_[i]) changed_buffers_.push_back(i);
  return {};
}

// One pass over the launch file, starting from the initial contents of the buffers. Returns false if a kernel faulted.
Result<bool> Bench::run_plan_once(const BenchCandidate* candidate, cuda::SessionResult* result,
                                  std::vector<double>* seconds, CacheState state) {
  place_ = cuda::ErrorPlace::launch_file;
  const ir::Module& module = candidate && candidate->module ? *candidate->module : *input_.module;
  device_.use_module(candidate ? candidate->module_number : 0);
  if (Status status = plan_->fill_variables(module); !status) return status.error();
  for (size_t i = 0; i < input_.plan.launches.size(); ++i) {
    if (state == CacheState::cold)
      if (Status status = flush_cache(); !status) return status.error();
    Result<cuda::SessionRun> run = plan_->launch(i, module, candidate ? candidate->variants.get() : nullptr);
    if (!run) return run.error();
    if (seconds) (*seconds)[shape_of_launch_[i]] += run->seconds;
    const bool failed = run->failure.has_value();
    if (failed) last_failure_ = *run->failure;
    if (failed && !candidate) original_failure_ = run->failure;
    if (result) result->runs.push_back(std::move(*run));
    if (failed) return false;
  }
  if (result)
    if (Status status = plan_->fetch(*result); !status) return status.error();
  return true;
}

// One pass of a version that has run successfully before.
Status Bench::run_again(const BenchCandidate* candidate, cuda::SessionResult* result, std::vector<double>* seconds,
                        CacheState state) {
  Result<bool> ran = run_plan_once(candidate, result, seconds, state);
  if (!ran) return ran.error();
  faulted_ = !*ran;
  return *ran ? Status() : Error{"a kernel that ran before fails now: " + last_failure_.message, {}};
}

Status Bench::restore() {
  for (size_t buffer : changed_buffers_)
    if (Status status = plan_->restore(buffer); !status) return status;
  return {};
}

Status Bench::flush_cache() {
  if (!flusher_) {
    constexpr uint64_t unknown_cache = 64 << 20;
    const uint64_t l2 = device_.info().l2_bytes;
    const uint64_t bytes = 2 * (l2 ? l2 : unknown_cache);
    Result<uint64_t> address = device_.allocate(bytes, "what flushes the L2 cache");
    if (!address) return address.error();
    flusher_.reset(new Flusher{device_, *address, bytes});
  }
  flusher_->value ^= std::byte(1); // a new value each time, so that the driver cannot skip the fill
  return device_.fill(flusher_->address, flusher_->value, flusher_->bytes);
}

// Runs a candidate once and compares its results with the original's.
Status Bench::check(BenchCandidate& candidate) {
  if (Status status = restore(); !status) return status;
  cuda::SessionResult result;
  Result<bool> ran = run_plan_once(&candidate, &result, nullptr, CacheState::warm);
  if (!ran) {
    candidate.state = CandidateState::refused;
    candidate.reason = ran.error().message;
    return {};
  }
  candidate.rewritten_launches.assign(shapes_.size(), 0);
  for (const cuda::SessionRun& run : result.runs) {
    // Without variants a kernel is rewritten in place, under its own name.
    const bool is_original = candidate.variants &&
                             !candidate.variants->of_kernel(shapes_[shape_of_launch_[run.launch]].kernel).empty() &&
                             run.entry == input_.plan.launches[run.launch].kernel;
    candidate.rewritten_launches[shape_of_launch_[run.launch]] += !is_original;
    for (const std::string& reason : run.reasons)
      if (std::ranges::find(candidate.reasons, reason) == candidate.reasons.end()) candidate.reasons.push_back(reason);
  }
  if (!*ran) {
    candidate.state = CandidateState::differs;
    candidate.reason = result.runs.back().failure->message;
    return {};
  }
  auto compare_one = [&](const launch::Buffer& buffer, const std::vector<std::byte>& original,
                         const std::vector<std::byte>& rewritten) {
    if (!buffer.output) return;
    cuda::BufferComparison comparison = cuda::compare(buffer, original, rewritten, settings_.most_differences);
    if (!comparison.same()) candidate.differences.push_back(std::move(comparison));
  };
  for (size_t i = 0; i < input_.plan.buffers.size(); ++i)
    compare_one(input_.plan.buffers[i], truth_.buffers[i], result.buffers[i]);
  for (size_t i = 0; i < input_.plan.variables.size(); ++i)
    compare_one(input_.plan.variables[i].data, truth_.variables[i], result.variables[i]);
  if (!candidate.differences.empty()) candidate.state = CandidateState::differs;
  return {};
}

Status Bench::add_candidate(const std::string& passes) {
  BenchCandidate& candidate = candidates_.emplace_back();
  candidate.name = passes.empty() ? "no pass" : passes;
  Result<Rewritten> rewritten = rewrite(*input_.module, passes, transforms::OutputForm::legal, settings_.run);
  auto refuse = [&](CandidateState state, std::string reason) {
    candidate.state = state;
    candidate.reason = std::move(reason);
    return Status();
  };
  if (!rewritten) return refuse(CandidateState::refused, rewritten.error().message);
  if (!rewritten->module) return refuse(CandidateState::unchanged, {});
  candidate.module = std::move(rewritten->module);
  Result<launch::Variants> variants = launch::Variants::of(*candidate.module, nullptr);
  if (!variants) return refuse(CandidateState::refused, variants.error().message);
  candidate.variants = std::make_unique<launch::Variants>(std::move(*variants));
  Result<size_t> number = device_.load_beside(*candidate.module);
  if (!number) return refuse(CandidateState::refused, number.error().message);
  candidate.module_number = *number;
  return check(candidate);
}

bool Bench::has_own_variants() const {
  Result<launch::Variants> variants =
      launch::Variants::of(*input_.module, input_.side_file ? &*input_.side_file : nullptr);
  return !variants || std::ranges::any_of(
                          shapes_, [&](const BenchShape& shape) { return !variants->of_kernel(shape.kernel).empty(); });
}

Status Bench::add_own_variants() {
  BenchCandidate& candidate = candidates_.emplace_back();
  candidate.name = "variants";
  Result<launch::Variants> variants =
      launch::Variants::of(*input_.module, input_.side_file ? &*input_.side_file : nullptr);
  if (!variants) return variants.error();
  if (!has_own_variants()) {
    candidate.state = CandidateState::unchanged;
    return {};
  }
  candidate.variants = std::make_unique<launch::Variants>(std::move(*variants));
  return check(candidate);
}

Status Bench::measure(const std::function<void(unsigned done, unsigned total)>& progress) {
  std::vector<const BenchCandidate*> versions = {nullptr};
  for (const BenchCandidate& candidate : candidates_)
    versions.push_back(&candidate);
  std::vector<size_t> order; // versions to run
  for (size_t i = 0; i < versions.size(); ++i)
    if (!versions[i] || versions[i]->state == CandidateState::timed) order.push_back(i);
  if (order.size() == 1) return {};
  auto clock = [&](double& hertz) -> Status {
    Result<double> measured = cuda::measure_sm_clock(device_, 0);
    if (!measured) return measured.error();
    hertz = *measured;
    return {};
  };
  const unsigned rounds = settings_.warm_up + settings_.rounds;
  unsigned done = 0;
  for (CacheState state : cache_states) {
    auto& times = times_[static_cast<size_t>(state)];
    times.assign(versions.size(), std::vector<std::vector<double>>(shapes_.size()));
    for (unsigned round = 0; round < rounds; ++round) {
      progress(done++, rounds * 2);
      // The clock is read after the warm-up, when the GPU is under load.
      if (state == CacheState::warm && round == settings_.warm_up)
        if (Status status = clock(clocks_[0]); !status) return status;
      // The first version of a round finds the caches as the previous round left them, so the order rotates.
      std::ranges::rotate(order, order.begin() + 1);
      if (round % order.size() == 0) std::ranges::reverse(order);
      for (size_t version : order) {
        if (Status status = restore(); !status) return status;
        std::vector<double> seconds(shapes_.size(), 0);
        if (Status status = run_again(versions[version], nullptr, &seconds, state); !status) return status;
        if (round < settings_.warm_up) continue;
        for (size_t shape = 0; shape < shapes_.size(); ++shape)
          times[version][shape].push_back(seconds[shape]);
      }
    }
  }
  if (Status status = clock(clocks_[1]); !status) return status;
  return check_again(order, versions);
}

// Compares the results again: correct results can be luck, because a race may show only in some of many runs.
Status Bench::check_again(const std::vector<size_t>& order, const std::vector<const BenchCandidate*>& versions) {
  for (size_t version : order) {
    if (Status status = restore(); !status) return status;
    cuda::SessionResult result;
    if (Status status = run_again(versions[version], &result, nullptr, CacheState::warm); !status) return status;
    for (size_t i = 0; i < input_.plan.buffers.size(); ++i) {
      const launch::Buffer& buffer = input_.plan.buffers[i];
      if (buffer.output && !cuda::compare(buffer, truth_.buffers[i], result.buffers[i], 1).same())
        return Error{fmt::format("buffer '{}' differs from run to run, {}", buffer.name,
                                 versions[version] ? "rewritten" : "in the original"),
                     {}};
    }
  }
  return {};
}

Speedup Bench::speedup(CacheState state, size_t candidate, size_t shape) const {
  const auto& times = times_[static_cast<size_t>(state)];
  const std::vector<double>& original = times[0][shape];
  const std::vector<double>& rewritten = times[candidate + 1][shape];
  Speedup result;
  result.original = median(original);
  result.candidate = median(rewritten);
  result.ratio = result.original / result.candidate;
  const uint64_t seed = shape * 2 + static_cast<uint64_t>(state);
  result.resampled = resample_ratios(original, rewritten, settings_.resamples, seed);
  result.interval = percentile_interval(result.resampled);
  return result;
}

Speedup geometric_mean(const std::vector<Speedup>& speedups) {
  Speedup mean;
  std::vector<double> ratios;
  size_t resamples = speedups.empty() ? 0 : SIZE_MAX;
  for (const Speedup& one : speedups) {
    ratios.push_back(one.ratio);
    resamples = std::min(resamples, one.resampled.size());
  }
  mean.ratio = geometric_mean(std::span<const double>(ratios));
  for (size_t i = 0; i < resamples; ++i) {
    for (size_t k = 0; k < speedups.size(); ++k)
      ratios[k] = speedups[k].resampled[i];
    mean.resampled.push_back(geometric_mean(std::span<const double>(ratios)));
  }
  mean.interval = percentile_interval(mean.resampled);
  return mean;
}

} // namespace ptxrewrite::evaluate
