// The log buffers that a program passes in the options of a load or a link (CUjit_option).
#pragma once

#include "cuda/context/codes.h"

#include <cstddef>
#include <string_view>

namespace ptxrewrite::cuda::driver {

class JitLogs {
public:
  JitLogs() = default;
  // `options` and `values` have `count` elements; they must stay valid until the last `write`.
  JitLogs(unsigned count, const int* options, void** values);

  // Writes the text to the error log if the call has failed, otherwise to the info log; sets sizes to the number of
  // bytes written, including the terminating zero.
  void write(Code code, std::string_view text);

private:
  struct Log {
    char* buffer = nullptr;
    void** size = nullptr; // a number of bytes instead of a pointer: first the capacity, then the bytes written
    size_t room = 0;
    void set_size(void*& value);
    void write(std::string_view text) const;
  };
  Log info_, errors_;
};

} // namespace ptxrewrite::cuda::driver
