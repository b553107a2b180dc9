// Breadth-first search with a queue.
#include "tests/samples/reference.h"

#include <deque>

REFERENCE(bfs) {
  struct Node {
    int32_t first_edge, edge_count;
  };
  auto nodes = data.as<Node>("nodes");
  auto edges = data.s32("edges"), distance = data.s32("distance");
  auto visited = data.u8("visited");
  std::deque<int32_t> queue{0};
  while (!queue.empty()) {
    const int32_t node = queue.front();
    queue.pop_front();
    for (int32_t neighbour : edges.subspan(nodes[node].first_edge, nodes[node].edge_count))
      if (!visited[neighbour]) {
        visited[neighbour] = 1;
        distance[neighbour] = distance[node] + 1;
        queue.push_back(neighbour);
      }
  }
}
