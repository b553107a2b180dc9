// CUDA graphs: stream operations that are recorded and can be executed repeatedly.
#pragma once

#include "cuda/context/codes.h"

#include <functional>
#include <memory>
#include <vector>

namespace ptxrewrite::cuda {

// Numbered as cudaGraphNodeType and CUgraphNodeType.
enum class NodeType : int {
  kernel = 0,
  copy = 1,
  fill = 2,
  host = 3,
  graph = 4,
  empty = 5,
  wait_event = 6,
  record_event = 7,
  allocate = 10,
  release = 11,
};

using Action = std::function<Code()>;

struct Graph;

struct GraphNode {
  NodeType type = NodeType::empty;
  Action action; // may be empty
  std::vector<GraphNode*> dependencies;
  Graph* graph = nullptr;
  uint64_t number = 0; // index in the graph, by order of creation
  bool enabled = true;
  std::shared_ptr<Graph> child;
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  uint64_t next_number = 0;

  GraphNode& add(NodeType type, Action action, std::vector<GraphNode*> dependencies);
  // Returns the nodes in topological order; empty if the graph has a cycle.
  std::vector<const GraphNode*> ordered() const;
  // Returns a copy whose nodes have the same numbers.
  std::shared_ptr<Graph> clone() const;
  GraphNode* find(uint64_t number);
  Code run() const;
};

} // namespace ptxrewrite::cuda
