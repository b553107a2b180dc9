// targets: >=75
// Integer instructions of every width: carries, high halves, 24-bit, sums of absolute differences, bit fields,
// counting, permutes, funnel shifts, dot products.
#include <cstdint>

template <typename T>
__device__ void arithmetic(T *out, T a, T b, T c, int shift) {
    out[0] = a + b;
    out[1] = a - b;
    out[2] = a * b;
    out[3] = a / b;
    out[4] = a % b;
    out[5] = a * b + c;
    out[6] = a & b;
    out[7] = a | b;
    out[8] = a ^ b;
    out[9] = ~a;
    out[10] = -a;
    out[11] = a << shift;
    out[12] = a >> shift;
    out[13] = a < b ? a : b;
    out[14] = a > c ? a : c;
    out[15] = (a < b) + (a <= b) + (a == c) + (a != b) + (a > c) + (a >= c);
    out[16] = !a;
    out[17] = (a & b) | (~a & c);
    out[18] = a / 7;
    out[19] = b % 10;
    out[20] = c * 12345;
}

#define ARITHMETIC(NAME, TYPE)                                                         \
    extern "C" __global__ void NAME(TYPE *out, const TYPE *in, int shift) {           \
        const int i = threadIdx.x;                                                     \
        arithmetic<TYPE>(out + 32 * i, in[3 * i], in[3 * i + 1], in[3 * i + 2], shift); \
    }
ARITHMETIC(arithmetic_s8, int8_t)
ARITHMETIC(arithmetic_u8, uint8_t)
ARITHMETIC(arithmetic_s16, int16_t)
ARITHMETIC(arithmetic_u16, uint16_t)
ARITHMETIC(arithmetic_s32, int32_t)
ARITHMETIC(arithmetic_u32, uint32_t)
ARITHMETIC(arithmetic_s64, int64_t)
ARITHMETIC(arithmetic_u64, uint64_t)

extern "C" __global__ void intrinsics32(int *out, unsigned *outu, int a, int b, int c, unsigned x, unsigned y,
                                        unsigned z) {
    out[0] = __mulhi(a, b);
    out[1] = __mul24(a, b);
    out[2] = __sad(a, b, x);
    out[3] = __hadd(a, b);
    out[4] = __rhadd(a, b);
    out[5] = __clz(a);
    out[6] = __ffs(a);
    out[7] = __popc(x);
    out[8] = abs(a);
    out[9] = __dp4a(a, b, c);
    out[10] = __dp2a_lo(a, b, c);
    out[11] = __dp2a_hi(a, b, c);
    out[12] = min(max(a, b), c);
    outu[0] = __umulhi(x, y);
    outu[1] = __umul24(x, y);
    outu[2] = __usad(x, y, z);
    outu[3] = __uhadd(x, y);
    outu[4] = __urhadd(x, y);
    outu[5] = __brev(x);
    outu[6] = __byte_perm(x, y, z);
    outu[7] = __byte_perm(x, y, 0x5140);
    outu[8] = __funnelshift_l(x, y, z);
    outu[9] = __funnelshift_lc(x, y, z);
    outu[10] = __funnelshift_r(x, y, z);
    outu[11] = __funnelshift_rc(x, y, z);
    outu[12] = __dp4a(x, y, z);
    outu[13] = __dp2a_lo(x, y, z);
    outu[14] = __dp2a_hi(x, y, z);
    outu[15] = __fns(x, y, a);
    outu[16] = (x << 7) | (x >> 25);
    outu[17] = (x >> 5) & 0xff;
    outu[18] = min(x, y) + max(y, z);
}

extern "C" __global__ void intrinsics64(long long *out, unsigned long long *outu, long long a, long long b,
                                        unsigned long long x, unsigned long long y) {
    out[0] = __mul64hi(a, b);
    out[1] = __clzll(a);
    out[2] = __ffsll(a);
    out[3] = __popcll(x);
    out[4] = llabs(a);
    out[5] = (long long)(int)a * (int)b;
    outu[0] = __umul64hi(x, y);
    outu[1] = __brevll(x);
    outu[2] = (unsigned long long)(unsigned)x * (unsigned)y;
    outu[3] = x << (y & 63);
    outu[4] = (x >> 9) | (x << 55);
}

// Products and sums of long numbers: add.cc, addc, madc chains.
extern "C" __global__ void long_numbers(uint32_t *out, const uint32_t *a, const uint32_t *b) {
    uint32_t sum[8];
    asm("add.cc.u32 %0, %8, %16;\n\t"
        "addc.cc.u32 %1, %9, %17;\n\t"
        "addc.cc.u32 %2, %10, %18;\n\t"
        "addc.cc.u32 %3, %11, %19;\n\t"
        "addc.cc.u32 %4, %12, %20;\n\t"
        "addc.cc.u32 %5, %13, %21;\n\t"
        "addc.cc.u32 %6, %14, %22;\n\t"
        "addc.u32 %7, %15, %23;"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3]), "=r"(sum[4]), "=r"(sum[5]), "=r"(sum[6]),
          "=r"(sum[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]),
          "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    for (int i = 0; i < 8; ++i) {
        out[i] = sum[i];
    }
    uint32_t low, high, difference, borrow;
    asm("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, %5;"
        : "=r"(low), "=r"(high)
        : "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]));
    asm("sub.cc.u32 %0, %2, %3;\n\tsubc.u32 %1, 0, 0;" : "=r"(difference), "=r"(borrow) : "r"(a[2]), "r"(b[2]));
    out[8] = low;
    out[9] = high;
    out[10] = difference;
    out[11] = borrow;
}
