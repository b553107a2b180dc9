// Adjacent numbers, for tests/families: the pass `packed` makes f32x2 of them, on sm_100.
extern "C" __global__ void chain(const float4 *x, const float4 *y, float4 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[t], b = y[t], c = a;
    for (int i = 0; i < 8; ++i) {
        c.x = fmaf(c.x, a.x, b.x);
        c.y = fmaf(c.y, a.y, b.y);
        c.z = __fadd_rn(__fmul_rn(c.z, a.z), b.z);
        c.w = __fadd_rn(__fmul_rn(c.w, a.w), b.w);
    }
    out[t] = c;
}

// Values that a loop carries.
extern "C" __global__ void squares(const float4 *x, float *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float4 s = make_float4(0, 0, 0, 0);
    for (int i = 0; i < n; ++i) {
        float4 v = x[t + i * 64];
        s.x += v.x * v.x;
        s.y += v.y * v.y;
        s.z += v.z * v.z;
        s.w += v.w * v.w;
    }
    out[t] = s.x + s.y + s.z + s.w;
}

// One factor for both, exchanged sides, literals.
extern "C" __global__ void mixed(const float2 *x, const float2 *y, float2 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float2 a = x[t], b = y[t];
    for (int i = 0; i < 4; ++i) {
        a = make_float2(fmaf(a.x, b.x, b.y), fmaf(a.y, b.y, b.x));
        a = make_float2(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.x));
        a = make_float2(__fadd_rn(a.x, 1.5f), __fadd_rn(a.y, 1.5f));
        a = make_float2(__fadd_rn(a.x, 0.25f), __fadd_rn(a.y, 0.5f));
        a = make_float2(__fsub_rn(a.x, b.y), __fsub_rn(a.y, b.y));
    }
    out[t] = a;
}
