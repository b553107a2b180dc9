// Streams, events, callbacks and synchronisation.
#include "cuda/context/memory_pools.h"
#include "cuda/runtime/entry.h"

namespace ptxrewrite::cuda::runtime {

// KIND: a member of EntryPoint.
#define SHARED_ENTRY(KIND, RUNTIME, DRIVER, PARAMETERS, CALL)                                                          \
  RUNTIME_API int RUNTIME PARAMETERS {                                                                                 \
    return Entry(#RUNTIME).KIND(                                                                                       \
        [&]([[maybe_unused]] Context& context, [[maybe_unused]] auto&... operation) { return CALL; });                 \
  }
#define SHARED_STREAM_ENTRY(KIND, RUNTIME, DRIVER, PARAMETERS, CALL)                                                   \
  SHARED_ENTRY(KIND, RUNTIME, DRIVER, PARAMETERS, CALL)                                                                \
  RUNTIME_ALIAS(RUNTIME##_ptsz, RUNTIME)
#include "cuda/context/stream_entries.def"
#undef SHARED_STREAM_ENTRY
#undef SHARED_ENTRY

RUNTIME_API int cudaStreamCreate(void** stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

RUNTIME_API int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

RUNTIME_API int cudaDeviceSynchronize() {
  return entry("cudaDeviceSynchronize", [](Context& context) { return synchronise(context); });
}

RUNTIME_API int cudaEventCreate(Event** event) {
  return cudaEventCreateWithFlags(event, 0);
}

RUNTIME_API int cudaStreamBeginCapture(void* stream, int) {
  return entry("cudaStreamBeginCapture", [&](Context& context) { return begin_capture(context, stream); });
}

// As of CUDA 13; older versions have it under other names, with fewer parameters.
#if PTXREWRITE_CUDART_MAJOR >= 13
RUNTIME_API int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, GraphHandle** graph,
                                         GraphNode* const** dependencies, const void** edges, size_t* count) {
  return entry("cudaStreamGetCaptureInfo", [&](Context& context) {
    if (edges) *edges = nullptr; // edges without data
    return capture_info(context, stream, status, id, graph, dependencies, count);
  });
}

RUNTIME_ALIAS(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo)
#endif

RUNTIME_API int cudaThreadExchangeStreamCaptureMode(int*) {
  return 0;
}

RUNTIME_ALIAS(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture)
RUNTIME_ALIAS(cudaGraphInstantiate, cudaGraphInstantiateWithFlags)

} // namespace ptxrewrite::cuda::runtime
