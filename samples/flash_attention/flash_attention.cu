// Attention of one head after another without ever storing the scores: softmax(Q K^T / sqrt(64)) V in half
// precision with float sums. Stands for today's transformer layers (no paper's benchmark); written for this project
// from the algorithm of FlashAttention (Dao et al. 2022).
// Q, K and V are heads x length x 64 halves. A block of four warps owns 64 queries of one head, a warp 16 of them,
// and walks along the keys 32 at a time: while one tile of K and V is worked on, the next is on its way into shared
// memory by cp.async. Products of matrices are mma.m16n8k16, their operands come from shared memory by ldmatrix,
// and the running maximum and sum of a query are kept in the four lanes that share its row.

constexpr int WIDTH = 64;  // of a head
constexpr int QUERIES = 64;
constexpr int KEYS = 32;
constexpr int THREADS = 128;
constexpr int PITCH = WIDTH + 8; // halves from row to row in shared memory: eight rows in different banks
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr float NEVER = -1e30f;  // a score that weighs nothing

// Copies 16 bytes to shared memory, or zeros where there is nothing to copy.
__device__ __forceinline__ void copy_async(unsigned shared, const void *global, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(there ? 16 : 0));
}

__device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;"); }

// Waits until all groups of copies but the newest have arrived.
__device__ __forceinline__ void wait_for_older_copies() { asm volatile("cp.async.wait_group 1;"); }

// Four 8x8 matrices of halves; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared));
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared));
}

// d += a * b for 16x16 times 16x8.
__device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two numbers to halves, the first in the low half.
__device__ __forceinline__ unsigned packed_halves(float low, float high) {
    unsigned halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    return halves;
}

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// Brings `rows` rows of a matrix from row `first` on, zeros beyond `length`.
__device__ __forceinline__ void copy_tile(unsigned shared, const unsigned short *matrix, int first, int rows,
                                          int length) {
    for (int chunk = threadIdx.x; chunk < rows * (WIDTH / 8); chunk += THREADS) {
        const int row = chunk / (WIDTH / 8);
        const int column = chunk % (WIDTH / 8) * 8;
        const bool there = first + row < length;
        copy_async(shared + (row * PITCH + column) * 2, matrix + (there ? (first + row) * WIDTH + column : 0), there);
    }
}

__device__ __forceinline__ float largest_of_row(float value) {
    value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, 1));
    return fmaxf(value, __shfl_xor_sync(ALL_LANES, value, 2));
}

__device__ __forceinline__ float sum_of_row(float value) {
    value += __shfl_xor_sync(ALL_LANES, value, 1);
    return value + __shfl_xor_sync(ALL_LANES, value, 2);
}

// Scores of a warp's 16 queries (from `queries` on) and the 32 keys of a tile: score[j] holds keys 8j .. 8j + 7.
// Lane i addresses row i % 16 and column 8 * (i / 16) of a 16x16 piece of Q; of K, whose rows are the columns of the
// product, the upper eight rows come last.
__device__ __forceinline__ void score_tile(float (&score)[KEYS / 8][4], unsigned queries, unsigned keys, int lane) {
    const int row_of_q = lane % 16;
    const int column_of_q = lane / 16 * 8;
    const int row_of_k = lane % 8 + lane / 16 * 8;
    const int column_of_k = lane / 8 % 2 * 8;
    for (int inner = 0; inner < WIDTH; inner += 16) {
        unsigned a[4];
        load_matrices(a, queries + (row_of_q * PITCH + inner + column_of_q) * 2);
        for (int j = 0; j < KEYS / 8; j += 2) {
            unsigned b[4];
            load_matrices(b, keys + ((j * 8 + row_of_k) * PITCH + inner + column_of_k) * 2);
            multiply_add(score[j], a, b[0], b[1]);
            multiply_add(score[j + 1], a, b[2], b[3]);
        }
    }
}

// What a lane keeps of two queries, eight rows apart: two neighbouring columns of every eight of the result, the
// largest score so far, and its share of the sum of weights. Registers 0 and 1 belong to the first query.
struct Running {
    float output[WIDTH / 8][4];
    float largest[2];
    float sum[2];
};

// Turns scores into weights relative to the largest score so far, and shrinks what was summed when that grows.
// `keys_left` counts the keys from the lane's first one on; scores of keys beyond them weigh nothing.
__device__ __forceinline__ void weigh_tile(Running &running, float (&score)[KEYS / 8][4], float scale, int keys_left) {
    float tile_largest[2] = {NEVER, NEVER};
    for (int j = 0; j < KEYS / 8; ++j) {
        for (int i = 0; i < 4; ++i) {
            score[j][i] = j * 8 + i % 2 < keys_left ? score[j][i] * scale : NEVER;
            tile_largest[i / 2] = fmaxf(tile_largest[i / 2], score[j][i]);
        }
    }
    for (int query = 0; query < 2; ++query) {
        const float now = fmaxf(running.largest[query], largest_of_row(tile_largest[query]));
        const float shrink = exp2f(running.largest[query] - now);
        running.largest[query] = now;
        running.sum[query] *= shrink;
        for (int j = 0; j < WIDTH / 8; ++j) {
            running.output[j][2 * query] *= shrink;
            running.output[j][2 * query + 1] *= shrink;
        }
    }
    for (int j = 0; j < KEYS / 8; ++j) {
        for (int i = 0; i < 4; ++i) {
            score[j][i] = exp2f(score[j][i] - running.largest[i / 2]);
            running.sum[i / 2] += score[j][i];
        }
    }
}

// Adds the weighted rows of V. The weights are already where the left operand of the product wants them.
__device__ __forceinline__ void add_values(Running &running, const float (&weight)[KEYS / 8][4], unsigned values,
                                           int lane) {
    for (int inner = 0; inner < KEYS; inner += 16) {
        const float(&near)[4] = weight[inner / 8];
        const float(&far)[4] = weight[inner / 8 + 1];
        const unsigned a[4] = {packed_halves(near[0], near[1]), packed_halves(near[2], near[3]),
                               packed_halves(far[0], far[1]), packed_halves(far[2], far[3])};
        for (int j = 0; j < WIDTH / 8; j += 2) {
            unsigned b[4];
            load_matrices_transposed(b, values + ((inner + lane % 16) * PITCH + j * 8 + lane / 16 * 8) * 2);
            multiply_add(running.output[j], a, b[0], b[1]);
            multiply_add(running.output[j + 1], a, b[2], b[3]);
        }
    }
}

// Grid {ceil(length / 64), heads}. `scale` is log2(e) / sqrt(64): exponentials are powers of two.
extern "C" __global__ void __launch_bounds__(THREADS)
    flash_attention(const unsigned short *q, const unsigned short *k, const unsigned short *v, float *result,
                    int length, float scale) {
    __shared__ __align__(16) unsigned short tile_q[QUERIES * PITCH];
    __shared__ __align__(16) unsigned short tile_k[2][KEYS * PITCH];
    __shared__ __align__(16) unsigned short tile_v[2][KEYS * PITCH];

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int first_query = blockIdx.x * QUERIES;
    const int head = blockIdx.y * length * WIDTH;
    q += head;
    k += head;
    v += head;
    result += head;

    copy_tile(shared_address(tile_q), q, first_query, QUERIES, length);
    copy_tile(shared_address(tile_k[0]), k, 0, KEYS, length);
    copy_tile(shared_address(tile_v[0]), v, 0, KEYS, length);
    copies_end();

    Running running = {{}, {NEVER, NEVER}, {0.0f, 0.0f}};
    const int tiles = (length + KEYS - 1) / KEYS;
    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile % 2;
        if (tile + 1 < tiles) {
            copy_tile(shared_address(tile_k[1 - stage]), k, (tile + 1) * KEYS, KEYS, length);
            copy_tile(shared_address(tile_v[1 - stage]), v, (tile + 1) * KEYS, KEYS, length);
        }
        copies_end();
        wait_for_older_copies();
        __syncthreads();

        float score[KEYS / 8][4] = {};
        score_tile(score, shared_address(tile_q) + warp * 16 * PITCH * 2, shared_address(tile_k[stage]), lane);
        weigh_tile(running, score, scale, length - tile * KEYS - lane % 4 * 2);
        add_values(running, score, shared_address(tile_v[stage]), lane);
        __syncthreads();
    }

    for (int half = 0; half < 2; ++half) {
        const int query = first_query + warp * 16 + lane / 4 + half * 8;
        const float inverse = 1.0f / sum_of_row(running.sum[half]);
        if (query < length) {
            for (int j = 0; j < WIDTH / 8; ++j) {
                float2 *place = (float2 *)(result + query * WIDTH + j * 8 + lane % 4 * 2);
                *place = make_float2(running.output[j][2 * half] * inverse, running.output[j][2 * half + 1] * inverse);
            }
        }
    }
}
