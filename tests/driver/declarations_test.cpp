// Our declarations of the driver's binary interface against the vendor's header, where that is installed.
#include "cli/driver/api.h"

#include <doctest/doctest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#include <type_traits>

namespace driver = ptxrewrite::driver;

// The same number of arguments of the same sizes, pointer for pointer.
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
TEST_CASE("entry points have the interface of cuda.h") {
  PTXREWRITE_DRIVER_ENTRY_POINTS(CHECK_ENTRY_POINT)
}
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
  CHECK(int(driver::JitOption::info_log_buffer) == CU_JIT_INFO_LOG_BUFFER);
  CHECK(int(driver::JitOption::info_log_buffer_bytes) == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
  CHECK(int(driver::JitOption::error_log_buffer) == CU_JIT_ERROR_LOG_BUFFER);
  CHECK(int(driver::JitOption::error_log_buffer_bytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  CHECK(int(driver::JitOption::log_verbose) == CU_JIT_LOG_VERBOSE);
  CHECK(driver::launch_parameters_end == CU_LAUNCH_PARAM_END);
  CHECK(driver::launch_parameters_pointer == CU_LAUNCH_PARAM_BUFFER_POINTER);
  CHECK(driver::launch_parameters_size == CU_LAUNCH_PARAM_BUFFER_SIZE);
  CHECK(sizeof(driver::DevicePointer) == sizeof(CUdeviceptr));
}
#else
TEST_CASE("cuda.h is not installed: declarations are not compared") {
  MESSAGE("skipped");
}
#endif
