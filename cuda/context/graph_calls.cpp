// Graphs, as both APIs use them.
#include "cuda/context/stream_calls.h"

#include "cuda/context/graphs/edges.h"

namespace ptxrewrite::cuda {

Code create_graph(GraphHandle** graph) {
  if (!graph) return Code::invalid_value;
  *graph = new GraphHandle(std::make_shared<Graph>());
  return Code::success;
}

Code destroy_graph(GraphHandle* graph) {
  delete graph;
  return graph ? Code::success : Code::invalid_value;
}

Code clone_graph(GraphHandle** copy, GraphHandle* graph) {
  if (!copy || !graph) return Code::invalid_value;
  *copy = new GraphHandle((*graph)->clone());
  return Code::success;
}

GraphNode* node_in_copy(GraphHandle* copy, const GraphNode* node) {
  return copy && node ? (*copy)->find(node->number) : nullptr;
}

Code find_in_clone(GraphNode** found, const GraphNode* node, GraphHandle* copy) {
  if (!found) return Code::invalid_value;
  *found = node_in_copy(copy, node);
  return *found ? Code::success : Code::invalid_value;
}

Code add_node(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count, NodeType type,
              Action action) {
  if (!made || !graph) return Code::invalid_value;
  *made = &(*graph)->add(type, std::move(action), {dependencies, dependencies + (dependencies ? count : 0)});
  return Code::success;
}

Code add_child_graph(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                     GraphHandle* child) {
  if (!child) return Code::invalid_value;
  const Code code = add_node(made, graph, dependencies, count, NodeType::graph, {});
  if (code == Code::success) (*made)->child = (*child)->clone();
  return code;
}

Code add_event_record(Context& context, GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                      size_t count, Event* event) {
  if (!event) return Code::invalid_handle;
  return add_node(made, graph, dependencies, count, NodeType::record_event, [&context, event] {
    context.record_now(*event);
    return Code::success;
  });
}

Code add_dependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, size_t count) {
  if (!graph || (count && (!from || !to))) return Code::invalid_value;
  for (size_t i = 0; i < count; ++i)
    to[i]->dependencies.push_back(from[i]);
  return Code::success;
}

Code graph_nodes(GraphHandle* graph, GraphNode** nodes, size_t* count) {
  if (!graph) return Code::invalid_value;
  std::vector<GraphNode*> all;
  for (const auto& node : (*graph)->nodes)
    all.push_back(node.get());
  return list_nodes(all, nodes, count);
}

Code graph_roots(GraphHandle* graph, GraphNode** nodes, size_t* count) {
  if (!graph) return Code::invalid_value;
  std::vector<GraphNode*> all;
  for (const auto& node : (*graph)->nodes)
    if (node->dependencies.empty()) all.push_back(node.get());
  return list_nodes(all, nodes, count);
}

Code node_dependencies(const GraphNode* node, GraphNode** nodes, size_t* count) {
  return node ? list_nodes(node->dependencies, nodes, count) : Code::invalid_value;
}

Code node_type(const GraphNode* node, int* type) {
  if (!node || !type) return Code::invalid_value;
  *type = static_cast<int>(node->type);
  return Code::success;
}

Code instantiate(GraphHandle** instance, GraphHandle* graph) {
  if (!instance || !graph) return Code::invalid_value;
  if (!(*graph)->nodes.empty() && (*graph)->ordered().empty()) return Code::invalid_value; // a cycle
  *instance = new GraphHandle((*graph)->clone());
  return Code::success;
}

Code update_instance(GraphHandle* instance, GraphHandle* graph, int* result) {
  if (!instance || !graph) return Code::invalid_value;
  *instance = (*graph)->clone();
  if (result) *result = 0; // success
  return Code::success;
}

Code launch_graph(Context& context, GraphHandle* instance, void* handle) {
  if (!instance) return Code::invalid_value;
  Stream* stream = nullptr;
  if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
  return context.submit(stream, NodeType::graph, [graph = *instance] { return graph->run(); });
}

Code enable_node(GraphHandle* instance, const GraphNode* node, unsigned enabled) {
  GraphNode* own = node_in_copy(instance, node);
  if (!own) return Code::invalid_value;
  own->enabled = enabled != 0;
  return Code::success;
}

Code is_node_enabled(GraphHandle* instance, const GraphNode* node, unsigned* enabled) {
  const GraphNode* own = node_in_copy(instance, node);
  if (!own || !enabled) return Code::invalid_value;
  *enabled = own->enabled;
  return Code::success;
}

Code set_action(GraphNode* node, Action action) {
  if (!node || !action) return Code::invalid_value;
  node->action = std::move(action);
  return Code::success;
}

Action host_action(const HostNode* node) {
  if (!node || !node->function) return {};
  return [node = *node] {
    node.function(node.data);
    return Code::success;
  };
}

Action fill_action(Context& context, const FillNode* given) {
  if (!given) return {};
  return [&context, node = *given] {
    return context.fill_rows({node.target, node.pitch, 0}, node.value, node.element, node.width,
                             node.height ? node.height : 1, 1);
  };
}

} // namespace ptxrewrite::cuda
