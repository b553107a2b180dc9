// Graphs: capture, nodes, instances. A graph replays its nodes as a list.
#include "cuda/runtime/entry.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/types.h"

#include <cstring>

namespace ptxrewrite::cuda::runtime {
namespace {

using GraphHandle = std::shared_ptr<Graph>;

Code add_node(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count, NodeType type,
              Action action) {
  if (!made || !graph) return Code::invalid_value;
  *made = &(*graph)->add(type, std::move(action), {dependencies, dependencies + (dependencies ? count : 0)});
  return Code::success;
}

Action kernel_action(Context& context, const abi::KernelNode& node, Code& code) {
  Kernel* kernel = kernel_of(node.function, code);
  if (!kernel) return {};
  const LaunchShape shape = shape_of(node.grid, node.block, node.dynamic_shared);
  code = context.check_launch(*kernel, shape);
  return [&context, kernel, shape, bytes = pack_arguments(*kernel, node.arguments)] {
    return context.launch(*kernel, shape, bytes);
  };
}

Action host_action(const abi::HostNode& node) {
  return [node] {
    node.function(node.data);
    return Code::success;
  };
}

Action fill_action(Context& context, const abi::MemsetNode& node) {
  return [&context, node] {
    return context.fill_rows({reinterpret_cast<uint64_t>(node.target), node.pitch, 0}, node.value, node.element,
                             node.width, node.height ? node.height : 1, 1);
  };
}

Action linear_copy_action(Context& context, void* to, const void* from, size_t bytes, int kind) {
  return [=, &context] {
    return context.copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes,
                        static_cast<CopyDirection>(kind));
  };
}

// The node of an instance that was made from `node`.
GraphNode* instance_of(GraphHandle* instance, const GraphNode* node) {
  return instance && node ? (*instance)->find(node->number) : nullptr;
}

} // namespace

RUNTIME_API int cudaGraphCreate(GraphHandle** graph, unsigned) {
  return entry("cudaGraphCreate", [&](Context&) {
    *graph = new GraphHandle(std::make_shared<Graph>());
    return Code::success;
  });
}

RUNTIME_API int cudaGraphDestroy(GraphHandle* graph) {
  return entry("cudaGraphDestroy", [&](Context&) {
    delete graph;
    return graph ? Code::success : Code::invalid_value;
  });
}

RUNTIME_API int cudaGraphClone(GraphHandle** copy, GraphHandle* graph) {
  return entry("cudaGraphClone", [&](Context&) {
    if (!copy || !graph) return Code::invalid_value;
    *copy = new GraphHandle((*graph)->clone());
    return Code::success;
  });
}

RUNTIME_API int cudaGraphNodeFindInClone(GraphNode** found, const GraphNode* node, GraphHandle* copy) {
  return entry("cudaGraphNodeFindInClone", [&](Context&) {
    *found = instance_of(copy, node);
    return *found ? Code::success : Code::invalid_value;
  });
}

RUNTIME_API int cudaGraphAddKernelNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                       size_t count, const abi::KernelNode* node) {
  return entry("cudaGraphAddKernelNode", [&](Context& context) {
    if (!node) return Code::invalid_value;
    Code code = Code::success;
    Action action = kernel_action(context, *node, code);
    if (code != Code::success || !action) return code;
    return add_node(made, graph, dependencies, count, NodeType::kernel, std::move(action));
  });
}

RUNTIME_API int cudaGraphAddMemcpyNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                       size_t count, const abi::Memcpy3D* copy) {
  return entry("cudaGraphAddMemcpyNode", [&](Context& context) {
    if (!copy) return Code::invalid_value;
    return add_node(made, graph, dependencies, count, NodeType::copy, box_copy_action(context, *copy));
  });
}

RUNTIME_API int cudaGraphAddMemcpyNode1D(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                         size_t count, void* to, const void* from, size_t bytes, int kind) {
  return entry("cudaGraphAddMemcpyNode1D", [&](Context& context) {
    return add_node(made, graph, dependencies, count, NodeType::copy,
                    linear_copy_action(context, to, from, bytes, kind));
  });
}

RUNTIME_API int cudaGraphAddMemsetNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                       size_t count, const abi::MemsetNode* node) {
  return entry("cudaGraphAddMemsetNode", [&](Context& context) {
    if (!node) return Code::invalid_value;
    return add_node(made, graph, dependencies, count, NodeType::fill, fill_action(context, *node));
  });
}

RUNTIME_API int cudaGraphAddHostNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                                     const abi::HostNode* node) {
  return entry("cudaGraphAddHostNode", [&](Context&) {
    if (!node) return Code::invalid_value;
    return add_node(made, graph, dependencies, count, NodeType::host, host_action(*node));
  });
}

RUNTIME_API int cudaGraphAddEmptyNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                      size_t count) {
  return entry("cudaGraphAddEmptyNode",
               [&](Context&) { return add_node(made, graph, dependencies, count, NodeType::empty, {}); });
}

RUNTIME_API int cudaGraphAddChildGraphNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                           size_t count, GraphHandle* child) {
  return entry("cudaGraphAddChildGraphNode", [&](Context&) {
    if (!child) return Code::invalid_value;
    const Code code = add_node(made, graph, dependencies, count, NodeType::graph, {});
    if (code == Code::success) (*made)->child = (*child)->clone();
    return code;
  });
}

RUNTIME_API int cudaGraphAddEventRecordNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                            size_t count, Event* event) {
  return entry("cudaGraphAddEventRecordNode", [&](Context& context) {
    return add_node(made, graph, dependencies, count, NodeType::record_event,
                    [&context, event] { return context.record(*event, nullptr); });
  });
}

RUNTIME_API int cudaGraphAddEventWaitNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                          size_t count, Event*) {
  return entry("cudaGraphAddEventWaitNode",
               [&](Context&) { return add_node(made, graph, dependencies, count, NodeType::wait_event, {}); });
}

RUNTIME_API int cudaGraphAddDependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                         size_t count) {
  return entry("cudaGraphAddDependencies", [&](Context&) {
    if (!graph) return Code::invalid_value;
    for (size_t i = 0; i < count; ++i)
      to[i]->dependencies.push_back(from[i]);
    return Code::success;
  });
}

RUNTIME_API int cudaGraphGetNodes(GraphHandle* graph, GraphNode** nodes, size_t* count) {
  return entry("cudaGraphGetNodes", [&](Context&) {
    if (!graph || !count) return Code::invalid_value;
    const auto& all = (*graph)->nodes;
    for (size_t i = 0; nodes && i < *count; ++i)
      nodes[i] = i < all.size() ? all[i].get() : nullptr;
    if (!nodes || *count > all.size()) *count = all.size();
    return Code::success;
  });
}

RUNTIME_API int cudaGraphGetRootNodes(GraphHandle* graph, GraphNode** nodes, size_t* count) {
  return entry("cudaGraphGetRootNodes", [&](Context&) {
    if (!graph || !count) return Code::invalid_value;
    size_t found = 0;
    for (const auto& node : (*graph)->nodes)
      if (node->dependencies.empty()) {
        if (nodes && found < *count) nodes[found] = node.get();
        ++found;
      }
    *count = nodes ? std::min(found, *count) : found;
    return Code::success;
  });
}

RUNTIME_API int cudaGraphNodeGetType(const GraphNode* node, int* type) {
  return entry("cudaGraphNodeGetType", [&](Context&) {
    if (!node || !type) return Code::invalid_value;
    *type = static_cast<int>(node->type);
    return Code::success;
  });
}

RUNTIME_API int cudaGraphInstantiateWithFlags(GraphHandle** instance, GraphHandle* graph, unsigned long long) {
  return entry("cudaGraphInstantiate", [&](Context&) {
    if (!instance || !graph) return Code::invalid_value;
    if (!(*graph)->nodes.empty() && (*graph)->ordered().empty()) return Code::invalid_value; // a circle
    *instance = new GraphHandle((*graph)->clone());
    return Code::success;
  });
}

RUNTIME_API int cudaGraphExecDestroy(GraphHandle* instance) {
  return cudaGraphDestroy(instance);
}

RUNTIME_API int cudaGraphExecUpdate(GraphHandle* instance, GraphHandle* graph, void* result) {
  return entry("cudaGraphExecUpdate", [&](Context&) {
    if (!instance || !graph) return Code::invalid_value;
    *instance = (*graph)->clone();
    if (result) std::memset(result, 0, sizeof(int)); // cudaGraphExecUpdateSuccess
    return Code::success;
  });
}

RUNTIME_API int cudaGraphLaunch(GraphHandle* instance, void* handle) {
  return entry("cudaGraphLaunch", [&](Context& context) {
    if (!instance) return Code::invalid_value;
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    return context.submit(stream, NodeType::graph, [graph = *instance] { return graph->run(); });
  });
}

RUNTIME_API int cudaGraphUpload(GraphHandle*, void*) {
  return 0;
}

RUNTIME_API int cudaGraphKernelNodeSetParams(GraphNode* node, const abi::KernelNode* given) {
  return entry("cudaGraphKernelNodeSetParams", [&](Context& context) {
    if (!node || !given) return Code::invalid_value;
    Code code = Code::success;
    Action action = kernel_action(context, *given, code);
    if (action) node->action = std::move(action);
    return code;
  });
}

RUNTIME_API int cudaGraphExecKernelNodeSetParams(GraphHandle* instance, const GraphNode* node,
                                                 const abi::KernelNode* given) {
  return cudaGraphKernelNodeSetParams(instance_of(instance, node), given);
}

RUNTIME_API int cudaGraphExecMemcpyNodeSetParams1D(GraphHandle* instance, const GraphNode* node, void* to,
                                                   const void* from, size_t bytes, int kind) {
  return entry("cudaGraphExecMemcpyNodeSetParams1D", [&](Context& context) {
    GraphNode* own = instance_of(instance, node);
    if (!own) return Code::invalid_value;
    own->action = linear_copy_action(context, to, from, bytes, kind);
    return Code::success;
  });
}

RUNTIME_API int cudaGraphExecMemsetNodeSetParams(GraphHandle* instance, const GraphNode* node,
                                                 const abi::MemsetNode* given) {
  return entry("cudaGraphExecMemsetNodeSetParams", [&](Context& context) {
    GraphNode* own = instance_of(instance, node);
    if (!own || !given) return Code::invalid_value;
    own->action = fill_action(context, *given);
    return Code::success;
  });
}

RUNTIME_API int cudaGraphExecHostNodeSetParams(GraphHandle* instance, const GraphNode* node,
                                               const abi::HostNode* given) {
  return entry("cudaGraphExecHostNodeSetParams", [&](Context&) {
    GraphNode* own = instance_of(instance, node);
    if (!own || !given) return Code::invalid_value;
    own->action = host_action(*given);
    return Code::success;
  });
}

RUNTIME_API int cudaGraphNodeSetEnabled(GraphHandle* instance, const GraphNode* node, unsigned enabled) {
  return entry("cudaGraphNodeSetEnabled", [&](Context&) {
    GraphNode* own = instance_of(instance, node);
    if (!own) return Code::invalid_value;
    own->enabled = enabled != 0;
    return Code::success;
  });
}

RUNTIME_API int cudaStreamBeginCapture(void* handle, int) {
  return entry("cudaStreamBeginCapture", [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (!stream) return Code::stream_capture_unsupported; // the default stream cannot
    if (stream->capture) return Code::invalid_value;
    stream->capture = std::make_shared<Graph>();
    stream->capture_end.clear();
    stream->captures_first = true;
    return Code::success;
  });
}

RUNTIME_API int cudaStreamEndCapture(void* handle, GraphHandle** graph) {
  return entry("cudaStreamEndCapture", [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (!stream || !stream->capture || !stream->captures_first) return Code::invalid_value;
    GraphHandle captured;
    const Code code = context.end_capture(*stream, captured);
    *graph = new GraphHandle(std::move(captured));
    return code;
  });
}

RUNTIME_API int cudaStreamIsCapturing(void* handle, int* status) {
  return entry("cudaStreamIsCapturing", [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    *status = stream && stream->capture ? 1 : 0;
    return Code::success;
  });
}

RUNTIME_API int cudaThreadExchangeStreamCaptureMode(int*) {
  return 0;
}

RUNTIME_ALIAS(cudaGraphInstantiate, cudaGraphInstantiateWithFlags)
RUNTIME_ALIAS(cudaGraphLaunch_ptsz, cudaGraphLaunch)
RUNTIME_ALIAS(cudaGraphUpload_ptsz, cudaGraphUpload)
RUNTIME_ALIAS(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture)
RUNTIME_ALIAS(cudaStreamEndCapture_ptsz, cudaStreamEndCapture)
RUNTIME_ALIAS(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing)

} // namespace ptxrewrite::cuda::runtime
