// targets: >=75
// Packed bytes and halfwords (the SIMD-in-a-word intrinsics) and the scalar and vector video instructions themselves.

extern "C" __global__ void simd_in_a_word(unsigned *out, unsigned a, unsigned b, unsigned c) {
    unsigned *o = out + 128 * threadIdx.x;
    *o++ = __vabs2(a);
    *o++ = __vabs4(a);
    *o++ = __vabsdiffs2(a, b);
    *o++ = __vabsdiffu4(a, b);
    *o++ = __vabsss2(a);
    *o++ = __vadd2(a, b);
    *o++ = __vadd4(a, b);
    *o++ = __vaddss2(a, b);
    *o++ = __vaddus4(a, b);
    *o++ = __vavgs2(a, b);
    *o++ = __vavgu4(a, b);
    *o++ = __vcmpeq2(a, b);
    *o++ = __vcmpges4(a, b);
    *o++ = __vcmpgtu2(a, b);
    *o++ = __vcmpleu4(a, b);
    *o++ = __vcmplts2(a, b);
    *o++ = __vcmpne4(a, b);
    *o++ = __vhaddu2(a, b);
    *o++ = __vhaddu4(a, b);
    *o++ = __vmaxs2(a, b);
    *o++ = __vmaxu4(a, b);
    *o++ = __vmins2(a, b);
    *o++ = __vminu4(a, b);
    *o++ = __vneg2(a);
    *o++ = __vnegss4(a);
    *o++ = __vsads2(a, b);
    *o++ = __vsadu4(a, b);
    *o++ = __vseteq2(a, b);
    *o++ = __vsetges4(a, b);
    *o++ = __vsetltu2(a, b);
    *o++ = __vsub2(a, b);
    *o++ = __vsub4(a, b);
    *o++ = __vsubss2(a, b);
    *o++ = __vsubus4(a, b);
    *o++ = __viaddmax_s32(a, b, c);
    *o++ = __viaddmin_u32(a, b, c);
    *o++ = __vimax3_s32(a, b, c);
    *o++ = __vimin3_u16x2(a, b, c);
    *o++ = __vimax_s32_relu(a, b);
    bool low, high;
    *o++ = __vibmax_s16x2(a, b, &high, &low);
    *o++ = low + 2 * high;
}

extern "C" __global__ void video_instructions(unsigned *out, unsigned a, unsigned b, unsigned c) {
    unsigned d;
    asm("vadd.s32.s32.s32 %0, %1.b0, %2.h1;" : "=r"(d) : "r"(a), "r"(b));
    out[0] = d;
    asm("vadd.u32.u32.u32.sat.add %0, %1.b3, %2.b2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[1] = d;
    asm("vsub.s32.u32.s32.max %0, %1.h0, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[2] = d;
    asm("vabsdiff.u32.u32.u32.add %0, %1.b1, %2.b1, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[3] = d;
    asm("vmin.s32.s32.s32 %0.b1, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[4] = d;
    asm("vmad.u32.u32.u32.shr7 %0, %1.b0, %2.b0, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[5] = d;
    asm("vshl.u32.u32.u32.wrap %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    out[6] = d;
    asm("vset.s32.u32.lt %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    out[7] = d;
    asm("vadd4.s32.s32.s32.sat %0.b3210, %1.b7531, %2.b3210, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[8] = d;
    asm("vavrg2.u32.u32.u32 %0.h10, %1.h32, %2.h10, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[9] = d;
    asm("vset4.u32.u32.eq.add %0, %1.b3210, %2.b3210, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[10] = d;
}
