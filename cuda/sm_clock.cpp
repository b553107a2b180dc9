#include "cuda/sm_clock.h"

#include "grammar/reader.h"

#include <array>
#include <cstring>

namespace ptxrewrite::cuda {
namespace {

// One thread reads both clocks until `nanoseconds` have passed, but at most `rounds` times.
constexpr const char* clock_kernel = R"(.version 6.0
.target sm_60
.address_size 64

.visible .entry sm_clock(.param .u64 differences, .param .u64 nanoseconds, .param .u64 rounds)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [differences];
  ld.param.u64 %rd2, [nanoseconds];
  ld.param.u64 %rd3, [rounds];
  mov.u64 %rd4, %globaltimer;
  mov.u64 %rd5, %clock64;
WATCH:
  mov.u64 %rd6, %globaltimer;
  mov.u64 %rd7, %clock64;
  sub.u64 %rd8, %rd6, %rd4;
  sub.u64 %rd9, %rd7, %rd5;
  sub.u64 %rd3, %rd3, 1;
  setp.eq.u64 %p0, %rd3, 0;
  @%p0 bra DONE;
  setp.lt.u64 %p1, %rd8, %rd2;
  @%p1 bra WATCH;
DONE:
  st.global.u64 [%rd1], %rd8;
  st.global.u64 [%rd1+8], %rd9;
  ret;
}
)";
// %globaltimer advances in steps of up to a microsecond: an error of 1 in 2000.
constexpr uint64_t watched_nanoseconds = 2'000'000;
constexpr uint64_t most_rounds = 1'000'000;

// Frees the memory when the measurement ends, also after an error.
struct Differences {
  Device& device;
  uint64_t address;
  ~Differences() { (void)device.release(address); }
};

} // namespace

Result<double> measure_sm_clock(Device& device, size_t module_in_use) {
  Diagnostics diagnostics;
  static const std::unique_ptr<ir::Module> module =
      grammar::read_module(SourceFile("the clock kernel", clock_kernel), diagnostics);
  Result<uint64_t> address = device.allocate(16, "clocks");
  if (!address) return address.error();
  Differences differences{device, *address};
  if (Result<size_t> number = device.load_beside(*module); !number) return number.error();
  const std::array<uint64_t, 3> parameters = {*address, watched_nanoseconds, most_rounds};
  KernelLaunch launch{"sm_clock", {1, 1, 1}, {1, 1, 1}, 0, {}, {}};
  launch.parameters.resize(sizeof parameters);
  std::memcpy(launch.parameters.data(), parameters.data(), sizeof parameters);
  Result<KernelRun> run = device.launch(launch);
  device.use_module(module_in_use);
  if (!run) return run.error();
  if (run->failure) return Error{run->failure->message, {}};
  std::array<uint64_t, 2> seen{};
  if (Status status = device.read(*address, std::as_writable_bytes(std::span(seen))); !status) return status.error();
  if (seen[0] == 0) return Error{"the GPU's %globaltimer stands still", {}};
  return static_cast<double>(seen[1]) / static_cast<double>(seen[0]) * 1e9;
}

} // namespace ptxrewrite::cuda
