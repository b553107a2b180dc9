// targets: 90a
// Warpgroup matrix multiplication of Hopper, with register reconfiguration.

extern "C" __global__ void __launch_bounds__(128) warpgroup(float *out, unsigned long long a, unsigned long long b, int n) {
    float d[16] = {};
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < n; ++i) {
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p, 1, -1, 0, 1;\n}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                       "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                     : "l"(a + i), "l"(b + i), "r"(i));
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                       "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                     : "l"(a), "l"(b));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    for (int i = 0; i < 16; ++i) {
        out[16 * threadIdx.x + i] = d[i];
    }
}
