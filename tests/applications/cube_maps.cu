// Cube maps, arrays of them and layered textures: cudaMalloc3DArray with cudaArrayCubemap and cudaArrayLayered.
#include "check.h"

#include <vector>

constexpr int width = 8, faces = 6, cubes = 3;

// The direction to (u, v) of a face, -1 to 1 (CUDA programming guide, cubemap textures: the table of faces).
__device__ float3 direction(int face, float u, float v) {
  switch (face) {
  case 0:
    return {1, -v, -u};
  case 1:
    return {-1, -v, u};
  case 2:
    return {u, 1, v};
  case 3:
    return {u, -1, -v};
  case 4:
    return {u, -v, 1};
  default:
    return {-u, -v, -1};
  }
}

// The centre of a texel, or with `shift` = 1 halfway to the next one in x. Length makes no difference.
__device__ float3 direction_to_texel(int face, float shift) {
  const float u = (threadIdx.x + 0.5f + 0.5f * shift) / width * 2 - 1, v = (threadIdx.y + 0.5f) / width * 2 - 1;
  const float3 to = direction(face, u, v);
  const float length = 1 + threadIdx.x * 0.5f;
  return {to.x * length, to.y * length, to.z * length};
}

__device__ int texel_of(int plane) {
  return (plane * width + threadIdx.y) * width + threadIdx.x;
}

__global__ void look_around(cudaTextureObject_t texture, float* out, float shift) {
  const float3 to = direction_to_texel(blockIdx.x, shift);
  out[texel_of(blockIdx.x)] = texCubemap<float>(texture, to.x, to.y, to.z);
}

__global__ void look_around_each(cudaTextureObject_t texture, float* out) {
  const int face = blockIdx.x % faces, cube = blockIdx.x / faces;
  const float3 to = direction_to_texel(face, 0);
  out[texel_of(blockIdx.x)] = texCubemapLayered<float>(texture, to.x, to.y, to.z, cube);
}

__global__ void negate(cudaSurfaceObject_t surface) {
  float value;
  surfCubemapread(&value, surface, threadIdx.x * sizeof(float), threadIdx.y, blockIdx.x);
  surfCubemapwrite(-value, surface, threadIdx.x * sizeof(float), threadIdx.y, blockIdx.x);
}

__global__ void sample_layers(cudaTextureObject_t texture, float* out) {
  out[texel_of(blockIdx.x)] = tex2DLayered<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f, blockIdx.x);
}

static void copy(cudaArray_t array, float* host, int planes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parameters{};
  const cudaPitchedPtr memory = make_cudaPitchedPtr(host, width * sizeof(float), width, width);
  if (kind == cudaMemcpyHostToDevice) {
    parameters.srcPtr = memory;
    parameters.dstArray = array;
  } else {
    parameters.srcArray = array;
    parameters.dstPtr = memory;
  }
  parameters.extent = make_cudaExtent(width, width, planes);
  parameters.kind = kind;
  CALL(cudaMemcpy3D(&parameters));
}

static cudaArray_t make_array(std::vector<float>& texels, int planes, unsigned flags) {
  texels.resize(width * width * planes);
  for (size_t i = 0; i < texels.size(); ++i)
    texels[i] = static_cast<float>(i * i % 1009);
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CALL(cudaMalloc3DArray(&array, &floats, make_cudaExtent(width, width, planes), flags));
  copy(array, texels.data(), planes, cudaMemcpyHostToDevice);
  return array;
}

static cudaTextureObject_t make_texture(cudaArray_t array, cudaTextureFilterMode filter, bool normalised) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.filterMode = filter;
  description.normalizedCoords = normalised;
  cudaTextureObject_t texture;
  CALL(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

static std::vector<float> results(const float* out, int planes) {
  std::vector<float> back(width * width * planes);
  CALL(cudaMemcpy(back.data(), out, back.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return back;
}

static void cube(float* out) {
  std::vector<float> texels;
  cudaArray_t array = make_array(texels, faces, cudaArrayCubemap | cudaArraySurfaceLoadStore);
  const dim3 threads(width, width);
  for (cudaTextureFilterMode filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
    const cudaTextureObject_t texture = make_texture(array, filter, true);
    look_around<<<faces, threads>>>(texture, out, 0);
    EXPECT(results(out, faces) == texels);
    if (filter == cudaFilterModePoint) continue;
    look_around<<<faces, threads>>>(texture, out, 1);
    const std::vector<float> between = results(out, faces);
    for (int row = 0; row < faces * width; ++row)
      for (int x = 0; x + 1 < width; ++x) {
        const float* at = &texels[row * width + x];
        EXPECT(between[row * width + x] == (at[0] + at[1]) / 2);
      }
    CALL(cudaDestroyTextureObject(texture));
  }
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  CALL(cudaCreateSurfaceObject(&surface, &resource));
  negate<<<faces, threads>>>(surface);
  std::vector<float> negated(texels.size());
  copy(array, negated.data(), faces, cudaMemcpyDeviceToHost);
  for (size_t i = 0; i < texels.size(); ++i)
    EXPECT(negated[i] == -texels[i]);
  CALL(cudaFreeArray(array));
}

static void layers(float* out) {
  std::vector<float> texels;
  cudaArray_t array = make_array(texels, faces * cubes, cudaArrayCubemap | cudaArrayLayered);
  look_around_each<<<faces * cubes, dim3(width, width)>>>(make_texture(array, cudaFilterModeLinear, true), out);
  EXPECT(results(out, faces * cubes) == texels);
  CALL(cudaFreeArray(array));
  array = make_array(texels, cubes, cudaArrayLayered);
  sample_layers<<<cubes, dim3(width, width)>>>(make_texture(array, cudaFilterModeLinear, false), out);
  EXPECT(results(out, cubes) == texels);
  cudaExtent extent;
  unsigned flags;
  CALL(cudaArrayGetInfo(nullptr, &extent, &flags, array));
  EXPECT(extent.depth == cubes && flags == cudaArrayLayered);
  CALL(cudaFreeArray(array));
}

static void wrong_shapes() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  for (const auto& [extent, flags] : {std::pair(make_cudaExtent(8, 4, 6), cudaArrayCubemap),
                                      std::pair(make_cudaExtent(8, 8, 12), cudaArrayCubemap),
                                      std::pair(make_cudaExtent(8, 8, 9), cudaArrayCubemap | cudaArrayLayered)})
    EXPECT(cudaMalloc3DArray(&array, &floats, extent, flags) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}

int main() {
  float* out;
  CALL(cudaMalloc(&out, width * width * faces * cubes * sizeof(float)));
  cube(out);
  layers(out);
  wrong_shapes();
  std::puts("right");
}
