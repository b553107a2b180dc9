// A simulated energy counter of a machine with two GPUs: the first draws 400 W, the one that is the fake driver's GPU
// draws 50 W, regardless of load.
#include <chrono>
#include <cstring>
#include <iterator>

namespace {

struct FakeGpu {
  const char* bus_id;
  double watt;
};
constexpr FakeGpu gpus[] = {{"0000:1A:00.0", 400}, {"0000:3B:00.0", 50}};
constexpr int not_found = 6, invalid_argument = 2;

} // namespace

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const void** device) {
  if (index >= std::size(gpus)) return invalid_argument;
  *device = &gpus[index];
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, const void** device) {
  for (const FakeGpu& gpu : gpus)
    if (std::strcmp(gpu.bus_id, bus_id) == 0) {
      *device = &gpu;
      return 0;
    }
  return not_found;
}
int nvmlDeviceGetTotalEnergyConsumption(const void* device, unsigned long long* millijoules) {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  *millijoules = static_cast<unsigned long long>(now.count() * static_cast<const FakeGpu*>(device)->watt * 1e3);
  return 0;
}
}
