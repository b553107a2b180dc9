// Connected components of a graph: hooks trees of nodes onto one another along edges, then flattens the trees, until
// every node names the least node of its component. Stands for Connected component of GraphBIG (R2D2).
// Written for this project from the algorithm. One thread an edge for hooking, with atomic minima at addresses from
// data; one thread a node for flattening, a chase along pointers of unknown length. Labels are read from one array and
// written to another, so a launch's result does not depend on the order of its threads.

// For every edge between two trees: the greater root gets the lesser one as its parent.
extern "C" __global__ void components_hook(const int *edge_from, const int *edge_to, const int *roots, int *parents,
                                           int edges) {
    const int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge < edges) {
        const int a = roots[edge_from[edge]];
        const int b = roots[edge_to[edge]];
        if (a != b) {
            atomicMin(&parents[max(a, b)], min(a, b));
        }
    }
}

// Every node's root. A parent is never greater than its child, so the chase ends.
extern "C" __global__ void components_flatten(const int *parents, int *roots, int nodes) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes) {
        int root = parents[node];
        while (parents[root] != root) {
            root = parents[root];
        }
        roots[node] = root;
    }
}
