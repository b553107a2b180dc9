// arch: sm_90
// Pairs of 16-bit numbers: maxima of both are native from sm_90 on.
extern "C" __global__ void short_maxima__plain(const short2* left, const short2* right, short2* out) {
  short2 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = make_short2(max(a.x, b.x), max(a.y, b.y));
}
extern "C" __global__ void short_maxima__hand(const unsigned* left, const unsigned* right, unsigned* out) {
  out[threadIdx.x] = __vmaxs2(left[threadIdx.x], right[threadIdx.x]);
}
