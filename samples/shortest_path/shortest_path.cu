// Shortest paths from one node of a graph with weighted edges, by relaxing all edges of nodes that got nearer in the
// round before. Stands for Shortest path of GraphBIG (R2D2).
// Written for this project from the algorithm. One thread a node, rows of edges of any length, atomic minima at
// addresses from data. Distances are read from one array and lowered in another, so a launch's result does not depend
// on the order of its threads.

extern "C" __global__ void path_relax(const int *row_starts, const int *row_lengths, const int *targets,
                                      const int *weights, const int *distances, int *lowered, int *active, int nodes) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes && active[node] != 0) {
        active[node] = 0;
        const int start = row_starts[node];
        const int end = start + row_lengths[node];
        const int distance = distances[node];
        for (int edge = start; edge < end; ++edge) {
            atomicMin(&lowered[targets[edge]], distance + weights[edge]);
        }
    }
}

extern "C" __global__ void path_commit(int *distances, const int *lowered, int *active, int *changed, int nodes) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes && lowered[node] < distances[node]) {
        distances[node] = lowered[node];
        active[node] = 1;
        *changed = 1;
    }
}
