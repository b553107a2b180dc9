// Weak definitions of all entry points of cuda.h that are not implemented elsewhere; they fail.
#include "cuda/driver_api/entry.h"

#include <string_view>

namespace {

int refuse(const char* name) {
  using namespace ptxrewrite::cuda;
  Context::get();
  log_once(LogLevel::warn, std::string(name) + " is not emulated");
  return driver::finish(Code::not_supported);
}

} // namespace

#define ENTRY_POINT(NAME)                                                                                              \
  extern "C" __attribute__((weak, visibility("default"))) int NAME() {                                                 \
    return refuse(#NAME);                                                                                              \
  }
#include "cuda/driver_api/entry_points.def"
#undef ENTRY_POINT

namespace ptxrewrite::cuda::driver {
namespace {

struct Row {
  std::string_view name;
  int (*function)();
};

constexpr Row rows[] = {
#define ENTRY_POINT(NAME) {#NAME, &NAME},
#include "cuda/driver_api/entry_points.def"
#undef ENTRY_POINT
};

} // namespace

void* find_entry_point(std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return reinterpret_cast<void*>(row.function);
  return nullptr;
}

} // namespace ptxrewrite::cuda::driver
