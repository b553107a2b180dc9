// The interposed driver (`exec --device cuda`): a module whose kernel is rewritten for some launches and not for
// others, loaded and launched in every way that the driver API offers. The kernels' results are compared with sums
// computed on the host.
#include "tests/applications/check.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <string>
#include <vector>

// Sums every stride-th byte from the thread's own byte on, and counts the launches. A stride of 2^31 wraps, which
// rewritten addresses do not: that launch keeps the original.
static const char* const text = R"(.version 7.0
.target sm_70
.address_size 64
.global .u32 launches;
.visible .entry walk(.param .u64 in, .param .u64 out, .param .u32 stride, .param .u32 rows, .param .u32 n)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %d<8>;
  ld.param.u64 %d1, [in];
  ld.param.u64 %d2, [out];
  ld.param.u32 %r1, [stride];
  ld.param.u32 %r2, [rows];
  ld.param.u32 %r3, [n];
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, %r4;
  mov.u32 %r6, 0;
  mov.u32 %r7, 0;
$LOOP:
  setp.ge.u32 %p1, %r7, %r2;
  @%p1 bra $END;
  setp.ge.u32 %p2, %r5, %r3;
  @%p2 bra $NEXT;
  cvt.u64.u32 %d3, %r5;
  add.s64 %d4, %d1, %d3;
  ld.global.u8 %r8, [%d4];
  add.u32 %r6, %r6, %r8;
$NEXT:
  add.u32 %r5, %r5, %r1;
  add.u32 %r7, %r7, 1;
  bra $LOOP;
$END:
  mul.wide.u32 %d5, %r4, 4;
  add.s64 %d6, %d2, %d5;
  st.global.u32 [%d6], %r6;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 ret;
  red.global.add.u32 [launches], 1;
  ret;
}
)";

constexpr unsigned threads = 32, n = 1024;

static CUdeviceptr in, out;
static CUstream stream;
static std::vector<unsigned char> bytes(n);

static void check(unsigned stride, unsigned rows) {
  std::vector<unsigned> sums(threads);
  DRIVER(cuCtxSynchronize());
  DRIVER(cuMemcpyDtoH(sums.data(), out, threads * 4));
  for (unsigned t = 0; t < threads; ++t) {
    unsigned expected = 0;
    for (unsigned r = 0, i = t; r < rows; ++r, i += stride)
      if (i < n) expected += bytes[i];
    EXPECT(sums[t] == expected);
  }
  DRIVER(cuMemsetD32(out, 77, threads));
}

struct Arguments {
  CUdeviceptr in, out;
  unsigned stride, rows, n;
};

static void launch(CUfunction function, CUstream where, unsigned stride, unsigned rows) {
  void* arguments[] = {&in, &out, &stride, &rows, const_cast<unsigned*>(&n)};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, where, arguments, nullptr));
}

static unsigned launches_of(CUdeviceptr counter) {
  unsigned launches = 0;
  DRIVER(cuMemcpyDtoH(&launches, counter, 4));
  return launches;
}

// Launches for which the variant is valid, and one for which it is not; both codes share the module's variable.
static CUfunction launch_of_module(CUdeviceptr& counter) {
  CUmodule module;
  CUfunction function;
  DRIVER(cuModuleLoadData(&module, text));
  DRIVER(cuModuleGetFunction(&function, module, "walk"));
  DRIVER(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
  launch(function, stream, 4, 8);
  check(4, 8);
  launch(function, nullptr, 16, 16);
  check(16, 16);
  launch(function, stream, 0x80000000u, 8);
  check(0x80000000u, 8);
  DRIVER(cuModuleGetGlobal(&counter, nullptr, module, "launches"));
  EXPECT(launches_of(counter) == 3);
  return function;
}

static void launch_in_other_ways(CUfunction function, CUdeviceptr counter) {
  // Arguments as one block of bytes, and a launch with attributes.
  Arguments block{in, out, 8, 12, n};
  // Without the structure's trailing padding: an H100's driver rejects a block longer than the kernel's parameters.
  size_t size = offsetof(Arguments, n) + sizeof n;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, nullptr, extra));
  check(8, 12);
  CUlaunchConfig configuration;
  std::memset(&configuration, 0, sizeof configuration);
  configuration.gridDimX = configuration.gridDimY = configuration.gridDimZ = 1;
  configuration.blockDimX = threads;
  configuration.blockDimY = configuration.blockDimZ = 1;
  configuration.hStream = stream;
  unsigned stride = 2, rows = 5;
  void* arguments[] = {&in, &out, &stride, &rows, const_cast<unsigned*>(&n)};
  DRIVER(cuLaunchKernelEx(&configuration, function, arguments, nullptr));
  check(2, 5);
  EXPECT(launches_of(counter) == 5);
}

static void launch_in_graph(CUfunction function, CUdeviceptr counter) {
  // The original goes into a graph: arguments of its nodes may change.
  DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch(function, stream, 4, 8);
  CUgraph graph;
  DRIVER(cuStreamEndCapture(stream, &graph));
  EXPECT(launches_of(counter) == 5);
  CUgraphExec instance;
  DRIVER(cuGraphInstantiate(&instance, graph, 0));
  DRIVER(cuGraphLaunch(instance, stream));
  check(4, 8);
  EXPECT(launches_of(counter) == 6);
}

// A library's kernel, launched directly and by its function; entry points by name, as the runtime finds them.
static void launch_of_library(int repeats) {
  CUlibrary library;
  DRIVER(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel;
  DRIVER(cuLibraryGetKernel(&kernel, library, "walk"));
  launch(reinterpret_cast<CUfunction>(kernel), stream, 32, 4);
  check(32, 4);
  CUfunction function;
  DRIVER(cuKernelGetFunction(&function, kernel));
  decltype(&cuLaunchKernel) by_name = nullptr;
  CUdriverProcAddressQueryResult found;
  DRIVER(cuGetProcAddress("cuLaunchKernel", reinterpret_cast<void**>(&by_name), 12000, CU_GET_PROC_ADDRESS_DEFAULT,
                          &found));
  EXPECT(found == CU_GET_PROC_ADDRESS_SUCCESS);
  unsigned stride = 3, rows = 9;
  void* arguments[] = {&in, &out, &stride, &rows, const_cast<unsigned*>(&n)};
  DRIVER(by_name(function, 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  check(3, 9);
  for (int i = 0; i < repeats; ++i) {
    launch(function, stream, 4, 8);
    if (i < 100) DRIVER(cuStreamSynchronize(stream)); // the times of these are known at once
  }
  if (repeats) check(4, 8);
  DRIVER(cuLibraryUnload(library));
}

int main(int count, char** words) {
  const int repeats = count > 1 ? std::atoi(words[1]) : 0;
  DRIVER(cuInit(0));
  CUdevice device;
  DRIVER(cuDeviceGet(&device, 0));
  CUcontext context;
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxPushCurrent(context));
  for (unsigned i = 0; i < n; ++i)
    bytes[i] = static_cast<unsigned char>(i % 251);
  DRIVER(cuMemAlloc(&in, n));
  DRIVER(cuMemAlloc(&out, threads * 4));
  DRIVER(cuMemcpyHtoD(in, bytes.data(), n));
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

  CUdeviceptr counter;
  const CUfunction function = launch_of_module(counter);
  launch_in_other_ways(function, counter);
  launch_in_graph(function, counter);
  launch_of_library(repeats);

  // Invalid modules and handles are still rejected.
  CUmodule module;
  EXPECT(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\nnonsense") == CUDA_ERROR_INVALID_PTX);
  EXPECT(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  std::puts("right");
}
