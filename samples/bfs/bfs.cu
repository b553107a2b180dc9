// Breadth-first search of a graph, one level each pair of launches: how many edges lie between the source and every
// node. Stands for bfs of Rodinia (R2D2, DAC, RegLess).
// Written for this project from the algorithm. One thread owns one node, blocks of 512 threads. A frontier of marked
// nodes, not a queue: threads whose node is not marked fall out at once, the others walk edge lists of any length.

struct Node {
    int first_edge;
    int edge_count;
};

// Gives every unvisited neighbour of the frontier its distance. Several threads may reach one neighbour: all of them
// write the same distance, because all nodes of a frontier have the same.
extern "C" __global__ void bfs_expand(const Node *nodes, const int *edges, unsigned char *frontier,
                                      unsigned char *reached, const unsigned char *visited, int *distance,
                                      int node_count) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < node_count && frontier[node]) {
        frontier[node] = 0;
        const int end = nodes[node].first_edge + nodes[node].edge_count;
        for (int edge = nodes[node].first_edge; edge < end; ++edge) {
            const int neighbour = edges[edge];
            if (!visited[neighbour]) {
                distance[neighbour] = distance[node] + 1;
                reached[neighbour] = 1;
            }
        }
    }
}

// Makes what was reached the next frontier, and notes that there is one.
extern "C" __global__ void bfs_advance(unsigned char *frontier, unsigned char *reached, unsigned char *visited,
                                       unsigned char *levels_left, int node_count) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < node_count && reached[node]) {
        frontier[node] = 1;
        visited[node] = 1;
        *levels_left = 1;
        reached[node] = 0;
    }
}
