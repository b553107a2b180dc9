#include "cli/driver/library.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace ptxrewrite::driver {

Library::~Library() {
  if (handle_) dlclose(handle_);
}

Error Library::error(const char* what, ResultCode status) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name && error_name(status, &name) == success && name && error_text(status, &text) == success && text)
    return {fmt::format("{}: {} ({})", what, name, text), {}};
  return {fmt::format("{}: error {}", what, status), {}};
}

Result<std::unique_ptr<Library>> Library::open(const std::string& path) {
  const std::string name = path.empty() ? "libcuda.so.1" : path;
  std::unique_ptr<Library> library(new Library);
  library->handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle_) return Error{fmt::format("no GPU here: {} cannot be opened", name), {}};
  const char* missing = nullptr;
#define PTXREWRITE_RESOLVE(entry, symbol, arguments)                                                                   \
  library->entry = reinterpret_cast<decltype(library->entry)>(dlsym(library->handle_, #symbol));                       \
  if (!library->entry && !missing) missing = #symbol;
  PTXREWRITE_DRIVER_ENTRY_POINTS(PTXREWRITE_RESOLVE)
#undef PTXREWRITE_RESOLVE
  if (missing) return Error{fmt::format("no GPU here: {} is too old: it has no {}", name, missing), {}};
  if (ResultCode status = library->initialise(0); status != success)
    return Error{"no GPU here: " + library->error("cuInit", status).message, {}};
  if (ResultCode status = library->driver_version(&library->version_); status != success)
    return Error{"no GPU here: " + library->error("cuDriverGetVersion", status).message, {}};
  int devices = 0;
  if (ResultCode status = library->device_count(&devices); status != success || devices == 0)
    return Error{"no GPU here: the driver knows no device", {}};
  return library;
}

} // namespace ptxrewrite::driver
