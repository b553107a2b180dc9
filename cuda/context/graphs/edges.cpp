#include "cuda/context/graphs/edges.h"

#include <algorithm>

namespace ptxrewrite::cuda {

Code list_nodes(const std::vector<GraphNode*>& all, GraphNode** nodes, size_t* count) {
  if (!count) return Code::invalid_value;
  for (size_t i = 0; nodes && i < *count; ++i)
    nodes[i] = i < all.size() ? all[i] : nullptr;
  if (!nodes || *count > all.size()) *count = all.size();
  return Code::success;
}

Code graph_edges(GraphHandle* graph, GraphNode** from, GraphNode** to, size_t* count) {
  if (!graph || !count || !from != !to) return Code::invalid_value;
  std::vector<GraphNode*> begins, ends;
  for (const auto& node : (*graph)->nodes)
    for (GraphNode* dependency : node->dependencies) {
      begins.push_back(dependency);
      ends.push_back(node.get());
    }
  size_t room = *count;
  if (const Code code = list_nodes(begins, from, &room); code != Code::success) return code;
  return list_nodes(ends, to, count);
}

Code dependent_nodes(const GraphNode* node, GraphNode** nodes, size_t* count) {
  if (!node || !node->graph) return Code::invalid_value;
  std::vector<GraphNode*> all;
  for (const auto& other : node->graph->nodes)
    if (std::ranges::find(other->dependencies, node) != other->dependencies.end()) all.push_back(other.get());
  return list_nodes(all, nodes, count);
}

Code remove_dependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, size_t count) {
  if (!graph || (count && (!from || !to))) return Code::invalid_value;
  const auto edge = [&](size_t i) { return std::ranges::find(to[i]->dependencies, from[i]); };
  for (size_t i = 0; i < count; ++i)
    if (!from[i] || !to[i] || edge(i) == to[i]->dependencies.end()) return Code::invalid_value;
  for (size_t i = 0; i < count; ++i)
    if (const auto found = edge(i); found != to[i]->dependencies.end()) to[i]->dependencies.erase(found);
  return Code::success;
}

Code destroy_node(GraphNode* node) {
  if (!node || !node->graph) return Code::invalid_value;
  Graph& graph = *node->graph;
  for (const auto& other : graph.nodes)
    std::erase(other->dependencies, node);
  std::erase_if(graph.nodes, [&](const auto& other) { return other.get() == node; });
  return Code::success;
}

} // namespace ptxrewrite::cuda
