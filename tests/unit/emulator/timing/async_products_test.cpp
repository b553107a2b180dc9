// The time of wgmma and tcgen05.mma on tensor cores, against the peaks of data sheets: H100 989.4 TFLOPS in half
// precision and 1978.9 of 8 bits, at 1830 MHz on 132 SMs; B200 2.25 PFLOPS in half precision at 1965 MHz on 148 SMs.
// Two operations are a product and its sum.
#include "tests/unit/emulator/special/warp_group_kernel.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

namespace ptxrewrite::tests::async_products_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

double clocks_of_unit(const PtxRun& run, const Recording& recording, const ir::Machine& machine) {
  REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
  const ModelledLaunch launch(run.result.counters, recording, machine, 1);
  return demand_of(launch.input()).unit[static_cast<size_t>(Cause::unit_matrix)];
}

// Tensor core clocks of `count` wgmma with 256 columns by four warps.
double warp_group_clocks(const char* types, unsigned k, unsigned count) {
  namespace group = warp_group_test;
  const ir::Machine& machine = machine_named("h100");
  group::Form form;
  form.types = types;
  form.n = 256;
  form.k = k;
  if (k != 16) form.behind = ", 1, 1";
  group::Input input;
  input.shared.resize(32768);
  input.a = group::descriptor(0, 128, 256, 0);
  input.b = group::descriptor(8192, 128, 256, 0);
  std::string products = group::begin;
  for (unsigned i = 0; i < count; ++i)
    products += "  " + group::instruction(form, group::list("%d", form.d_registers()));
  Recorder recorder({.port = port_law(machine), .sms = machine.sms});
  LaunchRequest request;
  request.observer = &recorder;
  const PtxRun run = group::run_products(form, input, products + group::end, request);
  return clocks_of_unit(run, recorder.finish(), machine);
}

// Tensor core clocks of `count` tcgen05.mma of 128 rows and 256 columns.
double tensor_memory_clocks(const char* kind, uint32_t formats, unsigned count) {
  namespace memory = tensor_memory_test;
  const ir::Machine& machine = machine_named("b200");
  memory::TensorKernel kernel;
  kernel.columns = 256;
  kernel.shared.resize(16384);
  const uint64_t no_swizzle = uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32 | uint64_t(1) << 46;
  kernel.parameters = {no_swizzle, no_swizzle | 8192 >> 4, uint32_t(1 << 4 | formats | 256 / 8 << 17 | 128 / 16 << 24)};
  for (unsigned i = 0; i < count; ++i)
    kernel.operations += std::string("  tcgen05.mma.cta_group::1.kind::") + kind + " [%tm], %x0, %x1, %w2, %no;\n";
  Recorder recorder({.port = port_law(machine), .sms = machine.sms});
  LaunchRequest request;
  request.observer = &recorder;
  const PtxRun run = memory::run_tensor_kernel(kernel, std::vector<uint32_t>(128 * 256), request);
  return clocks_of_unit(run, recorder.finish(), machine);
}

// Tera operations per second of `sms` SMs, if `multiplications` of one SM take `clocks`.
double tera_operations(double multiplications, double clocks, double sms, double hertz) {
  return 2 * multiplications / clocks * sms * hertz / 1e12;
}

} // namespace

TEST_CASE("wgmma reaches the peak of the data sheet and no more") {
  const auto peak = [](const char* types, unsigned k) {
    const double clocks = warp_group_clocks(types, k, 40) - warp_group_clocks(types, k, 8);
    return tera_operations(32.0 * 64 * 256 * k, clocks, 132, 1830e6);
  };
  CHECK(peak("f32.f16.f16", 16) == doctest::Approx(989.4).epsilon(0.01));
  CHECK(peak("f32.e4m3.e4m3", 32) == doctest::Approx(1978.9).epsilon(0.01));
}

TEST_CASE("tcgen05.mma, whose size its descriptor says, reaches the peak of the data sheet and no more") {
  const double once = tensor_memory_clocks("f16", 0, 8);
  const double clocks = tensor_memory_clocks("f16", 0, 40) - once;
  CHECK(tera_operations(32.0 * 128 * 256 * 16, clocks, 148, 1965e6) == doctest::Approx(2250).epsilon(0.02));
  // Numbers of 8 bits: twice as many in the same time.
  CHECK(tensor_memory_clocks("f8f6f4", 0, 40) - tensor_memory_clocks("f8f6f4", 0, 8) == doctest::Approx(clocks));
}

} // namespace ptxrewrite::tests::async_products_test
