// The driver API: modules from PTX, arguments in both ways, entry points by name, and memory of the runtime API beside it.
#include "check.h"

#include <cstddef>
#include <cstring>
#include <cuda.h>
#include <vector>

static const char* const text = R"(.version 7.0
.target sm_70
.address_size 64
.global .u32 launches;
.const .u32 step = 3;
.visible .entry advance(.param .u64 data, .param .u32 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r2, %r3, %r4, %r2;
  setp.ge.u32 %p, %r2, %r1;
  @%p ret;
  mad.wide.u32 %d2, %r2, 4, %d1;
  ld.global.u32 %r3, [%d2];
  ld.const.u32 %r4, [step];
  add.u32 %r3, %r3, %r4;
  st.global.u32 [%d2], %r3;
  setp.ne.u32 %p, %r2, 0;
  @%p ret;
  red.global.add.u32 [launches], 1;
  ret;
}
)";

// Each attribute of the header has a value, and those of neighbouring numbers are not confused.
static void check_attributes(CUdevice device) {
  for (int attribute = 1, value = 0; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute)
    DRIVER(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device));
  int maps = 0, fabric = 1;
  DRIVER(cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, device));
  DRIVER(cuDeviceGetAttribute(&fabric, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device));
  EXPECT(maps == 1 && fabric == 0);
}

int main() {
  int count = 0;
  EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
  DRIVER(cuInit(0));
  DRIVER(cuDeviceGetCount(&count));
  EXPECT(count == 1);
  CUdevice device;
  DRIVER(cuDeviceGet(&device, 0));
  int major = 0;
  DRIVER(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  EXPECT(major == 9);
  check_attributes(device);
  CUcontext context, same;
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxPushCurrent(context));
  DRIVER(cuCtxGetCurrent(&same));
  EXPECT(same == context);
  CUmodule module;
  EXPECT(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\nnonsense") == CUDA_ERROR_INVALID_PTX);
  DRIVER(cuModuleLoadData(&module, text));
  CUfunction function;
  EXPECT(cuModuleGetFunction(&function, module, "absent") == CUDA_ERROR_NOT_FOUND);
  DRIVER(cuModuleGetFunction(&function, module, "advance"));
  // The PTX says sm_70, and the GPU is an H100.
  int ptx_version = 0, binary_version = 0;
  DRIVER(cuFuncGetAttribute(&ptx_version, CU_FUNC_ATTRIBUTE_PTX_VERSION, function));
  DRIVER(cuFuncGetAttribute(&binary_version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
  EXPECT(ptx_version == 70 && binary_version == 90);

  unsigned n = 1000;
  std::vector<unsigned> host(n);
  for (unsigned i = 0; i < n; ++i)
    host[i] = i;
  CUdeviceptr data;
  DRIVER(cuMemAlloc(&data, n * 4));
  DRIVER(cuMemcpyHtoD(data, host.data(), n * 4));
  CUstream stream;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* arguments[] = {&data, &n};
  DRIVER(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
  struct {
    CUdeviceptr data;
    unsigned count;
  } block = {data, n};
  // Without the structure's trailing padding: an H100's driver rejects a block longer than the kernel's parameters.
  size_t bytes = offsetof(decltype(block), count) + sizeof block.count;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  DRIVER(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, nullptr, extra));
  DRIVER(cuStreamSynchronize(stream));
  DRIVER(cuMemcpyDtoH(host.data(), data, n * 4));
  for (unsigned i = 0; i < n; ++i)
    EXPECT(host[i] == i + 6);
  CUdeviceptr launches;
  DRIVER(cuModuleGetGlobal(&launches, &bytes, module, "launches"));
  unsigned value = 0;
  DRIVER(cuMemcpyDtoH(&value, launches, 4));
  EXPECT(bytes == 4 && value == 2);

  // Memory of the runtime API is also memory of the driver.
  unsigned* own;
  CALL(cudaMalloc(&own, 64 * 4));
  DRIVER(cuMemsetD32(reinterpret_cast<CUdeviceptr>(own), 40, 64));
  n = 64;
  arguments[0] = &own;
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  CALL(cudaMemcpy(host.data(), own, 64 * 4, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 43 && host[63] == 43);
  CUdeviceptr begin;
  DRIVER(cuMemGetAddressRange(&begin, &bytes, reinterpret_cast<CUdeviceptr>(own + 5)));
  EXPECT(begin == reinterpret_cast<CUdeviceptr>(own) && bytes == 64 * 4);

  void* by_name = nullptr;
  CUdriverProcAddressQueryResult status;
  DRIVER(cuGetProcAddress("cuMemAlloc", &by_name, 12000, 0, &status));
  EXPECT(by_name == reinterpret_cast<void*>(&cuMemAlloc) && status == CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT(cuGetProcAddress("cuNothing", &by_name, 12000, 0, &status) == CUDA_ERROR_NOT_FOUND);
  DRIVER(cuMemFree(data));
  EXPECT(cuMemFree(data) == CUDA_ERROR_INVALID_VALUE);
  std::puts("right");
}
