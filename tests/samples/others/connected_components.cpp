// The smallest node of every component is its name: nodes are visited in order, and all nodes reachable from a new one
// get its number.
#include "tests/samples/reference.h"

REFERENCE(connected_components) {
  auto from = data.s32("edge_from"), to = data.s32("edge_to"), roots = data.s32("roots");
  std::vector<std::vector<int32_t>> neighbours(roots.size());
  for (size_t edge = 0; edge < from.size(); ++edge) {
    neighbours[from[edge]].push_back(to[edge]);
    neighbours[to[edge]].push_back(from[edge]);
  }
  std::vector<bool> seen(roots.size());
  for (size_t first = 0; first < roots.size(); ++first) {
    if (seen[first]) continue;
    std::vector<int32_t> waiting{static_cast<int32_t>(first)};
    seen[first] = true;
    while (!waiting.empty()) {
      const int32_t node = waiting.back();
      waiting.pop_back();
      roots[node] = static_cast<int32_t>(first);
      for (int32_t neighbour : neighbours[node])
        if (!seen[neighbour]) {
          seen[neighbour] = true;
          waiting.push_back(neighbour);
        }
    }
  }
}
