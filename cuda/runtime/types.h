// Structures of the runtime API as programs compiled for CUDA 12 and 13 lay them out (cuda_runtime_api.h,
// driver_types.h). Names are ours, layouts NVIDIA's: a test holds them against the headers where there is a toolkit.
#pragma once

#include "cuda/context/array.h"

#include <cstddef>
#include <cstdint>

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
      preferred_carveout, cluster_dim_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy,
      non_portable_cluster;
  int reserved[16];
};

struct PointerAttributes {
  int type; // 0 unknown, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8]; // from CUDA 13 on
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
      void* pointer;
      ChannelDescription channels;
      size_t bytes;
    } linear;
    struct {
      void* pointer;
      ChannelDescription channels;
      size_t width, height, pitch;
    } pitched;
    int reserved[32];
  };
  unsigned flags;
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
  int seamless_cubemap;
};

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

// cudaDeviceProp of CUDA 13.
struct DeviceProperties {
  char name[256];
  UniqueId uuid;
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_memory, shared_per_block;
  int registers_per_block, warp_size;
  size_t memory_pitch;
  int max_threads_per_block, max_block[3], max_grid[3];
  size_t total_constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors, integrated, can_map_host_memory;
  int max_texture_1d, max_texture_1d_mipmap, max_texture_2d[2], max_texture_2d_mipmap[2], max_texture_2d_linear[3],
      max_texture_2d_gather[2], max_texture_3d[3], max_texture_3d_alternate[3], max_texture_cubemap,
      max_texture_1d_layered[2], max_texture_2d_layered[3], max_texture_cubemap_layered[2];
  int max_surface_1d, max_surface_2d[2], max_surface_3d[3], max_surface_1d_layered[2], max_surface_2d_layered[3],
      max_surface_cubemap, max_surface_cubemap_layered[2];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc_driver, async_engines, unified_addressing,
      memory_bus_width, l2_bytes, persisting_l2_bytes, max_threads_per_multiprocessor, stream_priorities,
      global_l1_cache, local_l1_cache;
  size_t shared_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_board_group, host_native_atomics,
      pageable_memory_access, concurrent_managed_access, compute_preemption, host_pointer_for_registered_memory,
      cooperative_launch;
  size_t shared_per_block_optin;
  int pageable_memory_uses_host_page_tables, direct_managed_access_from_host, max_blocks_per_multiprocessor,
      access_policy_max_window;
  size_t reserved_shared_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, gpu_direct_rdma;
  unsigned gpu_direct_rdma_flush;
  int gpu_direct_rdma_ordering;
  unsigned memory_pool_handles;
  int deferred_mapping_arrays, ipc_events, cluster_launch, unified_function_pointers, device_numa_config,
      device_numa_id, mps, host_numa_id;
  unsigned pci_device_id, pci_subsystem_id;
  int host_numa_multinode_ipc;
  int reserved[56];
};

} // namespace ptxrewrite::cuda::abi
