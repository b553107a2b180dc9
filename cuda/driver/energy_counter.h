// The energy consumption of a GPU, by NVIDIA's management library, which is loaded on demand.
#pragma once

#include "support/result.h"

#include <memory>
#include <string>

namespace ptxrewrite::driver {

class EnergyCounter {
public:
  ~EnergyCounter();
  EnergyCounter(const EnergyCounter&) = delete;
  EnergyCounter& operator=(const EnergyCounter&) = delete;

  // Opens the counter of the GPU with this PCI bus ID, in CUDA's notation: the two libraries number GPUs differently if
  // the environment hides or reorders them (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER). If `path` is empty, loads the
  // environment's PTXREWRITE_LIBNVML, else libnvidia-ml.so.1. Fails if there is no library, or if the GPU does not
  // support the counter.
  static Result<std::unique_ptr<EnergyCounter>> open(const std::string& bus_id, const std::string& path = {});
  // Energy since the driver was loaded. The counter is updated every few milliseconds at most.
  Result<double> joules() const;

private:
  EnergyCounter() = default;
  void* library_ = nullptr;
  void* device_ = nullptr;
  int (*read_)(void*, unsigned long long*) = nullptr;
  int (*shut_down_)() = nullptr;
};

} // namespace ptxrewrite::driver
