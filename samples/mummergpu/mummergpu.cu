// Matches short reads of DNA to a reference: for every place of a read, its longest match, by walking a suffix tree.
// Stands for mummergpu of Rodinia (RegLess).
// Written for this project from the algorithm. A thread walks for a read, lanes of a warp diverge at every letter;
// nodes and children are packed in 16 bytes, numbers of 24 bits, in two textures; letters come from global memory.
// The benchmark's host builds the tree of a genome. Here the reference is two circular sequences in which every string
// of k letters occurs at most once, so all nodes above depth k are known; a kernel of our own hangs the leaves to them.

constexpr int WIDTH = 4096; // of the textures
constexpr unsigned ROOT = 1;
constexpr unsigned NUMBER = 0xffffff;

struct Edge {
    unsigned first; // its letters in the reference
    unsigned last;
};

// A node: parent, suffix link, edge from the parent, depth.
__device__ __forceinline__ uint4 pack_node(unsigned parent, unsigned suffix, unsigned first, unsigned last,
                                           unsigned depth) {
    return make_uint4(parent | suffix << 24, suffix >> 8 | first << 16, first >> 16 | last << 8, depth);
}

__device__ __forceinline__ uint4 fetch(cudaTextureObject_t texture, unsigned node) {
    return tex2D<uint4>(texture, node % WIDTH, node / WIDTH);
}

__device__ __forceinline__ unsigned suffix_of(uint4 node) { return node.x >> 24 | (node.y << 8 & NUMBER); }

__device__ __forceinline__ Edge edge_of(uint4 node) {
    return {node.y >> 16 | (node.z << 16 & NUMBER), node.z >> 8};
}

__device__ __forceinline__ unsigned child_of(uint4 children, char letter) {
    switch (letter) {
    case 'A':
        return children.x & NUMBER;
    case 'C':
        return children.x >> 24 | (children.y << 8 & NUMBER);
    case 'G':
        return children.y >> 16 | (children.z << 16 & NUMBER);
    case 'T':
        return children.z >> 8;
    default:
        return 0;
    }
}

// The number of the first node at a depth; the four children of a node have consecutive numbers.
__device__ __forceinline__ unsigned first_node(int depth) { return ((1u << 2 * depth) - 1) / 3 + 1; }

// The leaf of each place: `length` places in each of two sequences, of which the first k - 1 letters
// follow once more, then a $.
extern "C" __global__ void mum_leaves(const char *reference, uint4 *nodes, unsigned char *children, int length, int k) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= 2 * length) {
        return;
    }
    const int sequence = place >= length;
    const unsigned first = place + sequence * k;
    const unsigned last = (sequence + 1) * (length + k) - 1;
    unsigned code = 0;
    for (int i = 0; i < k; ++i) {
        const unsigned letter = reference[first + i] >> 1 & 3; // A 0, C 1, T 2, G 3
        code = code << 2 | (letter ^ letter >> 1);
    }
    const unsigned leaf = first_node(k) + code;
    const unsigned parent = first_node(k - 1) + (code >> 2);
    const unsigned suffix = first_node(k - 1) + (code & ((1u << 2 * (k - 1)) - 1));
    nodes[leaf] = pack_node(parent, suffix, first + k - 1, last, last - first + 1);
    unsigned char *entry = children + 16 * parent + 3 * (code & 3);
    entry[0] = leaf;
    entry[1] = leaf >> 8;
    entry[2] = leaf >> 16;
}

// Where a walk is: `node` at the end of the current edge, `parent` before it; `matched` letters of the read, counted
// from one; `known` letters of the next edges that need no comparison.
struct Walk {
    unsigned node;
    unsigned parent;
    int matched;
    int known;
};

// Follows `read` as long as it matches. Returns how many letters of the last edge did; 0: there is no further edge.
__device__ __forceinline__ int follow(Walk &walk, const char *read, const char *reference, cudaTextureObject_t nodes,
                                      cudaTextureObject_t children) {
    unsigned place = 0;
    Edge edge{};
    char letter = read[walk.matched];
    while (letter != 0) {
        walk.parent = walk.node;
        walk.node = child_of(fetch(children, walk.node), letter);
        if (walk.node == 0) {
            return 0;
        }
        edge = edge_of(fetch(nodes, walk.node));
        const int length = edge.last - edge.first + 1;
        if (walk.known > 0) {
            place = min(edge.first + walk.known, edge.last + 1);
            walk.matched += min(length, walk.known);
            walk.known = max(walk.known - length, 0);
        } else {
            place = edge.first + 1;
            ++walk.matched;
        }
        letter = read[walk.matched];
        while (place <= edge.last && letter != 0) {
            if (reference[place] != letter) {
                return place - edge.first;
            }
            ++walk.matched;
            ++place;
            letter = read[walk.matched];
        }
    }
    return place - edge.first;
}

// A match of each place of each read: the node that it leads to, and the letters of the edge to it that match.
// A read starts with a letter that is none and ends with 0.
extern "C" __global__ void mum_match(int2 *matches, const char *reads, const char *reference, const int *addresses,
                                     const int *lengths, int count, int least, cudaTextureObject_t nodes,
                                     cudaTextureObject_t children) {
    const int number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) {
        return;
    }
    const int address = addresses[number];
    const int last = lengths[number] - least;
    const char *read = reads + address;
    int2 *match = matches + address - number * (least + 1);
    Walk walk{0, 0, 0, 0};
    for (int start = 0; start <= last; ++start, ++match) {
        if (walk.node == 0 || walk.matched < 1) {
            walk = {ROOT, 0, 1, 0};
        }
        const int on_edge = follow(walk, read + start, reference, nodes, children);
        if (walk.matched > least) {
            *match = make_int2(walk.node == 0 ? walk.parent : walk.node, on_edge);
        }
        // Without its first letter the match ends below the suffix link's node.
        walk.known = on_edge;
        walk.matched -= on_edge + 1;
        walk.node = suffix_of(fetch(nodes, walk.parent));
    }
}
