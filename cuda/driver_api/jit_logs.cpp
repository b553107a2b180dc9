#include "cuda/driver_api/jit_logs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ptxrewrite::cuda::driver {
namespace {

// CUjit_option.
constexpr int info_buffer = 3, info_size = 4, error_buffer = 5, error_size = 6;

} // namespace

JitLogs::JitLogs(unsigned count, const int* options, void** values) {
  for (unsigned i = 0; options && values && i < count; ++i) {
    if (options[i] == info_buffer) info_.buffer = static_cast<char*>(values[i]);
    if (options[i] == info_size) info_.set_size(values[i]);
    if (options[i] == error_buffer) errors_.buffer = static_cast<char*>(values[i]);
    if (options[i] == error_size) errors_.set_size(values[i]);
  }
}

void JitLogs::Log::set_size(void*& value) {
  size = &value;
  room = reinterpret_cast<uintptr_t>(value);
}

void JitLogs::Log::write(std::string_view text) const {
  if (!buffer || !size || room == 0) return;
  const size_t copied = std::min<size_t>(text.size(), room - 1);
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = '\0';
  *size = reinterpret_cast<void*>(copied ? copied + 1 : 0);
}

void JitLogs::write(Code code, std::string_view text) {
  info_.write(code == Code::success ? text : "");
  errors_.write(code == Code::success ? "" : text);
}

} // namespace ptxrewrite::cuda::driver
