// targets: >=80
// Copies from global to shared memory that run beside the threads: cp.async by hand, pipelines, memcpy_async.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

extern "C" __global__ void by_hand(float *out, const float4 *in, int n) {
    __shared__ __align__(16) float4 buffer[2][128];
    const int t = threadIdx.x;
    __pipeline_memcpy_async(&buffer[0][t], in + t, 16);
    __pipeline_memcpy_async(reinterpret_cast<float2 *>(&buffer[1][t]), reinterpret_cast<const float2 *>(in + t), 8, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = buffer[0][127 - t].x + buffer[1][t].y;
    const unsigned address = __cvta_generic_to_shared(&buffer[0][t]);
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16; }" ::"r"(address),
                 "l"(in + t + 128), "r"(n));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(in + t), "r"(n));
    asm volatile("cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;");
    out[t + 128] = buffer[0][t].z;
}

extern "C" __global__ void staged(float *out, const float *in, int n) {
    constexpr int STAGES = 3;
    __shared__ float buffer[STAGES][256];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    float sum = 0.0f;
    for (int computed = 0, fetched = 0; computed < n; ++computed) {
        for (; fetched < n && fetched < computed + STAGES; ++fetched) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, buffer[fetched % STAGES], in + 256 * fetched, sizeof(float) * 256, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += buffer[computed % STAGES][threadIdx.x];
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void grouped(float *out, const float *in, int n) {
    extern __shared__ float tile[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, sizeof(float) * n);
    cg::wait(block);
    out[block.thread_rank()] = tile[n - 1 - block.thread_rank()];
    auto thread_pipeline = cuda::make_pipeline();
    thread_pipeline.producer_acquire();
    cuda::memcpy_async(tile + threadIdx.x, in + threadIdx.x, sizeof(float), thread_pipeline);
    thread_pipeline.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(thread_pipeline);
    out[threadIdx.x] += tile[threadIdx.x];
}
