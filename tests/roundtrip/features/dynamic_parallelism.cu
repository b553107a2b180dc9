// targets: >=75
// flags: -rdc=true
// Kernels that launch kernels.

__global__ void child(int *data, int depth) {
    data[threadIdx.x + blockIdx.x * blockDim.x] += depth;
    if (depth > 0 && threadIdx.x == 0) {
        child<<<1, 32>>>(data, depth - 1);
    }
}

extern "C" __global__ void parent(int *data, int n) {
    if (threadIdx.x == 0) {
        child<<<n, 64, 128>>>(data, 2);
        child<<<dim3(2, 3), dim3(4, 5, 6), 0, cudaStreamFireAndForget>>>(data, 1);
    }
}
