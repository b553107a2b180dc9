// targets: >=75
// Cooperative groups: tiles, coalesced groups, partitions, grid barriers, reductions and scans.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(float *out, const float *in) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto quarter = cg::tiled_partition<8>(warp);
    float sum = cg::reduce(quarter, in[block.thread_rank()], cg::plus<float>());
    sum += quarter.shfl_down(sum, 2);
    if (warp.any(sum > 3.0f)) {
        auto active = cg::coalesced_threads();
        sum += active.size() + active.shfl(sum, 0);
        active.sync();
    }
    out[block.thread_rank()] = sum + warp.ballot(sum > 0) + quarter.match_any((int)sum);
    block.sync();
}

extern "C" __global__ void scans(int *out, const int *in) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    out[threadIdx.x] = cg::inclusive_scan(warp, in[threadIdx.x]);
    out[threadIdx.x + 64] = cg::exclusive_scan(warp, in[threadIdx.x], cg::greater<int>());
    auto branch = cg::labeled_partition(cg::coalesced_threads(), in[threadIdx.x] & 3);
    out[threadIdx.x + 128] = cg::reduce(branch, in[threadIdx.x], cg::bit_xor<int>());
    auto halves = cg::binary_partition(warp, in[threadIdx.x] > 0);
    out[threadIdx.x + 192] = halves.thread_rank();
}

extern "C" __global__ void grid_barrier(int *data) {
    auto grid = cg::this_grid();
    data[grid.thread_rank()] += 1;
    grid.sync();
    data[grid.size() + grid.thread_rank()] = data[grid.size() - 1 - grid.thread_rank()];
}
