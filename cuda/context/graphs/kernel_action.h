// A kernel launch, in a stream or as a node of a graph, also of a graph that was captured from a stream.
// cudaGraphKernelNodeGetParams and cuGraphKernelNodeGetParams read kernel, shape and arguments back.
#pragma once

#include "cuda/context/context.h"

namespace ptxrewrite::cuda {

class KernelAction {
public:
  // `arguments`: the bytes of the kernel's .param space.
  KernelAction(Context& context, Kernel& kernel, const LaunchShape& shape, std::vector<std::byte> arguments)
      : context_(&context), kernel_(&kernel), shape_(shape), bytes_(std::move(arguments)) {}

  Code operator()() const { return context_->launch(*kernel_, shape_, bytes_); }

  Kernel* kernel() const { return kernel_; }
  const LaunchShape& shape() const { return shape_; }
  // A pointer to each argument: valid until the node gets another action.
  void** arguments();

private:
  Context* context_;
  Kernel* kernel_;
  LaunchShape shape_;
  std::vector<std::byte> bytes_;
  std::vector<void*> pointers_; // into bytes_
};

// nullptr: not a kernel node.
KernelAction* kernel_action_of(GraphNode* node);

} // namespace ptxrewrite::cuda
