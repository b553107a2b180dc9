#include "cuda/driver/library.h"

#include <cstdlib>
#include <dlfcn.h>

namespace ptxrewrite::driver {

Library::~Library() {
  if (handle_) dlclose(handle_);
}

Error Library::error(const char* what, ResultCode status) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name && error_name(status, &name) == success && name && error_text(status, &text) == success && text)
    return {std::string(what) + ": " + name + " (" + text + ")", {}};
  return {std::string(what) + ": error " + std::to_string(status), {}};
}

Status Library::check_textures() const {
#define PTXREWRITE_CHECK(entry, symbol, arguments)                                                                     \
  if (!entry) return Error{"no textures: " + name_ + " has no " #symbol, {}};
  PTXREWRITE_DRIVER_TEXTURE_ENTRY_POINTS(PTXREWRITE_CHECK)
#undef PTXREWRITE_CHECK
  return {};
}

Result<std::unique_ptr<Library>> Library::open(const std::string& path) {
  const char* named = std::getenv("PTXREWRITE_LIBCUDA");
  const std::string name = !path.empty() ? path : named && *named ? named : "libcuda.so.1";
  std::unique_ptr<Library> library(new Library);
  library->handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle_) return Error{"no GPU here: " + name + " cannot be opened", {}};
  const char* missing = nullptr;
#define PTXREWRITE_RESOLVE(entry, symbol, arguments)                                                                   \
  library->entry = reinterpret_cast<decltype(library->entry)>(dlsym(library->handle_, #symbol));                       \
  if (!library->entry && !missing) missing = #symbol;
  PTXREWRITE_DRIVER_ENTRY_POINTS(PTXREWRITE_RESOLVE)
  const char* const missing_of_all = missing;
  PTXREWRITE_DRIVER_TEXTURE_ENTRY_POINTS(PTXREWRITE_RESOLVE)
  PTXREWRITE_DRIVER_NEWER_ENTRY_POINTS(PTXREWRITE_RESOLVE)
#undef PTXREWRITE_RESOLVE
  library->name_ = name;
  if (missing_of_all) return Error{"no GPU here: " + name + " is too old: it has no " + missing_of_all, {}};
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
