// B = A + 1 over `dim` rows of `num` columns, one column a thread: the example kernel of the DAC paper
// (decoupled affine computation, Figure 4). Addresses and the loop's predicate are affine in the thread index;
// only the load, the addition of one and the store work on data. Not unrolled, so that nvcc keeps the figure's loop.

extern "C" __global__ void dac_example(const int *A, int *B, int dim, int num) {
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < dim; ++i) {
        const int tmp = A[i * num + tid];
        B[i * num + tid] = tmp + 1;
    }
}
