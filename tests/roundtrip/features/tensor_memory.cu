// targets: 100a
// Tensor memory and fifth-generation matrix instructions of Blackwell.

extern "C" __global__ void __launch_bounds__(128) tensor_memory(unsigned *out, unsigned long long a, unsigned long long b, unsigned description) {
    __shared__ unsigned base;
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned at = __cvta_generic_to_shared(&base), bar = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(at));
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    asm volatile("tcgen05.fence::before_thread_sync;");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;");
    const unsigned tensor = base;
    if (threadIdx.x == 0) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5, %5, %5, %5}, p; }" ::"r"(tensor),
                     "l"(a), "l"(b), "r"(description), "r"(1), "r"(0));
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }" ::"r"(tensor), "l"(a),
                     "l"(b), "r"(description), "r"(1));
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(tensor), "l"(a));
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar));
    }
    unsigned r[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(tensor));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    for (int i = 0; i < 8; ++i) {
        out[8 * threadIdx.x + i] = r[i];
    }
    asm volatile("tcgen05.st.sync.aligned.16x64b.x2.b32 [%0], {%1, %2};" ::"r"(tensor), "r"(r[0]), "r"(r[1]));
    asm volatile("tcgen05.wait::st.sync.aligned;");
    asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(tensor));
    __syncthreads();
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tensor));
    }
    unsigned long long pair, other = a;
    asm volatile("add.rn.f32x2 %0, %1, %2; fma.rn.ftz.f32x2 %0, %0, %1, %2;" : "=l"(pair) : "l"(a), "l"(other));
    out[1024] = (unsigned)pair;
    asm volatile("ld.global.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "l"(out));
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(at), "r"(bar));
}
