// Times of launches by events: one copy of 64 MB, four copies, and no launch.
#include <cstdio>
#include <cuda_runtime.h>

constexpr size_t count = size_t(16) << 20;
constexpr unsigned threads = 256;

__global__ void copy(float *to, const float *from) {
    const size_t i = size_t(blockIdx.x) * threads + threadIdx.x;
    to[i] = from[i];
}

int main() {
    float *from, *to;
    cudaEvent_t begin, end;
    cudaMalloc(&from, count * sizeof(float));
    cudaMalloc(&to, count * sizeof(float));
    cudaMemset(from, 0, count * sizeof(float));
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int launches : {1, 4, 0}) {
        cudaEventRecord(begin);
        for (int i = 0; i < launches; ++i)
            copy<<<count / threads, threads>>>(to, from);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float milliseconds = -1;
        cudaEventElapsedTime(&milliseconds, begin, end);
        std::printf("%d launches: %.9g ms\n", launches, milliseconds);
    }
    std::printf("%s\n", cudaGetLastError() == cudaSuccess ? "right" : "wrong");
}
