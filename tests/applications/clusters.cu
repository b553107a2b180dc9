// Launches in clusters: by attribute and by __cluster_dims__, cooperative groups' cluster_group, shared memory of other
// blocks, errors of sizes that do not fit.
#include "check.h"

#include <cooperative_groups.h>

#include <vector>

namespace groups = cooperative_groups;

// A histogram over the shared memory of a cluster, as in the CUDA programming guide's section on distributed shared
// memory: each block counts its share of the bins.
__global__ void histogram(unsigned* bins, int count, int share, const int* values, int size) {
  extern __shared__ unsigned counts[];
  groups::cluster_group cluster = groups::this_cluster();
  const int first = static_cast<int>(groups::this_grid().thread_rank());
  for (int i = static_cast<int>(threadIdx.x); i < share; i += static_cast<int>(blockDim.x))
    counts[i] = 0;
  cluster.sync();
  for (int i = first; i < size; i += static_cast<int>(blockDim.x * gridDim.x)) {
    const int bin = min(max(values[i], 0), count - 1);
    unsigned* theirs = cluster.map_shared_rank(counts, bin / share);
    atomicAdd(theirs + bin % share, 1u);
  }
  cluster.sync();
  for (int i = static_cast<int>(threadIdx.x); i < share; i += static_cast<int>(blockDim.x))
    atomicAdd(&bins[cluster.block_rank() * share + i], counts[i]);
}

__global__ void __cluster_dims__(2, 2, 1) ranks(unsigned* out) {
  groups::cluster_group cluster = groups::this_cluster();
  __shared__ unsigned word;
  if (threadIdx.x == 0) word = 100 + cluster.block_rank();
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  if (threadIdx.x == 0)
    out[blockIdx.y * gridDim.x + blockIdx.x] =
        *cluster.map_shared_rank(&word, next) * 10 + cluster.query_shared_rank(cluster.map_shared_rank(&word, next));
  cluster.sync();
}

int main() {
  int has_clusters = 0;
  CALL(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0));
  EXPECT(has_clusters == 1);
  const int size = 10000, count = 256, blocks = 8, in_cluster = 4, share = count / in_cluster;
  int* values;
  unsigned* bins;
  CALL(cudaMallocManaged(&values, size * sizeof(int)));
  CALL(cudaMallocManaged(&bins, count * sizeof(unsigned)));
  std::vector<unsigned> expected(count);
  for (int i = 0; i < size; ++i) {
    values[i] = (i * 7919) % 300 - 20;
    ++expected[values[i] < 0 ? 0 : values[i] >= count ? count - 1 : values[i]];
  }
  for (int i = 0; i < count; ++i)
    bins[i] = 0;
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(blocks);
  configuration.blockDim = dim3(64);
  configuration.dynamicSmemBytes = share * sizeof(unsigned);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = in_cluster;
  attribute[0].val.clusterDim.y = 1;
  attribute[0].val.clusterDim.z = 1;
  configuration.attrs = attribute;
  configuration.numAttrs = 1;
  int clusters = 0, largest = 0;
  CALL(cudaOccupancyMaxActiveClusters(&clusters, histogram, &configuration));
  int resident = 0, multiprocessors = 0;
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, histogram, 64, configuration.dynamicSmemBytes));
  CALL(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  EXPECT(clusters == resident * multiprocessors / in_cluster);
  CALL(cudaOccupancyMaxPotentialClusterSize(&largest, histogram, &configuration));
  EXPECT(largest == 8);
  CALL(cudaLaunchKernelEx(&configuration, histogram, bins, count, share, static_cast<const int*>(values), size));
  CALL(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i)
    EXPECT(bins[i] == expected[static_cast<size_t>(i)]);

  unsigned* out;
  CALL(cudaMallocManaged(&out, 24 * sizeof(unsigned)));
  ranks<<<dim3(6, 4), 32>>>(out);
  CALL(cudaGetLastError());
  CALL(cudaDeviceSynchronize());
  for (unsigned y = 0; y < 4; ++y)
    for (unsigned x = 0; x < 6; ++x) {
      const unsigned next = (x % 2 + 2 * (y % 2) + 1) % 4;
      EXPECT(out[y * 6 + x] == (100 + next) * 10 + next);
    }

  // A grid size that is not divisible by the cluster size, and a cluster size that the kernel does not have.
  configuration.gridDim = dim3(6);
  EXPECT(cudaLaunchKernelEx(&configuration, histogram, bins, count, share, static_cast<const int*>(values), size) ==
         cudaErrorInvalidClusterSize);
  EXPECT(cudaGetLastError() == cudaErrorInvalidClusterSize); // which also clears it
  ranks<<<dim3(3, 4), 32>>>(out);
  EXPECT(cudaGetLastError() == cudaErrorInvalidClusterSize);
  std::puts("right");
}
