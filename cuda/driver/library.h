// libcuda, loaded at run time.
#pragma once

#include "cuda/driver/api.h"
#include "support/result.h"

#include <memory>
#include <string>

namespace ptxrewrite::driver {

// The entry points. All except those for textures and of newer drivers are valid once a library is open. As thread-safe
// as the driver.
class Library {
public:
  // If `path` is empty, loads the environment's PTXREWRITE_LIBCUDA, else libcuda.so.1 from the system's search path.
  // Fails (each failure means "no GPU") if the library is missing or lacks an entry point (an old driver), if the
  // driver does not start, or if there is no device.
  static Result<std::unique_ptr<Library>> open(const std::string& path = {});
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  int version() const { return version_; } // 13000: CUDA 13.0
  // Fails if the driver lacks an entry point for textures.
  Status check_textures() const;
  // "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  Error error(const char* what, ResultCode status) const;

#define PTXREWRITE_DECLARE(name, symbol, arguments) ResultCode(*name) arguments = nullptr;
  PTXREWRITE_DRIVER_ENTRY_POINTS(PTXREWRITE_DECLARE)
  PTXREWRITE_DRIVER_TEXTURE_ENTRY_POINTS(PTXREWRITE_DECLARE) // see check_textures
  PTXREWRITE_DRIVER_NEWER_ENTRY_POINTS(PTXREWRITE_DECLARE)   // nullptr if the driver lacks one
#undef PTXREWRITE_DECLARE

private:
  Library() = default;
  void* handle_ = nullptr;
  std::string name_;
  int version_ = 0;
};

} // namespace ptxrewrite::driver
