// Streams and events.
#include "cuda/context/memory_pools.h"
#include "cuda/driver_api/entry.h"

namespace ptxrewrite::cuda::driver {

// KIND: a member of EntryPoint.
#define SHARED_ENTRY(KIND, RUNTIME, DRIVER, PARAMETERS, CALL)                                                          \
  DRIVER_API int DRIVER PARAMETERS {                                                                                   \
    return Entry(#DRIVER).KIND(                                                                                        \
        [&]([[maybe_unused]] Context& context, [[maybe_unused]] auto&... operation) { return CALL; });                 \
  }
#define SHARED_STREAM_ENTRY(KIND, RUNTIME, DRIVER, PARAMETERS, CALL)                                                   \
  SHARED_ENTRY(KIND, RUNTIME, DRIVER, PARAMETERS, CALL)                                                                \
  DRIVER_ALIAS(DRIVER##_ptsz, DRIVER)
#include "cuda/context/stream_entries.def"
#undef SHARED_STREAM_ENTRY
#undef SHARED_ENTRY

DRIVER_API int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

DRIVER_API int cuStreamGetCtx(void* stream, void** context_handle) {
  return Entry("cuStreamGetCtx").at_once([&](Context& context) {
    if (!context_handle) return Code::invalid_value;
    *context_handle = &context;
    return is_stream_known(context, stream);
  });
}

DRIVER_API int cuStreamGetCtx_v2(void* stream, void** context_handle, void** green_context) {
  if (green_context) *green_context = nullptr;
  return cuStreamGetCtx(stream, context_handle);
}

DRIVER_API int cuStreamBeginCapture_v2(void* stream, int) {
  return entry("cuStreamBeginCapture", [&](Context& context) { return begin_capture(context, stream); });
}

DRIVER_API int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, GraphHandle** graph,
                                         GraphNode* const** dependencies, const void** edges, size_t* count) {
  return entry("cuStreamGetCaptureInfo", [&](Context& context) {
    if (edges) *edges = nullptr; // edges without data
    return capture_info(context, stream, status, id, graph, dependencies, count);
  });
}

DRIVER_API int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, GraphHandle** graph,
                                         GraphNode* const** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

DRIVER_API int cuStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

DRIVER_API int cuThreadExchangeStreamCaptureMode(int*) {
  return 0;
}

DRIVER_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2)
DRIVER_ALIAS(cuStreamDestroy, cuStreamDestroy_v2)
DRIVER_ALIAS(cuEventDestroy, cuEventDestroy_v2)
DRIVER_ALIAS(cuStreamBeginCapture, cuStreamBeginCapture_v2)
DRIVER_ALIAS(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture_v2)
DRIVER_ALIAS(cuStreamGetCtx_ptsz, cuStreamGetCtx)
DRIVER_ALIAS(cuStreamGetCtx_v2_ptsz, cuStreamGetCtx_v2)
DRIVER_ALIAS(cuStreamGetCaptureInfo_ptsz, cuStreamGetCaptureInfo)
DRIVER_ALIAS(cuStreamGetCaptureInfo_v2_ptsz, cuStreamGetCaptureInfo_v2)
DRIVER_ALIAS(cuStreamGetCaptureInfo_v3_ptsz, cuStreamGetCaptureInfo_v3)

} // namespace ptxrewrite::cuda::driver
