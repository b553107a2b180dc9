// Pairs of 16-bit integers, for tests/families: the pass `packed` makes s16x2 and u16x2 of them, on sm_90.
extern "C" __global__ void extremes(const short2 *x, const short2 *y, short2 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    short2 a = x[t], b = y[t];
    short2 low = make_short2(min(a.x, b.x), min(a.y, b.y)), high = make_short2(max(a.x, b.x), max(a.y, b.y));
    out[2 * t] = low;
    out[2 * t + 1] = high;
}

extern "C" __global__ void unsigned_extremes(const ushort2 *x, const ushort2 *y, ushort2 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    ushort2 a = x[t], b = y[t];
    out[2 * t] = make_ushort2(min(a.x, b.x), min(a.y, b.y));
    out[2 * t + 1] = make_ushort2(max(a.x, b.x), max(a.y, b.y));
}

// Sums wrap; a clamp by literals and by one number for both; exchanged sides.
extern "C" __global__ void clamped_sums(const short4 *x, const short4 *y, short4 *out, int limit) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    short4 a = x[t], b = y[t];
    short most = (short)limit;
    short s = a.x + b.x, u = b.y + a.y, v = a.z + b.z, w = a.w + b.w;
    out[t] = make_short4(max(min(s, most), (short)-100), max(min(u, most), (short)-200), min(max(v, b.z), most),
                         min(max(b.w, w), most));
}
