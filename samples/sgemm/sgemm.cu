// C = alpha * A * B + beta * C for column-major matrices, B given transposed; 16 results a thread in registers.
// Stands for sgemm of Parboil (R2D2, DAC).
// Written for this project from the algorithm. A block of 16 x 8 threads computes 128 rows by 16 columns: each thread
// reads its row of A from global memory, all share a small tile of B in shared memory.

constexpr int WIDTH = 16;            // columns of C a thread computes
constexpr int HEIGHT = 8;            // depth of the tile of B
constexpr int ROWS = WIDTH * HEIGHT; // rows of C a block computes

extern "C" __global__ void sgemm_nt(const float *a, int lda, const float *b, int ldb, float *c, int ldc, int depth,
                                    float alpha, float beta) {
    __shared__ float tile[HEIGHT][WIDTH];

    const int thread = threadIdx.y * WIDTH + threadIdx.x;
    const int row = blockIdx.x * ROWS + thread;
    const int first_column = blockIdx.y * WIDTH;

    float sums[WIDTH] = {};
    for (int start = 0; start < depth; start += HEIGHT) {
        tile[threadIdx.y][threadIdx.x] = b[first_column + threadIdx.x + (start + threadIdx.y) * ldb];
        __syncthreads();
        for (int k = 0; k < HEIGHT; ++k) {
            const float value = a[row + (start + k) * lda];
#pragma unroll
            for (int column = 0; column < WIDTH; ++column) {
                sums[column] += value * tile[k][column];
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int column = 0; column < WIDTH; ++column) {
        const int index = row + (first_column + column) * ldc;
        c[index] = beta * c[index] + alpha * sums[column];
    }
}
