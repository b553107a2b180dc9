// Declarations of the CUDA Driver API functions in use, by their binary interface: plain C types, entry points by their
// names in libcuda. The library is opened at run time, so neither building nor starting the program needs CUDA. If
// cuda.h is available, a test compares every declaration with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::driver {

using ResultCode = int; // CUresult
using DeviceNumber = int;
using DevicePointer = unsigned long long;
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct ArrayTag;
struct MipmappedArrayTag;
struct TextureReferenceTag;
struct SurfaceReferenceTag;
using ContextHandle = ContextTag*;
using ModuleHandle = ModuleTag*;
using FunctionHandle = FunctionTag*;
using StreamHandle = StreamTag*;
using EventHandle = EventTag*;
using ArrayHandle = ArrayTag*;
using MipmappedArrayHandle = MipmappedArrayTag*;
using TextureReferenceHandle = TextureReferenceTag*;
using SurfaceReferenceHandle = SurfaceReferenceTag*;
using TextureObject = unsigned long long;
using SurfaceObject = unsigned long long;

// Values of CUresult that need special handling.
inline constexpr ResultCode success = 0;
inline constexpr ResultCode error_out_of_memory = 2;
inline constexpr ResultCode error_stub_library = 34;
inline constexpr ResultCode error_no_device = 100;
inline constexpr ResultCode error_no_binary_for_gpu = 209;
inline constexpr ResultCode error_invalid_ptx = 218;
inline constexpr ResultCode error_unsupported_ptx_version = 222;
inline constexpr ResultCode error_not_found = 500;
inline constexpr ResultCode error_illegal_address = 700;
inline constexpr ResultCode error_out_of_resources = 701;
inline constexpr ResultCode error_illegal_instruction = 715;
inline constexpr ResultCode error_misaligned_address = 716;
inline constexpr ResultCode error_launch_failed = 719;

enum class ContextLimit : int { malloc_heap_bytes = 2 };
enum class DeviceAttribute : int {
  clock_rate = 13, // kHz
  multiprocessor_count = 16,
  l2_cache_size = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_optin = 97,
};
enum class FunctionAttribute : int {
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  max_dynamic_shared_bytes = 8,
  non_portable_cluster_allowed = 14,
};
enum class JitOption : int {
  info_log_buffer = 3,
  info_log_buffer_bytes = 4,
  error_log_buffer = 5,
  error_log_buffer_bytes = 6,
  log_verbose = 12,
};

// Arrays of texels, and how they are sampled.
enum class ArrayFormat : int {
  unsigned_8 = 0x01,
  unsigned_16 = 0x02,
  unsigned_32 = 0x03,
  signed_8 = 0x08,
  signed_16 = 0x09,
  signed_32 = 0x0a,
  float_16 = 0x10,
  float_32 = 0x20,
};
enum class AddressMode : int { wrap = 0, clamp = 1, mirror = 2, border = 3 };
enum class FilterMode : int { nearest = 0, linear = 1 };
enum class ResourceType : int { array = 0, mipmapped_array = 1, linear = 2 };
enum class MemoryType : int { host = 1, device = 2, array = 3 };
inline constexpr unsigned array_layered = 0x01;
inline constexpr unsigned array_surface = 0x02;           // surface instructions may store to it
inline constexpr unsigned texture_read_as_integer = 0x01; // integers are not converted to 0 .. 1
inline constexpr unsigned texture_normalised_coordinates = 0x02;
inline constexpr unsigned reference_takes_array_format = 0x01; // cuTexRefSetArray accepts no other

struct ArrayDescription { // CUDA_ARRAY3D_DESCRIPTOR
  size_t width, height, depth;
  ArrayFormat format;
  unsigned channels;
  unsigned flags;
};
struct ArrayCopy { // CUDA_MEMCPY3D
  size_t source_x_bytes, source_y, source_z, source_level;
  MemoryType source_type;
  const void* source_host;
  DevicePointer source_device;
  ArrayHandle source_array;
  void* reserved_0;
  size_t source_pitch, source_height;
  size_t target_x_bytes, target_y, target_z, target_level;
  MemoryType target_type;
  void* target_host;
  DevicePointer target_device;
  ArrayHandle target_array;
  void* reserved_1;
  size_t target_pitch, target_height;
  size_t width_bytes, height, depth;
};
struct ResourceDescription { // CUDA_RESOURCE_DESC
  ResourceType type;
  union {
    ArrayHandle array;
    MipmappedArrayHandle mipmapped_array;
    struct {
      DevicePointer address;
      ArrayFormat format;
      unsigned channels;
      size_t bytes;
    } linear;
    int reserved[32];
  };
  unsigned flags;
};
struct TextureDescription { // CUDA_TEXTURE_DESC
  AddressMode address_modes[3];
  FilterMode filter;
  unsigned flags;
  unsigned anisotropy;
  FilterMode level_filter;
  float level_bias, lowest_level, highest_level;
  float border[4];
  int reserved[12];
};

// Launches with attributes. Only these two attributes are in use.
enum class LaunchAttributeId : int { cooperative = 2, cluster_dimension = 4 };
struct LaunchAttribute { // CUlaunchAttribute
  LaunchAttributeId id;
  int reserved;
  union {
    int cooperative;
    unsigned cluster_blocks[3]; // x, y, z
    char size[64];
  };
};
struct LaunchConfiguration { // CUlaunchConfig
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// For the `extra` of a launch: parameters as one block of bytes.
inline void* const launch_parameters_end = nullptr;
inline void* const launch_parameters_pointer = reinterpret_cast<void*>(uintptr_t(1));
inline void* const launch_parameters_size = reinterpret_cast<void*>(uintptr_t(2));

// ENTRY_POINT(name, symbol in libcuda, arguments)
#define PTXREWRITE_DRIVER_ENTRY_POINTS(ENTRY_POINT)                                                                    \
  ENTRY_POINT(initialise, cuInit, (unsigned flags))                                                                    \
  ENTRY_POINT(driver_version, cuDriverGetVersion, (int* version))                                                      \
  ENTRY_POINT(device_count, cuDeviceGetCount, (int* count))                                                            \
  ENTRY_POINT(device, cuDeviceGet, (DeviceNumber * device, int ordinal))                                               \
  ENTRY_POINT(device_name, cuDeviceGetName, (char* name, int length, DeviceNumber device))                             \
  ENTRY_POINT(bus_id, cuDeviceGetPCIBusId, (char* id, int length, DeviceNumber device))                                \
  ENTRY_POINT(device_attribute, cuDeviceGetAttribute, (int* value, DeviceAttribute attribute, DeviceNumber device))    \
  ENTRY_POINT(retain_context, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceNumber device))                \
  ENTRY_POINT(release_context, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                                    \
  ENTRY_POINT(set_context, cuCtxSetCurrent, (ContextHandle context))                                                   \
  ENTRY_POINT(set_limit, cuCtxSetLimit, (ContextLimit limit, size_t value))                                            \
  ENTRY_POINT(synchronise, cuCtxSynchronize, ())                                                                       \
  ENTRY_POINT(load_module, cuModuleLoadDataEx,                                                                         \
              (ModuleHandle * module, const void* image, unsigned option_count, JitOption* options, void** values))    \
  ENTRY_POINT(unload_module, cuModuleUnload, (ModuleHandle module))                                                    \
  ENTRY_POINT(function, cuModuleGetFunction, (FunctionHandle * function, ModuleHandle module, const char* name))       \
  ENTRY_POINT(global, cuModuleGetGlobal_v2,                                                                            \
              (DevicePointer * address, size_t * bytes, ModuleHandle module, const char* name))                        \
  ENTRY_POINT(function_attribute, cuFuncGetAttribute,                                                                  \
              (int* value, FunctionAttribute attribute, FunctionHandle function))                                      \
  ENTRY_POINT(set_function_attribute, cuFuncSetAttribute,                                                              \
              (FunctionHandle function, FunctionAttribute attribute, int value))                                       \
  ENTRY_POINT(blocks_per_multiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                  \
              (int* blocks, FunctionHandle function, int block_threads, size_t dynamic_shared_bytes))                  \
  ENTRY_POINT(allocate, cuMemAlloc_v2, (DevicePointer * address, size_t bytes))                                        \
  ENTRY_POINT(release, cuMemFree_v2, (DevicePointer address))                                                          \
  ENTRY_POINT(copy_to_device, cuMemcpyHtoD_v2, (DevicePointer to, const void* from, size_t bytes))                     \
  ENTRY_POINT(copy_from_device, cuMemcpyDtoH_v2, (void* to, DevicePointer from, size_t bytes))                         \
  ENTRY_POINT(fill_bytes, cuMemsetD8_v2, (DevicePointer address, unsigned char value, size_t bytes))                   \
  ENTRY_POINT(launch, cuLaunchKernel,                                                                                  \
              (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,           \
               unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters,      \
               void** extra))                                                                                          \
  ENTRY_POINT(create_event, cuEventCreate, (EventHandle * event, unsigned flags))                                      \
  ENTRY_POINT(record_event, cuEventRecord, (EventHandle event, StreamHandle stream))                                   \
  ENTRY_POINT(synchronise_event, cuEventSynchronize, (EventHandle event))                                              \
  ENTRY_POINT(elapsed, cuEventElapsedTime, (float* milliseconds, EventHandle start, EventHandle end))                  \
  ENTRY_POINT(destroy_event, cuEventDestroy_v2, (EventHandle event))                                                   \
  ENTRY_POINT(error_name, cuGetErrorName, (ResultCode status, const char** name))                                      \
  ENTRY_POINT(error_text, cuGetErrorString, (ResultCode status, const char** text))

// Loaded only if a kernel has textures: a driver without one of these can run all other kernels.
#define PTXREWRITE_DRIVER_TEXTURE_ENTRY_POINTS(ENTRY_POINT)                                                            \
  ENTRY_POINT(create_array, cuArray3DCreate_v2, (ArrayHandle * array, const ArrayDescription* description))            \
  ENTRY_POINT(destroy_array, cuArrayDestroy, (ArrayHandle array))                                                      \
  ENTRY_POINT(create_mipmapped_array, cuMipmappedArrayCreate,                                                          \
              (MipmappedArrayHandle * array, const ArrayDescription* description, unsigned levels))                    \
  ENTRY_POINT(destroy_mipmapped_array, cuMipmappedArrayDestroy, (MipmappedArrayHandle array))                          \
  ENTRY_POINT(level_of_array, cuMipmappedArrayGetLevel,                                                                \
              (ArrayHandle * level, MipmappedArrayHandle array, unsigned number))                                      \
  ENTRY_POINT(copy_array, cuMemcpy3D_v2, (const ArrayCopy* copy))                                                      \
  ENTRY_POINT(create_texture, cuTexObjectCreate,                                                                       \
              (TextureObject * texture, const ResourceDescription* resource, const TextureDescription* description,    \
               const void* view))                                                                                      \
  ENTRY_POINT(destroy_texture, cuTexObjectDestroy, (TextureObject texture))                                            \
  ENTRY_POINT(create_surface, cuSurfObjectCreate, (SurfaceObject * surface, const ResourceDescription* resource))      \
  ENTRY_POINT(destroy_surface, cuSurfObjectDestroy, (SurfaceObject surface))                                           \
  ENTRY_POINT(texture_reference, cuModuleGetTexRef,                                                                    \
              (TextureReferenceHandle * reference, ModuleHandle module, const char* name))                             \
  ENTRY_POINT(reference_array, cuTexRefSetArray,                                                                       \
              (TextureReferenceHandle reference, ArrayHandle array, unsigned flags))                                   \
  ENTRY_POINT(reference_address, cuTexRefSetAddress_v2,                                                                \
              (size_t * byte_offset, TextureReferenceHandle reference, DevicePointer address, size_t bytes))           \
  ENTRY_POINT(reference_format, cuTexRefSetFormat,                                                                     \
              (TextureReferenceHandle reference, ArrayFormat format, int channels))                                    \
  ENTRY_POINT(reference_address_mode, cuTexRefSetAddressMode,                                                          \
              (TextureReferenceHandle reference, int dimension, AddressMode mode))                                     \
  ENTRY_POINT(reference_filter, cuTexRefSetFilterMode, (TextureReferenceHandle reference, FilterMode filter))          \
  ENTRY_POINT(reference_flags, cuTexRefSetFlags, (TextureReferenceHandle reference, unsigned flags))                   \
  ENTRY_POINT(surface_reference, cuModuleGetSurfRef,                                                                   \
              (SurfaceReferenceHandle * reference, ModuleHandle module, const char* name))                             \
  ENTRY_POINT(surface_array, cuSurfRefSetArray, (SurfaceReferenceHandle reference, ArrayHandle array, unsigned flags))

// Of drivers since CUDA 12.0: launches in clusters and of cooperative kernels, and tensor maps. A driver without one of
// these can run all other kernels.
#define PTXREWRITE_DRIVER_NEWER_ENTRY_POINTS(ENTRY_POINT)                                                              \
  ENTRY_POINT(launch_with_attributes, cuLaunchKernelEx,                                                                \
              (const LaunchConfiguration* configuration, FunctionHandle function, void** parameters, void** extra))    \
  ENTRY_POINT(encode_tiled, cuTensorMapEncodeTiled,                                                                    \
              (void* map, int element, uint32_t rank, void* address, const uint64_t* dims, const uint64_t* strides,    \
               const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,    \
               int fill))                                                                                              \
  ENTRY_POINT(encode_im2col, cuTensorMapEncodeIm2col,                                                                  \
              (void* map, int element, uint32_t rank, void* address, const uint64_t* dims, const uint64_t* strides,    \
               const int* lower_corner, const int* upper_corner, uint32_t channels, uint32_t pixels,                   \
               const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion, int fill))

} // namespace ptxrewrite::driver
