// Our structures of the runtime API have the sizes and offsets of NVIDIA's headers.
#include <cuda_runtime_api.h>

#define PTXREWRITE_CUDART_MAJOR (CUDART_VERSION / 1000)
#include "cuda/context/codes.h"
#include "cuda/context/device_attributes.h"
#include "cuda/context/memory_pools.h"
#include "cuda/context/stream_calls.h"
#include "cuda/runtime/types.h"

#include <cstdio>

namespace abi = ptxrewrite::cuda::abi;
namespace cuda = ptxrewrite::cuda;
using ptxrewrite::cuda::Code;
using ptxrewrite::cuda::DeviceAttribute;
using ptxrewrite::cuda::NodeType;

#define SAME_SIZE(OURS, THEIRS) static_assert(sizeof(OURS) == sizeof(THEIRS))
#define SAME_PLACE(OURS, OUR_FIELD, THEIRS, THEIR_FIELD)                                                               \
  static_assert(offsetof(OURS, OUR_FIELD) == offsetof(THEIRS, THEIR_FIELD) &&                                          \
                sizeof(OURS::OUR_FIELD) == sizeof(THEIRS::THEIR_FIELD))

SAME_SIZE(abi::Memcpy3D, cudaMemcpy3DParms);
SAME_PLACE(abi::Memcpy3D, target, cudaMemcpy3DParms, dstPtr);
SAME_PLACE(abi::Memcpy3D, kind, cudaMemcpy3DParms, kind);
SAME_SIZE(abi::FunctionAttributes, cudaFuncAttributes);
SAME_PLACE(abi::FunctionAttributes, max_dynamic_shared_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
SAME_SIZE(abi::LaunchConfiguration, cudaLaunchConfig_t);
SAME_PLACE(abi::LaunchConfiguration, attribute_count, cudaLaunchConfig_t, numAttrs);
SAME_SIZE(abi::LaunchAttribute, cudaLaunchAttribute);
SAME_PLACE(abi::LaunchAttribute, value, cudaLaunchAttribute, val);
SAME_SIZE(abi::ResourceDescription, cudaResourceDesc);
SAME_PLACE(abi::ResourceDescription, linear.bytes, cudaResourceDesc, res.linear.sizeInBytes);
SAME_PLACE(abi::ResourceDescription, pitched.pitch, cudaResourceDesc, res.pitch2D.pitchInBytes);
SAME_SIZE(abi::TextureDescription, cudaTextureDesc);
SAME_PLACE(abi::TextureDescription, normalised_coordinates, cudaTextureDesc, normalizedCoords);
#if PTXREWRITE_CUDART_MAJOR < 12
SAME_SIZE(abi::TextureReference, textureReference);
SAME_PLACE(abi::TextureReference, channels, textureReference, channelDesc);
SAME_PLACE(abi::TextureReference, mipmap_bias, textureReference, mipmapLevelBias);
#endif
SAME_SIZE(abi::KernelNode, cudaKernelNodeParams);
SAME_PLACE(abi::KernelNode, arguments, cudaKernelNodeParams, kernelParams);
SAME_SIZE(cuda::HostNode, cudaHostNodeParams);
SAME_SIZE(cuda::FillNode, cudaMemsetParams);
SAME_PLACE(cuda::FillNode, height, cudaMemsetParams, height);
SAME_SIZE(abi::MemoryLocation, cudaMemLocation);
SAME_SIZE(cuda::Location, cudaMemLocation);
SAME_SIZE(cuda::AccessDescription, cudaMemAccessDesc);
static_assert(cuda::pool_properties_bytes == sizeof(cudaMemPoolProps));
SAME_PLACE(cuda::PoolProperties, location, cudaMemPoolProps, location);
SAME_SIZE(cuda::AllocationNode, cudaMemAllocNodeParams);
SAME_PLACE(cuda::AllocationNode, bytes, cudaMemAllocNodeParams, bytesize);
SAME_PLACE(cuda::AllocationNode, address, cudaMemAllocNodeParams, dptr);
SAME_SIZE(ptxrewrite::cuda::ChannelDescription, cudaChannelFormatDesc);
SAME_SIZE(abi::PointerAttributes, cudaPointerAttributes);
#if CUDART_VERSION >= 12000
SAME_SIZE(abi::DeviceProperties, cudaDeviceProp);
SAME_PLACE(abi::DeviceProperties, cluster_launch, cudaDeviceProp, clusterLaunch);
#else
static_assert(abi::device_properties_of_11 == sizeof(cudaDeviceProp));
#endif
#if CUDART_VERSION >= 13000
SAME_PLACE(abi::DeviceProperties, host_numa_multinode_ipc, cudaDeviceProp, hostNumaMultinodeIpcSupported);
#else
SAME_PLACE(abi::DeviceProperties, clock_khz, cudaDeviceProp, clockRate);
SAME_PLACE(abi::DeviceProperties, single_to_double_ratio, cudaDeviceProp, singleToDoublePrecisionPerfRatio);
#endif
SAME_PLACE(abi::DeviceProperties, total_global_memory, cudaDeviceProp, totalGlobalMem);
SAME_PLACE(abi::DeviceProperties, multiprocessors, cudaDeviceProp, multiProcessorCount);
SAME_PLACE(abi::DeviceProperties, max_surface_cubemap_layered, cudaDeviceProp, maxSurfaceCubemapLayered);
SAME_PLACE(abi::DeviceProperties, l2_bytes, cudaDeviceProp, l2CacheSize);
SAME_PLACE(abi::DeviceProperties, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
SAME_PLACE(abi::DeviceProperties, max_blocks_per_multiprocessor, cudaDeviceProp, maxBlocksPerMultiProcessor);

#define SAME_NUMBER(OURS, THEIRS) static_assert(static_cast<int>(OURS) == static_cast<int>(THEIRS))
SAME_NUMBER(Code::out_of_memory, cudaErrorMemoryAllocation);
SAME_NUMBER(Code::invalid_configuration, cudaErrorInvalidConfiguration);
SAME_NUMBER(Code::invalid_pitch, cudaErrorInvalidPitchValue);
SAME_NUMBER(Code::invalid_symbol, cudaErrorInvalidSymbol);
SAME_NUMBER(Code::invalid_channel_descriptor, cudaErrorInvalidChannelDescriptor);
SAME_NUMBER(Code::invalid_copy_direction, cudaErrorInvalidMemcpyDirection);
SAME_NUMBER(Code::missing_configuration, cudaErrorMissingConfiguration);
SAME_NUMBER(Code::invalid_device_function, cudaErrorInvalidDeviceFunction);
SAME_NUMBER(Code::invalid_device, cudaErrorInvalidDevice);
SAME_NUMBER(Code::invalid_image, cudaErrorInvalidKernelImage);
SAME_NUMBER(Code::no_binary_for_gpu, cudaErrorNoKernelImageForDevice);
SAME_NUMBER(Code::invalid_ptx, cudaErrorInvalidPtx);
SAME_NUMBER(Code::unsupported_limit, cudaErrorUnsupportedLimit);
SAME_NUMBER(Code::invalid_handle, cudaErrorInvalidResourceHandle);
SAME_NUMBER(Code::not_ready, cudaErrorNotReady);
SAME_NUMBER(Code::illegal_address, cudaErrorIllegalAddress);
SAME_NUMBER(Code::launch_timeout, cudaErrorLaunchTimeout);
SAME_NUMBER(Code::assertion, cudaErrorAssert);
SAME_NUMBER(Code::memory_already_registered, cudaErrorHostMemoryAlreadyRegistered);
SAME_NUMBER(Code::memory_not_registered, cudaErrorHostMemoryNotRegistered);
SAME_NUMBER(Code::misaligned_address, cudaErrorMisalignedAddress);
SAME_NUMBER(Code::launch_failure, cudaErrorLaunchFailure);
SAME_NUMBER(Code::cooperative_launch_too_large, cudaErrorCooperativeLaunchTooLarge);
SAME_NUMBER(Code::not_supported, cudaErrorNotSupported);
SAME_NUMBER(Code::stream_capture_unsupported, cudaErrorStreamCaptureUnsupported);
SAME_NUMBER(NodeType::record_event, cudaGraphNodeTypeEventRecord);
SAME_NUMBER(NodeType::release, cudaGraphNodeTypeMemFree);
SAME_NUMBER(DeviceAttribute::multiprocessors, cudaDevAttrMultiProcessorCount);
SAME_NUMBER(DeviceAttribute::shared_per_block_optin, cudaDevAttrMaxSharedMemoryPerBlockOptin);
SAME_NUMBER(DeviceAttribute::blocks_per_multiprocessor, cudaDevAttrMaxBlocksPerMultiprocessor);
SAME_NUMBER(DeviceAttribute::texture_2d_linear_pitch, cudaDevAttrMaxTexture2DLinearPitch);
SAME_NUMBER(DeviceAttribute::cooperative_launch, cudaDevAttrCooperativeLaunch);

int main() {
  std::puts("sizes, offsets and numbers are those of the headers");
}
