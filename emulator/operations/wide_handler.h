// Lane functions with long chains of arithmetic, compiled a second time for AVX-512: half as many vectors, so that
// twice as many lanes are in flight in the host's schedulers. The same bits: no contraction, no other order.
#pragma once

#include "emulator/core/lanes.h"
#include "emulator/semantics/host_vectors.h"

namespace ptxrewrite::emulator {

#if defined(__x86_64__)

#if defined(__clang__) // has no such option in the attribute
#define PTXREWRITE_WIDE_LANES gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#else
#define PTXREWRITE_WIDE_LANES gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#endif

template <auto function>
[[gnu::flatten, PTXREWRITE_WIDE_LANES]] const MicroOp* run_wide_lanes(Warp& warp, const MicroOp& op) {
  using Lanes = LaneHandlerOf<function>;
  return Lanes::apply(warp, op, std::make_index_sequence<Lanes::source_count>());
}

#endif

// The handler of a plain function for this host (lanes.h).
template <auto function> Handler wide_lane_handler() {
#if defined(__x86_64__)
  if (semantics::host_has_avx512()) return &run_wide_lanes<function>;
#endif
  return lane_handler<function>;
}

} // namespace ptxrewrite::emulator
