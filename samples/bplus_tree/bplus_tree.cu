// Searching a B+ tree: one block answers one query, its 256 threads compare the query with all keys of a node at
// once. Stands for b+tree of Rodinia (R2D2, DAC, RegLess).
// Written for this project from the algorithm. At each level exactly one thread finds its key interval to hold the
// query and names the child to go to; the block meets at a barrier and thread 0 steps down. Positions live in
// global memory, so every level is a chain of dependent loads at addresses that come from data.

constexpr int ORDER = 256;

struct Node {
    int children[ORDER + 1]; // of a leaf: indices of records
    int keys[ORDER + 1];     // ascending; the child or record of keys[k] holds what is below keys[k + 1]
};

// answers[query] = the record whose key is wanted[query]; untouched where there is none.
extern "C" __global__ void find_record(int height, const Node *nodes, const int *records, int *current, int *next,
                                       const int *wanted, int *answers) {
    const int query = blockIdx.x;
    const int slot = threadIdx.x;

    for (int level = 0; level < height; ++level) {
        const Node &node = nodes[current[query]];
        if (node.keys[slot] <= wanted[query] && wanted[query] < node.keys[slot + 1]) {
            next[query] = node.children[slot];
        }
        __syncthreads();
        if (slot == 0) {
            current[query] = next[query];
        }
        __syncthreads();
    }

    const Node &leaf = nodes[current[query]];
    if (leaf.keys[slot] == wanted[query]) {
        answers[query] = records[leaf.children[slot]];
    }
}

// Goes down for both ends of a range of keys at once: the index of the first record and how many there are.
extern "C" __global__ void find_range(int height, const Node *nodes, int *first_current, int *first_next,
                                      int *last_current, int *last_next, const int *first_wanted,
                                      const int *last_wanted, int *range_start, int *range_length) {
    const int query = blockIdx.x;
    const int slot = threadIdx.x;

    for (int level = 0; level < height; ++level) {
        const Node &first = nodes[first_current[query]];
        if (first.keys[slot] <= first_wanted[query] && first_wanted[query] < first.keys[slot + 1]) {
            first_next[query] = first.children[slot];
        }
        const Node &last = nodes[last_current[query]];
        if (last.keys[slot] <= last_wanted[query] && last_wanted[query] < last.keys[slot + 1]) {
            last_next[query] = last.children[slot];
        }
        __syncthreads();
        if (slot == 0) {
            first_current[query] = first_next[query];
            last_current[query] = last_next[query];
        }
        __syncthreads();
    }

    const Node &first_leaf = nodes[first_current[query]];
    if (first_leaf.keys[slot] == first_wanted[query]) {
        range_start[query] = first_leaf.children[slot];
    }
    __syncthreads();

    const Node &last_leaf = nodes[last_current[query]];
    if (last_leaf.keys[slot] == last_wanted[query]) {
        range_length[query] = last_leaf.children[slot] - range_start[query] + 1;
    }
}
