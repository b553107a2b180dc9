// Rows of the .approx instructions, and of equivalent forms of PTX 1.3 and older: without .approx, with .ftz.
#include "emulator/semantics/approximate.h"
#include "emulator/core/operation.h"
#include "emulator/operations/float_modes.h"

namespace ptxrewrite::emulator {
namespace {

using namespace semantics;

#define APPROXIMATION(function, word)                                                                                  \
  table.row<&function<false>>(word ".approx.f32");                                                                     \
  table.row<&function<true>>(word ".approx.ftz.f32");                                                                  \
  table.row<&function<true>>(word ".f32");

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
  APPROXIMATION(sin_approx, "sin")
  APPROXIMATION(cos_approx, "cos")
  APPROXIMATION(lg2_approx, "lg2")
  table.row<&div_full<false>>("div.full.f32");
  table.row<&div_full<true>>("div.full.ftz.f32");
  table.row<&rsqrt_f32>("rsqrt.approx.f32");
  table.row<&rsqrt_ftz_f32>("rsqrt[.approx][.ftz].f32");
  table.row<&rsqrt_f64>("rsqrt[.approx].f64");
  table.row<&rsqrt_approx_ftz>("rsqrt.approx.ftz.f64");
  table.row<&rcp_approx_ftz>("rcp.approx.ftz.f64");
  table.row<&ex2_f32>("ex2.approx.f32");
  table.row<&ex2_ftz_f32>("ex2[.approx][.ftz].f32");
  table.row<&ex2_f16>("ex2.approx.f16");
  table.row<&ex2_bf16>("ex2.approx.ftz.bf16");
  table.row<each_of_one<&ex2_f16, Float16>>("ex2.approx.f16x2");
  table.row<each_of_one<&ex2_bf16, BFloat16>>("ex2.approx.ftz.bf16x2");
  table.row<&tanh_approx>("tanh.approx.f32");
  table.row<&tanh_approx_half<Float16>>("tanh.approx.f16");
  table.row<&tanh_approx_half<BFloat16>>("tanh.approx.bf16");
  table.row<each_of_one<&tanh_approx_half<Float16>, Float16>>("tanh.approx.f16x2");
  table.row<each_of_one<&tanh_approx_half<BFloat16>, BFloat16>>("tanh.approx.bf16x2");
}

} // namespace ptxrewrite::emulator
