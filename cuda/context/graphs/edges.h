// The edges of graphs, as both APIs list and remove them.
#pragma once

#include "cuda/context/stream_calls.h"

namespace ptxrewrite::cuda {

// Writes up to *count handles, nulls where there are no more, and sets *count to their number. If `nodes` is null, only
// the number is returned.
Code list_nodes(const std::vector<GraphNode*>& all, GraphNode** nodes, size_t* count);
Code graph_edges(GraphHandle* graph, GraphNode** from, GraphNode** to, size_t* count);
Code dependent_nodes(const GraphNode* node, GraphNode** nodes, size_t* count);
Code remove_dependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, size_t count);
// Removes a node with its edges.
Code destroy_node(GraphNode* node);

} // namespace ptxrewrite::cuda
