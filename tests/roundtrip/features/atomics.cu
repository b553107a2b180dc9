// targets: >=75
// The classic atomic functions over all types, in block, device and system scope, on global, shared and generic
// memory; with and without the result being used.

template <typename T>
__device__ void integer_atomics(T *p, T v, T w, T *out) {
    out[0] = atomicAdd(p, v);
    out[1] = atomicExch(p + 1, v);
    out[2] = atomicMin(p + 2, v);
    out[3] = atomicMax(p + 3, v);
    out[4] = atomicAnd(p + 4, v);
    out[5] = atomicOr(p + 5, v);
    out[6] = atomicXor(p + 6, v);
    out[7] = atomicCAS(p + 7, v, w);
    atomicAdd(p + 8, v);
    atomicMin(p + 9, v);
    atomicMax(p + 10, v);
    atomicAnd(p + 11, v);
    atomicOr(p + 12, v);
    atomicXor(p + 13, v);
    out[8] = atomicAdd_block(p + 14, v);
    out[9] = atomicAdd_system(p + 15, v);
    out[10] = atomicCAS_block(p + 16, v, w);
    out[11] = atomicCAS_system(p + 17, v, w);
    atomicMax_block(p + 18, v);
    atomicOr_system(p + 19, v);
}

extern "C" __global__ void atomics_s32(int *p, int v, int w, int *out) { integer_atomics(p, v, w, out); }
extern "C" __global__ void atomics_u32(unsigned *p, unsigned v, unsigned w, unsigned *out) {
    integer_atomics(p, v, w, out);
    out[12] = atomicInc(p + 20, v);
    out[13] = atomicDec(p + 21, v);
    out[14] = atomicSub(p + 22, v);
}
extern "C" __global__ void atomics_u64(unsigned long long *p, unsigned long long v, unsigned long long w,
                                       unsigned long long *out) {
    integer_atomics(p, v, w, out);
}
extern "C" __global__ void atomics_s64(long long *p, long long v, long long *out) {
    out[0] = atomicMin(p, v);
    out[1] = atomicMax(p + 1, v);
}
extern "C" __global__ void atomics_16(unsigned short *p, unsigned short v, unsigned short w, unsigned short *out) {
    out[0] = atomicCAS(p, v, w);
}
extern "C" __global__ void atomics_float(float *f, double *d, float x, double y, float *out) {
    out[0] = atomicAdd(f, x);
    out[1] = atomicExch(f + 1, x);
    atomicAdd(f + 2, x);
    atomicAdd_block(f + 3, x);
    atomicAdd_system(f + 4, x);
    out[2] = atomicAdd(d, y);
    atomicAdd(d + 1, y);
}

extern "C" __global__ void atomics_shared(unsigned *out, const unsigned char *in, int n) {
    __shared__ unsigned histogram[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        histogram[i] = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd(&histogram[in[i]], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        atomicAdd(out + i, histogram[i]);
    }
}

__device__ unsigned lock_word;
extern "C" __global__ void spin_lock(int *counter) {
    while (atomicCAS(&lock_word, 0u, 1u) != 0u) {
    }
    __threadfence();
    *counter += 1;
    __threadfence_system();
    atomicExch(&lock_word, 0u);
    __threadfence_block();
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void atomics_vector(float2 *p2, float4 *p4, float2 v2, float4 v4) {
    p2[1] = atomicAdd(p2, v2);
    p4[1] = atomicAdd(p4, v4);
}
extern "C" __global__ void atomics_128(ulonglong2 *p) {
    asm volatile("{ .reg .b128 expected, desired, old;\n\t"
                 "mov.b128 expected, {%1, %2};\n\t"
                 "mov.b128 desired, {%2, %1};\n\t"
                 "atom.global.cas.b128 old, [%0], expected, desired;\n\t"
                 "atom.global.exch.b128 old, [%0], old; }" ::"l"(p),
                 "l"(p[1].x), "l"(p[1].y)
                 : "memory");
}
#endif
