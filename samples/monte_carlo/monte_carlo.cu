// Monte Carlo prices of European call options: normal deviates first, then one option a block over all of them.
// Stands for MonteCarlo of the CUDA SDK (DAC: MC), written for this project from the algorithm.
// Deviates come from the counter-based generator Philox 4x32-10 (Salmon et al. 2011) and the Box-Muller transform,
// four a thread. An option's block of 256 threads strides through the paths and sums payoffs and their squares by a
// tree in shared memory.

constexpr int BLOCK = 256;
constexpr int MAX_OPTIONS = 512;

struct Option {
    float spot;
    float strike;
    float drift;  // of the logarithm of the price until maturity
    float spread; // its standard deviation
};

__constant__ Option options[MAX_OPTIONS];

__device__ __forceinline__ uint4 philox(unsigned counter, unsigned seed) {
    uint4 state = make_uint4(counter, 0, 0, 0);
    unsigned key0 = seed;
    unsigned key1 = 0;
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xd2511f53u, state.x);
        const unsigned low0 = 0xd2511f53u * state.x;
        const unsigned high1 = __umulhi(0xcd9e8d57u, state.z);
        const unsigned low1 = 0xcd9e8d57u * state.z;
        state = make_uint4(high1 ^ state.y ^ key0, low1, high0 ^ state.w ^ key1, low0);
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return state;
}

// Two uniform words to two normal deviates; the radius is taken from the middle of one of 2^32 intervals in (0, 1).
__device__ __forceinline__ float2 box_muller(unsigned first, unsigned second) {
    const float u = (first + 0.5f) * 0x1p-32f;
    const float radius = sqrtf(-2.0f * logf(u));
    float sine;
    float cosine;
    sincospif(second * 0x1p-31f, &sine, &cosine);
    return make_float2(radius * sine, radius * cosine);
}

extern "C" __global__ void draw_normals(unsigned seed, int quadruples, float4 *normals) {
    const int threads = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quadruples; i += threads) {
        const uint4 word = philox(i, seed);
        const float2 first = box_muller(word.x, word.y);
        const float2 second = box_muller(word.z, word.w);
        normals[i] = make_float4(first.x, first.y, second.x, second.y);
    }
}

// Mean of the payoffs in `result.x`, half the width of its 95 % confidence interval in `result.y`.
extern "C" __global__ void monte_carlo(int paths, const float *normals, float2 *results) {
    __shared__ float sums[BLOCK];
    __shared__ float squares[BLOCK];

    const int thread = threadIdx.x;
    const Option option = options[blockIdx.x];
    float sum = 0.0f;
    float square = 0.0f;
    for (int path = thread; path < paths; path += BLOCK) {
        const float price = option.spot * __expf(option.drift + option.spread * normals[path]);
        const float payoff = fmaxf(price - option.strike, 0.0f);
        sum += payoff;
        square += payoff * payoff;
    }
    sums[thread] = sum;
    squares[thread] = square;

    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (thread < stride) {
            sums[thread] += sums[thread + stride];
            squares[thread] += squares[thread + stride];
        }
    }
    if (thread == 0) {
        const float mean = sums[0] / paths;
        const float variance = (squares[0] - sums[0] * mean) / (paths - 1);
        results[blockIdx.x] = make_float2(mean, 1.96f * sqrtf(variance / paths));
    }
}
