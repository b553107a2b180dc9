// targets: >=75
// Inline assembly as people write it: nested scopes with their own registers and labels, the same label many times,
// wait loops, several statements on a line, statements over several lines, comments, registers without a percent sign.

__device__ __forceinline__ void wait_until(const unsigned *p, unsigned value) {
    asm volatile("{\n\t"
                 ".reg .pred P1;\n\t"
                 ".reg .b32 seen;\n\t"
                 "LAB_WAIT:\n\t"
                 "ld.acquire.gpu.global.b32 seen, [%0];  // read it again\n\t"
                 "setp.eq.u32 P1, seen, %1;\n\t"
                 "@P1 bra DONE;\n\t"
                 "bra LAB_WAIT;\n\t"
                 "DONE:\n\t"
                 "}" ::"l"(p),
                 "r"(value)
                 : "memory");
}

extern "C" __global__ void same_labels_many_times(unsigned *p) {
    wait_until(p, 1);
    wait_until(p + 1, 2);
    p[2] = 5;
    for (int i = 3; i < 6; ++i) {
        wait_until(p + i, i);
    }
}

extern "C" __global__ void nested_scopes(int *out, int n) {
    int r;
    asm volatile("{ .reg .s32 t; mov.s32 t, %1; { .reg .s32 t; .reg .pred add; mov.s32 t, 7; setp.gt.s32 add, t, %1; "
                 "@add add.s32 t, t, 1; @!add sub.s32 t, t, 2; mov.s32 %0, t; } add.s32 %0, %0, t; }"
                 : "=r"(r)
                 : "r"(n));
    out[0] = r;
}

extern "C" __global__ void odd_layout(int *out, int n, float f) {
    int r;
    asm volatile("/* a comment\n over lines */ add.s32\n\t%0 ,\n\t %1\n, // the rest\n 0x10\n;" : "=r"(r) : "r"(n));
    out[0] = r;
    asm volatile("mad.lo.s32 %0, %1, %1, -5; xor.b32 %0, %0, 0b101; or.b32 %0, %0, 017; add.u32 %0, %0, 4U;"
                 : "=r"(r)
                 : "r"(n));
    out[1] = r;
    float g;
    asm("fma.rn.f32 %0, %1, 0f3F800000, 0F40000000;" : "=f"(g) : "f"(f));
    out[2] = (int)g;
    asm("add.f32 %0, %1, 1.5;" : "=f"(g) : "f"(f));
    out[3] = (int)g;
    asm("mul.f32 %0, %1, 1.25e-3;" : "=f"(g) : "f"(f));
    out[4] = (int)g;
    asm("add.s32 %0, %1, (3 + 4) * 2 - 1;" : "=r"(r) : "r"(n));
    out[5] = r;
}

extern "C" __global__ void predicates_and_pairs(unsigned *out, unsigned a, unsigned b, unsigned long long w) {
    unsigned r, s;
    asm("{ .reg .pred p, q, r; setp.lt.and.u32 p|q, %1, %2, 1; setp.eq.or.u32 r, %1, 3, !p; selp.u32 %0, 1, 2, q; "
        "@r add.u32 %0, %0, 10; not.pred p, p; and.pred q, p, r; xor.pred r, q, p; @!r xor.b32 %0, %0, 5; }"
        : "=r"(r)
        : "r"(a), "r"(b));
    out[0] = r;
    asm("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %2; mov.b64 {_, hi}, %2; mov.u32 %0, lo; mov.u32 %1, hi; }" : "=r"(r), "=r"(s) : "l"(w));
    out[1] = r + s;
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %1; mov.b32 %0, {b, a}; }" : "=r"(r) : "r"(a));
    out[2] = r;
    asm("{ .reg .pred p; shfl.sync.bfly.b32 %0|p, %1, 1, 0x1f, 0xffffffff; @!p mov.b32 %0, %1; }" : "=r"(r) : "r"(a));
    out[3] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(a + b));
    out[4] = r;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(a & 3));
    out[5] = r;
    asm("bfe.u32 %0, %1, 4, 8; bfi.b32 %0, %0, %2, 3, 5;" : "=r"(r) : "r"(a), "r"(b));
    out[6] = r;
    asm("bfind.shiftamt.u32 %0, %1; bmsk.clamp.b32 %0, %0, 4; szext.wrap.u32 %0, %0, 3; fns.b32 %0, %0, 1, 1;" : "=r"(r) : "r"(a));
    out[7] = r;
    asm("{ .reg .pred p; slct.u32.s32 %0, %1, %2, %3; set.lt.u32.u32 %0, %0, %1; cnot.b32 %0, %0; "
        "testp.finite.f32 p, 0f00000000; @p neg.s32 %0, %0; }"
        : "=r"(r)
        : "r"(a), "r"(b), "r"(-1));
    out[8] = r;
}

extern "C" __global__ void statements_of_every_space(unsigned *out, unsigned long long p) {
    unsigned r;
    asm volatile("{ .shared .align 16 .b8 buffer[64]; .local .b32 spill[4]; .reg .u32 a; st.shared.u32 [buffer+4], 3; "
                 "ld.shared.u32 a, [buffer + 4]; st.local.u32 [spill+8], a; ld.local.u32 %0, [spill+8]; mov.u32 a, buffer; "
                 "ld.shared.v2.u32 {%0, _}, [a+0]; }"
                 : "=r"(r));
    out[0] = r;
    asm volatile("{ .pragma \"nounroll\"; }");
    asm volatile("membar.gl; membar.cta; fence.acq_rel.gpu; fence.sc.sys; fence.proxy.alias;");
    asm volatile("ld.global.v4.u32 {%0, %0, %0, %0}, [ %1 + 16 ];" : "=r"(r) : "l"(p));
    out[1] = r;
    asm volatile("ld.global.nc.L2::128B.u32 %0, [%1+-4];" : "=r"(r) : "l"(p));
    out[2] = r;
    asm volatile("pmevent 3; nanosleep.u32 20; { .reg .pred p; isspacep.global p, %0; @p exit; }" ::"l"(p));
}
