// Calls of the driver API that the other programs here do not make: libraries, launches with attributes, attributes of
// pointers, occupancy, and streams while a kernel runs.
#include "../check.h"

#include <cstring>
#include <cuda.h>
#include <cudaProfiler.h>

// `position` writes its cluster's size, `wait` waits for its flag and then sets a value.
static const char* const text = R"(.version 8.0
.target sm_90
.address_size 64
.global .u32 total = 5;
.visible .entry position(.param .u64 out)
{
  .reg .b32 %r;
  .reg .b64 %d;
  ld.param.u64 %d, [out];
  mov.u32 %r, %cluster_nctaid.x;
  st.global.u32 [%d], %r;
  ret;
}
.visible .entry wait(.param .u64 flag, .param .u64 out)
{
  .reg .pred %p;
  .reg .b32 %r;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [flag];
  ld.param.u64 %d2, [out];
again:
  ld.volatile.global.u32 %r, [%d1];
  setp.eq.u32 %p, %r, 0;
  @%p bra again;
  st.global.u32 [%d2], %r;
  ret;
}
)";

static unsigned value_at(CUdeviceptr address) {
  unsigned value = 0;
  DRIVER(cuMemcpyDtoH(&value, address, sizeof value));
  return value;
}

static void libraries(CUcontext context) {
  CUlibrary library;
  DRIVER(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel;
  EXPECT(cuLibraryGetKernel(&kernel, library, "absent") == CUDA_ERROR_NOT_FOUND);
  DRIVER(cuLibraryGetKernel(&kernel, library, "position"));
  CUfunction function;
  DRIVER(cuKernelGetFunction(&function, kernel));
  CUdeviceptr total, out;
  size_t bytes = 0;
  DRIVER(cuLibraryGetGlobal(&total, &bytes, library, "total"));
  EXPECT(bytes == 4 && value_at(total) == 5);
  DRIVER(cuMemAlloc(&out, 4));
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {4, 1, 1};
  CUlaunchConfig configuration{};
  configuration.gridDimX = 8;
  configuration.gridDimY = configuration.gridDimZ = 1;
  configuration.blockDimX = 32;
  configuration.blockDimY = configuration.blockDimZ = 1;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  void* arguments[] = {&out};
  DRIVER(cuLaunchKernelEx(&configuration, function, arguments, nullptr));
  EXPECT(value_at(out) == 4);
  // A handle of a library's kernel may be launched as it is.
  DRIVER(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT(value_at(out) == 1);
  attribute.value.clusterDim = {3, 1, 1}; // does not divide the grid
  EXPECT(cuLaunchKernelEx(&configuration, function, arguments, nullptr) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
  int blocks = 0, grid = 0, block = 0, clusters = 0;
  DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 512, 0));
  EXPECT(blocks == 4); // 2,048 threads
  DRIVER(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
  EXPECT(grid * block == 132 * 2048);
  attribute.value.clusterDim = {2, 1, 1};
  DRIVER(cuOccupancyMaxActiveClusters(&clusters, function, &configuration));
  EXPECT(clusters == 132 * 32 / 2); // 32 blocks of a warp each
  DRIVER(cuMemFree(out));
  DRIVER(cuLibraryUnload(library));
  CUcontext same = nullptr;
  DRIVER(cuCtxGetCurrent(&same));
  EXPECT(same == context);
}

static void pointers() {
  CUdeviceptr device, managed;
  void* host;
  DRIVER(cuMemAlloc(&device, 100));
  DRIVER(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  DRIVER(cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_DEVICEMAP));
  unsigned type = 0, is_managed = 2;
  DRIVER(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 50));
  EXPECT(type == CU_MEMORYTYPE_DEVICE);
  DRIVER(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
  EXPECT((is_managed & 0xff) == 0);
  DRIVER(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  EXPECT((is_managed & 0xff) == 1);
  const auto as_address = reinterpret_cast<CUdeviceptr>(host);
  DRIVER(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, as_address));
  EXPECT(type == CU_MEMORYTYPE_HOST);
  CUdeviceptr mapped = 0, begin = 0;
  DRIVER(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, as_address));
  EXPECT(mapped != 0);
  size_t bytes = 0;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&begin, &bytes};
  DRIVER(cuPointerGetAttributes(2, which, values, device + 50));
  EXPECT(begin == device && bytes == 100);
  int unknown = 0;
  EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&unknown)) ==
         CUDA_ERROR_INVALID_VALUE);
}

static void running_kernel() {
  CUmodule module;
  CUfunction function;
  DRIVER(cuModuleLoadData(&module, text));
  DRIVER(cuModuleGetFunction(&function, module, "wait"));
  unsigned* flag;
  DRIVER(cuMemHostAlloc(reinterpret_cast<void**>(&flag), 4, CU_MEMHOSTALLOC_DEVICEMAP));
  *flag = 0;
  CUdeviceptr mapped, out;
  DRIVER(cuMemHostGetDevicePointer(&mapped, flag, 0));
  DRIVER(cuMemAlloc(&out, 4));
  CUstream stream;
  CUevent event;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  void* arguments[] = {&mapped, &out};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  DRIVER(cuMemsetD32Async(out, 0, 1, stream));
  DRIVER(cuEventRecord(event, stream));
  EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  *const_cast<volatile unsigned*>(flag) = 9;
  DRIVER(cuEventSynchronize(event));
  DRIVER(cuStreamQuery(stream));
  EXPECT(value_at(out) == 0);
  DRIVER(cuEventDestroy(event));
  DRIVER(cuStreamDestroy(stream));
}

int main() {
  DRIVER(cuInit(0));
  CUdevice device;
  CUcontext context;
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  DRIVER(cuProfilerStart());
  libraries(context);
  pointers();
  running_kernel();
  CUipcMemHandle handle{};
  CUdeviceptr opened = 0;
  EXPECT(cuIpcGetMemHandle(&handle, opened) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuCtxEnablePeerAccess(context, 0) == CUDA_ERROR_INVALID_CONTEXT);
  DRIVER(cuProfilerStop());
  DRIVER(cuDevicePrimaryCtxRelease(device));
  std::puts("right");
}
