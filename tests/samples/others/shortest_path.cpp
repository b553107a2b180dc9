// Dijkstra's algorithm.
#include "tests/samples/reference.h"

#include <queue>

REFERENCE(shortest_path) {
  auto starts = data.s32("row_starts"), lengths = data.s32("row_lengths"), targets = data.s32("targets");
  auto weights = data.s32("weights"), distances = data.s32("distances");
  using Reached = std::pair<int32_t, int32_t>; // distance, node
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  queue.push({0, 0});
  while (!queue.empty()) {
    const auto [distance, node] = queue.top();
    queue.pop();
    if (distance > distances[node]) continue;
    for (int32_t edge = starts[node]; edge < starts[node] + lengths[node]; ++edge)
      if (const int32_t next = distance + weights[edge]; next < distances[targets[edge]]) {
        distances[targets[edge]] = next;
        queue.push({next, targets[edge]});
      }
  }
}
