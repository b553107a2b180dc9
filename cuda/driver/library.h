// libcuda, opened at run time.
#pragma once

#include "cuda/driver/api.h"
#include "support/result.h"

#include <memory>
#include <string>

namespace ptxrewrite::driver {

// The entry points; all but those of textures are there once a library is open. Not thread-safe beyond what the driver
// itself is.
class Library {
public:
  // `path` empty: what the environment's PTXREWRITE_LIBCUDA names, else libcuda.so.1, wherever the system has it.
  // Errors (all mean "no GPU here"): no such library, an entry point that it lacks (an old driver), a driver that does
  // not start, no device.
  static Result<std::unique_ptr<Library>> open(const std::string& path = {});
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  int version() const { return version_; } // 13000: CUDA 13.0
  // Error: the driver lacks an entry point that textures need.
  Status check_textures() const;
  // "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  Error error(const char* what, ResultCode status) const;

#define PTXREWRITE_DECLARE(name, symbol, arguments) ResultCode(*name) arguments = nullptr;
  PTXREWRITE_DRIVER_ENTRY_POINTS(PTXREWRITE_DECLARE)
  PTXREWRITE_DRIVER_TEXTURE_ENTRY_POINTS(PTXREWRITE_DECLARE) // see check_textures
#undef PTXREWRITE_DECLARE

private:
  Library() = default;
  void* handle_ = nullptr;
  std::string name_;
  int version_ = 0;
};

} // namespace ptxrewrite::driver
