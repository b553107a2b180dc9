// An energy counter of our own: a GPU that takes 50 W, whatever it does.
#include <chrono>

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
  static int gpu;
  *device = &gpu;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  constexpr double watt = 50;
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  *millijoules = static_cast<unsigned long long>(now.count() * watt * 1e3);
  return 0;
}
}
