// The sum of a vector in two launches: every block sums its share, then one block sums the blocks' sums.
// Stands for the reduction of the CUDA SDK, written for this project from the algorithm.
// Blocks of 256 threads; a grid-stride loop that adds two elements a turn, then a tree in shared memory with
// neighbouring threads on neighbouring elements.

constexpr int BLOCK = 256;

extern "C" __global__ void reduce_sum(const float *values, float *sums, int n) {
    __shared__ float partial[BLOCK];

    const int thread = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * BLOCK * 2 + thread; i < n; i += gridDim.x * BLOCK * 2) {
        sum += values[i];
        if (i + BLOCK < n) {
            sum += values[i + BLOCK];
        }
    }
    partial[thread] = sum;
    __syncthreads();

    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (thread < stride) {
            partial[thread] += partial[thread + stride];
        }
        __syncthreads();
    }
    if (thread == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
