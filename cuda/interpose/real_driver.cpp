#include "cuda/interpose/real_driver.h"

#include "cuda/context/log.h"

#include <cstdlib>
#include <dlfcn.h>

namespace ptxrewrite::cuda::interpose {
namespace {

// Replaces missing entry points; may be called with any parameters.
int no_driver() {
  return error_no_device;
}
int lacking() {
  return error_not_supported;
}

RealDriver* open() {
  auto* driver = new RealDriver;
  const char* path = std::getenv("PTXREWRITE_LIBCUDA");
  // RTLD_DEEPBIND: CUDA functions that the driver calls resolve to its own, not to the interposed ones.
  if (path && *path) driver->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!driver->handle)
    log_once(LogLevel::error, path && *path ? fmt::format("the CUDA driver cannot be opened: {}", dlerror())
                                            : "PTXREWRITE_LIBCUDA does not name the CUDA driver");
#define PTXREWRITE_RESOLVE(member, name, parameters)                                                                   \
  driver->member = reinterpret_cast<decltype(driver->member)>(driver->symbol_or_refusal(#name));
  PTXREWRITE_REAL_ENTRY_POINTS(PTXREWRITE_RESOLVE)
#undef PTXREWRITE_RESOLVE
  return driver;
}

} // namespace

RealDriver& RealDriver::get() {
  static RealDriver* const driver = open(); // never closed, because programs call until they exit
  return *driver;
}

void* RealDriver::symbol_or_refusal(const char* name) const {
  if (void* const found = handle ? dlsym(handle, name) : nullptr) return found;
  return reinterpret_cast<void*>(handle ? &lacking : &no_driver);
}

} // namespace ptxrewrite::cuda::interpose
