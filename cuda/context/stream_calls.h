// Streams, events and graphs, as both APIs use them. Handles are those of programs: a pointer to a stream, or one of
// the numbers of default streams.
#pragma once

#include "cuda/context/context.h"

namespace ptxrewrite::cuda {

// For graphs and their instances; a program's handle is a pointer to it.
using GraphHandle = std::shared_ptr<Graph>;

// Sets `stream` to nullptr for a default stream. Fails if the handle is not a stream.
Code stream_of(Context& context, void* handle, Stream*& stream);

Code create_stream(Context& context, void** stream, unsigned flags, int priority);
Code destroy_stream(Context& context, void* handle);
// Sets the operation that the caller has to wait for. Fails while the stream is capturing.
Code operation_of(Context& context, void* handle, uint64_t& operation);
// For all streams, with the context idle.
Code synchronise(Context& context);
// Returns Code::not_ready if operations of the stream are not done.
Code query_stream(Context& context, void* handle);
Code stream_priority(Context& context, void* handle, int* priority);
Code stream_flags(Context& context, void* handle, unsigned* flags);
Code stream_id(Context& context, void* handle, unsigned long long* id);
Code stream_device(Context& context, void* handle, int* device);
Code is_stream_known(Context& context, void* handle);
Code wait_for_event(Context& context, void* handle, const Event* event);
Code launch_on_host(Context& context, void* handle, void (*function)(void*), void* data);
Code add_callback(Context& context, void* handle, void (*function)(void*, int, void*), void* data);

Code create_event(Event** event, unsigned flags);
Code destroy_event(Event* event);
Code record_event(Context& context, Event* event, void* handle);
Code query_event(Context& context, const Event* event);
Code operation_of(const Event* event, uint64_t& operation);
Code elapsed_time(Context& context, float* milliseconds, const Event* start, const Event* end);

Code begin_capture(Context& context, void* handle);
Code end_capture(Context& context, void* handle, GraphHandle** graph);
Code is_capturing(Context& context, void* handle, int* status);
// All pointers except `status` may be null. `dependencies` are valid until the stream's next node.
Code capture_info(Context& context, void* handle, int* status, unsigned long long* id, GraphHandle** graph,
                  GraphNode* const** dependencies, size_t* count);

Code create_graph(GraphHandle** graph);
Code destroy_graph(GraphHandle* graph);
Code clone_graph(GraphHandle** copy, GraphHandle* graph);
// The counterpart of `node` in a copy or an instance of its graph; nullptr if there is none.
GraphNode* node_in_copy(GraphHandle* copy, const GraphNode* node);
Code find_in_clone(GraphNode** found, const GraphNode* node, GraphHandle* copy);
Code add_node(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count, NodeType type,
              Action action);
Code add_child_graph(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                     GraphHandle* child);
Code add_event_record(Context& context, GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                      size_t count, Event* event);
Code add_dependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, size_t count);
// If `nodes` is null, only returns the count; surplus entries are set to null.
Code graph_nodes(GraphHandle* graph, GraphNode** nodes, size_t* count);
Code graph_roots(GraphHandle* graph, GraphNode** nodes, size_t* count);
Code node_dependencies(const GraphNode* node, GraphNode** nodes, size_t* count);
Code node_type(const GraphNode* node, int* type);
Code instantiate(GraphHandle** instance, GraphHandle* graph);
Code update_instance(GraphHandle* instance, GraphHandle* graph, int* result);
Code launch_graph(Context& context, GraphHandle* instance, void* handle);
Code enable_node(GraphHandle* instance, const GraphNode* node, unsigned enabled);
Code is_node_enabled(GraphHandle* instance, const GraphNode* node, unsigned* enabled);
// Sets the node's action in an instance, or in the graph itself.
Code set_action(GraphNode* node, Action action);

// cudaHostNodeParams, CUDA_HOST_NODE_PARAMS.
struct HostNode {
  void (*function)(void*);
  void* data;
};
// cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS.
struct FillNode {
  uint64_t target;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
};
// Returns an empty action if `node` is null.
Action host_action(const HostNode* node);
Action fill_action(Context& context, const FillNode* node);

} // namespace ptxrewrite::cuda
