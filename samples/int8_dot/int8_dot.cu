// Products of matrices of signed bytes with 32-bit sums, four at a time by dp4a, and their way back to bytes.
// Stands for today's quantised inference layers (no paper's benchmark).
// A is m x k, B is n x k (the transposed weight), both with four neighbouring k packed in a word; k is a multiple
// of four. `words` is k / 4.

constexpr int TILE = 16;
constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// C = A * B^T, one element a thread, blocks of 16x16 threads, tiles of 16 rows x 16 words in shared memory; the
// tile of B is padded, since its rows are read across.
extern "C" __global__ void int8_matmul(const int *a, const int *b, int *c, int m, int n, int words) {
    __shared__ int tile_a[TILE][TILE];
    __shared__ int tile_b[TILE][TILE + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    const int row_of_b = blockIdx.x * TILE + ty;

    int sum = 0;
    for (int start = 0; start < words; start += TILE) {
        const int word = start + tx;
        tile_a[ty][tx] = row < m && word < words ? a[row * words + word] : 0;
        tile_b[ty][tx] = row_of_b < n && word < words ? b[row_of_b * words + word] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) {
            sum = __dp4a(tile_a[ty][i], tile_b[tx][i], sum);
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}

// One row of B times a vector of bytes, a warp a row, blocks of 32x4 threads.
extern "C" __global__ void int8_matvec(const int *b, const int *x, int *y, int n, int words) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= n) {
        return;
    }
    int sum = 0;
    for (int word = threadIdx.x; word < words; word += WARP) {
        sum = __dp4a(b[row * words + word], x[word], sum);
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(ALL_LANES, sum, distance);
    }
    if (threadIdx.x == 0) {
        y[row] = sum;
    }
}

__device__ __forceinline__ signed char requantised(int sum, float scale) {
    return (signed char)min(max(__float2int_rn(sum * scale), -128), 127);
}

// Scales sums to bytes, to nearest even and saturating, four a thread; each column has its own scale.
extern "C" __global__ void int8_requantise(const int4 *sums, const float4 *scales, char4 *result, int quads,
                                           int quads_per_row) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < quads) {
        const int4 sum = sums[i];
        const float4 scale = scales[i % quads_per_row];
        char4 bytes;
        bytes.x = requantised(sum.x, scale.x);
        bytes.y = requantised(sum.y, scale.y);
        bytes.z = requantised(sum.z, scale.z);
        bytes.w = requantised(sum.w, scale.w);
        result[i] = bytes;
    }
}
