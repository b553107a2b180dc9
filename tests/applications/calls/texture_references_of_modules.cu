// Texture and surface references of a module, set by the driver API as in programs of CUDA 11 and before. Texels are
// compared with the host's arrays.
#include "../check.h"

#include <cuda.h>
#include <vector>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const char ptx[] = R"(
.version 6.5
.target sm_70
.address_size 64
.global .texref row;
.global .texref plane;
.global .texref levels;
.global .surfref target;
.visible .entry read(.param .u64 out, .param .f32 step)
{
  .reg .b32 %r<9>;
  .reg .f32 %f<20>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f11, [step];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 12;
  add.s64 %rd3, %rd1, %rd2;
  tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [row, {%r1}];
  cvt.rn.f32.u32 %f1, %r1;
  mul.f32 %f1, %f1, %f11;
  fma.rn.f32 %f1, %f11, 0f3F000000, %f1;
  mov.f32 %f2, 0f3F000000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [plane, {%f1, %f2}];
  mov.f32 %f12, 0f3F800000;
  tex.level.2d.v4.f32.f32 {%f7, %f8, %f9, %f10}, [levels, {%f2, %f2}], %f12;
  st.global.u32 [%rd3], %r2;
  st.global.f32 [%rd3+4], %f3;
  st.global.f32 [%rd3+8], %f7;
  shl.b32 %r6, %r1, 2;
  mov.u32 %r7, 0;
  sust.b.2d.b32.trap [target, {%r6, %r7}], {%r1};
  ret;
}
)";

struct Texels {
  unsigned word;
  float of_plane, of_level;
};

constexpr unsigned width = 8;

class Program {
public:
  Program() {
    DRIVER(cuInit(0));
    CUdevice device;
    CUcontext context;
    DRIVER(cuDeviceGet(&device, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    DRIVER(cuCtxSetCurrent(context));
    DRIVER(cuModuleLoadData(&module_, ptx));
    DRIVER(cuModuleGetFunction(&kernel_, module_, "read"));
    DRIVER(cuMemAlloc(&out_, width * sizeof(Texels)));
  }
  CUmodule module() const { return module_; }
  CUtexref texture(const char* name) const {
    CUtexref reference;
    DRIVER(cuModuleGetTexRef(&reference, module_, name));
    return reference;
  }
  std::vector<Texels> run(float step) {
    void* arguments[] = {&out_, &step};
    DRIVER(cuLaunchKernel(kernel_, 1, 1, 1, width, 1, 1, 0, nullptr, arguments, nullptr));
    std::vector<Texels> texels(width);
    DRIVER(cuMemcpyDtoH(texels.data(), out_, width * sizeof(Texels)));
    return texels;
  }

private:
  CUmodule module_;
  CUfunction kernel_;
  CUdeviceptr out_;
};

static CUdeviceptr upload(const void* data, size_t bytes) {
  CUdeviceptr memory;
  DRIVER(cuMemAlloc(&memory, bytes));
  DRIVER(cuMemcpyHtoD(memory, data, bytes));
  return memory;
}

static void fill(CUarray array, const void* texels, size_t row, size_t rows) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = texels, copy.srcPitch = row;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
  copy.WidthInBytes = row, copy.Height = rows;
  DRIVER(cuMemcpy2D(&copy));
}

static void set_levels(CUtexref levels) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = shape.Height = 2;
  shape.Format = CU_AD_FORMAT_FLOAT, shape.NumChannels = 1;
  CUmipmappedArray array, found;
  CUarray level;
  DRIVER(cuMipmappedArrayCreate(&array, &shape, 2));
  const float texel = 42;
  DRIVER(cuMipmappedArrayGetLevel(&level, array, 1));
  fill(level, &texel, sizeof texel, 1);
  DRIVER(cuTexRefSetMipmappedArray(levels, array, CU_TRSA_OVERRIDE_FORMAT));
  DRIVER(cuTexRefSetMipmapLevelClamp(levels, 0, 1));
  DRIVER(cuTexRefGetMipmappedArray(&found, levels));
  EXPECT(found == array);
}

static void properties(CUtexref reference) {
  CUarray_format format;
  CUfilter_mode filter;
  CUaddress_mode mode;
  CUdeviceptr address;
  int channels = 0;
  unsigned flags = 0;
  DRIVER(cuTexRefGetFormat(&format, &channels, reference));
  EXPECT(format == CU_AD_FORMAT_UNSIGNED_INT8 && channels == 1);
  DRIVER(cuTexRefGetFilterMode(&filter, reference));
  DRIVER(cuTexRefGetAddressMode(&mode, reference, 0));
  DRIVER(cuTexRefGetFlags(&flags, reference));
  EXPECT(filter == CU_TR_FILTER_MODE_LINEAR && mode == CU_TR_ADDRESS_MODE_CLAMP);
  EXPECT(flags == CU_TRSF_NORMALIZED_COORDINATES);
  EXPECT(cuTexRefGetAddress(&address, reference) == CUDA_ERROR_INVALID_VALUE); // an array is bound
}

int main() {
  Program program;
  const unsigned words[width] = {3, 1, 4, 1, 5, 9, 2, 6};
  const unsigned char bytes[width] = {0, 51, 102, 153, 204, 255, 5, 10};
  const CUtexref row = program.texture("row"), plane = program.texture("plane");
  EXPECT(program.texture("row") == row);
  set_levels(program.texture("levels"));

  DRIVER(cuTexRefSetFormat(row, CU_AD_FORMAT_UNSIGNED_INT32, 1));
  DRIVER(cuTexRefSetFlags(row, CU_TRSF_READ_AS_INTEGER));
  const CUdeviceptr memory = upload(words, sizeof words);
  size_t offset = 7;
  DRIVER(cuTexRefSetAddress(&offset, row, memory, sizeof words));
  CUdeviceptr address;
  DRIVER(cuTexRefGetAddress(&address, row));
  EXPECT(offset == 0 && address == memory);

  CUDA_ARRAY_DESCRIPTOR shape{width, 1, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray array, surface;
  DRIVER(cuArrayCreate(&array, &shape));
  fill(array, bytes, width, 1);
  DRIVER(cuTexRefSetArray(plane, array, CU_TRSA_OVERRIDE_FORMAT));
  EXPECT(cuTexRefSetArray(plane, array, 0) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuTexRefSetAddressMode(plane, 0, CU_TR_ADDRESS_MODE_CLAMP));
  DRIVER(cuTexRefSetFormat(plane, CU_AD_FORMAT_UNSIGNED_INT8, 1));

  CUDA_ARRAY3D_DESCRIPTOR writable{width, 1, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CUsurfref target;
  DRIVER(cuArray3DCreate(&surface, &writable));
  DRIVER(cuModuleGetSurfRef(&target, program.module(), "target"));
  DRIVER(cuSurfRefSetArray(target, surface, 0));

  std::vector<Texels> texels = program.run(1);
  for (unsigned i = 0; i < width; ++i) {
    EXPECT(texels[i].word == words[i] && texels[i].of_level == 42);
    EXPECT(texels[i].of_plane == static_cast<float>(bytes[i]) / 255);
  }

  // Flags and filter mode apply to what is bound: normalised coordinates, halfway between texels.
  DRIVER(cuTexRefSetFlags(plane, CU_TRSF_NORMALIZED_COORDINATES));
  DRIVER(cuTexRefSetFilterMode(plane, CU_TR_FILTER_MODE_LINEAR));
  properties(plane);
  texels = program.run(2.0f / width); // (2 i + 1) / width
  for (unsigned i = 0; i < width / 2; ++i) {
    const float between = (static_cast<float>(bytes[2 * i]) + static_cast<float>(bytes[2 * i + 1])) / 2 / 255;
    EXPECT(texels[i].of_plane > between - 1e-6f && texels[i].of_plane < between + 1e-6f);
  }

  // Bound again: other memory, as rows of bytes; two words later.
  shape = {4, 1, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  DRIVER(cuTexRefSetAddress2D(plane, &shape, memory, 4));
  DRIVER(cuTexRefSetFlags(plane, 0));
  DRIVER(cuTexRefSetFilterMode(plane, CU_TR_FILTER_MODE_POINT));
  DRIVER(cuTexRefSetAddress(nullptr, row, memory + 8, 8));
  texels = program.run(1);
  const auto* byte = reinterpret_cast<const unsigned char*>(words);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT(texels[i].of_plane == static_cast<float>(byte[i]) / 255);
    EXPECT(texels[i].word == (i < 2 ? words[2 + i] : 0)); // texels beyond the end are 0
  }
  unsigned written[width];
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = surface;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = written;
  copy.WidthInBytes = sizeof written, copy.Height = 1;
  DRIVER(cuMemcpy2D(&copy));
  for (unsigned i = 0; i < width; ++i)
    EXPECT(written[i] == i);

  CUtexref none;
  EXPECT(cuModuleGetTexRef(&none, program.module(), "absent") == CUDA_ERROR_NOT_FOUND);
  DRIVER(cuTexRefCreate(&none));
  DRIVER(cuTexRefDestroy(none));
  EXPECT(cuTexRefSetFlags(none, 0) == CUDA_ERROR_INVALID_HANDLE);
  std::puts("right");
}
