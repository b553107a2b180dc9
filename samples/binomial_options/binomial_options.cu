// Prices of European call options on a binomial tree, one option a block.
// Stands for binomialOptions of the CUDA SDK (DARSIE: BIN, the composite paper: BOP), written for this project from
// the algorithm. 128 threads with sixteen neighbouring nodes of the tree's current level each in registers (or 256 with
// eight, the block of DARSIE's Table 1); the next node comes from the neighbour through shared memory, level by level
// from the leaves to the root. A thread whose nodes lie beyond the level stops computing but goes on to the barriers.
// Options lie in constant memory.

constexpr int MAX_OPTIONS = 1024;

struct Option {
    float spot;
    float strike;
    float move; // the logarithm of one step up
    float up;   // discounted probability of a step up
    float down;
};

__constant__ Option options[MAX_OPTIONS];

// The payoff at the leaf that went up `node` times. Leaves beyond the tree are worth what the last one is.
__device__ __forceinline__ float payoff(const Option &option, int node, int steps) {
    const float value = option.spot * expf(option.move * (2.0f * min(node, steps) - steps)) - option.strike;
    return value > 0.0f ? value : 0.0f;
}

template <int BLOCK, int NODES> __device__ __forceinline__ void price(int steps, float *values) {
    __shared__ float exchange[BLOCK + 1];

    const int thread = threadIdx.x;
    const Option option = options[blockIdx.x];
    float call[NODES + 1];
    for (int node = 0; node < NODES; ++node) {
        call[node] = payoff(option, thread * NODES + node, steps);
    }
    if (thread == 0) {
        exchange[BLOCK] = payoff(option, BLOCK * NODES, steps);
    }

    const int last_level = max(0, thread * NODES - 1);
    for (int level = steps; level > 0; --level) {
        exchange[thread] = call[0];
        __syncthreads();
        call[NODES] = exchange[thread + 1];
        __syncthreads();
        if (level > last_level) {
            for (int node = 0; node < NODES; ++node) {
                call[node] = option.up * call[node + 1] + option.down * call[node];
            }
        }
    }
    if (thread == 0) {
        values[blockIdx.x] = call[0];
    }
}

extern "C" __global__ void binomial_options(int steps, float *values) {
    price<128, 16>(steps, values);
}

extern "C" __global__ void binomial_options_256(int steps, float *values) {
    price<256, 8>(steps, values);
}
