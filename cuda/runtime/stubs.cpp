// Weak definitions of all symbols of the real library that are not implemented elsewhere; they fail.
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

// Rows for the major version being compiled.
#define SINCE_11(...) __VA_ARGS__
#if PTXREWRITE_CUDART_MAJOR >= 12
#define SINCE_12(...) __VA_ARGS__
#else
#define SINCE_12(...)
#endif
#if PTXREWRITE_CUDART_MAJOR >= 13
#define SINCE_13(...) __VA_ARGS__
#define UNTIL_12(...)
#else
#define SINCE_13(...)
#define UNTIL_12(...) __VA_ARGS__
#endif
#if PTXREWRITE_CUDART_MAJOR >= 12
#define UNTIL_11(...)
#else
#define UNTIL_11(...) __VA_ARGS__
#endif
#define UNTIL_0(...) __VA_ARGS__

#define ENTRY_POINT(NAME, SINCE, UNTIL)                                                                                \
  SINCE_##SINCE(                                                                                                       \
      UNTIL_##UNTIL(extern "C" __attribute__((weak, visibility("default"))) int NAME() { return refuse(#NAME); }))
#include "cuda/runtime/entry_points.def"
#undef ENTRY_POINT
