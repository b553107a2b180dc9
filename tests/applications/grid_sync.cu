// A cooperative launch: blocks wait at a barrier of the whole grid, and read values that other blocks wrote.
#include "check.h"

#include <cooperative_groups.h>

#include <vector>

namespace groups = cooperative_groups;

__global__ void rotate(int* data, int* sums, int rounds) {
  groups::grid_group grid = groups::this_grid();
  const int n = static_cast<int>(grid.size());
  const int i = static_cast<int>(grid.thread_rank());
  for (int round = 0; round < rounds; ++round) {
    const int next = data[(i + 1) % n];
    grid.sync();
    data[i] = next;
    grid.sync();
  }
  groups::thread_block_tile<32> tile = groups::tiled_partition<32>(groups::this_thread_block());
  int sum = data[i];
  for (int offset = 16; offset > 0; offset /= 2)
    sum += tile.shfl_down(sum, offset);
  if (tile.thread_rank() == 0) sums[i / 32] = sum;
}

int main() {
  int resident = 0;
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, rotate, 64, 0));
  EXPECT(resident > 0);
  cudaDeviceProp properties;
  CALL(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.cooperativeLaunch == 1 && properties.warpSize == 32);
  const int blocks = 16, threads = 64, n = blocks * threads;
  int *data, *sums, rounds = 5;
  CALL(cudaMallocManaged(&data, n * sizeof(int)));
  CALL(cudaMallocManaged(&sums, n / 32 * sizeof(int)));
  for (int i = 0; i < n; ++i)
    data[i] = i;
  void* arguments[] = {&data, &sums, &rounds};
  CALL(cudaLaunchCooperativeKernel(rotate, dim3(blocks), dim3(threads), arguments));
  CALL(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i)
    EXPECT(data[i] == (i + rounds) % n);
  for (int warp = 0; warp < n / 32; ++warp) {
    int sum = 0;
    for (int lane = 0; lane < 32; ++lane)
      sum += (warp * 32 + lane + rounds) % n;
    EXPECT(sums[warp] == sum);
  }
  const cudaError_t code =
      cudaLaunchCooperativeKernel(rotate, dim3(resident * properties.multiProcessorCount + 1), dim3(64), arguments);
  EXPECT(code == cudaErrorCooperativeLaunchTooLarge);
  std::puts("right");
}
