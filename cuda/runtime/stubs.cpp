// Every symbol of the real library exists: what is not defined elsewhere is defined here, weakly, and fails.
#include "cuda/context/log.h"
#include "cuda/runtime/entry.h"

namespace {

int refuse(const char* name) {
  using namespace ptxrewrite::cuda;
  Context::get();
  log_once(LogLevel::warn, std::string(name) + " is not emulated");
  return runtime::finish(Code::not_supported);
}

} // namespace

#define ENTRY_POINT(NAME, SINCE, UNTIL)                                                                                \
  extern "C" __attribute__((weak, visibility("default"))) int NAME() {                                                 \
    return refuse(#NAME);                                                                                              \
  }
#include "cuda/runtime/entry_points.def"
#undef ENTRY_POINT
