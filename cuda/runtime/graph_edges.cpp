// Edges of graphs. Since CUDA 13 functions also have data of edges, in CUDA 12 those of version 2: they are zeros, as
// no edge has a port or a type.
#include "cuda/context/graphs/edges.h"
#include "cuda/runtime/entry.h"

#include <algorithm>

namespace ptxrewrite::cuda::runtime {
namespace {

int get_edges(GraphHandle* graph, GraphNode** from, GraphNode** to, uint64_t* data, size_t* count) {
  return entry("cudaGraphGetEdges", [&](Context&) {
    const Code code = graph_edges(graph, from, to, count);
    if (code == Code::success && data && from) std::fill_n(data, *count, 0);
    return code;
  });
}

int get_dependencies(const GraphNode* node, GraphNode** nodes, uint64_t* data, size_t* count) {
  return entry("cudaGraphNodeGetDependencies", [&](Context&) {
    const Code code = node_dependencies(node, nodes, count);
    if (code == Code::success && data && nodes) std::fill_n(data, *count, 0);
    return code;
  });
}

int get_dependents(const GraphNode* node, GraphNode** nodes, uint64_t* data, size_t* count) {
  return entry("cudaGraphNodeGetDependentNodes", [&](Context&) {
    const Code code = dependent_nodes(node, nodes, count);
    if (code == Code::success && data && nodes) std::fill_n(data, *count, 0);
    return code;
  });
}

int remove(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, size_t count) {
  return entry("cudaGraphRemoveDependencies", [&](Context&) { return remove_dependencies(graph, from, to, count); });
}

} // namespace

#if PTXREWRITE_CUDART_MAJOR >= 13
#define WITH_DATA(NAME) NAME
#else
#define WITH_DATA(NAME) NAME##_v2
RUNTIME_API int cudaGraphGetEdges(GraphHandle* graph, GraphNode** from, GraphNode** to, size_t* count) {
  return get_edges(graph, from, to, nullptr, count);
}

RUNTIME_API int cudaGraphNodeGetDependencies(const GraphNode* node, GraphNode** nodes, size_t* count) {
  return get_dependencies(node, nodes, nullptr, count);
}

RUNTIME_API int cudaGraphNodeGetDependentNodes(const GraphNode* node, GraphNode** nodes, size_t* count) {
  return get_dependents(node, nodes, nullptr, count);
}

RUNTIME_API int cudaGraphRemoveDependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to,
                                            size_t count) {
  return remove(graph, from, to, count);
}
#endif

#if PTXREWRITE_CUDART_MAJOR >= 12
RUNTIME_API int WITH_DATA(cudaGraphGetEdges)(GraphHandle* graph, GraphNode** from, GraphNode** to, uint64_t* data,
                                             size_t* count) {
  return get_edges(graph, from, to, data, count);
}

RUNTIME_API int WITH_DATA(cudaGraphNodeGetDependencies)(const GraphNode* node, GraphNode** nodes, uint64_t* data,
                                                        size_t* count) {
  return get_dependencies(node, nodes, data, count);
}

RUNTIME_API int WITH_DATA(cudaGraphNodeGetDependentNodes)(const GraphNode* node, GraphNode** nodes, uint64_t* data,
                                                          size_t* count) {
  return get_dependents(node, nodes, data, count);
}

RUNTIME_API int WITH_DATA(cudaGraphRemoveDependencies)(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to,
                                                       const uint64_t*, size_t count) {
  return remove(graph, from, to, count);
}
#endif

RUNTIME_API int cudaGraphDestroyNode(GraphNode* node) {
  return entry("cudaGraphDestroyNode", [&](Context&) { return destroy_node(node); });
}

} // namespace ptxrewrite::cuda::runtime
