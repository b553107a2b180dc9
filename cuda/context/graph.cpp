#include "cuda/context/graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace ptxrewrite::cuda {

GraphNode& Graph::add(NodeType type, Action action, std::vector<GraphNode*> dependencies) {
  GraphNode& node = *nodes.emplace_back(std::make_unique<GraphNode>());
  node.type = type;
  node.action = std::move(action);
  node.dependencies = std::move(dependencies);
  node.graph = this;
  node.number = next_number++;
  return node;
}

std::vector<const GraphNode*> Graph::ordered() const {
  std::vector<const GraphNode*> order;
  std::set<const GraphNode*> done;
  // Of the nodes whose dependencies are done, takes the one that was created first.
  while (order.size() < nodes.size()) {
    const size_t before = order.size();
    for (const auto& node : nodes) {
      if (done.contains(node.get())) continue;
      if (!std::ranges::all_of(node->dependencies, [&](const GraphNode* other) { return done.contains(other); }))
        continue;
      order.push_back(node.get());
      done.insert(node.get());
    }
    if (order.size() == before) return {};
  }
  return order;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::map<const GraphNode*, GraphNode*> copy_of;
  for (const auto& node : nodes) {
    GraphNode& made = *copy->nodes.emplace_back(std::make_unique<GraphNode>(*node));
    made.graph = copy.get();
    if (node->child) made.child = node->child->clone();
    copy_of[node.get()] = &made;
  }
  for (const auto& node : copy->nodes)
    for (GraphNode*& dependency : node->dependencies)
      dependency = copy_of.at(dependency);
  copy->next_number = next_number;
  return copy;
}

GraphNode* Graph::find(uint64_t number) {
  for (const auto& node : nodes)
    if (node->number == number) return node.get();
  return nullptr;
}

Code Graph::run() const {
  for (const GraphNode* node : ordered()) {
    if (!node->enabled) continue;
    Code code = Code::success;
    if (node->child)
      code = node->child->run();
    else if (node->action)
      code = node->action();
    if (code != Code::success) return code;
  }
  return Code::success;
}

} // namespace ptxrewrite::cuda
