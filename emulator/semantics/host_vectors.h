// The vector instructions of the host, where faster code than that of the compiler's -march exists.
#pragma once

#include <cstdlib>
#include <string_view>

namespace ptxrewrite::emulator::semantics {

#if defined(__x86_64__)

// AVX-512 with its extensions of Skylake's servers. PTXREWRITE_HOST_VECTORS=avx2 in the environment hides it, so that a
// test runs what hosts without it run.
inline bool host_has_avx512() {
  static const bool has = [] {
    const char* limit = std::getenv("PTXREWRITE_HOST_VECTORS");
    if (limit && std::string_view(limit) == "avx2") return false;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }();
  return has;
}

#else

constexpr bool host_has_avx512() {
  return false;
}

#endif

} // namespace ptxrewrite::emulator::semantics
