// Graph nodes that exist only in the driver API: kernels by their handles, its own kind of copies. The other functions
// are in cuda/context/stream_entries.def.
#include "cuda/context/graphs/kernel_action.h"
#include "cuda/driver_api/copies.h"
#include "cuda/driver_api/entry.h"
#include "cuda/driver_api/launch.h"

namespace ptxrewrite::cuda::driver {
namespace {

// CUDA_KERNEL_NODE_PARAMS; its first version ends before `kernel`.
struct KernelNode {
  Kernel* function;
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared;
  void** arguments;
  void** extra;
  Kernel* kernel;
  void* context;
};

Action kernel_action(Context& context, const KernelNode* node, bool is_second_version, Code& code) {
  code = Code::invalid_value;
  if (!node) return {};
  Kernel* kernel = node->function || !is_second_version ? node->function : node->kernel;
  if (!kernel) return {};
  const LaunchShape shape{{node->grid[0], node->grid[1], node->grid[2]},
                          {node->block[0], node->block[1], node->block[2]},
                          node->dynamic_shared};
  code = context.check_launch(*kernel, shape);
  std::vector<std::byte> bytes;
  if (code == Code::success) code = pack_arguments(*kernel, node->arguments, node->extra, bytes);
  return KernelAction(context, *kernel, shape, std::move(bytes));
}

int add_kernel_node(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                    const KernelNode* node, bool is_second_version) {
  return entry("cuGraphAddKernelNode", [&](Context& context) {
    Code code = Code::success;
    Action action = kernel_action(context, node, is_second_version, code);
    if (code != Code::success) return code;
    return add_node(made, graph, dependencies, count, NodeType::kernel, std::move(action));
  });
}

int set_kernel_node(GraphNode* node, const KernelNode* given, bool is_second_version) {
  return entry("cuGraphKernelNodeSetParams", [&](Context& context) {
    Code code = Code::success;
    Action action = kernel_action(context, given, is_second_version, code);
    return code == Code::success ? set_action(node, std::move(action)) : code;
  });
}

// The first version's structure ends before `kernel`, which is not written then.
int get_kernel_node(GraphNode* node, KernelNode* out, bool is_second_version) {
  return entry("cuGraphKernelNodeGetParams", [&](Context&) {
    KernelAction* action = kernel_action_of(node);
    if (!action || !out) return Code::invalid_value;
    const LaunchShape& shape = action->shape();
    out->function = action->kernel();
    const auto put = [](const emulator::Dimensions& from, uint32_t(&to)[3]) {
      to[0] = from.x;
      to[1] = from.y;
      to[2] = from.z;
    };
    put(shape.grid, out->grid);
    put(shape.block, out->block);
    out->dynamic_shared = static_cast<uint32_t>(shape.dynamic_shared);
    out->arguments = action->arguments();
    out->extra = nullptr;
    if (is_second_version) out->kernel = nullptr;
    return Code::success;
  });
}

} // namespace

DRIVER_API int cuGraphKernelNodeGetParams_v2(GraphNode* node, KernelNode* out) {
  return get_kernel_node(node, out, true);
}

DRIVER_API int cuGraphKernelNodeGetParams(GraphNode* node, KernelNode* out) {
  return get_kernel_node(node, out, false);
}

DRIVER_API int cuGraphAddKernelNode_v2(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                                       size_t count, const KernelNode* node) {
  return add_kernel_node(made, graph, dependencies, count, node, true);
}

DRIVER_API int cuGraphAddKernelNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                                    const KernelNode* node) {
  return add_kernel_node(made, graph, dependencies, count, node, false);
}

DRIVER_API int cuGraphKernelNodeSetParams_v2(GraphNode* node, const KernelNode* given) {
  return set_kernel_node(node, given, true);
}

DRIVER_API int cuGraphKernelNodeSetParams(GraphNode* node, const KernelNode* given) {
  return set_kernel_node(node, given, false);
}

DRIVER_API int cuGraphExecKernelNodeSetParams_v2(GraphHandle* instance, const GraphNode* node,
                                                 const KernelNode* given) {
  return set_kernel_node(node_in_copy(instance, node), given, true);
}

DRIVER_API int cuGraphExecKernelNodeSetParams(GraphHandle* instance, const GraphNode* node, const KernelNode* given) {
  return set_kernel_node(node_in_copy(instance, node), given, false);
}

DRIVER_API int cuGraphAddMemsetNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                                    const FillNode* node, void*) {
  return entry("cuGraphAddMemsetNode", [&](Context& context) {
    if (!node) return Code::invalid_value;
    return add_node(made, graph, dependencies, count, NodeType::fill, fill_action(context, node));
  });
}

DRIVER_API int cuGraphExecMemsetNodeSetParams(GraphHandle* instance, const GraphNode* node, const FillNode* given,
                                              void*) {
  return entry("cuGraphExecMemsetNodeSetParams",
               [&](Context& context) { return set_action(node_in_copy(instance, node), fill_action(context, given)); });
}

DRIVER_API int cuGraphAddMemcpyNode(GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                                    const Memcpy3D* copy, void*) {
  return entry("cuGraphAddMemcpyNode", [&](Context& context) {
    if (!copy) return Code::invalid_value;
    return add_node(made, graph, dependencies, count, NodeType::copy, box_copy_action(context, *copy));
  });
}

DRIVER_API int cuGraphExecMemcpyNodeSetParams(GraphHandle* instance, const GraphNode* node, const Memcpy3D* copy,
                                              void*) {
  return entry("cuGraphExecMemcpyNodeSetParams", [&](Context& context) {
    if (!copy) return Code::invalid_value;
    return set_action(node_in_copy(instance, node), box_copy_action(context, *copy));
  });
}

DRIVER_API int cuGraphAddDependencies_v2(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                         size_t count) {
  return entry("cuGraphAddDependencies", [&](Context&) { return add_dependencies(graph, from, to, count); });
}

DRIVER_API int cuGraphAddDependencies(GraphHandle* graph, GraphNode* const* from, GraphNode* const* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

DRIVER_API int cuGraphNodeGetDependencies_v2(const GraphNode* node, GraphNode** nodes, void*, size_t* count) {
  return entry("cuGraphNodeGetDependencies", [&](Context&) { return node_dependencies(node, nodes, count); });
}

DRIVER_API int cuGraphNodeGetDependencies(const GraphNode* node, GraphNode** nodes, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

// CUDA_GRAPH_INSTANTIATE_PARAMS: flags, an upload stream, and the failed node with its error.
struct InstantiateParameters {
  uint64_t flags;
  void* stream;
  GraphNode* wrong;
  int result;
};

DRIVER_API int cuGraphInstantiateWithParams(GraphHandle** instance, GraphHandle* graph, InstantiateParameters* given) {
  return entry("cuGraphInstantiateWithParams", [&](Context&) {
    if (!given) return Code::invalid_value;
    const Code code = instantiate(instance, graph);
    given->wrong = nullptr;
    given->result = code == Code::success ? 0 : 1;
    return code;
  });
}

DRIVER_API int cuGraphInstantiate_v2(GraphHandle** instance, GraphHandle* graph, GraphNode** wrong, char* log_text,
                                     size_t room) {
  if (wrong) *wrong = nullptr;
  if (log_text && room) *log_text = '\0';
  return entry("cuGraphInstantiate", [&](Context&) { return instantiate(instance, graph); });
}

DRIVER_API int cuGraphExecUpdate_v2(GraphHandle* instance, GraphHandle* graph, int* result) {
  return entry("cuGraphExecUpdate", [&](Context&) { return update_instance(instance, graph, result); });
}

DRIVER_API int cuGraphExecUpdate(GraphHandle* instance, GraphHandle* graph, GraphNode** wrong, int* result) {
  if (wrong) *wrong = nullptr;
  return entry("cuGraphExecUpdate", [&](Context&) { return update_instance(instance, graph, result); });
}

DRIVER_ALIAS(cuGraphInstantiate, cuGraphInstantiate_v2)
DRIVER_ALIAS(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams)

} // namespace ptxrewrite::cuda::driver
