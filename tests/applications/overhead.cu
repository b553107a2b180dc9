// Launches for exec_overhead.py: `overhead empty N` launches an empty kernel N times; `overhead work N THREADS` launches a
// kernel with a loop N times, with copies and events between the launches, as programs do. Prints the seconds.
#include "check.h"

#include <chrono>
#include <cstring>
#include <vector>

__global__ void empty() {}

__global__ void accumulate(float* sums, const float* values, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = sums[i];
  for (int round = 0; round < rounds; ++round)
    sum = sum * 0.5f + values[i];
  sums[i] = sum;
}

__global__ void clear(float* sums) {
  sums[blockIdx.x * blockDim.x + threadIdx.x] = 0;
}

static void launch_empty(int launches) {
  for (int i = 0; i < launches; ++i)
    empty<<<1, 32>>>();
  CALL(cudaDeviceSynchronize());
}

static void work(int launches, int threads) {
  const size_t bytes = threads * sizeof(float);
  std::vector<float> host(threads, 1.0f);
  float *sums, *values;
  cudaEvent_t event;
  CALL(cudaEventCreate(&event));
  CALL(cudaMalloc(&sums, bytes));
  CALL(cudaMalloc(&values, bytes));
  clear<<<threads / 256, 256>>>(sums);
  for (int i = 0; i < launches; ++i) {
    CALL(cudaMemcpy(values, host.data(), bytes, cudaMemcpyHostToDevice));
    accumulate<<<threads / 256, 256>>>(sums, values, 20);
    CALL(cudaGetLastError());
    CALL(cudaEventRecord(event));
    CALL(cudaEventSynchronize(event));
  }
  CALL(cudaMemcpy(host.data(), sums, bytes, cudaMemcpyDeviceToHost));
  for (float sum : host)
    EXPECT(sum > 1.99f && sum <= 2.0f);
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int launches = std::atoi(arguments[2]);
  CALL(cudaFree(nullptr));
  const auto start = std::chrono::steady_clock::now();
  if (std::strcmp(arguments[1], "empty") == 0)
    launch_empty(launches);
  else
    work(launches, count > 3 ? std::atoi(arguments[3]) : 1 << 16);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%.6f\n", seconds.count());
  return 0;
}
