// Graph nodes that exist only in the runtime API: kernels by their host functions, its own kind of copies. The other
// functions are in cuda/context/stream_entries.def.
#include "cuda/context/graphs/kernel_action.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/types.h"

namespace ptxrewrite::cuda::runtime {
namespace {

Action kernel_action(Context& context, const abi::KernelNode& node, Code& code) {
  Kernel* kernel = kernel_of(node.function, code);
  if (!kernel) return {};
  const LaunchShape shape = shape_of(node.grid, node.block, node.dynamic_shared);
  code = context.check_launch(*kernel, shape);
  return KernelAction(context, *kernel, shape, pack_arguments(*kernel, node.arguments));
}

Action linear_copy_action(Context& context, void* to, const void* from, size_t bytes, int kind) {
  return [=, &context] {
    return context.copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes,
                        static_cast<CopyDirection>(kind));
  };
}

} // namespace

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
                                       size_t count, const FillNode* node) {
  return entry("cudaGraphAddMemsetNode", [&](Context& context) {
    if (!node) return Code::invalid_value;
    return add_node(made, graph, dependencies, count, NodeType::fill, fill_action(context, node));
  });
}

// Since CUDA 13 with edge data.
#if PTXREWRITE_CUDART_MAJOR >= 13
RUNTIME_API int cudaGraphAddDependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                         size_t count) {
  return entry("cudaGraphAddDependencies", [&](Context&) { return add_dependencies(graph, from, to, count); });
}
#endif

#if PTXREWRITE_CUDART_MAJOR >= 12
RUNTIME_API int cudaGraphExecUpdate(GraphHandle* instance, GraphHandle* graph, int* result) {
  return entry("cudaGraphExecUpdate", [&](Context&) { return update_instance(instance, graph, result); });
}
#else
RUNTIME_API int cudaGraphExecUpdate(GraphHandle* instance, GraphHandle* graph, GraphNode** wrong, int* result) {
  if (wrong) *wrong = nullptr;
  return entry("cudaGraphExecUpdate", [&](Context&) { return update_instance(instance, graph, result); });
}
#endif

RUNTIME_API int cudaGraphKernelNodeSetParams(GraphNode* node, const abi::KernelNode* given) {
  return entry("cudaGraphKernelNodeSetParams", [&](Context& context) {
    if (!node || !given) return Code::invalid_value;
    Code code = Code::success;
    Action action = kernel_action(context, *given, code);
    if (action) node->action = std::move(action);
    return code;
  });
}

RUNTIME_API int cudaGraphKernelNodeGetParams(GraphNode* node, abi::KernelNode* out) {
  return entry("cudaGraphKernelNodeGetParams", [&](Context&) {
    KernelAction* action = kernel_action_of(node);
    if (!action || !out) return Code::invalid_value;
    void* function = host_function_of(*action->kernel());
    if (!function) return Code::invalid_device_function;
    const LaunchShape& shape = action->shape();
    *out = {function,
            {shape.grid.x, shape.grid.y, shape.grid.z},
            {shape.block.x, shape.block.y, shape.block.z},
            static_cast<unsigned>(shape.dynamic_shared),
            action->arguments(),
            nullptr};
    return Code::success;
  });
}

RUNTIME_API int cudaGraphExecKernelNodeSetParams(GraphHandle* instance, const GraphNode* node,
                                                 const abi::KernelNode* given) {
  return cudaGraphKernelNodeSetParams(node_in_copy(instance, node), given);
}

RUNTIME_API int cudaGraphExecMemcpyNodeSetParams1D(GraphHandle* instance, const GraphNode* node, void* to,
                                                   const void* from, size_t bytes, int kind) {
  return entry("cudaGraphExecMemcpyNodeSetParams1D", [&](Context& context) {
    return set_action(node_in_copy(instance, node), linear_copy_action(context, to, from, bytes, kind));
  });
}

RUNTIME_API int cudaGraphExecMemsetNodeSetParams(GraphHandle* instance, const GraphNode* node, const FillNode* given) {
  return entry("cudaGraphExecMemsetNodeSetParams",
               [&](Context& context) { return set_action(node_in_copy(instance, node), fill_action(context, given)); });
}

} // namespace ptxrewrite::cuda::runtime
