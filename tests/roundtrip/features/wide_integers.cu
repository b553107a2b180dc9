// targets: >=75
// 128-bit integers: arithmetic, shifts, division calls, parameters.

typedef __int128 s128;
typedef unsigned __int128 u128;

extern "C" __global__ void wide_arithmetic(s128 *out, u128 *outu, s128 a, s128 b, u128 x, u128 y, int shift) {
    out[0] = a + b;
    out[1] = a - b;
    out[2] = a * b;
    out[3] = a / b;
    out[4] = a % b;
    out[5] = a << shift;
    out[6] = a >> shift;
    out[7] = a < b ? a : b;
    out[8] = -a;
    outu[0] = x / y;
    outu[1] = x % y;
    outu[2] = x >> shift;
    outu[3] = x & y;
    outu[4] = (u128)(unsigned long long)x * (unsigned long long)y;
    outu[5] = x == y;
    out[9] = (s128)(double)a;
}
__device__ __noinline__ s128 wide_function(s128 a, u128 b) { return a * 3 + (s128)b; }
extern "C" __global__ void wide_call(s128 *out, s128 a) { out[0] = wide_function(a, 5); }
