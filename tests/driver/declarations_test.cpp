// Our declarations of the driver's binary interface against the vendor's header, if it is installed.
#include "cuda/driver/api.h"

#include <doctest/doctest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#include <type_traits>

namespace driver = ptxrewrite::driver;

// Compares the number, the sizes and the pointer types of the arguments.
template <class Ours, class Theirs> struct SameInterface;
template <class... A, class... B> struct SameInterface<driver::ResultCode (*)(A...), CUresult (*)(B...)> {
  static constexpr bool same_parameter(bool ours_is_pointer, bool theirs_is_pointer, size_t ours, size_t theirs) {
    return ours_is_pointer == theirs_is_pointer && ours == theirs;
  }
  static constexpr bool compare() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return (same_parameter(std::is_pointer_v<A>, std::is_pointer_v<B>, sizeof(A), sizeof(B)) && ...);
  }
  static constexpr bool value = compare();
};

#define STRINGIFY(x) #x
#define CHECK_ENTRY_POINT(name, symbol, arguments)                                                                     \
  CHECK_MESSAGE((SameInterface<driver::ResultCode(*) arguments, decltype(&::symbol)>::value), STRINGIFY(symbol));

namespace ptxrewrite::driver {
// Texture references are deprecated, but kernels that use them can still be compiled.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("entry points have the interface of cuda.h") {
  PTXREWRITE_DRIVER_ENTRY_POINTS(CHECK_ENTRY_POINT)
  PTXREWRITE_DRIVER_TEXTURE_ENTRY_POINTS(CHECK_ENTRY_POINT)
#if CUDA_VERSION >= 12000
  PTXREWRITE_DRIVER_NEWER_ENTRY_POINTS(CHECK_ENTRY_POINT)
#endif
}
#pragma GCC diagnostic pop
} // namespace ptxrewrite::driver

TEST_CASE("numbers are those of cuda.h") {
  CHECK(driver::error_out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(driver::error_no_device == CUDA_ERROR_NO_DEVICE);
  CHECK(driver::error_no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(driver::error_invalid_ptx == CUDA_ERROR_INVALID_PTX);
  CHECK(driver::error_unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(driver::error_not_found == CUDA_ERROR_NOT_FOUND);
  CHECK(driver::error_illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(driver::error_out_of_resources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK(driver::error_illegal_instruction == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CHECK(driver::error_misaligned_address == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(driver::error_launch_failed == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(int(driver::DeviceAttribute::clock_rate) == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  CHECK(int(driver::DeviceAttribute::multiprocessor_count) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CHECK(int(driver::DeviceAttribute::l2_cache_size) == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  CHECK(int(driver::DeviceAttribute::compute_capability_major) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CHECK(int(driver::DeviceAttribute::compute_capability_minor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  CHECK(int(driver::DeviceAttribute::max_shared_memory_optin) == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  CHECK(int(driver::FunctionAttribute::static_shared_bytes) == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  CHECK(int(driver::FunctionAttribute::local_bytes) == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  CHECK(int(driver::FunctionAttribute::registers) == CU_FUNC_ATTRIBUTE_NUM_REGS);
  CHECK(int(driver::FunctionAttribute::max_dynamic_shared_bytes) == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
#if CUDA_VERSION >= 12000
  CHECK(int(driver::FunctionAttribute::non_portable_cluster_allowed) ==
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  CHECK(int(driver::LaunchAttributeId::cooperative) == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(int(driver::LaunchAttributeId::cluster_dimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
#endif
  CHECK(int(driver::JitOption::info_log_buffer) == CU_JIT_INFO_LOG_BUFFER);
  CHECK(int(driver::JitOption::info_log_buffer_bytes) == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
  CHECK(int(driver::JitOption::error_log_buffer) == CU_JIT_ERROR_LOG_BUFFER);
  CHECK(int(driver::JitOption::error_log_buffer_bytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  CHECK(int(driver::JitOption::log_verbose) == CU_JIT_LOG_VERBOSE);
  CHECK(int(driver::ArrayFormat::unsigned_8) == CU_AD_FORMAT_UNSIGNED_INT8);
  CHECK(int(driver::ArrayFormat::unsigned_16) == CU_AD_FORMAT_UNSIGNED_INT16);
  CHECK(int(driver::ArrayFormat::unsigned_32) == CU_AD_FORMAT_UNSIGNED_INT32);
  CHECK(int(driver::ArrayFormat::signed_8) == CU_AD_FORMAT_SIGNED_INT8);
  CHECK(int(driver::ArrayFormat::signed_16) == CU_AD_FORMAT_SIGNED_INT16);
  CHECK(int(driver::ArrayFormat::signed_32) == CU_AD_FORMAT_SIGNED_INT32);
  CHECK(int(driver::ArrayFormat::float_16) == CU_AD_FORMAT_HALF);
  CHECK(int(driver::ArrayFormat::float_32) == CU_AD_FORMAT_FLOAT);
  CHECK(int(driver::AddressMode::wrap) == CU_TR_ADDRESS_MODE_WRAP);
  CHECK(int(driver::AddressMode::clamp) == CU_TR_ADDRESS_MODE_CLAMP);
  CHECK(int(driver::AddressMode::mirror) == CU_TR_ADDRESS_MODE_MIRROR);
  CHECK(int(driver::AddressMode::border) == CU_TR_ADDRESS_MODE_BORDER);
  CHECK(int(driver::FilterMode::nearest) == CU_TR_FILTER_MODE_POINT);
  CHECK(int(driver::FilterMode::linear) == CU_TR_FILTER_MODE_LINEAR);
  CHECK(int(driver::ResourceType::array) == CU_RESOURCE_TYPE_ARRAY);
  CHECK(int(driver::ResourceType::linear) == CU_RESOURCE_TYPE_LINEAR);
  CHECK(int(driver::MemoryType::host) == CU_MEMORYTYPE_HOST);
  CHECK(int(driver::MemoryType::device) == CU_MEMORYTYPE_DEVICE);
  CHECK(int(driver::MemoryType::array) == CU_MEMORYTYPE_ARRAY);
  CHECK(driver::array_layered == CUDA_ARRAY3D_LAYERED);
  CHECK(driver::array_surface == CUDA_ARRAY3D_SURFACE_LDST);
  CHECK(driver::texture_read_as_integer == CU_TRSF_READ_AS_INTEGER);
  CHECK(driver::texture_normalised_coordinates == CU_TRSF_NORMALIZED_COORDINATES);
  CHECK(driver::reference_takes_array_format == CU_TRSA_OVERRIDE_FORMAT);
  CHECK(driver::launch_parameters_end == CU_LAUNCH_PARAM_END);
  CHECK(driver::launch_parameters_pointer == CU_LAUNCH_PARAM_BUFFER_POINTER);
  CHECK(driver::launch_parameters_size == CU_LAUNCH_PARAM_BUFFER_SIZE);
  CHECK(sizeof(driver::DevicePointer) == sizeof(CUdeviceptr));
}

// Compares a member's offset and size.
#define CHECK_MEMBER(ours, our_member, theirs, their_member)                                                           \
  CHECK(offsetof(driver::ours, our_member) == offsetof(theirs, their_member));                                         \
  CHECK(sizeof(std::declval<driver::ours>().our_member) == sizeof(std::declval<theirs>().their_member))

TEST_CASE("structures are those of cuda.h") {
#if CUDA_VERSION >= 12000
  CHECK(sizeof(driver::LaunchAttribute) == sizeof(CUlaunchAttribute));
  CHECK_MEMBER(LaunchAttribute, id, CUlaunchAttribute, id);
  CHECK_MEMBER(LaunchAttribute, size, CUlaunchAttribute, value);
  CHECK_MEMBER(LaunchAttribute, cooperative, CUlaunchAttribute, value.cooperative);
  CHECK_MEMBER(LaunchAttribute, cluster_blocks, CUlaunchAttribute, value.clusterDim);
  CHECK(sizeof(driver::LaunchConfiguration) == sizeof(CUlaunchConfig));
  CHECK_MEMBER(LaunchConfiguration, grid_x, CUlaunchConfig, gridDimX);
  CHECK_MEMBER(LaunchConfiguration, block_z, CUlaunchConfig, blockDimZ);
  CHECK_MEMBER(LaunchConfiguration, shared_bytes, CUlaunchConfig, sharedMemBytes);
  CHECK_MEMBER(LaunchConfiguration, stream, CUlaunchConfig, hStream);
  CHECK_MEMBER(LaunchConfiguration, attributes, CUlaunchConfig, attrs);
  CHECK_MEMBER(LaunchConfiguration, attribute_count, CUlaunchConfig, numAttrs);
#endif
  CHECK(sizeof(driver::ArrayDescription) == sizeof(CUDA_ARRAY3D_DESCRIPTOR));
  CHECK_MEMBER(ArrayDescription, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
  CHECK_MEMBER(ArrayDescription, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
  CHECK_MEMBER(ArrayDescription, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
  CHECK_MEMBER(ArrayDescription, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
  CHECK_MEMBER(ArrayDescription, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
  CHECK_MEMBER(ArrayDescription, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
  CHECK(sizeof(driver::ArrayCopy) == sizeof(CUDA_MEMCPY3D));
  CHECK_MEMBER(ArrayCopy, source_x_bytes, CUDA_MEMCPY3D, srcXInBytes);
  CHECK_MEMBER(ArrayCopy, source_type, CUDA_MEMCPY3D, srcMemoryType);
  CHECK_MEMBER(ArrayCopy, source_host, CUDA_MEMCPY3D, srcHost);
  CHECK_MEMBER(ArrayCopy, source_device, CUDA_MEMCPY3D, srcDevice);
  CHECK_MEMBER(ArrayCopy, source_array, CUDA_MEMCPY3D, srcArray);
  CHECK_MEMBER(ArrayCopy, source_pitch, CUDA_MEMCPY3D, srcPitch);
  CHECK_MEMBER(ArrayCopy, source_height, CUDA_MEMCPY3D, srcHeight);
  CHECK_MEMBER(ArrayCopy, target_x_bytes, CUDA_MEMCPY3D, dstXInBytes);
  CHECK_MEMBER(ArrayCopy, target_type, CUDA_MEMCPY3D, dstMemoryType);
  CHECK_MEMBER(ArrayCopy, target_host, CUDA_MEMCPY3D, dstHost);
  CHECK_MEMBER(ArrayCopy, target_device, CUDA_MEMCPY3D, dstDevice);
  CHECK_MEMBER(ArrayCopy, target_array, CUDA_MEMCPY3D, dstArray);
  CHECK_MEMBER(ArrayCopy, target_pitch, CUDA_MEMCPY3D, dstPitch);
  CHECK_MEMBER(ArrayCopy, target_height, CUDA_MEMCPY3D, dstHeight);
  CHECK_MEMBER(ArrayCopy, width_bytes, CUDA_MEMCPY3D, WidthInBytes);
  CHECK_MEMBER(ArrayCopy, height, CUDA_MEMCPY3D, Height);
  CHECK_MEMBER(ArrayCopy, depth, CUDA_MEMCPY3D, Depth);
  CHECK(sizeof(driver::ResourceDescription) == sizeof(CUDA_RESOURCE_DESC));
  CHECK_MEMBER(ResourceDescription, type, CUDA_RESOURCE_DESC, resType);
  CHECK_MEMBER(ResourceDescription, array, CUDA_RESOURCE_DESC, res.array.hArray);
  CHECK_MEMBER(ResourceDescription, mipmapped_array, CUDA_RESOURCE_DESC, res.mipmap.hMipmappedArray);
  CHECK_MEMBER(ResourceDescription, linear.address, CUDA_RESOURCE_DESC, res.linear.devPtr);
  CHECK_MEMBER(ResourceDescription, linear.format, CUDA_RESOURCE_DESC, res.linear.format);
  CHECK_MEMBER(ResourceDescription, linear.channels, CUDA_RESOURCE_DESC, res.linear.numChannels);
  CHECK_MEMBER(ResourceDescription, linear.bytes, CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
  CHECK_MEMBER(ResourceDescription, flags, CUDA_RESOURCE_DESC, flags);
  CHECK(sizeof(driver::TextureDescription) == sizeof(CUDA_TEXTURE_DESC));
  CHECK_MEMBER(TextureDescription, address_modes, CUDA_TEXTURE_DESC, addressMode);
  CHECK_MEMBER(TextureDescription, filter, CUDA_TEXTURE_DESC, filterMode);
  CHECK_MEMBER(TextureDescription, flags, CUDA_TEXTURE_DESC, flags);
  CHECK_MEMBER(TextureDescription, anisotropy, CUDA_TEXTURE_DESC, maxAnisotropy);
  CHECK_MEMBER(TextureDescription, level_filter, CUDA_TEXTURE_DESC, mipmapFilterMode);
  CHECK_MEMBER(TextureDescription, level_bias, CUDA_TEXTURE_DESC, mipmapLevelBias);
  CHECK_MEMBER(TextureDescription, lowest_level, CUDA_TEXTURE_DESC, minMipmapLevelClamp);
  CHECK_MEMBER(TextureDescription, highest_level, CUDA_TEXTURE_DESC, maxMipmapLevelClamp);
  CHECK_MEMBER(TextureDescription, border, CUDA_TEXTURE_DESC, borderColor);
}
#else
TEST_CASE("cuda.h is not installed: declarations are not compared") {
  MESSAGE("skipped");
}
#endif
