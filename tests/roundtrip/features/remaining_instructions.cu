// targets: >=75
// Instructions that nvcc makes of no C++ (or only rarely), spelled as inline assembly.

#define UNARY(INDEX, TEXT)                                   \
    asm volatile(TEXT " %0, %1;" : "=r"(r) : "r"(a));        \
    out[INDEX] = r;
#define BINARY(INDEX, TEXT)                                            \
    asm volatile(TEXT " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));      \
    out[INDEX] = r;
#define TERNARY(INDEX, TEXT)                                                    \
    asm volatile(TEXT " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));   \
    out[INDEX] = r;

extern "C" __global__ void integer_leftovers(unsigned *out, unsigned a, unsigned b, unsigned c) {
    unsigned r;
    UNARY(0, "cnot.b32")
    BINARY(1, "mul24.lo.u32")
    BINARY(2, "mul24.hi.s32")
    TERNARY(3, "mad24.lo.s32")
    TERNARY(4, "mad24.hi.sat.s32")
    TERNARY(5, "slct.u32.s32")
    TERNARY(6, "vabsdiff2.u32.u32.u32.add")
    TERNARY(7, "vadd2.s32.s32.s32.sat")
    TERNARY(8, "vavrg4.u32.u32.u32")
    TERNARY(9, "vmax2.s32.s32.s32")
    TERNARY(10, "vmax4.u32.u32.u32.add")
    TERNARY(11, "vmin2.s32.u32.s32")
    TERNARY(12, "vmin4.u32.u32.u32")
    TERNARY(13, "vset2.s32.u32.ge")
    TERNARY(14, "vsub2.s32.s32.s32")
    TERNARY(15, "vsub4.u32.s32.u32.sat")
    BINARY(16, "vmax.s32.s32.s32")
    TERNARY(17, "vshr.u32.u32.u32.clamp.add")
    asm volatile("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, %2, 7, p; }" : "=r"(r) : "f"(__uint_as_float(a)), "r"(b));
    out[18] = r;
    asm volatile("copysign.f32 %0, %1, %2;" : "=f"(*(float *)(out + 19)) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b)));
    asm volatile("ldu.global.v2.u32 {%0, _}, [%1+64];" : "=r"(r) : "l"(out));
    out[20] = r;
    asm volatile("{ .reg .b64 stack; .reg .b32 at; alloca.u64 stack, 32; stacksave.u64 stack; stackrestore.u64 stack; }");
#if __CUDA_ARCH__ >= 800
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(out));
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(out + 64));
#endif
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a));
    out[21] = r;
    asm volatile("{ .reg .b32 lo; .reg .b32 hi; mov.b64 {lo, hi}, %1; shf.l.wrap.b32 %0, lo, hi, 3; }" : "=r"(r) : "l"(out));
    out[22] = r;
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=f"(*(float *)(out + 23)), "=f"(*(float *)(out + 24)), "=f"(*(float *)(out + 25)), "=f"(*(float *)(out + 26))
                 : "l"((unsigned long long)c), "r"(a));
}

extern "C" __global__ void texture_queries(unsigned *out, unsigned long long texture, unsigned long long surface) {
    unsigned r;
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(r) : "l"(texture));
    out[0] = r;
    asm volatile("txq.num_mipmap_levels.b32 %0, [%1];" : "=r"(r) : "l"(texture));
    out[1] = r;
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(r) : "l"(surface));
    out[2] = r;
    asm volatile("sured.b.2d.add.u32.clamp [%0, {%1, %2}], %3;" ::"l"(surface), "r"(r), "r"(r), "r"(1));
}

__device__ __noinline__ __attribute__((noreturn)) void give_up(int *out) {
    out[0] = 1;
    __trap();
}
extern "C" __global__ void calls_noreturn(int *out, int n) {
    if (n > 7) {
        give_up(out);
    }
    out[1] = n;
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((8, 4, 2)) required_size(int *out) { out[threadIdx.x] = threadIdx.y; }
extern "C" __global__ void __block_size__((128, 1, 1), (2, 2, 1)) blocks_are_clusters(int *out) { out[threadIdx.x] = blockIdx.y; }

extern "C" __global__ void multimem_and_maps(float *p, unsigned *map, unsigned *out) {
    float f;
    asm volatile("multimem.ld_reduce.relaxed.gpu.global.add.f32 %0, [%1];" : "=f"(f) : "l"(p));
    asm volatile("multimem.st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(p + 1), "f"(f));
    asm volatile("multimem.red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(p + 2), "f"(f));
    asm volatile("{ .reg .pred p; istypep.texref p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(out[0]) : "l"(map));
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map));
}
#endif
