// Error codes of the runtime API: the thread's last error, names and texts.
#include "cuda/runtime/entry.h"

#include <array>

namespace ptxrewrite::cuda::runtime {
namespace {

constexpr ErrorRow rows[] = {
#define RUNTIME_ERROR(NUMBER, NAME, TEXT) {NUMBER, #NAME, TEXT},
#include "cuda/runtime/errors.def"
#undef RUNTIME_ERROR
};

const ErrorRow* row_of(int number) {
  return find_error(rows, number);
}

} // namespace

int finish(Code code) {
  if (code == Code::success) return 0;
  if (code != Code::not_ready) last_error = code;
  if (is_logged(LogLevel::info))
    if (const ErrorRow* row = row_of(static_cast<int>(code))) log_text(LogLevel::info, fmt::format("-> {}", row->name));
  return static_cast<int>(code);
}

// A kernel's fault is sticky; other errors are reported once.
RUNTIME_API int cudaGetLastError() {
  const Code code = std::exchange(last_error, Code::success);
  const Code fault = Context::get().seen_fault();
  return static_cast<int>(fault != Code::success ? fault : code);
}

RUNTIME_API int cudaPeekAtLastError() {
  const Code fault = Context::get().seen_fault();
  return static_cast<int>(fault != Code::success ? fault : last_error);
}

RUNTIME_API const char* cudaGetErrorName(int code) {
  const ErrorRow* row = row_of(code);
  return row ? row->name : "unrecognized error code";
}

RUNTIME_API const char* cudaGetErrorString(int code) {
  const ErrorRow* row = row_of(code);
  return row ? row->text : "unrecognized error code";
}

} // namespace ptxrewrite::cuda::runtime
