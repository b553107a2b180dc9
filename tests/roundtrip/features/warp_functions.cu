// targets: >=75
// Shuffles, votes, matches, reductions, active masks, lane masks; elect from sm_90.

template <typename T>
__device__ T all_shuffles(T x, int lane) {
    const unsigned mask = 0xffffffffu;
    T sum = __shfl_sync(mask, x, lane);
    sum += __shfl_up_sync(mask, x, 1);
    sum += __shfl_down_sync(mask, x, 2, 16);
    sum += __shfl_xor_sync(mask, x, 4, 8);
    return sum;
}

extern "C" __global__ void shuffles(int *i, long long *l, float *f, double *d, int lane) {
    const int t = threadIdx.x;
    i[t] = all_shuffles(i[t], lane);
    l[t] = all_shuffles(l[t], lane);
    f[t] = all_shuffles(f[t], lane);
    d[t] = all_shuffles(d[t], lane);
}

extern "C" __global__ void votes(unsigned *out, const int *in) {
    const int t = threadIdx.x;
    const unsigned active = __activemask();
    out[0] = active;
    out[1] = __ballot_sync(active, in[t] > 0);
    out[2] = __all_sync(active, in[t] > 1);
    out[3] = __any_sync(active, in[t] > 2);
    out[4] = __uni_sync(active, in[t] > 3);
    out[5] = __match_any_sync(active, in[t]);
    int all_equal;
    out[6] = __match_all_sync(active, in[t], &all_equal);
    out[7] = all_equal;
    out[8] = __match_any_sync(active, (long long)in[t] << 20);
    __syncwarp();
    if (in[t] > 4) {
        out[9] = __ballot_sync(__activemask(), t & 1);
        __syncwarp(0x0000ffffu);
    }
}

extern "C" __global__ void block_votes(int *out, const int *in) {
    out[0] = __syncthreads_count(in[threadIdx.x]);
    out[1] = __syncthreads_and(in[threadIdx.x + 1]);
    out[2] = __syncthreads_or(in[threadIdx.x + 2]);
}

extern "C" __global__ void lane_masks(unsigned *out) {
    unsigned v;
#define READ(INDEX, NAME)                                \
    asm volatile("mov.u32 %0, %%" NAME ";" : "=r"(v)); \
    out[INDEX] = v;
    READ(0, "lanemask_eq")
    READ(1, "lanemask_le")
    READ(2, "lanemask_lt")
    READ(3, "lanemask_ge")
    READ(4, "lanemask_gt")
    READ(5, "laneid")
    READ(6, "warpid")
    READ(7, "nwarpid")
    READ(8, "smid")
    READ(9, "nsmid")
    READ(10, "clock")
    READ(11, "clock_hi")
    READ(12, "globaltimer_lo")
    READ(13, "dynamic_smem_size")
    READ(14, "total_smem_size")
    READ(15, "ctaid.z")
    READ(16, "nctaid.y")
    READ(17, "pm0")
    READ(18, "envreg3")
    unsigned long long w;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(w));
    out[19] = (unsigned)w;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(w));
    out[20] = (unsigned)w;
    out[21] = (unsigned)clock64();
    out[22] = clock();
    __nanosleep(100);
    out[23] = warpSize;
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void reductions(unsigned *u, int *s) {
    const unsigned mask = __activemask();
    u[0] = __reduce_add_sync(mask, u[threadIdx.x]);
    u[1] = __reduce_min_sync(mask, u[threadIdx.x]);
    u[2] = __reduce_and_sync(mask, u[threadIdx.x]);
    u[3] = __reduce_or_sync(mask, u[threadIdx.x]);
    u[4] = __reduce_xor_sync(mask, u[threadIdx.x]);
    s[0] = __reduce_max_sync(mask, s[threadIdx.x]);
    s[1] = __reduce_add_sync(mask, s[threadIdx.x]);
}
#endif

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void elect_one(int *out) {
    int leader;
    asm volatile("{\n\t.reg .pred P;\n\telect.sync _|P, %1;\n\tselp.s32 %0, 1, 0, P;\n\t}" : "=r"(leader) : "r"(0xffffffffu));
    if (leader) {
        out[0] = threadIdx.x;
    }
}
#endif
