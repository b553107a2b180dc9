// targets: >=90
// The tensor memory accelerator: bulk and tensor copies, reductions, prefetches, proxies; multicast among clusters.
#include <cuda.h>

extern "C" __global__ void bulk(char *global, const __grid_constant__ CUtensorMap map, int x, int y) {
    __shared__ __align__(128) char tile[4096];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned shared = __cvta_generic_to_shared(tile), bar = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;");
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(4096));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
                     "l"(global), "r"(1024), "r"(bar)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                         shared),
                     "l"(&map), "r"(x), "r"(y), "r"(bar)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
                     "[%0], [%1, {%2, %3, %2, %3}], [%4], {%5, %5}, %5, %6;" ::"r"(shared),
                     "l"(&map), "r"(x), "r"(y), "r"(bar), "h"((short)3), "l"(0x14F0000000000000ll)
                     : "memory");
    }
    asm volatile("{ .reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra wait; }" ::"r"(bar) : "memory");
    tile[threadIdx.x] += 1;
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(global + 8192), "r"(shared));
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(shared));
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(global), "r"(shared));
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(shared));
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 4096;" ::"l"(global));
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;\n\tcp.async.bulk.wait_group 0;");
    }
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;");
    unsigned r0, r1;
    asm volatile("{ stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2}; }" ::"r"(shared), "r"(x), "r"(y));
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(*(unsigned long long *)global));
    asm volatile("mov.u32 %0, %%aggr_smem_size; { .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %1, 1, 0, p; }" : "=r"(r0), "=r"(r1));
    reinterpret_cast<unsigned *>(global)[4] = r0 + r1;
}
