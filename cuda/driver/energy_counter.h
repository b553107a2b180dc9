// The energy that a GPU has used, by NVIDIA's management library, which is loaded when it is asked for.
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

  // Of the GPU at this place of the PCI bus, as CUDA writes it: the two number GPUs differently where the environment
  // hides or orders them (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER). `path` empty: the library that the environment's
  // PTXREWRITE_LIBNVML names, else libnvidia-ml.so.1. Error: there is none, or the GPU does not count.
  static Result<std::unique_ptr<EnergyCounter>> open(const std::string& bus_id, const std::string& path = {});
  // Since the driver was loaded. Steps are milliseconds apart and more.
  Result<double> joules() const;

private:
  EnergyCounter() = default;
  void* library_ = nullptr;
  void* device_ = nullptr;
  int (*read_)(void*, unsigned long long*) = nullptr;
  int (*shut_down_)() = nullptr;
};

} // namespace ptxrewrite::driver
