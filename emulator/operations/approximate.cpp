// Rows of the .approx instructions, and of equivalent forms of PTX 1.3 and older: without .approx, with .ftz.
#include "emulator/semantics/approximate.h"
#include "emulator/core/operation.h"
#include "emulator/operations/float_modes.h"
#include "emulator/operations/wide_handler.h"
#include "emulator/semantics/wide_sine.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

template <auto function> void wide_row(OperationTable& table, std::string_view pattern) {
  table.row<function>(pattern, wide_lane_handler<function>());
}

// sin and cos. The wide way computes all 32 lanes; a lane that it does not know sends all of them the general way.
template <auto function, Wave wave, bool flush> const MicroOp* run_wave(Warp& warp, const MicroOp& op) {
#if defined(PTXREWRITE_WIDE_SINE)
  alignas(64) float results[warp_size];
  const bool is_whole = warp.mask == full_mask;
  float* target = is_whole ? warp.lanes<float>(op.destination[0]) : results;
  if (wide_wave<wave, flush>(warp.lanes<float>(op.source[0]), target)) {
    if (!is_whole)
      emulator::detail::write_lanes<float>(warp, op.destination[0], warp.mask,
                                           [&](unsigned lane) { return results[lane]; });
    return &op + 1;
  }
#endif
  return wide_lane_handler<function>()(warp, op);
}

template <auto function, Wave wave, bool flush> void wave_row(OperationTable& table, std::string_view pattern) {
  table.row<function>(pattern, host_has_avx512() ? &run_wave<function, wave, flush> : lane_handler<function>);
}

#define APPROXIMATION(function, word)                                                                                  \
  wide_row<&function<false>>(table, word ".approx.f32");                                                               \
  wide_row<&function<true>>(table, word ".approx.ftz.f32");                                                            \
  wide_row<&function<true>>(table, word ".f32");

float rsqrt_f32(float a) {
  return rsqrt_approx<false>(a);
}
float rsqrt_ftz_f32(float a) {
  return rsqrt_approx<true>(a);
}
double rsqrt_f64(double a) {
  return rsqrt_approx(a);
}
float ex2_f32(float a) {
  return ex2_approx<false>(a);
}
float ex2_ftz_f32(float a) {
  return ex2_approx<true>(a);
}
Float16 ex2_f16(Float16 a) {
  return ex2_approx(a);
}
BFloat16 ex2_bf16(BFloat16 a) {
  return ex2_approx(a);
}

} // namespace

void add_approximations(OperationTable& table) {
  APPROXIMATION(div_approx, "div")
  APPROXIMATION(rcp_approx, "rcp")
  APPROXIMATION(sqrt_approx, "sqrt")
  wave_row<&sin_approx<false>, Wave::sine, false>(table, "sin.approx.f32");
  wave_row<&sin_approx<true>, Wave::sine, true>(table, "sin.approx.ftz.f32");
  wave_row<&sin_approx<true>, Wave::sine, true>(table, "sin.f32");
  wave_row<&cos_approx<false>, Wave::cosine, false>(table, "cos.approx.f32");
  wave_row<&cos_approx<true>, Wave::cosine, true>(table, "cos.approx.ftz.f32");
  wave_row<&cos_approx<true>, Wave::cosine, true>(table, "cos.f32");
  APPROXIMATION(lg2_approx, "lg2")
  table.row<&div_full<false>>("div.full.f32");
  table.row<&div_full<true>>("div.full.ftz.f32");
  table.row<&rsqrt_f32>("rsqrt.approx.f32");
  table.row<&rsqrt_ftz_f32>("rsqrt[.approx][.ftz].f32");
  table.row<&rsqrt_f64>("rsqrt[.approx].f64");
  table.row<&rsqrt_approx_ftz>("rsqrt.approx.ftz.f64");
  table.row<&rcp_approx_ftz>("rcp.approx.ftz.f64");
  wide_row<&ex2_f32>(table, "ex2.approx.f32");
  wide_row<&ex2_ftz_f32>(table, "ex2[.approx][.ftz].f32");
  table.row<&ex2_f16>("ex2.approx.f16");
  table.row<&ex2_bf16>("ex2.approx.ftz.bf16");
  table.row<each_of_one<&ex2_f16, Float16>>("ex2.approx.f16x2");
  table.row<each_of_one<&ex2_bf16, BFloat16>>("ex2.approx.ftz.bf16x2");
  wide_row<&tanh_approx>(table, "tanh.approx.f32");
  table.row<&tanh_approx_half<Float16>>("tanh.approx.f16");
  table.row<&tanh_approx_half<BFloat16>>("tanh.approx.bf16");
  table.row<each_of_one<&tanh_approx_half<Float16>, Float16>>("tanh.approx.f16x2");
  table.row<each_of_one<&tanh_approx_half<BFloat16>, BFloat16>>("tanh.approx.bf16x2");
}

} // namespace ptxrewrite::emulator
