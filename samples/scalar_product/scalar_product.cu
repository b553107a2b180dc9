// Scalar products of many pairs of vectors, one or more pairs a block.
// Stands for scalarProd of the CUDA SDK (DAC: SP), written for this project from the algorithm.
// Blocks of 256 threads. A pair is summed in 1024 partial sums, each over elements 1024 apart, which a tree in
// shared memory then adds up.

constexpr int PARTIAL_SUMS = 1024;

extern "C" __global__ void scalar_product(const float *a, const float *b, float *products, int pairs, int length) {
    __shared__ float sums[PARTIAL_SUMS];

    for (int pair = blockIdx.x; pair < pairs; pair += gridDim.x) {
        const int first = pair * length;
        const int end = first + length;

        for (int partial = threadIdx.x; partial < PARTIAL_SUMS; partial += blockDim.x) {
            float sum = 0.0f;
            for (int i = first + partial; i < end; i += PARTIAL_SUMS) {
                sum += a[i] * b[i];
            }
            sums[partial] = sum;
        }

        for (int stride = PARTIAL_SUMS / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int partial = threadIdx.x; partial < stride; partial += blockDim.x) {
                sums[partial] += sums[partial + stride];
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            products[pair] = sums[0];
        }
    }
}
