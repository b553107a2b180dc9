#include "evaluate/calibrate/stopwatch.h"

#include "cuda/driver/energy_counter.h"
#include "cuda/sm_clock.h"
#include "evaluate/common/statistics.h"
#include "evaluate/score/score.h"
#include "support/log.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace ptxrewrite::evaluate {
namespace {

constexpr unsigned warm_up = 2; // launches that are not measured

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class GpuStopwatch final : public Stopwatch {
public:
  GpuStopwatch(cuda::Device& device, const std::vector<Probe>& probes, std::unique_ptr<ir::Module> module,
               double energy_seconds)
      : device_(device), probes_(probes), module_(std::move(module)), energy_seconds_(energy_seconds) {}

  Result<GpuFacts> facts() override {
    const cuda::DeviceInfo info = device_.info();
    Result<double> hertz = cuda::measure_sm_clock(device_, 0);
    if (!hertz) return hertz.error();
    return GpuFacts{info.name, static_cast<uint32_t>(info.compute_capability),
                    static_cast<uint32_t>(info.multiprocessors), *hertz * 1e-6, info.l2_bytes};
  }

  Result<std::vector<double>> time_probe(size_t probe, bool long_one, unsigned rounds) override {
    device_.use_module(0);
    // Two consecutive calls for the same probe reuse its memory.
    if (last_ != &probes_[probe]) {
      on_device_.reset();
      auto made = ProbeOnDevice::make(device_, probes_[probe]);
      if (!made) return made.error();
      on_device_ = std::move(*made);
      last_ = &probes_[probe];
    }
    std::vector<double> seconds;
    for (unsigned round = 0; round < warm_up + rounds; ++round) {
      Result<cuda::KernelRun> run = on_device_->launch(long_one);
      if (!run) return run.error();
      if (round >= warm_up) seconds.push_back(run->seconds);
    }
    return seconds;
  }

  Result<std::optional<ProbeEnergy>> energy_of_probe(size_t probe) override {
    if (!counter_) {
      Result<std::unique_ptr<driver::EnergyCounter>> counter = driver::EnergyCounter::open(device_.info().bus_id);
      if (!counter) {
        log(LogLevel::info, counter.error().message);
        return std::optional<ProbeEnergy>();
      }
      counter_ = std::move(*counter);
    }
    device_.use_module(0);
    last_ = nullptr;
    on_device_.reset();
    Probe copied = probes_[probe];
    copied.grid.x *= energy_copies(copied, static_cast<uint32_t>(device_.info().multiprocessors));
    auto made = ProbeOnDevice::make(device_, copied);
    if (!made) return made.error();
    const double deadline = seconds_now() + energy_seconds_;
    Result<double> before = counter_->joules();
    if (!before) return before.error();
    const double start = seconds_now();
    unsigned launches = 0;
    for (; seconds_now() < deadline; ++launches)
      if (Result<cuda::KernelRun> run = (*made)->launch(true); !run) return run.error();
    Result<double> after = counter_->joules();
    if (!after) return after.error();
    return std::optional(ProbeEnergy{(seconds_now() - start) / launches, (*after - *before) / launches});
  }

  Result<std::vector<KernelSeconds>> time_file(const LaunchInput& input, unsigned rounds) override {
    cuda::SessionOptions session;
    std::vector<std::vector<std::byte>> contents;
    for (const launch::Buffer& buffer : input.plan.buffers) {
      std::vector<std::byte> bytes(buffer.bytes());
      if (Status status = buffer.initialise(bytes); !status) return status.error();
      contents.push_back(std::move(bytes));
    }
    session.contents = &contents;
    Result<size_t> number = device_.load_beside(*input.module);
    if (!number) return number.error();
    auto plan = cuda::PlanOnDevice::make(input.plan, device_, session);
    if (!plan) return plan.error();
    std::vector<std::string> order;
    std::map<std::string, std::vector<double>> by_kernel;
    for (unsigned round = 0; round < warm_up + rounds; ++round) {
      for (size_t i = 0; i < input.plan.buffers.size(); ++i)
        if (Status status = (*plan)->restore(i); !status) return status.error();
      if (Status status = flush(); !status) return status.error();
      device_.use_module(*number);
      if (Status status = (*plan)->fill_variables(*input.module); !status) return status.error();
      for (size_t i = 0; i < input.plan.launches.size(); ++i) {
        Result<cuda::SessionRun> run = (*plan)->launch(i, *input.module, nullptr);
        if (!run) return run.error();
        if (run->failure) return Error{run->failure->message, {}};
        std::vector<double>& times = by_kernel[input.plan.launches[i].kernel];
        if (times.empty()) order.push_back(input.plan.launches[i].kernel);
        times.resize(warm_up + rounds);
        times[round] += run->seconds;
      }
    }
    std::vector<KernelSeconds> medians;
    for (const std::string& kernel : order) {
      std::vector<double>& times = by_kernel[kernel];
      times.erase(times.begin(), times.begin() + warm_up);
      medians.push_back({kernel, median(std::move(times))});
    }
    return medians;
  }

private:
  // The model's L2 also starts empty.
  Status flush() {
    const uint64_t l2 = device_.info().l2_bytes;
    if (l2 == 0) return {};
    Result<uint64_t> address = device_.allocate(2 * l2, "what flushes the L2 cache");
    if (!address) return address.error();
    const Status filled = device_.fill(*address, std::byte{1}, 2 * l2);
    const Status released = device_.release(*address);
    return filled ? released : filled;
  }

  cuda::Device& device_;
  const std::vector<Probe>& probes_;
  std::unique_ptr<ir::Module> module_;
  const double energy_seconds_;
  const Probe* last_ = nullptr;
  std::unique_ptr<driver::EnergyCounter> counter_;
  std::unique_ptr<ProbeOnDevice> on_device_;
};

class ModelStopwatch final : public Stopwatch {
public:
  ModelStopwatch(const ProbeRuns& runs, const ir::Machine& truth, double noise, const ir::EnergySet* energy,
                 uint64_t seed)
      : runs_(runs), truth_(truth), noise_(noise), energy_(energy), state_(seed) {}

  Result<GpuFacts> facts() override {
    return GpuFacts{std::string(truth_.name), truth_.compute_capability, truth_.sms,
                    static_cast<double>(truth_.clock_mhz), static_cast<uint64_t>(truth_.memory.l2_kib.value * 1024)};
  }

  Result<std::vector<double>> time_probe(size_t probe, bool long_one, unsigned rounds) override {
    const double clocks = runs_.clocks(probe, long_one, truth_);
    std::vector<double> seconds;
    for (unsigned round = 0; round < rounds; ++round)
      seconds.push_back(disturbed(clocks / (truth_.clock_mhz * 1e6)));
    return seconds;
  }

  Result<std::optional<ProbeEnergy>> energy_of_probe(size_t probe) override {
    if (!energy_) return std::optional<ProbeEnergy>();
    const double copies = energy_copies(runs_.probes()[probe], truth_.sms);
    const double seconds = runs_.clocks(probe, true, truth_) / (truth_.clock_mhz * 1e6);
    ir::EventCounts events = runs_.events(probe, true, truth_);
    for (double& count : events)
      count *= copies;
    return std::optional(ProbeEnergy{seconds, disturbed(timing::energy(*energy_, events, seconds).all())});
  }

  Result<std::vector<KernelSeconds>> time_file(const LaunchInput& input, unsigned rounds) override {
    cuda::ErrorPlace place;
    Result<ScoreRun> run = score(input, ScoreSettings{.machine = truth_, .passes = {}, .changes = {}}, place);
    if (!run) return run.error();
    if (run->failure) return Error{run->failure->message, {}};
    std::vector<KernelSeconds> medians;
    for (const ScoredKernel& kernel : run->scored.versions.front().kernels) {
      std::vector<double> times;
      for (unsigned round = 0; round < rounds; ++round)
        times.push_back(disturbed(kernel.seconds));
      medians.push_back({kernel.kernel, median(std::move(times))});
    }
    return medians;
  }

private:
  double uniform() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  // Approximately normal: the sum of twelve uniform numbers between 0 and 1 has variance 1.
  double disturbed(double seconds) {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += uniform();
    return seconds * (1 + noise_ * sum);
  }

  const ProbeRuns& runs_;
  const ir::Machine truth_;
  const double noise_;
  const ir::EnergySet* energy_;
  uint64_t state_;
};

} // namespace

uint32_t energy_copies(const Probe& probe, uint32_t sms) {
  if (probe.links == 0) return 0;
  if (probe.memory == ProbeMemory::none || probe.memory == ProbeMemory::constants) return sms;
  return probe.memory == ProbeMemory::numbers ? 1 : 0;
}

Result<std::unique_ptr<Stopwatch>> gpu_stopwatch(cuda::Device& device, const std::vector<Probe>& probes,
                                                 double energy_seconds) {
  std::unique_ptr<ir::Module> module = read_probe_module(1, needs_tensor_cores(probes));
  if (Status status = device.load(*module); !status) return status.error();
  return std::unique_ptr<Stopwatch>(std::make_unique<GpuStopwatch>(device, probes, std::move(module), energy_seconds));
}

std::unique_ptr<Stopwatch> model_stopwatch(const ProbeRuns& runs, const ir::Machine& truth, double noise,
                                           const ir::EnergySet* energy, uint64_t seed) {
  return std::make_unique<ModelStopwatch>(runs, truth, noise, energy, seed);
}

} // namespace ptxrewrite::evaluate
