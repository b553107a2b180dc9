// targets: >=75
// C++ atomics: every memory order and scope, fences, atomic references, flags, and what libcu++ makes of small types.
#include <cuda/atomic>

template <cuda::thread_scope Scope, typename T>
__device__ void orders(T *p, T *out) {
    cuda::atomic_ref<T, Scope> a(*p);
    out[0] = a.load(cuda::memory_order_relaxed);
    out[1] = a.load(cuda::memory_order_acquire);
    out[2] = a.load(cuda::memory_order_seq_cst);
    a.store(out[3], cuda::memory_order_relaxed);
    a.store(out[4], cuda::memory_order_release);
    a.store(out[5], cuda::memory_order_seq_cst);
    out[6] = a.exchange(out[7], cuda::memory_order_acq_rel);
    T expected = out[8];
    out[9] = a.compare_exchange_strong(expected, out[10], cuda::memory_order_acq_rel, cuda::memory_order_relaxed);
    out[11] = a.fetch_add(out[12], cuda::memory_order_relaxed);
    out[13] = a.fetch_sub(out[14], cuda::memory_order_release);
    out[15] = a.fetch_and(out[16], cuda::memory_order_acquire);
    out[17] = a.fetch_or(out[18], cuda::memory_order_seq_cst);
    out[19] = a.fetch_xor(out[20]);
    out[21] = a.fetch_max(out[22], cuda::memory_order_relaxed);
    out[23] = a.fetch_min(out[24], cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, Scope);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, Scope);
}

extern "C" __global__ void orders_block(int *p, int *out) { orders<cuda::thread_scope_block>(p, out); }
extern "C" __global__ void orders_device(unsigned *p, unsigned *out) { orders<cuda::thread_scope_device>(p, out); }
extern "C" __global__ void orders_system(long long *p, long long *out) { orders<cuda::thread_scope_system>(p, out); }
extern "C" __global__ void orders_small(unsigned short *p, unsigned short *out) {
    orders<cuda::thread_scope_device>(p, out);
}

__device__ cuda::atomic<int, cuda::thread_scope_device> ready;
extern "C" __global__ void message(int *data, int *seen) {
    if (blockIdx.x == 0) {
        data[0] = 42;
        ready.store(1, cuda::memory_order_release);
        ready.notify_all();
    } else {
        ready.wait(0, cuda::memory_order_acquire);
        seen[blockIdx.x] = data[0];
    }
}
