// targets: >=90
// Thread block clusters and distributed shared memory.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(int *out) {
    __shared__ int value[128];
    auto cluster = cg::this_cluster();
    value[threadIdx.x] = threadIdx.x * cluster.block_rank();
    cluster.sync();
    const int *remote = cluster.map_shared_rank(value, (cluster.block_rank() + 1) % cluster.num_blocks());
    out[blockIdx.x * blockDim.x + threadIdx.x] = remote[127 - threadIdx.x];
    cluster.barrier_wait(cluster.barrier_arrive());
    atomicAdd(cluster.map_shared_rank(value, 0), 1);
}

extern "C" __global__ void by_hand(unsigned *out) {
    __shared__ unsigned word;
    unsigned r, address = __cvta_generic_to_shared(&word), remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(r) : "r"(remote));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(remote), "r"(r), "r"(remote + 8));
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;");
    out[0] = r;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(r) : "r"(remote));
    out[1] = r;
    asm volatile("{ .reg .u32 n; mov.u32 %0, %%cluster_ctarank; mov.u32 n, %%cluster_nctarank; add.u32 %0, %0, n; }" : "=r"(r));
    out[2] = r;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(r));
    out[3] = r;
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(remote), "r"(r), "r"(remote + 8));
}
