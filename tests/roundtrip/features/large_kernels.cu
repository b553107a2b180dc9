// targets: >=75
// Long straight-line code and high register pressure: a hash over 64 unrolled rounds, a transform held in registers,
// a stencil with many live values and spills under a small register limit.

__constant__ unsigned round_constants[64] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};

__device__ __forceinline__ unsigned rotate(unsigned x, int n) { return (x >> n) | (x << (32 - n)); }

extern "C" __global__ void hash_rounds(unsigned *out, const unsigned *in) {
    unsigned w[64], s[8];
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        w[i] = in[16 * t + i];
    }
#pragma unroll
    for (int i = 16; i < 64; ++i) {
        const unsigned a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const unsigned b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        s[i] = out[8 * t + i];
    }
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const unsigned a = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
                           round_constants[i] + w[i];
        const unsigned b = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6];
        s[6] = s[5];
        s[5] = s[4];
        s[4] = s[3] + a;
        s[3] = s[2];
        s[2] = s[1];
        s[1] = s[0];
        s[0] = a + b;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        out[8 * t + i] += s[i];
    }
}

extern "C" __global__ void transform_in_registers(float2 *data) {
    float2 v[32];
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        v[i] = data[t + 1024 * i];
    }
#pragma unroll
    for (int half = 1; half < 32; half *= 2) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            if ((i & half) == 0) {
                const float angle = -3.14159265f * (i & (half - 1)) / half;
                const float c = __cosf(angle), s = __sinf(angle);
                const float2 a = v[i], b = v[i + half];
                const float2 r = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
                v[i] = make_float2(a.x + r.x, a.y + r.y);
                v[i + half] = make_float2(a.x - r.x, a.y - r.y);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        data[t + 1024 * i] = v[i];
    }
}

extern "C" __global__ void __launch_bounds__(1024) spilling(double *data, int n) {
    double v[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) {
        v[i] = data[threadIdx.x + 1024 * i];
    }
    for (int step = 0; step < n; ++step) {
#pragma unroll
        for (int i = 0; i < 48; ++i) {
            v[i] = v[i] * v[(i * 7 + 1) % 48] + v[(i * 11 + 5) % 48];
        }
    }
#pragma unroll
    for (int i = 0; i < 48; ++i) {
        data[threadIdx.x + 1024 * i] = v[i];
    }
}
