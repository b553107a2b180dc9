// Structures of the runtime API as programs compiled for one major version of CUDA lay them out (cuda_runtime_api.h,
// driver_types.h). The names are our own, the layouts NVIDIA's: a test compares them with the headers if a toolkit is
// available.
#pragma once

#include "cuda/context/array.h"

#include <cstddef>
#include <cstdint>

#ifndef PTXREWRITE_CUDART_MAJOR
#define PTXREWRITE_CUDART_MAJOR 13
#endif

namespace ptxrewrite::cuda::abi {

struct Dim3 {
  uint32_t x, y, z;
};

struct Extent {
  size_t width, height, depth;
};

struct Position {
  size_t x, y, z;
};

struct PitchedPointer {
  void* pointer;
  size_t pitch, x_size, y_size;
};

struct Memcpy3D {
  Array* source_array;
  Position source_position;
  PitchedPointer source;
  Array* target_array;
  Position target_position;
  PitchedPointer target;
  Extent extent;
  int kind;
};

struct FunctionAttributes {
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads_per_block, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared_bytes,
      preferred_carveout;
#if PTXREWRITE_CUDART_MAJOR >= 12
  int cluster_dim_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
  int reserved[16];
#endif
};

struct PointerAttributes {
  int type; // 0 unknown, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
#if PTXREWRITE_CUDART_MAJOR >= 13
  long reserved[8];
#endif
};

struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int cooperative;
    Dim3 cluster;
  } value;
};
inline constexpr int launch_attribute_cooperative = 2;
inline constexpr int launch_attribute_cluster = 4;

struct LaunchConfiguration {
  Dim3 grid, block;
  size_t dynamic_shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct ResourceDescription {
  int type; // 0 array, 1 mipmapped array, 2 linear, 3 pitched
  union {
    struct {
      Array* array;
    } array;
    struct {
      MipmappedArray* array;
    } mipmapped;
    struct {
      void* pointer;
      ChannelDescription channels;
      size_t bytes;
    } linear;
    struct {
      void* pointer;
      ChannelDescription channels;
      size_t width, height, pitch;
    } pitched;
#if PTXREWRITE_CUDART_MAJOR >= 13
    int reserved[32];
#endif
  };
#if PTXREWRITE_CUDART_MAJOR >= 13
  unsigned flags;
#endif
};

struct TextureDescription {
  int address_mode[3]; // 0 wrap, 1 clamp, 2 mirror, 3 border
  int filter_mode;     // 0 point, 1 linear
  int read_mode;       // 0 element type, 1 normalised float
  int srgb;
  float border[4];
  int normalised_coordinates;
  unsigned anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_least, mipmap_most;
  int no_trilinear_optimisation;
#if PTXREWRITE_CUDART_MAJOR >= 12
  int seamless_cubemap;
#endif
};

#if PTXREWRITE_CUDART_MAJOR < 12
// The host variable of a texture reference.
struct TextureReference {
  int normalised_coordinates;
  int filter_mode;     // 0 point, 1 linear
  int address_mode[3]; // 0 wrap, 1 clamp, 2 mirror, 3 border
  ChannelDescription channels;
  int srgb;
  unsigned anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_least, mipmap_most;
  int no_trilinear_optimisation;
  int reserved[14];
};
#endif

struct MemoryLocation {
  int type;
  int id;
};

struct KernelNode {
  void* function;
  Dim3 grid, block;
  unsigned dynamic_shared;
  void** arguments;
  void** extra;
};

struct UniqueId {
  char bytes[16];
};

struct DeviceProperties {
#define FIELD(TYPE, NAME, COUNT, ...) TYPE NAME COUNT;
#include "cuda/runtime/device_properties.inc"
#undef FIELD
};
// Size of cudaDeviceProp in CUDA 11, which lacks the members from `host_register` on.
inline constexpr size_t device_properties_of_11 = offsetof(DeviceProperties, host_register);

} // namespace ptxrewrite::cuda::abi
