#include "cuda/driver/energy_counter.h"

#include <cstdlib>
#include <dlfcn.h>

namespace ptxrewrite::driver {

EnergyCounter::~EnergyCounter() {
  if (shut_down_) (void)shut_down_();
  if (library_) dlclose(library_);
}

Result<std::unique_ptr<EnergyCounter>> EnergyCounter::open(const std::string& bus_id, const std::string& path) {
  const char* named = std::getenv("PTXREWRITE_LIBNVML");
  const std::string name = !path.empty() ? path : named && *named ? named : "libnvidia-ml.so.1";
  std::unique_ptr<EnergyCounter> counter(new EnergyCounter);
  counter->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!counter->library_) return Error{"no energy counter: " + name + " cannot be opened", {}};
  auto entry = [&]<class Function>(Function*& to, const char* symbol) {
    to = reinterpret_cast<Function*>(dlsym(counter->library_, symbol));
    return to != nullptr;
  };
  int (*initialise)() = nullptr;
  int (*device_at)(const char*, void**) = nullptr;
  if (!entry(initialise, "nvmlInit_v2") || !entry(device_at, "nvmlDeviceGetHandleByPciBusId_v2") ||
      !entry(counter->read_, "nvmlDeviceGetTotalEnergyConsumption"))
    return Error{"no energy counter: " + name + " is too old", {}};
  if (initialise() != 0) return Error{"no energy counter: " + name + " does not start", {}};
  (void)entry(counter->shut_down_, "nvmlShutdown");
  if (device_at(bus_id.c_str(), &counter->device_) != 0)
    return Error{"no energy counter: " + name + " knows no GPU at " + bus_id, {}};
  if (Result<double> first = counter->joules(); !first) return first.error();
  return counter;
}

Result<double> EnergyCounter::joules() const {
  unsigned long long millijoules = 0;
  if (read_(device_, &millijoules) != 0) return Error{"the GPU does not count its energy", {}};
  return static_cast<double>(millijoules) * 1e-3;
}

} // namespace ptxrewrite::driver
