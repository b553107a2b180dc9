// Edges of graphs. Functions of version 2 also have data of edges, which are zeros: no edge has a port or a type.
#include "cuda/context/graphs/edges.h"
#include "cuda/driver_api/entry.h"

#include <algorithm>

namespace ptxrewrite::cuda::driver {

DRIVER_API int cuGraphGetEdges_v2(GraphHandle* graph, GraphNode** from, GraphNode** to, uint64_t* data, size_t* count) {
  return entry("cuGraphGetEdges", [&](Context&) {
    const Code code = graph_edges(graph, from, to, count);
    if (code == Code::success && data && from) std::fill_n(data, *count, 0);
    return code;
  });
}

DRIVER_API int cuGraphGetEdges(GraphHandle* graph, GraphNode** from, GraphNode** to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

DRIVER_API int cuGraphNodeGetDependentNodes_v2(const GraphNode* node, GraphNode** nodes, uint64_t* data,
                                               size_t* count) {
  return entry("cuGraphNodeGetDependentNodes", [&](Context&) {
    const Code code = dependent_nodes(node, nodes, count);
    if (code == Code::success && data && nodes) std::fill_n(data, *count, 0);
    return code;
  });
}

DRIVER_API int cuGraphNodeGetDependentNodes(const GraphNode* node, GraphNode** nodes, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

DRIVER_API int cuGraphRemoveDependencies_v2(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to,
                                            const uint64_t*, size_t count) {
  return entry("cuGraphRemoveDependencies", [&](Context&) { return remove_dependencies(graph, from, to, count); });
}

DRIVER_API int cuGraphRemoveDependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to,
                                         size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

DRIVER_API int cuGraphDestroyNode(GraphNode* node) {
  return entry("cuGraphDestroyNode", [&](Context&) { return destroy_node(node); });
}

} // namespace ptxrewrite::cuda::driver
