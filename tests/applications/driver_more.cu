// The driver API beyond launches: cubins that contain PTX, the linker and its log, graphs built and captured, arrays with
// a texture, virtual memory, pools.
#include "check.h"

#include <cstring>
#include <cuda.h>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

static const std::string head = ".version 7.0\n.target sm_70\n.address_size 64\n";
static const std::string declared_seven = ".extern .func (.param .b32 out) seven ();";
static const std::string add_seven = R"(
.visible .entry add_seven(.param .u64 data)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [data];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %d1, %r1, 4, %d1;
  {
    .param .b32 got;
    call.uni (got), seven, ();
    ld.param.b32 %r2, [got];
  }
  ld.global.u32 %r3, [%d1];
  add.u32 %r3, %r3, %r2;
  st.global.u32 [%d1], %r3;
  ret;
}
)";
static const std::string seven = R"(
.visible .func (.param .b32 out) seven ()
{
  .reg .b32 %r;
  mov.u32 %r, 7;
  st.param.b32 [out], %r;
  ret;
}
)";
static const std::string sample = head + R"(
.visible .entry sample(.param .u64 texture, .param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<5>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [texture];
  ld.param.u64 %d2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %r2}];
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r3, %r2, %r3, %r1;
  mad.wide.u32 %d2, %r3, 4, %d2;
  st.global.f32 [%d2], %f1;
  ret;
}
)";

constexpr unsigned count = 32;

static CUfunction kernel_of(CUmodule module, const char* name) {
  CUfunction kernel;
  DRIVER(cuModuleGetFunction(&kernel, module, name));
  return kernel;
}

// Memory of `count` numbers, all `value`.
static CUdeviceptr numbers(unsigned value) {
  CUdeviceptr data;
  DRIVER(cuMemAlloc(&data, count * 4));
  DRIVER(cuMemsetD32(data, value, count));
  return data;
}

static unsigned last_of(CUdeviceptr data) {
  unsigned value = 0;
  DRIVER(cuMemcpyDtoH(&value, data + 4 * (count - 1), 4));
  return value;
}

static CUfunction linked() {
  char errors[512] = "", info[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof errors), info, reinterpret_cast<void*>(sizeof info)};
  CUlinkState link;
  void* image = nullptr;
  size_t bytes = 0;
  DRIVER(cuLinkCreate(4, options, values, &link));
  std::string wrong = head + ".visible .entry k() { mov.u32 %nobody, 1; }";
  DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, wrong.data(), wrong.size() + 1, "wrong", 0, nullptr, nullptr));
  EXPECT(cuLinkComplete(link, &image, &bytes) == CUDA_ERROR_INVALID_PTX);
  EXPECT(std::strstr(errors, "%nobody"));
  DRIVER(cuLinkDestroy(link));

  DRIVER(cuLinkCreate(4, options, values, &link));
  std::string first = head + declared_seven + add_seven, second = ".version 7.8\n.target sm_80\n.address_size 64\n" + seven;
  DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, first.data(), first.size() + 1, "first", 0, nullptr, nullptr));
  DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, second.data(), second.size(), "second", 0, nullptr, nullptr));
  DRIVER(cuLinkComplete(link, &image, &bytes));
  EXPECT(std::memcmp(image, "\177ELF", 4) == 0);
  const std::string kept(static_cast<const char*>(image), bytes);
  DRIVER(cuLinkDestroy(link));
  CUmodule module;
  DRIVER(cuModuleLoadData(&module, kept.data()));
  unsigned kernels = 0;
  DRIVER(cuModuleGetFunctionCount(&kernels, module));
  EXPECT(kernels == 1);
  return kernel_of(module, "add_seven");
}

static void check_graphs(CUfunction kernel) {
  CUdeviceptr data = numbers(1);
  void* arguments[] = {&data};
  CUstream stream;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUgraph captured, built;
  DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  DRIVER(cuLaunchKernel(kernel, 1, 1, 1, count, 1, 1, 0, stream, arguments, nullptr));
  CUstreamCaptureStatus status;
  DRIVER(cuStreamIsCapturing(stream, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  DRIVER(cuStreamEndCapture(stream, &captured));
  EXPECT(last_of(data) == 1); // nothing has run yet

  DRIVER(cuGraphCreate(&built, 0));
  CUgraphNode fill, launch, child;
  CUDA_MEMSET_NODE_PARAMS to_five = {data, 0, 5, 4, count, 1};
  CUcontext context;
  DRIVER(cuCtxGetCurrent(&context));
  DRIVER(cuGraphAddMemsetNode(&fill, built, nullptr, 0, &to_five, context));
  CUDA_KERNEL_NODE_PARAMS node = {kernel, 1, 1, 1, count, 1, 1, 0, arguments, nullptr, nullptr, nullptr};
  DRIVER(cuGraphAddKernelNode(&launch, built, &fill, 1, &node));
  CUDA_KERNEL_NODE_PARAMS read{};
  DRIVER(cuGraphKernelNodeGetParams(launch, &read));
  EXPECT(read.func == kernel && read.gridDimX == 1 && read.blockDimX == node.blockDimX && !read.extra);
  EXPECT(*static_cast<CUdeviceptr*>(read.kernelParams[0]) == data);
  EXPECT(cuGraphKernelNodeGetParams(fill, &read) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuGraphAddChildGraphNode(&child, built, &launch, 1, captured));
  size_t nodes = 0;
  DRIVER(cuGraphGetNodes(built, nullptr, &nodes));
  EXPECT(nodes == 3);
  CUgraphExec instance;
  DRIVER(cuGraphInstantiate(&instance, built, 0));
  DRIVER(cuGraphLaunch(instance, stream));
  DRIVER(cuStreamSynchronize(stream));
  EXPECT(last_of(data) == 5 + 7 + 7);
  DRIVER(cuGraphNodeSetEnabled(instance, fill, 0));
  DRIVER(cuGraphLaunch(instance, stream));
  EXPECT(last_of(data) == 5 + 4 * 7);
  DRIVER(cuGraphExecDestroy(instance));
  DRIVER(cuMemFree(data));
}

static void check_textures() {
  CUDA_ARRAY_DESCRIPTOR description = {8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray array;
  DRIVER(cuArrayCreate(&array, &description));
  unsigned char texels[8 * 4];
  for (int i = 0; i < 32; ++i)
    texels[i] = static_cast<unsigned char>(8 * i);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = texels;
  copy.srcPitch = 8;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 8;
  copy.Height = 4;
  DRIVER(cuMemcpy2D(&copy));
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC how = {};
  how.addressMode[0] = how.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
  CUtexObject texture;
  DRIVER(cuTexObjectCreate(&texture, &resource, &how, nullptr));
  CUmodule module;
  DRIVER(cuModuleLoadData(&module, sample.c_str()));
  CUdeviceptr out = numbers(0);
  void* arguments[] = {&texture, &out};
  DRIVER(cuLaunchKernel(kernel_of(module, "sample"), 1, 1, 1, 8, 4, 1, 0, nullptr, arguments, nullptr));
  float got[32];
  DRIVER(cuMemcpyDtoH(got, out, sizeof got));
  for (int i = 0; i < 32; ++i)
    EXPECT(got[i] == static_cast<float>(8 * i) / 255); // bytes are read as numbers in 0 .. 1
  DRIVER(cuTexObjectDestroy(texture));
  DRIVER(cuArrayDestroy(array));
  EXPECT(cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
}

static void check_virtual_memory(CUfunction kernel) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t page = 0;
  DRIVER(cuMemGetAllocationGranularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range, alias;
  DRIVER(cuMemAddressReserve(&range, 2 * page, 0, 0, 0));
  DRIVER(cuMemAddressReserve(&alias, page, 0, 0, 0));
  CUmemGenericAllocationHandle one, two;
  DRIVER(cuMemCreate(&one, page, &properties, 0));
  DRIVER(cuMemCreate(&two, page, &properties, 0));
  DRIVER(cuMemMap(range, page, 0, one, 0));
  EXPECT(cuMemMap(range, page, 0, two, 0) == CUDA_ERROR_INVALID_VALUE); // the range is in use
  DRIVER(cuMemMap(range + page, page, 0, two, 0));
  DRIVER(cuMemMap(alias, page, 0, two, 0));
  EXPECT(cuMemsetD32(range, 1, 4) != CUDA_SUCCESS); // no access yet
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DRIVER(cuMemSetAccess(range, 2 * page, &access, 1));
  DRIVER(cuMemSetAccess(alias, page, &access, 1));
  DRIVER(cuMemsetD32(range, 3, 2 * page / 4)); // spans both
  CUdeviceptr second = range + page;
  void* arguments[] = {&second};
  DRIVER(cuLaunchKernel(kernel, 1, 1, 1, count, 1, 1, 0, nullptr, arguments, nullptr));
  unsigned got[2];
  DRIVER(cuMemcpyDtoH(&got[0], alias, 4)); // the same memory at another address
  DRIVER(cuMemcpyDtoH(&got[1], range, 4));
  EXPECT(got[0] == 10 && got[1] == 3);
  DRIVER(cuMemRelease(one));
  DRIVER(cuMemRelease(two));
  DRIVER(cuMemUnmap(range, 2 * page));
  EXPECT(cuMemAddressFree(range, page) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemAddressFree(range, 2 * page));
  DRIVER(cuMemUnmap(alias, page));
  DRIVER(cuMemAddressFree(alias, page));
}

static void check_pools() {
  CUmemoryPool pool;
  DRIVER(cuDeviceGetDefaultMemPool(&pool, 0));
  CUdeviceptr data;
  DRIVER(cuMemAllocFromPoolAsync(&data, 1 << 20, pool, nullptr));
  cuuint64_t used = 0;
  DRIVER(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT(used == 1 << 20);
  DRIVER(cuMemFreeAsync(data, nullptr));
  DRIVER(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT(used == 0);
  DRIVER(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
  EXPECT(used == 1 << 20);
}

// Cubins from files: those that contain PTX run, machine code alone is refused.
static void check_cubins(int files, char** paths) {
  for (int i = 0; i < files; ++i) {
    std::ifstream file(paths[i] + 1, std::ios::binary);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    CUmodule module;
    const CUresult loaded = cuModuleLoadData(&module, image.data());
    if (paths[i][0] == '-') {
      EXPECT(loaded == CUDA_ERROR_NO_BINARY_FOR_GPU);
      continue;
    }
    DRIVER(loaded);
    CUdeviceptr data = numbers(1);
    void* arguments[] = {&data};
    DRIVER(cuLaunchKernel(kernel_of(module, "add_seven"), 1, 1, 1, count, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT(last_of(data) == 8);
  }
}

// With "--ptx FILE" writes a module; else its arguments are cubins of it: "+FILE" must run, "-FILE" must be refused.
int main(int arguments, char** values) {
  if (arguments == 3 && std::strcmp(values[1], "--ptx") == 0) {
    std::ofstream(values[2]) << head + seven + add_seven;
    return 0;
  }
  DRIVER(cuInit(0));
  CUcontext context;
  DRIVER(cuDevicePrimaryCtxRetain(&context, 0));
  DRIVER(cuCtxSetCurrent(context));
  const CUfunction kernel = linked();
  check_graphs(kernel);
  check_textures();
  check_virtual_memory(kernel);
  check_pools();
  check_cubins(arguments - 1, values + 1);
  std::puts("right");
}
