// The logs that a program asks for with the options of a load or a link (CUjit_option).
#pragma once

#include "cuda/context/codes.h"

#include <cstddef>
#include <string_view>

namespace ptxrewrite::cuda::driver {

class JitLogs {
public:
  JitLogs() = default;
  // `options` and `values`, `count` each; they must stay until the last `write`.
  JitLogs(unsigned count, const int* options, void** values);

  // What was said goes to the log of errors if the call has failed, else to the other one; sizes are set to what was
  // written, with its zero byte.
  void write(Code code, std::string_view text);

private:
  struct Log {
    char* buffer = nullptr;
    void** size = nullptr; // a number of bytes, in place of a pointer: the room at first, then what was written
    size_t room = 0;
    void set_size(void*& value);
    void write(std::string_view text) const;
  };
  Log info_, errors_;
};

} // namespace ptxrewrite::cuda::driver
