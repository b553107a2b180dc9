// targets: >=80
// Barriers that are objects: arrive and wait apart, parity waits, transaction counts, semaphores, latches.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

extern "C" __global__ void split_phases(float *out, const float *in) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ float values[256];
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
    }
    __syncthreads();
    values[threadIdx.x] = in[threadIdx.x];
    auto token = barrier.arrive();
    const float own = in[threadIdx.x + 256] * 2.0f;
    barrier.wait(std::move(token));
    out[threadIdx.x] = own + values[threadIdx.x ^ 1];
    barrier.arrive_and_wait();
    barrier.arrive_and_drop();
}

__device__ cuda::binary_semaphore<cuda::thread_scope_device> semaphore{1};
extern "C" __global__ void device_objects(int *counter, cuda::barrier<cuda::thread_scope_device> *barrier,
                                          cuda::latch<cuda::thread_scope_device> *latch) {
    semaphore.acquire();
    *counter += 1;
    semaphore.release();
    barrier->arrive_and_wait();
    latch->count_down();
    latch->wait();
}

extern "C" __global__ void by_hand(unsigned long long *out, int count) {
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned address = __cvta_generic_to_shared(&barrier);
    unsigned long long state;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(count));
    __syncthreads();
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(address));
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;" : "=l"(state) : "r"(address), "r"(2));
    asm volatile("{ .reg .pred done; again: mbarrier.test_wait.shared.b64 done, [%0], %1; @!done bra again; }" ::"r"(address),
                 "l"(state));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
    out[0] = count;
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(address));
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(address));
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, %2;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(
                     address),
                 "r"(0), "r"(0x989680));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address));
#endif
}
