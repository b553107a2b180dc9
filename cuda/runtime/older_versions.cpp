// Functions that only libcudart of CUDA 11 and 12 exports, or that have other parameters than in CUDA 13.
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#if PTXREWRITE_CUDART_MAJOR <= 12

namespace ptxrewrite::cuda::runtime {

RUNTIME_API int cudaThreadSynchronize() {
  return entry("cudaThreadSynchronize", [](Context& context) { return synchronise(context); });
}

RUNTIME_API int cudaThreadExit() {
  Context& context = Context::get();
  const Context::Lock lock = context.lock_idle();
  context.reset();
  return 0;
}

RUNTIME_API int cudaThreadSetLimit(int limit, size_t value) {
  return entry("cudaThreadSetLimit", [&](Context& context) { return context.set_limit(limit, value); });
}

RUNTIME_API int cudaThreadGetLimit(size_t* value, int limit) {
  return entry("cudaThreadGetLimit", [&](Context& context) { return context.limit(limit, *value); });
}

RUNTIME_API int cudaThreadGetCacheConfig(int* configuration) {
  *configuration = 0;
  return 0;
}

RUNTIME_API int cudaThreadSetCacheConfig(int) {
  return 0;
}

RUNTIME_API int cudaGraphAddDependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to,
                                         size_t count) {
  return entry("cudaGraphAddDependencies", [&](Context&) { return add_dependencies(graph, from, to, count); });
}

RUNTIME_API int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return entry("cudaStreamGetCaptureInfo",
               [&](Context& context) { return capture_info(context, stream, status, id, nullptr, nullptr, nullptr); });
}

RUNTIME_API int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, GraphHandle** graph,
                                            GraphNode* const** dependencies, size_t* count) {
  return entry("cudaStreamGetCaptureInfo",
               [&](Context& context) { return capture_info(context, stream, status, id, graph, dependencies, count); });
}

RUNTIME_ALIAS(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo)
RUNTIME_ALIAS(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2)

#if PTXREWRITE_CUDART_MAJOR == 12
RUNTIME_API int cudaGraphAddDependencies_v2(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to,
                                            const void*, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, count);
}

RUNTIME_API int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, GraphHandle** graph,
                                            GraphNode* const** dependencies, const void** edges, size_t* count) {
  if (edges) *edges = nullptr; // edges without data
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

RUNTIME_API int cudaEventElapsedTime_v2(float* milliseconds, const Event* start, const Event* end) {
  return Entry("cudaEventElapsedTime").at_once([&](Context& context) {
    return elapsed_time(context, milliseconds, start, end);
  });
}

RUNTIME_API int cudaMemAdvise_v2(const void*, size_t, int, abi::MemoryLocation) {
  return entry("cudaMemAdvise", [](Context&) { return Code::success; });
}

RUNTIME_API int cudaMemPrefetchAsync_v2(const void*, size_t, abi::MemoryLocation, unsigned, void*) {
  return entry("cudaMemPrefetchAsync", [](Context&) { return Code::success; });
}

RUNTIME_ALIAS(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_v3)
RUNTIME_ALIAS(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync_v2)
#endif

} // namespace ptxrewrite::cuda::runtime

#endif
