// The sum of two vectors, one element a thread: the smallest kernel with a bounds check.

extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
