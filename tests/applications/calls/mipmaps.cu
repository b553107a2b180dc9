// Mipmapped arrays: levels filled by copies and by surfaces, and sampled by tex.level and tex.grad. The truth is the
// host's arrays: level = log2 of the longer gradient in texels, plus the bias, limited by the clamps; linear filtering
// mixes the two nearest levels (CUDA programming guide, texture fetching). All weights are multiples of 1/256.
#include "../check.h"

#include <algorithm>
#include <cmath>
#include <cuda.h>
#include <vector>

constexpr int width = 16, height = 8, layers = 3, levels = 5; // 16 x 8, 8 x 4, 4 x 2, 2 x 1, 1 x 1

struct Image {
  int width, height, planes;
  std::vector<float> texels;
  float at(int x, int y, int plane = 0) const {
    x = std::clamp(x, 0, width - 1), y = std::clamp(y, 0, height - 1);
    return texels[(plane * height + y) * width + x];
  }
  // Bilinear, `u` and `v` normalised.
  float linear(double u, double v, int plane = 0) const {
    const double x = u * width - 0.5, y = v * height - 0.5, left = std::floor(x), top = std::floor(y);
    const double a = x - left, b = y - top;
    const int i = static_cast<int>(left), j = static_cast<int>(top);
    return static_cast<float>((1 - a) * (1 - b) * at(i, j, plane) + a * (1 - b) * at(i + 1, j, plane) +
                              (1 - a) * b * at(i, j + 1, plane) + a * b * at(i + 1, j + 1, plane));
  }
};

static float truth(const std::vector<Image>& images, double u, double v, double level, bool blends, int plane = 0) {
  level = std::clamp(level, 0.0, images.size() - 1.0);
  if (!blends) return images[static_cast<size_t>(std::lround(level))].linear(u, v, plane);
  const auto finer = static_cast<size_t>(level);
  const double weight = level - static_cast<double>(finer);
  const float near = images[finer].linear(u, v, plane);
  return weight == 0 ? near : static_cast<float>((1 - weight) * near + weight * images[finer + 1].linear(u, v, plane));
}

static std::vector<Image> pyramid(int planes) {
  std::vector<Image> images;
  for (int i = 0; i < levels; ++i) {
    Image image{std::max(width >> i, 1), std::max(height >> i, 1), planes, {}};
    for (int k = 0; k < image.width * image.height * planes; ++k)
      image.texels.push_back(static_cast<float>((k * k * 7 + 1000 * i + k) % 4096));
    images.push_back(image);
  }
  return images;
}

static cudaMipmappedArray_t upload(const std::vector<Image>& images, unsigned flags) {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  const bool layered = flags & cudaArrayLayered;
  cudaMipmappedArray_t array;
  CALL(cudaMallocMipmappedArray(&array, &floats, make_cudaExtent(width, height, layered ? layers : 0), levels, flags));
  for (int i = 0; i < levels; ++i) {
    cudaArray_t level;
    CALL(cudaGetMipmappedArrayLevel(&level, array, i));
    const Image& image = images[i];
    cudaMemcpy3DParms parameters{};
    parameters.srcPtr = make_cudaPitchedPtr(const_cast<float*>(image.texels.data()), image.width * sizeof(float),
                                            image.width, image.height);
    parameters.dstArray = level;
    parameters.extent = make_cudaExtent(image.width, image.height, image.planes);
    parameters.kind = cudaMemcpyHostToDevice;
    CALL(cudaMemcpy3D(&parameters));
    cudaExtent extent;
    CALL(cudaArrayGetInfo(nullptr, &extent, nullptr, level));
    EXPECT(extent.width == size_t(image.width) && extent.height == size_t(image.height));
    EXPECT(extent.depth == size_t(layered ? layers : 0));
  }
  return array;
}

struct Choice {
  bool blends = true;
  float bias = 0, least = 0, most = levels - 1;
};

static cudaTextureObject_t make_texture(cudaMipmappedArray_t array, const Choice& choice,
                                        const cudaResourceViewDesc* view = nullptr) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = array;
  cudaTextureDesc description{};
  for (cudaTextureAddressMode& mode : description.addressMode)
    mode = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  description.normalizedCoords = true;
  description.mipmapFilterMode = choice.blends ? cudaFilterModeLinear : cudaFilterModePoint;
  description.mipmapLevelBias = choice.bias;
  description.minMipmapLevelClamp = choice.least;
  description.maxMipmapLevelClamp = choice.most;
  cudaTextureObject_t texture;
  CALL(cudaCreateTextureObject(&texture, &resource, &description, view));
  return texture;
}

struct Sample {
  float u, v, level, across, down; // gradients: (across, 0) and (0, down)
};

__global__ void by_level(cudaTextureObject_t texture, const Sample* samples, float* out, int count) {
  const int i = threadIdx.x;
  if (i < count) out[i] = tex2DLod<float>(texture, samples[i].u, samples[i].v, samples[i].level);
}

__global__ void by_gradients(cudaTextureObject_t texture, const Sample* samples, float* out, int count) {
  const int i = threadIdx.x;
  if (i < count)
    out[i] = tex2DGrad<float>(texture, samples[i].u, samples[i].v, make_float2(samples[i].across, 0),
                              make_float2(0, samples[i].down));
}

__global__ void by_level_of_layer(cudaTextureObject_t texture, const Sample* samples, float* out, int count) {
  const int i = threadIdx.x;
  if (i < count) out[i] = tex2DLayeredLod<float>(texture, samples[i].u, samples[i].v, i % layers, samples[i].level);
}

__global__ void sizes(cudaTextureObject_t texture, unsigned* out) {
  const unsigned level = threadIdx.x;
  asm("txq.level.width.b32 %0, [%1], %2;" : "=r"(out[2 * level]) : "l"(texture), "r"(level));
  asm("txq.level.height.b32 %0, [%1], %2;" : "=r"(out[2 * level + 1]) : "l"(texture), "r"(level));
}

// A level from the previous one, as samples of mipmap generation do: a texture reads, a surface writes.
__global__ void halve(cudaTextureObject_t from, cudaSurfaceObject_t to, int wide, int high) {
  const int x = threadIdx.x, y = threadIdx.y;
  if (x >= wide || y >= high) return;
  surf2Dwrite(tex2D<float>(from, (x + 0.5f) / wide, (y + 0.5f) / high), to, x * sizeof(float), y);
}

static std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (int i = 0; i < 64; ++i) {
    const float level = i % 17 * 0.25f + (i % 4 == 2 ? 0.125f : 0); // no half between two levels without a blend
    all.push_back({(i % 16) / 16.0f, (i / 4 % 8) / 8.0f + 0.0625f, level, std::exp2(float(i % 5)) / width,
                   std::exp2(float(i / 5 % 4)) / height});
  }
  return all;
}

class Device {
public:
  Device() {
    CALL(cudaMalloc(&samples_, host_.size() * sizeof(Sample)));
    CALL(cudaMemcpy(samples_, host_.data(), host_.size() * sizeof(Sample), cudaMemcpyHostToDevice));
    CALL(cudaMalloc(&out_, host_.size() * sizeof(float)));
  }
  template <class Kernel> std::vector<float> run(Kernel kernel, cudaTextureObject_t texture) {
    kernel<<<1, 64>>>(texture, samples_, out_, static_cast<int>(host_.size()));
    std::vector<float> back(host_.size());
    CALL(cudaMemcpy(back.data(), out_, back.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return back;
  }
  const std::vector<Sample>& host() const { return host_; }

private:
  std::vector<Sample> host_ = samples();
  Sample* samples_ = nullptr;
  float* out_ = nullptr;
};

static bool near(float a, float b) {
  return std::fabs(a - b) <= 1e-5f * std::fabs(b) + 1e-4f;
}

static void levels_and_gradients(Device& device) {
  const std::vector<Image> images = pyramid(1);
  const cudaMipmappedArray_t array = upload(images, 0);
  for (const Choice& choice : {Choice{}, Choice{.blends = false, .bias = 0.0625f}, Choice{.bias = 1.25f},
                               Choice{.least = 0.75f, .most = 2.5f}, Choice{.most = 0}}) {
    const cudaTextureObject_t texture = make_texture(array, choice);
    const std::vector<float> levels_out = device.run(by_level, texture), gradients = device.run(by_gradients, texture);
    for (size_t i = 0; i < levels_out.size(); ++i) {
      const Sample& at = device.host()[i];
      const auto chosen = [&](float level) { return std::clamp(level + choice.bias, choice.least, choice.most); };
      const bool is_between =
          !choice.blends && std::fabs(chosen(at.level) - std::floor(chosen(at.level)) - 0.5f) < 0.01f;
      EXPECT(is_between || near(levels_out[i], truth(images, at.u, at.v, chosen(at.level), choice.blends)));
      const float level = std::log2(std::max(at.across * width, at.down * height));
      EXPECT(near(gradients[i], truth(images, at.u, at.v, chosen(level), choice.blends)));
    }
    CALL(cudaDestroyTextureObject(texture));
  }
  unsigned* out;
  CALL(cudaMallocManaged(&out, 2 * levels * sizeof(unsigned)));
  sizes<<<1, levels>>>(make_texture(array, {}), out);
  CALL(cudaDeviceSynchronize());
  for (int i = 0; i < levels; ++i)
    EXPECT(out[2 * i] == unsigned(images[i].width) && out[2 * i + 1] == unsigned(images[i].height));
  CALL(cudaFreeMipmappedArray(array));
}

static void layers_and_views(Device& device) {
  const std::vector<Image> images = pyramid(layers);
  const cudaMipmappedArray_t array = upload(images, cudaArrayLayered);
  std::vector<float> out = device.run(by_level_of_layer, make_texture(array, {}));
  for (size_t i = 0; i < out.size(); ++i) {
    const Sample& at = device.host()[i];
    EXPECT(near(out[i], truth(images, at.u, at.v, at.level, true, static_cast<int>(i) % layers)));
  }
  cudaResourceViewDesc view{};
  view.format = cudaResViewFormatFloat1;
  view.width = width / 2, view.height = height / 2, view.depth = layers;
  view.firstMipmapLevel = 1, view.lastMipmapLevel = 3;
  view.lastLayer = layers - 1;
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = array;
  cudaTextureDesc description{};
  cudaTextureObject_t none;
  view.lastMipmapLevel = levels;
  EXPECT(cudaCreateTextureObject(&none, &resource, &description, &view) == cudaErrorInvalidValue);
  CALL(cudaFreeMipmappedArray(array));
}

static void view_of_levels(Device& device) {
  const std::vector<Image> images = pyramid(1);
  const cudaMipmappedArray_t array = upload(images, 0);
  cudaResourceViewDesc view{}, back{};
  view.format = cudaResViewFormatFloat1;
  view.width = width / 2, view.height = height / 2;
  view.firstMipmapLevel = 1, view.lastMipmapLevel = 2;
  const cudaTextureObject_t texture = make_texture(array, {}, &view);
  const std::vector<float> out = device.run(by_level, texture);
  const std::vector<Image> seen(images.begin() + 1, images.begin() + 3);
  for (size_t i = 0; i < out.size(); ++i) {
    const Sample& at = device.host()[i];
    EXPECT(near(out[i], truth(seen, at.u, at.v, at.level, true)));
  }
  CALL(cudaGetTextureObjectResourceViewDesc(&back, texture));
  EXPECT(back.firstMipmapLevel == 1 && back.lastMipmapLevel == 2 && back.width == width / 2);
  CALL(cudaFreeMipmappedArray(array));
}

static void made_by_surfaces(Device& device) {
  const std::vector<Image> first = pyramid(1);
  const cudaMipmappedArray_t array = upload(first, cudaArraySurfaceLoadStore);
  std::vector<Image> images{first[0]};
  for (int i = 1; i < levels; ++i) {
    cudaArray_t from, to;
    CALL(cudaGetMipmappedArrayLevel(&from, array, i - 1));
    CALL(cudaGetMipmappedArrayLevel(&to, array, i));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = from;
    cudaTextureDesc description{};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    description.filterMode = cudaFilterModeLinear;
    description.normalizedCoords = true;
    cudaTextureObject_t texture;
    CALL(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    resource.res.array.array = to;
    cudaSurfaceObject_t surface;
    CALL(cudaCreateSurfaceObject(&surface, &resource));
    Image next{first[i].width, first[i].height, 1, {}};
    halve<<<1, dim3(width, height)>>>(texture, surface, next.width, next.height);
    for (int y = 0; y < next.height; ++y)
      for (int x = 0; x < next.width; ++x)
        next.texels.push_back(images.back().linear((x + 0.5) / next.width, (y + 0.5) / next.height));
    images.push_back(next);
  }
  const std::vector<float> out = device.run(by_level, make_texture(array, {}));
  for (size_t i = 0; i < out.size(); ++i) {
    const Sample& at = device.host()[i];
    EXPECT(near(out[i], truth(images, at.u, at.v, at.level, true)));
  }
  CALL(cudaFreeMipmappedArray(array));
}

static void driver(Device& device) {
  const std::vector<Image> images = pyramid(1);
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = width, shape.Height = height;
  shape.Format = CU_AD_FORMAT_FLOAT, shape.NumChannels = 1;
  CUmipmappedArray array;
  DRIVER(cuMipmappedArrayCreate(&array, &shape, levels));
  for (int i = 0; i < levels; ++i) {
    CUarray level;
    DRIVER(cuMipmappedArrayGetLevel(&level, array, i));
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = images[i].texels.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = level;
    copy.WidthInBytes = copy.srcPitch = images[i].width * sizeof(float);
    copy.Height = images[i].height;
    DRIVER(cuMemcpy2D(&copy));
  }
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = array;
  CUDA_TEXTURE_DESC description{};
  for (CUaddress_mode& mode : description.addressMode)
    mode = CU_TR_ADDRESS_MODE_CLAMP;
  description.filterMode = description.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
  description.flags = CU_TRSF_NORMALIZED_COORDINATES;
  description.maxMipmapLevelClamp = levels - 1;
  CUtexObject texture;
  DRIVER(cuTexObjectCreate(&texture, &resource, &description, nullptr));
  const std::vector<float> out = device.run(by_level, texture);
  for (size_t i = 0; i < out.size(); ++i) {
    const Sample& at = device.host()[i];
    EXPECT(near(out[i], truth(images, at.u, at.v, at.level, true)));
  }
  CUarray level;
  EXPECT(cuMipmappedArrayGetLevel(&level, array, levels) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuTexObjectDestroy(texture));
  DRIVER(cuMipmappedArrayDestroy(array));
  EXPECT(cuMipmappedArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
}

int main() {
  CALL(cudaFree(nullptr));
  Device device;
  levels_and_gradients(device);
  layers_and_views(device);
  view_of_levels(device);
  made_by_surfaces(device);
  driver(device);
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t array;
  CALL(cudaMallocMipmappedArray(&array, &floats, make_cudaExtent(4, 4, 0), 20)); // only 3 exist
  cudaArray_t level;
  CALL(cudaGetMipmappedArrayLevel(&level, array, 2));
  EXPECT(cudaGetMipmappedArrayLevel(&level, array, 3) == cudaErrorInvalidValue);
  EXPECT(cudaFreeArray(level) != cudaSuccess); // belongs to the mipmapped array
  CALL(cudaFreeMipmappedArray(array));
  std::puts("right");
}
