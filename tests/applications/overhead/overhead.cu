// Launches for exec_overhead.py: `overhead empty N` launches an empty kernel N times; `overhead work N THREADS` launches a
// kernel with a loop N times, with an event after each launch; `overhead copies N THREADS` also copies the kernel's input to
// the device before each. Prints the seconds.
#include "tests/applications/check.h"

#include <chrono>
#include <string>
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

static double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static double launch_empty(int launches) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i)
    empty<<<1, 32>>>();
  CALL(cudaDeviceSynchronize());
  return seconds_since(start);
}

// The first launch, which reads the module and touches the memory for the first time, is a launch of another kernel.
static double work(int launches, int threads, bool with_copies) {
  const size_t bytes = threads * sizeof(float);
  std::vector<float> host(threads, 1.0f);
  float *sums, *values;
  cudaEvent_t event;
  CALL(cudaEventCreate(&event));
  CALL(cudaMalloc(&sums, bytes));
  CALL(cudaMalloc(&values, bytes));
  CALL(cudaMemcpy(values, host.data(), bytes, cudaMemcpyHostToDevice));
  clear<<<threads / 256, 256>>>(sums);
  CALL(cudaDeviceSynchronize());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) {
    if (with_copies) CALL(cudaMemcpy(values, host.data(), bytes, cudaMemcpyHostToDevice));
    accumulate<<<threads / 256, 256>>>(sums, values, 20);
    CALL(cudaGetLastError());
    CALL(cudaEventRecord(event));
    CALL(cudaEventSynchronize(event));
  }
  const double seconds = seconds_since(start);
  CALL(cudaMemcpy(host.data(), sums, bytes, cudaMemcpyDeviceToHost));
  for (float sum : host)
    EXPECT(sum > 1.99f && sum <= 2.0f);
  return seconds;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int launches = std::atoi(arguments[2]);
  CALL(cudaFree(nullptr));
  const std::string what = arguments[1];
  const int threads = count > 3 ? std::atoi(arguments[3]) : 1 << 16;
  std::printf("%.6f\n", what == "empty" ? launch_empty(launches) : work(launches, threads, what == "copies"));
  return 0;
}
