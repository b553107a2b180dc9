// Shortest paths by Dijkstra's method from every vertex: another algorithm than the kernels', the same distances.
#include "tests/samples/reference.h"

#include <algorithm>
#include <vector>

REFERENCE(floyd_warshall) {
  const int n = data.value("n");
  const int far = data.value("far");
  const auto distance = data.s32("distance");
  const std::vector<int> edges(distance.begin(), distance.end());

  for (int source = 0; source < n; ++source) {
    std::vector<int> shortest(n, far);
    std::vector<bool> done(n, false);
    shortest[source] = 0;
    for (int turn = 0; turn < n; ++turn) {
      int nearest = -1;
      for (int vertex = 0; vertex < n; ++vertex) {
        if (!done[vertex] && (nearest < 0 || shortest[vertex] < shortest[nearest])) nearest = vertex;
      }
      done[nearest] = true;
      for (int vertex = 0; vertex < n; ++vertex) {
        shortest[vertex] = std::min(shortest[vertex], shortest[nearest] + edges[nearest * n + vertex]);
      }
    }
    std::copy(shortest.begin(), shortest.end(), distance.begin() + source * n);
  }
  std::copy(distance.begin(), distance.end(), data.s32("distance_by_tiles").begin());
}
